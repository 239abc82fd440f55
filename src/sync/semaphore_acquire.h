// SemaphoreAcquire: a task's wait for units of a semaphore, with its timer and its cancellation; what Acquire
// returns.
//
// It lives in the coroutine frame of the task that awaits it and allocates nothing. Grant, timeout and cancel race for
// the one transition of the waiter; only the winner wakes the task. A wake by another of the task's wakers (one left
// behind by Waker::ForRunningTask) ends the wait with kInternal: an awaitable cannot go back to sleep. So such
// wakers and a plain co_await Acquire do not belong in one task; limiters use the waiter itself and look again.
#pragma once

#include <coroutine>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "runtime/cancel.h"
#include "runtime/timer_wheel.h"
#include "runtime/worker.h"
#include "sync/permit.h"
#include "sync/semaphore_traits.h"

namespace sluice::sync {

// The error of a wait that ended so; `reason` is that of a broken semaphore.
inline base::Error ToError(SemaphoreOutcome outcome, base::ErrorKind reason) {
  switch (outcome) {
    case SemaphoreOutcome::kTimedOut:
      return base::MakeError(base::ErrorKind::kDeadlineExceeded, "the deadline passed before units were free");
    case SemaphoreOutcome::kCancelled:
      return base::MakeError(base::ErrorKind::kCancelled, "the wait was cancelled");
    case SemaphoreOutcome::kBroken:
      return base::MakeError(reason, "the semaphore was broken");
    case SemaphoreOutcome::kTooLarge:
      return base::MakeError(base::ErrorKind::kInvalidArgument, "asked for more units than there can be");
    case SemaphoreOutcome::kQueueFull:
    case SemaphoreOutcome::kDisplaced:
      return base::MakeError(base::ErrorKind::kQueueFull, "as many wait as may wait");
    case SemaphoreOutcome::kNone:
    case SemaphoreOutcome::kWaiting:
    case SemaphoreOutcome::kGranted:
    case SemaphoreOutcome::kDismissed:
      break;
  }
  return base::MakeError(base::ErrorKind::kInternal, "the task was woken before the wait had ended");
}

template <typename Core>
class [[nodiscard]] SemaphoreAcquire final : private runtime::Timer, private runtime::CancelCallback {
 public:
  using Outcome = SemaphoreOutcome;
  using Units = typename Core::Units;
  using Permit = BasicPermit<Core>;

  SemaphoreAcquire(Core& core, Units units, base::TimePoint deadline, runtime::CancelToken token)
      : core_(core), units_(units), deadline_(deadline), token_(token) {}

  // A destroyed frame, too: leaves the queue, and hands on what was granted and not picked up.
  ~SemaphoreAcquire() {
    Disarm();
    core_.Cancel(waiter_, Outcome::kCancelled);
    if (Granted()) core_.Give(units_);
    if (queued_) core_.Leave();  // the last touch
  }

  bool await_ready() {
    if (core_.broken()) {
      outcome_ = Outcome::kBroken;
      reason_ = core_.reason();
    } else if (token_.cancelled()) {
      outcome_ = Outcome::kCancelled;
    } else if (deadline_ != base::kNever && deadline_ <= runtime::Worker::Current()->now()) {
      outcome_ = Outcome::kTimedOut;
    } else if (units_ > core_.capacity()) {
      outcome_ = Outcome::kTooLarge;
    } else if (core_.TryTake(units_)) {
      outcome_ = Outcome::kGranted;
    }
    return outcome_ != Outcome::kNone;
  }

  bool await_suspend(std::coroutine_handle<> h) {
    // Before it is queued: from then on it may be granted, though not resumed before this task has suspended.
    Arm();
    queued_ = core_.Enqueue(waiter_, units_, Core::Wakeup::ForCurrentTask(h), /*counted=*/true) == Outcome::kWaiting;
    return queued_;
  }

  base::Result<Permit> await_resume() {
    // Else the task has moved and may not touch the wheel it armed: it should have been pinned.
    if (worker_ != nullptr) SLUICE_CHECK(runtime::Worker::Current() == worker_);
    Disarm();
    if (outcome_ == Outcome::kNone) {
      core_.Cancel(waiter_, Outcome::kNone);  // still waiting: woken by a stranger
      outcome_ = waiter_.outcome();
      reason_ = waiter_.reason();
    }
    if (outcome_ != Outcome::kGranted) return ToError(outcome_, reason_);
    taken_ = true;
    return Permit(core_, units_);
  }

 private:
  bool Granted() const { return !taken_ && (outcome_ == Outcome::kGranted || waiter_.outcome() == Outcome::kGranted); }
  void Arm() {
    token_.Register(*this);
    if (deadline_ == base::kNever && !runtime::CancelCallback::linked()) return;
    worker_ = runtime::Worker::Current();
    worker_->timers().Arm(*this, deadline_);
  }
  void Disarm() {
    runtime::Timer::Unlink();
    runtime::CancelCallback::Unlink();
  }
  void OnTimer(base::TimePoint) override { End(Outcome::kTimedOut); }
  void OnCancel() override { End(Outcome::kCancelled); }
  void End(Outcome why) {
    typename Core::Wakeup wakeup;
    if (core_.Cancel(waiter_, why, &wakeup)) wakeup.Wake();
  }

  Core& core_;
  const Units units_;
  const base::TimePoint deadline_;
  const runtime::CancelToken token_;
  runtime::Worker* worker_ = nullptr;  // whose wheel and token
  typename Core::Waiter waiter_;
  Outcome outcome_ = Outcome::kNone;  // decided without the queue
  base::ErrorKind reason_ = base::ErrorKind::kInternal;
  bool queued_ = false;
  bool taken_ = false;  // await_resume has made a permit
};

}  // namespace sluice::sync
