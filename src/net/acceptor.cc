#include "net/acceptor.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <climits>
#include <cstring>
#include <iterator>

#include "base/log.h"
#include "base/log_limit.h"
#include "net/descriptor_reserve.h"
#include "net/socket_address.h"
#include "runtime/timer_wheel.h"

namespace sluice::net {
namespace {

using base::ErrorKind;
using base::MakeError;

// Sockets accepted in one go, so that a storm of connections leaves room for calls.
constexpr int kAcceptsPerTurn = 64;
// Pause when the owner admits no more, or the process has no descriptor or memory left for a connection.
constexpr std::chrono::milliseconds kPause{100};
// While descriptors are short this is said once in this time.
constexpr std::chrono::seconds kSayAgain{10};

base::Error IoError(const std::string& what, const Address& address) {
  return MakeError(ErrorKind::kIo, what + " " + address.ToString() + ": " + std::strerror(errno));
}

// Which file a path names now; zeros for none.
ListenSocket::File FileId(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return {0, 0};
  return {info.st_dev, info.st_ino};
}

// Only our own: another process may have taken the path since.
void RemoveFile(const Address& address, const ListenSocket::File& file) {
  if (address.kind() == Address::Kind::kUnix && FileId(address.host()) == file) ::unlink(address.host().c_str());
}

// SO_REUSEPORT looks at both sockets when one of them is bound, or begins to listen; to have it on for longer would let
// others of this user take connections away.
bool SetReusePort(int fd, bool on) {
  const int value = on ? 1 : 0;
  return ::setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &value, sizeof(value)) == 0;
}

// The kernel remembers of a port that somebody with SO_REUSEPORT was bound to it, and would let others of this user
// beside us for as long as anything has the port, whatever our sockets say now. Whoever is bound without it makes it
// look at the sockets again. Where no free address is found it stays so.
void ForgetReusePort(uint16_t port) {
  for (const char* host : {"[::1]", "127.0.0.1", "127.255.255.254"}) {
    auto target = ToSocketAddress(*Address::Parse(std::string(host) + ":" + std::to_string(port)));
    const int fd = ::socket(target->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    const int on = 1;
    if (target->storage.ss_family == AF_INET6) ::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    const bool bound = ::bind(fd, target->get(), target->length) == 0;
    ::close(fd);
    if (bound) return;
  }
}

// No SYN gets here any more; a client that sends one tries again in a second (RFC 6298 2.1). Without this one could be
// let in between the last accept and the close, which resets it.
void DropSyns(int fd) {
  constexpr uint32_t kFlagsAt = 13, kSyn = 0x02, kAll = UINT32_MAX;  // RFC 9293 3.1
  sock_filter steps[] = {BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kFlagsAt), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kSyn, 0, 1),
                         BPF_STMT(BPF_RET | BPF_K, 0), BPF_STMT(BPF_RET | BPF_K, kAll)};
  const sock_fprog program{std::size(steps), steps};
  ::setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

// True if a Unix socket file is there and nobody listens behind it.
bool IsStale(const SocketAddress& address, const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISSOCK(info.st_mode)) return false;
  // Not blocking: a live listener whose queue is full would hold us here (EAGAIN says that it lives).
  int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (probe < 0) return false;
  bool refused = ::connect(probe, address.get(), address.length) != 0 && errno == ECONNREFUSED;
  ::close(probe);
  return refused;
}

}  // namespace

base::Result<ListenSocket> ListenSocket::Open(const Address& address, const Options& options) {
  auto target = ToSocketAddress(address);
  if (!target) return target.error();
  bool is_unix = address.kind() == Address::Kind::kUnix;
  int fd = ::socket(target->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return IoError("socket for", address);
  ListenSocket owner(fd, Address());  // closes fd on every early return
  if (is_unix) {
    if (IsStale(*target, address.host())) ::unlink(address.host().c_str());
  } else {
    int on = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (options.beside_shared && !SetReusePort(fd, true)) return IoError("cannot share the port of", address);
  }
  if (::bind(fd, target->get(), target->length) != 0) return IoError("cannot listen on", address);
  owner.address_ = address;
  if (is_unix) owner.file_ = FileId(address.host());
  if (is_unix && ::chmod(address.host().c_str(), options.unix_mode) != 0)
    return IoError("cannot set the mode of", address);
  if (::listen(fd, options.backlog) != 0) return IoError("cannot listen on", address);
  if (options.beside_shared) {
    SetReusePort(fd, false);
    ForgetReusePort(address.port());
  }
  if (!is_unix) {
    SocketAddress bound;
    bound.length = sizeof(bound.storage);
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&bound.storage), &bound.length) != 0) {
      return IoError("getsockname of", address);
    }
    auto parsed = Address::Parse(ToString(bound));
    if (!parsed) return parsed.error();
    owner.address_ = *parsed;
  }
  return owner;
}

