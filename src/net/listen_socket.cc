#include "net/listen_socket.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>

#include "net/socket_address.h"
#include "net/unix_socket_claim.h"

namespace sluice::net {
namespace {

base::Error Failed(const std::string& what, const Address& address) {
  const int error = errno;
  return base::MakeError(error == EADDRINUSE ? base::ErrorKind::kConflict : base::ErrorKind::kIo,
                         what + " " + address.ToString() + ": " + std::strerror(error));
}

// The kernel looks at SO_REUSEPORT of both sockets when one of them is bound or begins to listen. To have it on for
// longer would let other processes of this user take connections away.
bool SetReusePort(int fd, bool on) {
  const int value = on ? 1 : 0;
  return ::setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &value, sizeof(value)) == 0;
}

// The kernel remembers of a port that a socket with SO_REUSEPORT was bound to it, and would let others of this user
// beside us for as long as anything has the port, whatever our sockets say now. A socket that is bound without it makes
// the kernel look at the sockets again. Where no free address is found it stays so.
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

}  // namespace

ListenSocket::File ListenSocket::FileAt(const Address& address) {
  struct stat info {};
  if (::lstat(address.host().c_str(), &info) != 0) return {};
  return {info.st_dev, info.st_ino};
}

base::Result<ListenSocket> ListenSocket::Open(const Address& address, const Options& options) {
  auto target = ToSocketAddress(address);
  if (!target) return target.error();
  std::optional<UnixSocketClaim> claim;  // until it listens
  if (address.kind() == Address::Kind::kUnix) {
    auto claimed = UnixSocketClaim::Claim(address);
    if (!claimed) return claimed.error();
    claim.emplace(std::move(*claimed));
  }
  const int fd = ::socket(target->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return Failed("socket for", address);
  ListenSocket out(fd, address);  // closes fd on every early return
  if (auto bound = out.Bind(options); !bound) return bound.error();
  return out;
}

base::Status ListenSocket::Bind(const Options& options) {
  auto target = ToSocketAddress(address_);
  const char* path = address_.host().c_str();
  if (is_unix()) {
    // Linux takes the file's mode from the socket's, less the umask: no moment with more rights.
    if (::fchmod(fd_, options.unix_mode) != 0) return Failed("cannot set the mode of", address_);
  } else {
    const int on = 1;
    ::setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (options.beside_shared && !SetReusePort(fd_, true)) return Failed("cannot share the port of", address_);
  }
  if (::bind(fd_, target->get(), target->length) != 0) return Failed("cannot listen on", address_);
  if (is_unix()) {
    file_ = FileAt(address_);
    if (::chmod(path, options.unix_mode) != 0) return Failed("cannot set the mode of", address_);
  }
  if (::listen(fd_, options.backlog) != 0) return Failed("cannot listen on", address_);
  if (is_unix()) return base::Ok();

  if (options.beside_shared) {
    SetReusePort(fd_, false);
    ForgetReusePort(address_.port());
  }
  SocketAddress bound;
  bound.length = sizeof(bound.storage);
  if (::getsockname(fd_, reinterpret_cast<sockaddr*>(&bound.storage), &bound.length) != 0)
    return Failed("getsockname of", address_);
  auto parsed = Address::Parse(ToString(bound));
  if (!parsed) return parsed.error();
  address_ = std::move(*parsed);
  return base::Ok();
}

base::Result<ListenSocket> ListenSocket::Adopt(int fd, bool removes_file) {
  ListenSocket out(fd, Address());  // closes fd on every early return
  int listens = 0, type = 0;
  socklen_t length = sizeof(int);
  SocketAddress bound;
  bound.length = sizeof(bound.storage);
  if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0 || listens == 0 ||
      ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_STREAM ||
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&bound.storage), &bound.length) != 0)
    return base::MakeError(base::ErrorKind::kInvalidArgument, "it is no stream socket that listens");
  auto parsed = Address::Parse(ToString(bound));
  if (!parsed) return base::MakeError(base::ErrorKind::kInvalidArgument, "its address is not one of a listener");
  out.address_ = std::move(*parsed);
  out.borrowed_ = !removes_file;
  if (removes_file && out.is_unix()) out.file_ = FileAt(out.address_);
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 || ::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
    return Failed("cannot take over", out.address_);
  // That of DropNewConnections, where the process before came as far as that.
  const int none = 0;
  ::setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof(none));
  return out;
}

ListenSocket::ListenSocket(ListenSocket&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      address_(std::move(other.address_)),
      ours_(std::move(other.ours_)),
      borrowed_(other.borrowed_),
      file_(std::exchange(other.file_, {})) {}

ListenSocket& ListenSocket::operator=(ListenSocket&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(address_, other.address_);
  std::swap(ours_, other.ours_);
  std::swap(borrowed_, other.borrowed_);
  std::swap(file_, other.file_);
  return *this;
}

ListenSocket::~ListenSocket() {
  if (fd_ < 0) return;
  // Only our own: another process may have taken the path since.
  if (!left() && file_ != File() && FileAt(address_) == file_) ::unlink(address_.host().c_str());
  ::close(fd_);
}

base::Status ListenSocket::Apply(const Options& options) {
  // listen(2) on a socket that listens sets the length of its queue; those in it stay.
  if (::listen(fd_, options.backlog) != 0) return Failed("cannot set the backlog of", address_);
  if (is_unix() && file_ != File() && FileAt(address_) == file_ &&
      ::chmod(address_.host().c_str(), options.unix_mode) != 0)
    return Failed("cannot set the mode of", address_);
  return base::Ok();
}

void ListenSocket::SetShared(bool shared) {
  if (!is_unix()) SetReusePort(fd_, shared);
}

// Without the filter a client could be let in between the last accept and the close, which resets it.
void ListenSocket::DropNewConnections() {
  if (is_unix() || borrowed_ || left()) return;
  constexpr uint32_t kFlagsAt = 13, kSyn = 0x02, kAll = UINT32_MAX;  // RFC 9293 3.1
  sock_filter steps[] = {BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kFlagsAt), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kSyn, 0, 1),
                         BPF_STMT(BPF_RET | BPF_K, 0), BPF_STMT(BPF_RET | BPF_K, kAll)};
  const sock_fprog program{std::size(steps), steps};
  ::setsockopt(fd_, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

}  // namespace sluice::net
