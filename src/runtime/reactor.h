// Reactor: a worker's one epoll_wait a turn, for sockets that are watched and for an io_context. Private to the
// runtime.
//
//     our epoll set --+-- FdWatch: sockets, edge-triggered, added once
//                     +-- eventfd: Wake
//                     +-- the epoll set of Asio's io_context: what does not carry calls (listeners, connects)
//
// An event of an FdWatch is one virtual call. Asio's set is one descriptor in ours, so the context costs nothing until
// it has something: then, and when something was posted to it, its scheduler is run. io_context::run_one_for and poll
// cost more than that needs: they read the clock around each wait, and they ask epoll again after the last handler. So
// the context runs over an epoll_reactor whose run() is ours: it does not wait, and puts a marker behind the handlers
// that are ready; the pass ends when the marker comes up. What handlers start and is ready at once runs next turn, so a
// socket that is always ready cannot hold the worker. (execution_context services are virtual and may be installed
// before first use; Boost 1.81.)
//
// Waking: an eventfd, edge-triggered, never read. Each write is a new edge, so a wake-up costs one write()
// and no handler.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <memory>

#include "base/clock.h"
#include "runtime/fd_watch.h"

namespace boost::asio {
class io_context;
}

namespace sluice::runtime {

class Reactor {
 public:
  explicit Reactor(const base::Clock& clock);
  ~Reactor();

  boost::asio::io_context& io();

  // See Worker.
  int Watch(int fd, uint32_t events, FdWatch& watch);
  void Rewatch(int fd, uint32_t events, FdWatch& watch);
  void Unwatch(int fd, FdWatch& watch);
  void TellNextTurn(FdWatch& watch) {
    if (!watch.linked()) to_tell_.PushBack(watch);
  }

  // Something runs next turn whatever the kernel says: a Turn now would not wait.
  bool HasWork() const;

  // Waits up to `timeout` (zero: not at all; rounded up to ms; not at all if HasWork) for readiness, then tells and
  // runs the handlers that are ready. `now` becomes the time after the wait. Returns how many were told or run.
  size_t Turn(base::Nanos timeout, base::TimePoint& now);

  // Any thread, until the destructor, also after Close: makes a waiting Turn return. Costs a system call.
  void Wake();

  // Destroys the context and the handlers that wait in it; nothing is told any more. Owner. The eventfd stays: somebody
  // who decided to wake this worker before it woke by itself may be about to write.
  void Close();

  // epoll_wait's argument is an int of ms; a longer sleep is simply repeated.
  static constexpr base::Nanos kWaitMax = std::chrono::minutes(1);

 private:
  struct Impl;
  // Events taken in one epoll_wait; the rest comes with the next.
  static constexpr int kEventsMax = 256;

  const base::Clock& clock_;
  const int epoll_fd_;
  const int wake_fd_;
  base::IntrusiveList<FdWatch, FdWatch> to_tell_;
  // The events of this turn, [event_, event_count_) still to be told: Unwatch looks for its object among them.
  std::array<epoll_event, kEventsMax> events_;
  int event_ = 0, event_count_ = 0;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::runtime
