#include "net/dialer.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "net/dns/dns_lookup.h"
#include "net/socket_address.h"
#include "net/socket_stream.h"
#include "runtime/fd_watch.h"
#include "runtime/runtime.h"
#include "runtime/timer_wheel.h"

namespace sluice::net {

using base::ErrorKind;
using base::MakeError;

namespace {

// RFC 8305 4: the families in turn, beginning with that of the first, else in the order of the resolver (RFC 6724).
std::vector<SocketAddress> InTurn(std::vector<SocketAddress> found) {
  if (found.size() > Dialer::kAddressesMax) found.resize(Dialer::kAddressesMax);
  if (found.size() < 3) return found;
  std::vector<SocketAddress> same, other, out;
  for (const SocketAddress& address : found) {
    (address.storage.ss_family == found[0].storage.ss_family ? same : other).push_back(address);
  }
  for (size_t i = 0; out.size() < found.size(); ++i) {
    if (i < same.size()) out.push_back(same[i]);
    if (i < other.size()) out.push_back(other[i]);
  }
  return out;
}

base::Result<SocketAddress> WithPort(const std::string& host, uint16_t port) {
  const std::string text = host.find(':') == std::string::npos ? host : "[" + host + "]";
  const auto address = Address::Parse(text + ":" + std::to_string(port));
  if (!address.ok()) return address.error();
  return ToSocketAddress(*address);
}

}  // namespace

// Shared with messages and helper threads' answers, which may arrive after the Dialer is gone.
struct Dialer::Impl final : public runtime::Timer, public std::enable_shared_from_this<Impl> {
  // A socket that connects. It becomes writable when it has, or has failed.
  class Try final : private runtime::FdWatch {
   public:
    Try(Impl& dialer, const SocketAddress& to, int fd) : target(to), dialer_(dialer), fd_(fd) {}
    ~Try() {
      if (fd_ >= 0) ::close(Release());
    }
    int Watch() { return dialer_.worker.Watch(fd_, EPOLLOUT, *this); }
    // Watched no more, and the caller's.
    int Release() {
      dialer_.worker.Unwatch(fd_, *this);
      return std::exchange(fd_, -1);
    }
    int fd() const { return fd_; }
    const SocketAddress target;

   private:
    void OnEdge(uint32_t) override { dialer_.Finished(*this); }
    void OnRequeued() override {}

    Impl& dialer_;
    int fd_;
  };

  Impl(runtime::Worker& w, const Address& a, base::TimePoint until, OnDone callback)
      : worker(w), address(a), deadline(until), on_done(std::move(callback)) {}

  void Start(Resolve resolve) {
    worker.timers().Arm(*this, deadline);
    if (address.kind() != Address::Kind::kName) {
      auto target = ToSocketAddress(address);
      if (target)
        targets.push_back(*target);
      else
        error = target.error();
      // Not from inside the constructor: the caller does not hold the Dialer yet.
      worker.Post([self = shared_from_this()] { self->TryNext(); });
      return;
    }
    if (resolve) return ResolveElsewhere(std::move(resolve));
    lookup = std::make_unique<DnsLookup>(worker, address.host(), [this](const auto& found) { TakeNames(found); });
  }

  // A server that does not answer is not waited for by helper threads, which have other work.
  void TakeNames(const base::Result<std::vector<std::string>>& found) {
    const auto self = shared_from_this();  // what is done may destroy the Dialer
    if (!found.ok() && found.error().kind == ErrorKind::kNotFound) return ResolveElsewhere(&ResolveBlocking);
    if (found.ok()) {
      std::vector<SocketAddress> addresses;
      for (const std::string& host : *found) {
        if (auto one = WithPort(host, address.port())) addresses.push_back(*one);
      }
      targets = InTurn(std::move(addresses));
    } else {
      const std::string why = "cannot resolve " + address.host() + ": " + found.error().detail;
      error = MakeError(ErrorKind::kConnectFailed, why);
    }
    TryNext();
  }

  void ResolveElsewhere(Resolve resolve) {
    auto found = std::make_shared<std::optional<base::Result<std::vector<SocketAddress>>>>();
    bool queued = worker.runtime().Block(
        worker, [found, resolve = std::move(resolve), a = address] { found->emplace(resolve(a)); },
        [found, self = shared_from_this()] {
          if ((*found)->ok())
            self->targets = InTurn(std::move(***found));
          else
            self->error = (*found)->error();
          self->TryNext();
        });
    if (queued) return;
    error = MakeError(ErrorKind::kConnectFailed, "cannot resolve " + address.host() + ": too many names wait");
    worker.Post([self = shared_from_this()] { self->TryNext(); });
  }

