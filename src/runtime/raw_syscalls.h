// System calls on the path of a call, without libc's wrappers: in a process with threads those announce and withdraw a
// cancellation point around each call, two locked operations and about thirty instructions, and threads are not
// cancelled here. Under ThreadSanitizer libc's are used: it learns from them which writes come before which reads.
//
// As the functions of the same name in recv(2), send(2), sendmsg(2) and epoll_wait(2), errno included.
#pragma once

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

namespace sluice::runtime {

#if defined(__SANITIZE_THREAD__)
#define SLUICE_LIBC_CALLS 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SLUICE_LIBC_CALLS 1
#endif
#endif

#if defined(SLUICE_LIBC_CALLS)
inline ssize_t Recv(int fd, void* into, size_t size) { return ::recv(fd, into, size, 0); }
inline ssize_t Send(int fd, const void* from, size_t size, int flags) { return ::send(fd, from, size, flags); }
inline ssize_t SendMsg(int fd, const msghdr& message, int flags) { return ::sendmsg(fd, &message, flags); }
inline int EpollWait(int fd, epoll_event* events, int count, int timeout_ms) {
  return ::epoll_wait(fd, events, count, timeout_ms);
}
#else
inline ssize_t Recv(int fd, void* into, size_t size) {
  return ::syscall(SYS_recvfrom, fd, into, size, 0, nullptr, nullptr);
}
inline ssize_t Send(int fd, const void* from, size_t size, int flags) {
  return ::syscall(SYS_sendto, fd, from, size, flags, nullptr, 0);
}
inline ssize_t SendMsg(int fd, const msghdr& message, int flags) { return ::syscall(SYS_sendmsg, fd, &message, flags); }
inline int EpollWait(int fd, epoll_event* events, int count, int timeout_ms) {
  return static_cast<int>(::syscall(SYS_epoll_pwait, fd, events, count, timeout_ms, nullptr, 0));
}
#endif
#undef SLUICE_LIBC_CALLS

}  // namespace sluice::runtime