ListenSocket::ListenSocket(ListenSocket&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), address_(std::move(other.address_)), file_(std::exchange(other.file_, {})) {}
ListenSocket& ListenSocket::operator=(ListenSocket&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(address_, other.address_);
  std::swap(file_, other.file_);
  return *this;
}
ListenSocket::~ListenSocket() {
  if (fd_ < 0) return;
  RemoveFile(address_, file_);
  ::close(fd_);
}
int ListenSocket::Release() { return std::exchange(fd_, -1); }

// Shared with the pending wait, which may complete after the Acceptor is gone.
struct Acceptor::Impl final : public runtime::Timer, public std::enable_shared_from_this<Impl> {
  Impl(runtime::Worker& w, ListenSocket socket, OnAccept callback, Admit asked)
      : worker(w),
        address(socket.address()),
        descriptor(w.io()),
        file(socket.file()),
        on_accept(std::move(callback)),
        admit(std::move(asked)) {
    boost::system::error_code error;
    int fd = socket.Release();
    if (descriptor.assign(fd, error); error) {
      SLUICE_LOG_ERROR("listener {}: cannot watch the socket: {}", address.ToString(), error.message());
      RemoveFile(address, file);
      ::close(fd);
      closed = true;
    }
  }

  void Wait() {
    if (closed || waiting) return;
    waiting = true;
    descriptor.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                          [self = shared_from_this()](const boost::system::error_code& error) {
                            self->waiting = false;
                            if (!self->closed && error != boost::asio::error::operation_aborted) self->Accept();
                          });
  }

  void Accept() {
    if (AcceptSome(kAcceptsPerTurn)) Wait();
  }

  void AcceptRest() {
    if (closed) return;
    if (address.kind() != Address::Kind::kUnix) DropSyns(descriptor.native_handle());
    AcceptSome(INT_MAX);
  }

  // False: none may be taken now, and a pause has begun.
  bool AcceptSome(int count) {
    for (int i = 0; i < count && !closed; ++i) {
      if (admit && !admit()) return Pause();
      if (!reserve.MayTake()) return Pause("the last file descriptors are kept for backends and the admin RPC");
      SocketAddress peer;
      peer.length = sizeof(peer.storage);
      int fd = ::accept4(descriptor.native_handle(), reinterpret_cast<sockaddr*>(&peer.storage), &peer.length,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd >= 0) {
        reserve.Took(fd);
        on_accept(fd, ToString(peer));
        continue;
      }
      const int error = errno;  // the log changes it
      if (error == EINTR || error == ECONNABORTED) continue;
      if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM) {
        reserve.NoneLeft();
        return Pause(std::strerror(error));
      }
      break;  // EAGAIN, or the peer's trouble: wait for the next
    }
    return true;
  }

  bool Pause() {
    worker.timers().Arm(*this, worker.now() + kPause);
    return false;
  }
  bool Pause(const char* why) {
    if (log.Allow(worker.now())) {
      SLUICE_LOG_WARN(
          "listener {}: accepts nothing for now, clients wait in the kernel's queue: {} (RLIMIT_NOFILE is {})",
          address.ToString(), why, reserve.limit());
    }
    return Pause();
  }

  void OnTimer(base::TimePoint) override {
    auto self = shared_from_this();  // a callback may destroy the Acceptor
    Accept();
  }

  void Apply(const ListenSocket::Options& options) {
    if (closed) return;
    const bool is_unix = address.kind() == Address::Kind::kUnix;
    // listen(2) on a socket that listens sets the length of its queue; those in it stay.
    bool done = ::listen(descriptor.native_handle(), options.backlog) == 0;
    if (done && is_unix && FileId(address.host()) == file)
      done = ::chmod(address.host().c_str(), options.unix_mode) == 0;
    if (!done)
      SLUICE_LOG_WARN("listener {}: cannot take its new options: {}", address.ToString(), std::strerror(errno));
  }

  void SetShared(bool shared) {
    if (!closed && address.kind() != Address::Kind::kUnix) SetReusePort(descriptor.native_handle(), shared);
  }

  void Close() {
    if (!std::exchange(closed, true)) RemoveFile(address, file);
    worker.timers().Disarm(*this);
    boost::system::error_code ignored;
    descriptor.close(ignored);
  }

  runtime::Worker& worker;
  Address address;
  boost::asio::posix::stream_descriptor descriptor;
  ListenSocket::File file;  // of a Unix socket
  OnAccept on_accept;
  Admit admit;
  DescriptorReserve reserve;
  base::LogLimit log{1, kSayAgain};
  bool waiting = false, closed = false;
};

Acceptor::Acceptor(runtime::Worker& worker, ListenSocket socket, OnAccept on_accept, Admit admit)
    : impl_(std::make_shared<Impl>(worker, std::move(socket), std::move(on_accept), std::move(admit))) {
  impl_->Wait();
}

void Acceptor::Apply(const ListenSocket::Options& options) { impl_->Apply(options); }

void Acceptor::SetShared(bool shared) { impl_->SetShared(shared); }

void Acceptor::AcceptRest() { impl_->AcceptRest(); }

Acceptor::~Acceptor() { impl_->Close(); }

}  // namespace sluice::net
