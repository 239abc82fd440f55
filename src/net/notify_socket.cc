#include "net/notify_socket.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

namespace sluice::net {

base::Result<NotifySocket> NotifySocket::Open(std::string_view address) {
  const bool known = address.size() > 1 && (address[0] == '/' || address[0] == '@');
  if (!known || address.size() >= sizeof(sockaddr_un::sun_path)) {
    return base::MakeError(base::ErrorKind::kInvalidArgument, "NOTIFY_SOCKET is \"" + std::string(address) +
                                                                  "\": a path or @name of at most 107 bytes is known");
  }
  NotifySocket out;
  out.fd_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (out.fd_ < 0) return base::MakeError(base::ErrorKind::kIo, std::string("notify socket: ") + std::strerror(errno));
  const timeval patience{1, 0};
  ::setsockopt(out.fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  out.address_ = address;
  if (out.address_[0] == '@') out.address_[0] = '\0';
  return out;
}

NotifySocket::~NotifySocket() {
  if (fd_ >= 0) ::close(fd_);
}

base::Status NotifySocket::Send(std::string_view lines, std::span<const int> fds) const {
  if (fd_ < 0) return base::Ok();
  SLUICE_CHECK(fds.size() <= kDescriptorsMax);
  sockaddr_un target{};
  target.sun_family = AF_UNIX;
  std::memcpy(target.sun_path, address_.data(), address_.size());
  iovec text{const_cast<char*>(lines.data()), lines.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kDescriptorsMax)] = {};
  msghdr message{};
  message.msg_name = &target;
  message.msg_namelen = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address_.size());
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  ssize_t sent;
  do {
    sent = ::sendmsg(fd_, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return base::MakeError(base::ErrorKind::kIo, std::string("notify socket: ") + std::strerror(errno));
  return base::Ok();
}

}  // namespace sluice::net
