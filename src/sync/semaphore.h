// Semaphore: a number of units, taken and given back; a request for more than are free waits, first come, first served.
// docs/semaphore.md
//
//   sync::Semaphore calls(100);
//   base::Result<sync::Permit> permit = co_await calls.Acquire(1, deadline, token);
//   if (!permit.ok()) return permit.error();       // timed out, cancelled, broken: told apart by the kind
//   ...                                            // the permit's destructor gives the unit back
//
// Thread safety: any thread, all of it; Acquire from a task. A large request at the front blocks small ones
// behind it by design, otherwise it starves. Destroying a semaphore fails its waiters (kDraining); permits may
// outlive it.
#pragma once

#include <limits>
#include <optional>

#include "base/error.h"
#include "sync/permit.h"
#include "sync/semaphore_acquire.h"
#include "sync/semaphore_core.h"

namespace sluice::sync {

template <typename Traits>
class BasicSemaphore {
 public:
  using Core = BasicSemaphoreCore<Traits>;
  using Permit = BasicPermit<Core>;
  using Units = typename Core::Units;
  // The low-level form: a waiter and an outcome, for callers that are no coroutines (Enqueue, Cancel, Adopt).
  using Waiter = typename Core::Waiter;
  using Outcome = SemaphoreOutcome;

  // `capacity`: the largest request that can ever be met; larger ones fail at once instead of blocking all behind
  // them. `waiters_max`: the length of the queue; the next fails with kQueueFull.
  explicit BasicSemaphore(Units units) : BasicSemaphore(units, units) {}
  BasicSemaphore(Units units, Units capacity, size_t waiters_max = std::numeric_limits<size_t>::max())
      : core_(new Core({.total = units, .capacity = capacity, .waiters_max = waiters_max})) {}
  BasicSemaphore(const BasicSemaphore&) = delete;
  BasicSemaphore& operator=(const BasicSemaphore&) = delete;
  ~BasicSemaphore() {
    core_->Break(base::ErrorKind::kDraining);
    core_->Disown();
  }

  // Suspends until `units` are there and all earlier waiters have been served. Checked in this order: broken -> the
  // reason given to Break; cancelled -> kCancelled, deadline passed -> kDeadlineExceeded, also when units are
  // free: a call past its deadline must not start; units > capacity -> kInvalidArgument; then it takes or waits;
  // queue full -> kQueueFull. With a deadline or token: from a task that stays on its worker (SpawnOn,
  // SpawnPinOnStart), whose timer wheel and token they are. Cancel-safe: a destroyed wait leaves the queue, and
  // units granted meanwhile go to the next.
  SemaphoreAcquire<Core> Acquire(Units units, base::TimePoint deadline = base::kNever,
                                 runtime::CancelToken token = {}) {
    return SemaphoreAcquire<Core>(*core_, units, deadline, token);
  }

  // Only if units are available and no waiter is queued. 0 units: fails while the count is negative.
  std::optional<Permit> TryAcquire(Units units) {
    if (!core_->TryTake(units)) return std::nullopt;
    return std::optional<Permit>(std::in_place, *core_, units);
  }

  // The low-level form. The waiter's owner keeps the semaphore alive while it waits. kWaiting: `wakeup` is called
  // once when the outcome is set. After kGranted: Adopt.
  Outcome Enqueue(Waiter& waiter, Units units, typename Traits::Wakeup wakeup) {
    return core_->Enqueue(waiter, units, std::move(wakeup), /*counted=*/false, /*adopts=*/true);
  }
  // Leaves the queue, O(1) from any place. False: too late, see the outcome.
  bool Cancel(Waiter& waiter, Outcome why = Outcome::kCancelled) { return core_->Cancel(waiter, why); }
  // Makes units that were granted to waiters of Enqueue a permit, all of them or some. CHECK: so many were granted and
  // not adopted yet.
  Permit Adopt(Units units) {
    core_->Adopt(units);
    return Permit(*core_, units);
  }

  // Adds units; not for those of a permit, which go back by themselves. Ignored when broken.
  void Signal(Units units) { core_->Signal(units); }
  // Takes units without asking; the count may go negative. No effect when broken.
  void Consume(Units units) { core_->Consume(units); }
  // Sticky: waiters fail in FIFO order, later requests too. No continuation runs inside.
  void Break(base::ErrorKind reason = base::ErrorKind::kDraining) { core_->Break(reason); }

  bool broken() const { return core_->broken(); }
  Units available() const { return core_->available(); }  // >= 0
  Units raw() const { return core_->raw(); }              // may be negative
  size_t waiters() const { return core_->waiters(); }
  Units held() const { return core_->held(); }  // by permits and granted waiters

 private:
  Core* const core_;  // frees itself, see Disown
};

using Semaphore = BasicSemaphore<SemaphoreTraits>;
using Permit = Semaphore::Permit;

}  // namespace sluice::sync
