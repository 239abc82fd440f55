#include "net/accept_loop.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/log.h"

namespace sluice::net {

AcceptLoop::Outcome AcceptLoop::Run(int listener, base::TimePoint now, int count) {
  for (int i = 0; i < count; ++i) {
    if (admit_ && !admit_()) return Outcome::kPause;
    if (!reserve_.MayTake()) return Pause(now, "the last file descriptors are kept for other uses");
    SocketAddress peer;
    peer.length = sizeof(peer.storage);
    const int fd =
        ::accept4(listener, reinterpret_cast<sockaddr*>(&peer.storage), &peer.length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      reserve_.Took(fd);
      if (!on_accept_(fd, peer)) return Outcome::kDrained;
      continue;
    }
    const int error = errno;  // the log changes it
    switch (error) {
      case EINTR:
      case ECONNABORTED:
        continue;
      case EAGAIN:
        return Outcome::kDrained;
      case EMFILE:
      case ENFILE:
      case ENOBUFS:
      case ENOMEM:
        reserve_.NoneLeft();
        return Pause(now, std::strerror(error));
      default:
        return Outcome::kMore;  // an error of this one connection (accept(2), "Error handling")
    }
  }
  return Outcome::kMore;
}

AcceptLoop::Outcome AcceptLoop::Pause(base::TimePoint now, const char* why) {
  if (const auto note = log_.Allow(now)) {
    SLUICE_LOG_WARN("{}: accepting is paused, clients wait in the kernel's queue: {} (RLIMIT_NOFILE is {}){}", name_,
                    why, reserve_.limit(), *note);
  }
  return Outcome::kPause;
}

}  // namespace sluice::net
