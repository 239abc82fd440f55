// SharedLock: shared and exclusive access with fairness, timeouts and removal. A task waits suspended, a thread of the
// control plane waits blocked, both in one queue. docs/shared-lock.md
//
//   auto held = life->AcquireBlocking(LockMode::kExclusive, "reload", deadline);          // not on a worker
//   auto held = co_await life->Acquire(LockMode::kShared, "inspection", deadline);        // in a task
//   if (held.outcome != LockOutcome::kGranted) return Busy(held.blocker);                 // "held by reload"
//   ...                                                                                   // held.guard releases
//
// Timeouts below kQueueMin never queue: they take what is free, or not. kNever waits as long as it takes. A past
// deadline with the lock free is granted: the holder's own work decides what late means. Lifetime: the lock outlives
// every call on it, also a guard's destructor: its users hold a counted reference.
#pragma once

#include <atomic>
#include <coroutine>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "runtime/cancel.h"
#include "runtime/timer_wheel.h"
#include "runtime/waker.h"
#include "runtime/worker.h"
#include "sync/shared_lock_core.h"

namespace sluice::sync {

// Wakes a task, or a thread that sleeps on a word of its own.
class LockWakeup {
 public:
  LockWakeup() = default;
  explicit LockWakeup(runtime::Waker task) : task_(std::move(task)) {}
  explicit LockWakeup(std::atomic<uint32_t>* thread) : thread_(thread) {}
  void Wake();

 private:
  runtime::Waker task_;
  std::atomic<uint32_t>* thread_ = nullptr;
};

struct SharedLockTraits {
  using Mutex = std::mutex;
  using Wakeup = LockWakeup;
};

class LockAcquire;

class SharedLock : public BasicSharedLock<SharedLockTraits> {
 public:
  static constexpr base::Nanos kQueueMin = std::chrono::milliseconds(1);

  // Suspends the task until it is granted, times out, is cancelled, or the lock is removed; checked in the order
  // removed, cancelled, free, time left. With a deadline or a token: from a task that stays on its worker (SpawnOn,
  // SpawnPinOnStart), whose timer wheel and token they are. Cancel-safe: a destroyed wait leaves the queue, and what
  // was granted meanwhile is released.
  LockAcquire Acquire(LockMode mode, std::string_view what, base::TimePoint deadline = base::kNever,
                      runtime::CancelToken token = {});

  // Blocks the calling thread, which is no worker (CHECK where it would have to wait).
  Result AcquireBlocking(LockMode mode, std::string_view what, base::TimePoint deadline,
                         const base::Clock& clock = base::Clock::Steady());
  // Acquires exclusively and removes. kGranted: removed by this call. kTimedOut: the lock is as before. kRemoved:
  // another call did it.
  Result RemoveBlocking(std::string_view what, base::TimePoint deadline,
                        const base::Clock& clock = base::Clock::Steady());
};

// What Acquire returns; await it once. Lives in the awaiting frame and allocates nothing while it waits. A wake by
// another of the task's wakers ends the wait as cancelled: such wakers and this do not belong in one task.
class [[nodiscard]] LockAcquire final : private runtime::Timer, private runtime::CancelCallback {
 public:
  LockAcquire(SharedLock& lock, LockMode mode, std::string_view what, base::TimePoint deadline,
              runtime::CancelToken token)
      : lock_(lock), mode_(mode), what_(what), deadline_(deadline), token_(token) {}

  bool await_ready();
  bool await_suspend(std::coroutine_handle<> h);
  SharedLock::Result await_resume();

 private:
  void OnTimer(base::TimePoint) override { End(LockOutcome::kTimedOut); }
  void OnCancel() override { End(LockOutcome::kCancelled); }
  void End(LockOutcome why);

  SharedLock& lock_;
  const LockMode mode_;
  const std::string_view what_;
  const base::TimePoint deadline_;
  const runtime::CancelToken token_;
  bool cancelled_ = false;             // before it asked
  runtime::Worker* worker_ = nullptr;  // whose wheel and token
  SharedLock::Waiter waiter_;
};

inline LockAcquire SharedLock::Acquire(LockMode mode, std::string_view what, base::TimePoint deadline,
                                       runtime::CancelToken token) {
  return LockAcquire(*this, mode, what, deadline, token);
}

}  // namespace sluice::sync
