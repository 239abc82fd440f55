// Reactor: a worker's io_context, driven with one epoll_wait a turn. Private to the runtime.
//
// io_context::run_one_for and poll cost more than that: they read the clock around each wait, and they ask
// epoll again after the last handler. So Turn() runs the context over an epoll_reactor whose run() is ours:
// it waits as long as we said, takes the time, and puts a marker behind the handlers that are ready; the turn
// ends when the marker comes up. What these handlers start and is ready at once runs next turn, so a socket
// that is always ready cannot hold the worker. (execution_context services are virtual and may be installed
// before first use; Boost 1.81.)
//
// Waking: an eventfd, edge-triggered, never read. Each write is a new edge, so a wake-up costs one write()
// and no handler.
#pragma once

#include <memory>

#include "base/clock.h"

namespace boost::asio {
class io_context;
}

namespace sluice::runtime {

class Reactor {
 public:
  explicit Reactor(const base::Clock& clock);
  ~Reactor();

  boost::asio::io_context& io();

  // Waits up to `timeout` (zero: not at all; rounded up to ms) for readiness, then runs the handlers that are
  // ready. `now` becomes the time after the wait. Returns how many ran.
  size_t Turn(base::Nanos timeout, base::TimePoint& now);

  // Any thread, until the destructor, also after Close: makes a waiting Turn return. Costs a system call.
  void Wake();

  // Destroys the context and the handlers that wait in it. Owner. The eventfd stays: somebody who decided to
  // wake this worker before it woke by itself may be about to write.
  void Close();

  // epoll_wait's argument is an int of ms; a longer sleep is simply repeated.
  static constexpr base::Nanos kWaitMax = std::chrono::minutes(1);

 private:
  struct Impl;
  const int wake_fd_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::runtime
