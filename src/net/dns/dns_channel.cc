#include "net/dns/dns_channel.h"

#include <ares.h>
#include <netdb.h>
#include <poll.h>
#include <sys/epoll.h>

#include <utility>

#include "runtime/fd_watch.h"

namespace sluice::net {

namespace {

constexpr int kClassIn = 1;  // RFC 1035 3.2.4

}  // namespace

struct DnsChannel::Question {
  DnsChannel& channel;
  std::string name;
  DnsType type;
  Done done;
  bool again = false;
};

struct DnsChannel::Name {
  DnsChannel& channel;
  Resolved done;
};

class DnsChannel::Socket final : private runtime::FdWatch {
 public:
  Socket(DnsChannel& channel, int fd) : channel_(channel), fd_(fd) {}
  ~Socket() {
    if (watched_) channel_.worker_.Unwatch(fd_, *this);
  }
  // What it is ready for already is an edge. A socket that cannot be watched leaves its questions to their timeout.
  void Want(bool readable, bool writable) {
    const uint32_t events = (readable ? EPOLLIN : 0u) | (writable ? EPOLLOUT : 0u);
    if (watched_)
      channel_.worker_.Rewatch(fd_, events, *this);
    else
      watched_ = channel_.worker_.Watch(fd_, events, *this) == 0;
  }
  // There is more to read.
  void Later() { channel_.worker_.RequeueNextTurn(*this); }

 private:
  void OnEdge(uint32_t events) override {
    const bool broken = (events & (EPOLLERR | EPOLLHUP)) != 0;
    channel_.Process(fd_, broken || (events & EPOLLIN) != 0, broken || (events & EPOLLOUT) != 0);
  }
  void OnRequeued() override { channel_.Process(fd_, true, false); }

  DnsChannel& channel_;
  const int fd_;
  bool watched_ = false;
};

DnsChannel::DnsChannel(std::unique_ptr<DnsSystem> system)
    : worker_(*runtime::Worker::Current()), system_(std::move(system)) {
  system_->Watch(this);
}

// c-ares tells of each socket before it closes it: by the cancelling, where questions were out, or at its end.
DnsChannel::~DnsChannel() {
  closing_ = true;
  ares_cancel(system_->ares());
  system_->Watch(nullptr);
  sockets_.clear();
}

void DnsChannel::Ask(const std::string& name, DnsType type, Done done) {
  auto question = std::make_unique<Question>(Question{*this, name, type, std::move(done)});
  ares_query(system_->ares(), name.c_str(), kClassIn, static_cast<int>(type), &OnAnswer, question.release());
  ArmTimer();
}

void DnsChannel::OnAnswer(void* question, int status, int, unsigned char* message, int bytes) {
  std::unique_ptr<Question> owned(static_cast<Question*>(question));
  if (owned->channel.closing_ || status == ARES_ECANCELLED || status == ARES_EDESTRUCTION) return;
  // A server that does not know EDNS says so of each question that is out; c-ares has left it out since the first.
  if ((status == ARES_EFORMERR || status == ARES_ENOTIMP) && !std::exchange(owned->again, true)) {
    Question& next = *owned.release();
    ares_query(next.channel.system_->ares(), next.name.c_str(), kClassIn, static_cast<int>(next.type), &OnAnswer,
               &next);
    return;
  }
  owned->done(ReadReply(owned->type, status, {message, message == nullptr ? 0 : static_cast<size_t>(bytes)}));
}

void DnsChannel::Resolve(const std::string& host, int family, Resolved done) {
  auto question = std::make_unique<Name>(Name{*this, std::move(done)});
  ares_addrinfo_hints hints{};
  hints.ai_family = family;
  ares_getaddrinfo(system_->ares(), host.c_str(), nullptr, &hints, &OnResolved, question.release());
  ArmTimer();
}

void DnsChannel::OnResolved(void* question, int status, int, ares_addrinfo* found) {
  const std::unique_ptr<Name> owned(static_cast<Name*>(question));
  std::vector<std::string> addresses = DnsSystem::TakeAddresses(found);
  if (owned->channel.closing_ || status == ARES_ECANCELLED || status == ARES_EDESTRUCTION) return;
  if (!addresses.empty()) return owned->done(std::move(addresses));
  const bool none = status == ARES_SUCCESS || status == ARES_ENOTFOUND || status == ARES_ENODATA;
  const bool late = status == ARES_ETIMEOUT;
  owned->done(base::MakeError(late ? base::ErrorKind::kConnectFailed : base::ErrorKind::kNotFound,
                              none ? "no such name, or no address of it" : ReadReply(DnsType::kA, status, {}).error));
}

void DnsChannel::OnSocket(int fd, bool readable, bool writable) {
  if (!readable && !writable) {
    sockets_.erase(fd);
    return;
  }
  auto& socket = sockets_[fd];
  if (socket == nullptr) socket = std::make_unique<Socket>(*this, fd);
  socket->Want(readable, writable);
}

// Edges are told once, and c-ares reads what it pleases (one message of a TCP connection, say): until there is nothing
// to read, or in the next turn.
void DnsChannel::Process(int fd, bool readable, bool writable) {
  for (int round = 0; readable || writable; ++round) {
    const auto socket = sockets_.find(fd);
    if (socket == sockets_.end()) break;
    if (round == kRoundsMax) {
      socket->second->Later();
      break;
    }
    ares_process_fd(system_->ares(), readable ? fd : ARES_SOCKET_BAD, writable ? fd : ARES_SOCKET_BAD);
    writable = false;
    pollfd more{fd, POLLIN, 0};
    readable = sockets_.contains(fd) && ::poll(&more, 1, 0) > 0;
  }
  ArmTimer();
}

void DnsChannel::OnTimer(base::TimePoint) {
  ares_process_fd(system_->ares(), ARES_SOCKET_BAD, ARES_SOCKET_BAD);
  ArmTimer();
}

// The wheel never fires early, but its time is that of the turn's begin: what is not yet due then is armed again.
void DnsChannel::ArmTimer() {
  timeval wait{};
  if (ares_timeout(system_->ares(), nullptr, &wait) == nullptr) return worker_.timers().Disarm(*this);
  worker_.timers().Arm(*this, worker_.now() + std::chrono::seconds(wait.tv_sec) +
                                  std::chrono::microseconds(wait.tv_usec) + std::chrono::milliseconds(1));
}

}  // namespace sluice::net
