#include "runtime/internal/reactor.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/check.h"
#include "runtime/raw_syscalls.h"

namespace sluice::runtime {
namespace {

// `watch`: null for the eventfd. Returns 0, or errno.
int Control(int epoll_fd, int operation, int fd, uint32_t events, FdWatch* watch) {
  epoll_event event{};
  event.events = events | EPOLLET;
  event.data.ptr = watch;
  return ::epoll_ctl(epoll_fd, operation, fd, &event) == 0 ? 0 : errno;
}

}  // namespace

Reactor::Reactor(const base::Clock& clock)
    : clock_(clock), epoll_fd_(::epoll_create1(EPOLL_CLOEXEC)), wake_fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  SLUICE_CHECK(epoll_fd_ >= 0 && wake_fd_ >= 0);
  SLUICE_CHECK(Control(epoll_fd_, EPOLL_CTL_ADD, wake_fd_, EPOLLIN, nullptr) == 0);
}

// The eventfd lives until here: a thread that decided to wake this worker before it woke by itself may be about to
// write.
Reactor::~Reactor() {
  ::close(epoll_fd_);
  ::close(wake_fd_);
}

int Reactor::Watch(int fd, uint32_t events, FdWatch& watch) {
  return Control(epoll_fd_, EPOLL_CTL_ADD, fd, events, &watch);
}

void Reactor::Rewatch(int fd, uint32_t events, FdWatch& watch) {
  SLUICE_CHECK(Control(epoll_fd_, EPOLL_CTL_MOD, fd, events, &watch) == 0);
}

// Closing the descriptor would do for the kernel, but not while a child between fork and exec shares the socket: its
// events would go on, to an object that is gone.
void Reactor::Unwatch(int fd, FdWatch& watch) {
  Control(epoll_fd_, EPOLL_CTL_DEL, fd, 0, nullptr);
  watch.Unlink();
  for (int i = event_; i < event_count_; ++i) {
    if (events_[static_cast<size_t>(i)].data.ptr == &watch) events_[static_cast<size_t>(i)].data.ptr = nullptr;
  }
}

size_t Reactor::Turn(base::Nanos timeout, base::TimePoint& now) {
  // Only those requeued before this turn.
  base::IntrusiveList<FdWatch, FdWatch> due;
  due.Splice(requeued_);
  if (!due.empty()) timeout = base::Nanos(0);
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(std::min(timeout, kWaitMax));
  event_count_ = EpollWait(epoll_fd_, events_.data(), kEventsMax, static_cast<int>(ms.count()));
  now = clock_.Now();
  size_t run = 0;
  for (event_ = 0; event_ < event_count_;) {
    const epoll_event& event = events_[static_cast<size_t>(event_++)];
    auto* watch = static_cast<FdWatch*>(event.data.ptr);
    if (watch == nullptr) continue;  // the eventfd, or unwatched since
    ++run;
    watch->OnEdge(event.events);
  }
  event_ = event_count_ = 0;
  while (FdWatch* watch = due.PopFront()) {
    ++run;
    watch->OnRequeued();
  }
  return run;
}

void Reactor::Wake() {
  const uint64_t one = 1;
  // The counter cannot overflow in a process's life, so the write cannot fail but by a bug.
  SLUICE_CHECK(::write(wake_fd_, &one, sizeof one) == sizeof one);
}

}  // namespace sluice::runtime
