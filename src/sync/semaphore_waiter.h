// SemaphoreWaiter: one wait for units of a semaphore, in the coroutine frame or on the stack of its owner, which has it
// leave (Cancel) before it is destroyed.
//
// While it waits its fields belong to the core's mutex, but for the outcome, which the owner may look at any time. The
// core's store of the outcome is its last touch of the waiter.
#pragma once

#include <cstdint>

#include "base/check.h"
#include "base/error.h"
#include "sync/semaphore_traits.h"

namespace sluice::sync {

template <typename Traits>
class BasicSemaphoreCore;

template <typename Traits>
class BasicSemaphoreWaiter : public Traits::Queue::Node {
 public:
  using Outcome = SemaphoreOutcome;

  BasicSemaphoreWaiter() = default;
  BasicSemaphoreWaiter(const BasicSemaphoreWaiter&) = delete;
  BasicSemaphoreWaiter& operator=(const BasicSemaphoreWaiter&) = delete;
  ~BasicSemaphoreWaiter() { SLUICE_CHECK(outcome() != Outcome::kWaiting); }

  // Owner, any time. Acquire: pairs with the release in the core's Decide; what the last holder did is seen.
  Outcome outcome() const { return outcome_.load(std::memory_order_acquire); }
  // Why, after kBroken.
  base::ErrorKind reason() const { return reason_; }
  // Ready to ask again. Not while it waits.
  void Reset() {
    SLUICE_DCHECK(outcome() != Outcome::kWaiting);
    outcome_.store(Outcome::kNone, std::memory_order_relaxed);
  }

 private:
  friend class BasicSemaphoreCore<Traits>;
  int64_t units_ = 0;
  typename Traits::Wakeup wakeup_;
  bool adopts_ = false;
  typename Traits::template Atomic<Outcome> outcome_{Outcome::kNone};
  base::ErrorKind reason_ = base::ErrorKind::kInternal;
};

}  // namespace sluice::sync
