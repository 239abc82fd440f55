// Bell: what a task of discovery waits for: a ring, or a point in time. One worker only, one waiter; lives in the
// waiting task's frame, so that it ends on its worker.
#pragma once

#include "base/clock.h"
#include "runtime/timer_wheel.h"
#include "runtime/worker.h"
#include "sync/event.h"

namespace sluice::discovery {

class Bell final : private runtime::Timer {
 public:
  // The present wait ends, or else the next one does not begin.
  void Ring() { event_.Set(); }
  // co_await bell.Wait(until): suspends until a ring, the time, or for no reason: look at your own condition in a loop.
  // Cancel-safe.
  auto Wait(base::TimePoint until) {
    runtime::TimerWheel& timers = runtime::Worker::Current()->timers();
    if (until == base::kNever)
      timers.Disarm(*this);
    else
      timers.Arm(*this, until);
    return event_.Wait();
  }

 private:
  void OnTimer(base::TimePoint) override { event_.Set(); }

  sync::Event event_;
};

}  // namespace sluice::discovery