  // The next address that does not fail at once. The last failure is reported when none is left.
  void TryNext() {
    while (!done && next < targets.size()) {
      const SocketAddress& target = targets[next++];
      int fd = ::socket(target.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
      if (fd < 0) {
        error = MakeError(ErrorKind::kConnectFailed, std::string("socket: ") + std::strerror(errno));
        continue;
      }
      int rc = ::connect(fd, target.get(), target.length);
      if (rc == 0) return Connected(fd);
      // EAGAIN on a Unix socket: its queue is full, which is a refusal; on TCP connect is under way (EINPROGRESS).
      if (errno != EINPROGRESS) {
        Failed(target, errno);
        ::close(fd);
        continue;
      }
      if (Watch(fd, target)) return WaitForNext();
    }
    if (!done && tries.empty())
      Done(error);
    else if (!done)
      worker.timers().Arm(*this, deadline);
  }

  // False, and `fd` closed, if the reactor cannot watch it.
  bool Watch(int fd, const SocketAddress& target) {
    auto one = std::make_unique<Try>(*this, target, fd);
    if (const int problem = one->Watch()) {
      error = MakeError(ErrorKind::kConnectFailed, std::string("cannot watch a socket: ") + std::strerror(problem));
      return false;
    }
    if (tries.size() == kConnectingMax) tries.erase(tries.begin());
    tries.push_back(std::move(one));
    return true;
  }

  // What is left of the time is shared out among this address and those still to come.
  void WaitForNext() {
    if (next == targets.size()) return worker.timers().Arm(*this, deadline);
    const base::Nanos share = (deadline - worker.now()) / static_cast<int64_t>(targets.size() - next + 1);
    worker.timers().Arm(*this, worker.now() + std::min<base::Nanos>(share, kNextAddressAfter));
  }

  void Finished(Try& finished) {
    const auto it = std::find_if(tries.begin(), tries.end(), [&](const auto& one) { return one.get() == &finished; });
    const std::unique_ptr<Try> one = std::move(*it);
    tries.erase(it);
    int problem = 0;
    socklen_t length = sizeof(problem);
    ::getsockopt(one->fd(), SOL_SOCKET, SO_ERROR, &problem, &length);
    if (problem == 0) return Connected(one->Release());
    Failed(one->target, problem);
    ::close(one->Release());  // `one` may outlive the Dialer
    TryNext();
  }

  void Failed(const SocketAddress& target, int problem) {
    const bool refused = error.os_error == ECONNREFUSED;
    error = MakeError(ErrorKind::kConnectFailed, "connect to " + ToString(target) + ": " + std::strerror(problem));
    // One address that refuses shows that the host is there, whatever becomes of the others.
    error.os_error = refused ? ECONNREFUSED : problem;
  }

  void Connected(int fd) {
    auto stream = MakeSocketStream(worker, fd, address.ToString());
    if (stream == nullptr) return Done(MakeError(ErrorKind::kConnectFailed, "cannot watch a socket"));
    Done(std::move(stream));
  }

  void OnTimer(base::TimePoint now) override {
    if (now < deadline) return TryNext();
    Done(MakeError(ErrorKind::kConnectTimeout, "no connection to " + address.ToString() + " in time"));
  }

  void Done(base::Result<std::unique_ptr<Stream>> result) {
    auto self = shared_from_this();
    Cancel();
    auto callback = std::move(on_done);  // it may destroy the Dialer
    callback(std::move(result));
  }

  void Cancel() {
    done = true;
    worker.timers().Disarm(*this);
    lookup.reset();
    tries.clear();
  }

  runtime::Worker& worker;
  const Address address;
  const base::TimePoint deadline;
  OnDone on_done;
  std::unique_ptr<DnsLookup> lookup;  // under way
  std::vector<SocketAddress> targets;
  size_t next = 0;
  std::vector<std::unique_ptr<Try>> tries;  // the oldest first; none once done
  base::Error error = MakeError(ErrorKind::kConnectFailed, "no address to connect to");
  bool done = false;
};

Dialer::Dialer(runtime::Worker& worker, const Address& address, base::TimePoint deadline, OnDone on_done,
               Resolve resolve)
    : impl_(std::make_shared<Impl>(worker, address, deadline, std::move(on_done))) {
  impl_->Start(std::move(resolve));
}

Dialer::~Dialer() { impl_->Cancel(); }

std::unique_ptr<Attempt> Dial(runtime::Worker& worker, const Address& address, base::TimePoint deadline,
                              Dialer::OnDone on_done) {
  return std::make_unique<Dialer>(worker, address, deadline, std::move(on_done));
}

}  // namespace sluice::net
