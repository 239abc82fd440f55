#include "handover/message_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace sluice::handover {

using base::ErrorKind;
using base::MakeError;

namespace {

base::Error Failed(const char* what) {
  return MakeError(ErrorKind::kIo, std::string(what) + ": " + std::strerror(errno));
}

constexpr size_t kControlBytes = CMSG_SPACE(MessageSocket::kDescriptorsMax * sizeof(int));

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

base::Result<MessageSocket> MessageSocket::Adopt(int fd) {
  MessageSocket out(fd);
  int type = 0;
  socklen_t length = sizeof(type);
  if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_SEQPACKET)
    return MakeError(ErrorKind::kInvalidArgument, "descriptor " + std::to_string(fd) + " is no socket of a handover");
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 || ::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
    return Failed("the socket of the handover");
  return out;
}

base::Result<std::pair<MessageSocket, Descriptor>> MessageSocket::MakePair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) return Failed("socketpair");
  const int bytes = kBufferBytes;
  for (const int end : ends) ::setsockopt(end, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
  return std::pair(MessageSocket(ends[0]), Descriptor(ends[1]));
}

base::Status MessageSocket::Send(std::string_view message, std::span<const int> descriptors) {
  if (message.size() > kBytesMax || descriptors.size() > kDescriptorsMax)
    return MakeError(ErrorKind::kTooLarge, "a message of the handover is too large");
  iovec piece{const_cast<char*>(message.data()), message.size()};
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[kControlBytes];
  if (!descriptors.empty()) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
  }
  for (;;) {
    const ssize_t sent = ::sendmsg(fd_.get(), &header, MSG_NOSIGNAL);
    if (sent >= 0) return base::Ok();
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS)
      return MakeError(ErrorKind::kBusy, "the other process does not read");
    return Failed("the other process");
  }
}

base::Result<std::optional<MessageSocket::Received>> MessageSocket::Receive(std::chrono::milliseconds timeout) {
  pollfd look{fd_.get(), POLLIN, 0};
  const int ready = ::poll(&look, 1, static_cast<int>(timeout.count()));
  if (ready == 0 || (ready < 0 && errno == EINTR)) return std::optional<Received>();
  Received out;
  out.message.resize(kBytesMax + 1);
  iovec piece{out.message.data(), out.message.size()};
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[kControlBytes];
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  const ssize_t size = ::recvmsg(fd_.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return std::optional<Received>();
  if (size < 0) return Failed("the other process");
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      out.descriptors.emplace_back(fd);
    }
  }
  // A message is never empty: a packet without bytes is the peer's end.
  if (size == 0) return MakeError(ErrorKind::kIo, "the other process has gone");
  if (static_cast<size_t>(size) > kBytesMax || (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0)
    return MakeError(ErrorKind::kInvalidArgument, "a message of the handover is too large");
  out.message.resize(static_cast<size_t>(size));
  return std::optional(std::move(out));
}

}  // namespace sluice::handover
