// SleepUntil: suspends the task on its worker's timer wheel. Cancel-safe: a destroyed sleeper is disarmed.
#pragma once

#include <coroutine>

#include "base/check.h"
#include "runtime/timer_wheel.h"
#include "runtime/waker.h"
#include "runtime/worker.h"

namespace sluice::runtime {

// co_await SleepUntil(when);  Never returns early; a time that has passed does not suspend.
class SleepUntil final : public Timer {
 public:
  explicit SleepUntil(base::TimePoint when) : when_(when) {}
  bool await_ready() const { return when_ <= Worker::Current()->now(); }
  void await_suspend(std::coroutine_handle<> h) {
    waker_ = Waker::ForCurrentTask(h);
    Worker::Current()->timers().Arm(*this, when_);
  }
  void await_resume() const { SLUICE_DCHECK(!armed()); }

 private:
  void OnTimer(base::TimePoint) override { waker_.Wake(); }
  const base::TimePoint when_;
  Waker waker_;
};

}  // namespace sluice::runtime
