// Reactor: a worker's one epoll_wait a turn. Private to the runtime.
//
//     our epoll set --+-- FdWatch: sockets and listeners, edge-triggered, added once
//                     +-- eventfd: Wake
//
// An event of an FdWatch is one virtual call. What a handler starts and is ready at once runs next turn, so a socket
// that is always ready cannot keep the worker to itself.
//
// Waking: an eventfd, edge-triggered, never read. Each write is a new edge, so a wake-up costs one write() and no
// handler.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstddef>

#include "base/clock.h"
#include "runtime/fd_watch.h"

namespace sluice::runtime {

class Reactor {
 public:
  explicit Reactor(const base::Clock& clock);
  ~Reactor();

  // See Worker. Unwatch also after the last Turn.
  int Watch(int fd, uint32_t events, FdWatch& watch);
  void Rewatch(int fd, uint32_t events, FdWatch& watch);
  void Unwatch(int fd, FdWatch& watch);
  void RequeueNextTurn(FdWatch& watch) {
    if (!watch.linked()) requeued_.PushBack(watch);
  }

  // A handler runs next turn whatever the kernel says: a Turn now would not wait.
  bool HasWork() const { return !requeued_.empty(); }

  // Waits up to `timeout` (zero: not at all; rounded up to ms; not at all if HasWork) for readiness, then runs the
  // handlers that are ready. `now` becomes the time after the wait. Returns how many have run.
  size_t Turn(base::Nanos timeout, base::TimePoint& now);

  // Any thread, until the destructor: makes a waiting Turn return. Costs a system call.
  void Wake();

  // epoll_wait's argument is an int of ms; a longer sleep is simply repeated.
  static constexpr base::Nanos kWaitMax = std::chrono::minutes(1);

 private:
  // Events taken in one epoll_wait; the rest comes with the next.
  static constexpr int kEventsMax = 256;

  const base::Clock& clock_;
  const int epoll_fd_;
  const int wake_fd_;
  base::IntrusiveList<FdWatch, FdWatch> requeued_;
  // The events of this turn, [event_, event_count_) still to be told: Unwatch looks for its object among them.
  std::array<epoll_event, kEventsMax> events_;
  int event_ = 0, event_count_ = 0;
};

}  // namespace sluice::runtime
