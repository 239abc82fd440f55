#include "sync/shared_lock.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/futex.h"

namespace sluice::sync {

std::string_view ToString(LockOutcome outcome) {
  switch (outcome) {
    case LockOutcome::kWaiting:
      return "waiting";
    case LockOutcome::kGranted:
      return "granted";
    case LockOutcome::kTimedOut:
      return "timed out";
    case LockOutcome::kCancelled:
      return "cancelled";
    case LockOutcome::kRemoved:
      return "removed";
  }
  return "waiting";
}

namespace {

constexpr uint32_t kAsleep = 0, kAwake = 1;

// Until the word is kAwake (true) or the time has come. FUTEX_WAIT_BITSET takes a point of CLOCK_MONOTONIC, which is
// the steady clock's (futex(2)).
bool SleepUntilAwake(const std::atomic<uint32_t>& word, base::TimePoint deadline, const base::Clock& clock) {
  const auto since = std::chrono::duration_cast<base::Nanos>(deadline.time_since_epoch());
  const timespec until{static_cast<time_t>(since.count() / 1'000'000'000),
                       static_cast<long>(since.count() % 1'000'000'000)};
  // Acquire: pairs with the release in LockWakeup::Wake.
  while (word.load(std::memory_order_acquire) != kAwake) {
    if (deadline != base::kNever && clock.Now() >= deadline) return false;
    ::syscall(SYS_futex, reinterpret_cast<const uint32_t*>(&word), FUTEX_WAIT_BITSET_PRIVATE, kAsleep,
              deadline == base::kNever ? nullptr : &until, nullptr, FUTEX_BITSET_MATCH_ANY);
  }
  return true;
}

}  // namespace

void LockWakeup::Wake() {
  if (thread_ == nullptr) return task_.Wake();
  // The store is the last touch of the sleeper's word: it may return and be gone before the system call, which only
  // takes the address and at worst causes a spurious wake-up of another sleeper.
  thread_->store(kAwake, std::memory_order_release);
  base::FutexWake(*thread_, 1);
}

SharedLock::Result SharedLock::AcquireBlocking(LockMode mode, std::string_view what, base::TimePoint deadline,
                                               const base::Clock& clock) {
  static thread_local char t_identity;  // its address: this thread, for the check against a second request
  std::atomic<uint32_t> word{kAsleep};
  Waiter waiter;
  const bool may_wait = deadline == base::kNever || deadline - clock.Now() >= kQueueMin;
  if (Start(waiter, mode, what, may_wait, LockWakeup(&word), &t_identity) == LockOutcome::kWaiting) {
    SLUICE_CHECK(runtime::Worker::Current() == nullptr);  // it would park the worker and every task behind it
    // Decided at the last moment: the wake-up, which writes our word, is on its way, and we may not go before it.
    if (!SleepUntilAwake(word, deadline, clock) && !Leave(waiter, LockOutcome::kTimedOut)) {
      SleepUntilAwake(word, base::kNever, clock);
    }
  }
  return Finish(waiter);
}

SharedLock::Result SharedLock::RemoveBlocking(std::string_view what, base::TimePoint deadline,
                                              const base::Clock& clock) {
  Result result = AcquireBlocking(LockMode::kExclusive, what, deadline, clock);
  if (result.outcome == LockOutcome::kGranted) SLUICE_CHECK(Remove(result.guard));
  return result;
}

bool LockAcquire::await_ready() {
  cancelled_ = token_.cancelled();
  return cancelled_;
}

bool LockAcquire::await_suspend(std::coroutine_handle<> h) {
  runtime::Worker* worker = runtime::Worker::Current();
  const bool may_wait = deadline_ == base::kNever || deadline_ - worker->now() >= SharedLock::kQueueMin;
  // From here on it may be granted by others, though not resumed before this task has suspended.
  LockWakeup wakeup(runtime::Waker::ForCurrentTask(h));
  if (lock_.Start(waiter_, mode_, what_, may_wait, std::move(wakeup), h.address()) != LockOutcome::kWaiting)
    return false;
  token_.Register(*this);
  if (deadline_ != base::kNever || runtime::CancelCallback::linked()) worker_ = worker;
  if (deadline_ != base::kNever) worker->timers().Arm(*this, deadline_);
  return true;
}

void LockAcquire::End(LockOutcome why) {
  LockWakeup wakeup;
  if (lock_.Leave(waiter_, why, &wakeup)) wakeup.Wake();
}

SharedLock::Result LockAcquire::await_resume() {
  if (cancelled_) {
    SharedLock::Result result;
    result.outcome = lock_.removed() ? LockOutcome::kRemoved : LockOutcome::kCancelled;
    return result;
  }
  // Else the task has moved and may not touch the wheel it armed: it should have been pinned.
  if (worker_ != nullptr) SLUICE_CHECK(runtime::Worker::Current() == worker_);
  runtime::Timer::Unlink();
  runtime::CancelCallback::Unlink();
  return lock_.Finish(waiter_);
}

}  // namespace sluice::sync
