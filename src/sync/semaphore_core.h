// SemaphoreCore: the state of a semaphore with a queue: units, waiters, the transition that ends each wait.
// docs/semaphore.md
//
//   word_   | count, signed (62 bits) | broken | waiters |      one word: a fast path sees all of it in one CAS
//
//   bits 00   no waiters               taking and giving back are one CAS each, by any thread
//   bits 01   waiters                  word_ changes under mutex_ only: no barging, and no lost wake-up, since
//   bits 11   broken, for good         the waiter that sets the bit sees the units, or the giver sees the bit
//
//   00 -> 01  Enqueue: CAS, under mutex_          01 -> 00  the queue is empty again: store, under mutex_
//   any -> 11 Break: fetch_or, under mutex_; the count is 0 from then on
//
// A waiter:    none -> waiting -> granted | timed out | cancelled | broken | too large | displaced | dismissed
// Each arrow out of "waiting" is made under mutex_ and once. The store of the outcome is the last touch of the
// waiter: its owner, on another thread, may destroy it at once. So its wakeup is moved out before and called after
// the mutex, in batches of kWakeBatch: no stranger's code runs under it, nothing is allocated however many wake.
//
// Access: all but word_, and a waiting Waiter's fields, only under mutex_. Orders: giving back releases,
// taking acquires, a grant is the release store of the outcome, which the owner loads with acquire. A plain store of
// word_ under mutex_ comes after an acquire of it (the CAS that set the bit) and is a release itself, so the chain
// from the last holder to the next is never cut.
//
// Lifetime: a core that is a member (of a limiter) is destroyed with it, with no waiter and no unit held. One on the
// heap (sync/semaphore.h) is given up by Disown and frees itself when no unit is held and no counted waiter is left.
// So units are references, and a Permit needs no counter: a holder of units may touch the core; the CAS that gives them
// back is the last touch.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "sync/semaphore_traits.h"
#include "sync/semaphore_waiter.h"
#include "sync/wake_batch.h"

namespace sluice::sync {

template <typename Traits>
class BasicSemaphoreCore {
 public:
  using Units = int64_t;
  using Outcome = SemaphoreOutcome;
  using Limits = SemaphoreLimits;
  using Wakeup = typename Traits::Wakeup;
  using Queue = typename Traits::Queue;
  template <typename T>
  using Atomic = typename Traits::template Atomic<T>;

  // Fate beyond it: CHECK. A count that large is a leak or a bug.
  static constexpr Units kUnitsMax = Units{1} << 60;
  static constexpr size_t kWakeBatch = 16;
  using WakeBatch = sync::WakeBatch<Wakeup, kWakeBatch>;

  using Waiter = BasicSemaphoreWaiter<Traits>;

  explicit BasicSemaphoreCore(const Limits& limits)
      : word_(ToWord(limits.total)),
        capacity_(limits.capacity),
        total_(limits.total),
        waiters_max_(limits.waiters_max),
        open_(limits.open) {
    SLUICE_CHECK(limits.total >= -kUnitsMax && limits.total <= kUnitsMax);
  }
  BasicSemaphoreCore(const BasicSemaphoreCore&) = delete;  // nor moved: waiters and permits point here
  ~BasicSemaphoreCore() {
    SLUICE_CHECK(queue_.size() == 0);
    SLUICE_CHECK(HeldLocked() == 0);  // audit: every unit has come back
  }

  // Any thread, all of the below. Nothing waits but for the mutex.

  // Takes `units` if they are available and no waiter is queued. 0 units: fails while the count is negative.
  bool TryTake(Units units) {
    SLUICE_CHECK(units >= 0);
    Units word = word_.load(std::memory_order_relaxed);
    while ((word & kSlow) == 0 && Count(word) >= units) {
      // Acquire: pairs with the release in Give; the last holder's steps come before ours.
      if (word_.compare_exchange_weak(word, word - ToWord(units), std::memory_order_acquire, std::memory_order_relaxed))
        return true;
    }
    return false;
  }

  // Gives back units that were taken or granted. The first waiters that they suffice for get them.
  void Give(Units units) {
    SLUICE_CHECK(units >= 0);
    Units word = word_.load(std::memory_order_relaxed);
    while ((word & kSlow) == 0) {
      SLUICE_CHECK(Count(word) <= kUnitsMax - units);
      // Release: pairs with the acquire in TryTake and in EnqueueLocked. The last touch: this may be free after it.
      if (word_.compare_exchange_weak(word, word + ToWord(units), std::memory_order_release, std::memory_order_relaxed))
        return;
    }
    GiveSlow(units);
  }

  // Takes, joins the queue, or is refused; checked in the order broken, open, capacity, units, room in the queue.
  // Returns the waiter's outcome as it stood then. kWaiting: `wakeup` is called once, after the outcome is set,
  // unless the waiter leaves by Cancel. `counted`: the waiter keeps a core on the heap alive until Leave. `adopts`:
  // after a grant the owner will Adopt the units.
  Outcome Enqueue(Waiter& waiter, Units units, Wakeup wakeup, bool counted = false, bool adopts = false) {
    SLUICE_CHECK(units >= 0 && waiter.outcome() != Outcome::kWaiting);
    Outcome outcome = Outcome::kNone;
    auto change = [&](WakeBatch& batch) {
      waiter.units_ = units;
      waiter.adopts_ = adopts;
      outcome = EnqueueLocked(waiter, wakeup, batch);
      if (outcome == Outcome::kWaiting && counted) ++refs_;
    };
    Locked(change);
    return outcome;
  }

  // Leaves the queue from any place in it; waiters it blocked go on. False: the outcome was set before, look at it
  // (units that were granted are the caller's). `wakeup`: receives the waiter's.
  bool Cancel(Waiter& waiter, Outcome why, Wakeup* wakeup = nullptr) {
    if (waiter.outcome() != Outcome::kWaiting) return false;
    Wakeup removed;  // destroyed after the mutex
    bool left = false;
    auto change = [&](WakeBatch&) {
      // relaxed: under the mutex.
      if (waiter.outcome_.load(std::memory_order_relaxed) != Outcome::kWaiting) return;
      queue_.Remove(waiter);
      removed = std::move(waiter.wakeup_);
      waiter.outcome_.store(why, std::memory_order_relaxed);  // read by the owner, which is the caller
      left = true;
    };
    Locked(change);
    if (wakeup != nullptr) *wakeup = std::move(removed);
    return left;
  }

  // fn(const Queue&) while `waiter`, the caller's, stands in the queue; false where it does not. `fn` is short.
  template <typename Fn>
  bool LookAtQueue(const Waiter& waiter, Fn fn) const {
    std::lock_guard lock(mutex_);
    return waiter.outcome() == Outcome::kWaiting && (fn(queue_), true);
  }

  // A counted waiter that was queued needs the core no more.
  void Leave() {
    auto change = [&](WakeBatch&) { --refs_; };
    Locked(change);
  }

  // The caller takes over `units` of those granted to waiters that adopt. More than that would come back as units
  // that were never taken: a bug of the caller (CHECK), which else shows as a core that is never freed.
  void Adopt(Units units) {
    std::lock_guard lock(mutex_);
    SLUICE_CHECK(units >= 0 && units <= unadopted_);
    unadopted_ -= units;
  }

  // Adds units that were not taken from here. Ignored when broken.
  void Signal(Units units) {
    SLUICE_CHECK(units >= 0 && units <= kUnitsMax);
    auto change = [&](WakeBatch&) {
      if (!broken()) AddTotalLocked(units);
    };
    Locked(change);
  }
  // Takes units away without asking; the count may go negative, grants wait until it has recovered. Ignored when
  // broken.
  void Consume(Units units) {
    SLUICE_CHECK(units >= 0 && units <= kUnitsMax);
    auto change = [&](WakeBatch&) {
      if (!broken()) AddTotalLocked(-units);
    };
    Locked(change);
  }
  // `units` that are held will not be given back; the holder may signal them.
  void Forget(Units units) {
    auto change = [&](WakeBatch&) { (broken() ? held_ : total_) -= units; };
    Locked(change);
  }
  // A larger total grants at once; a smaller one takes effect as units come back. A waiter that asked for more than
  // the new capacity fails when its turn comes. No effect when broken.
  void Configure(const Limits& limits) {
    SLUICE_CHECK(limits.total >= -kUnitsMax && limits.total <= kUnitsMax);
    auto change = [&](WakeBatch&) {
      if (broken()) return;
      AddTotalLocked(limits.total - total_);
      // relaxed: read beside the mutex only to refuse early.
      capacity_.store(limits.capacity, std::memory_order_relaxed);
      waiters_max_ = limits.waiters_max;
      open_ = limits.open;
    };
    Locked(change);
  }
  // Sticky. Waiters fail in their order, later ones too; the count is 0 from now on, units that come back are
  // ignored.
  void Break(base::ErrorKind reason) {
    auto change = [&](WakeBatch&) {
      if (broken()) return;
      reason_.store(reason, std::memory_order_relaxed);  // published by the next line
      // Release for reason_, read after broken(); acquire as in the CAS that sets the bit.
      const Units word = word_.fetch_or(kSlow, std::memory_order_acq_rel);
      held_ = total_ - Count(word);
      SLUICE_CHECK(held_ >= 0);  // more came back than was taken
      word_.store(kSlow, std::memory_order_release);
    };
    Locked(change);
  }
  // For a core on the heap, broken before: frees it now or when the last unit and counted waiter is back.
  void Disown() {
    auto change = [&](WakeBatch&) { disowned_ = true; };
    Locked(change);
  }

  // Acquire: pairs with Break.
  bool broken() const { return (word_.load(std::memory_order_acquire) & kBroken) != 0; }
  // Valid once broken() was true.
  base::ErrorKind reason() const { return reason_.load(std::memory_order_relaxed); }
  // Observations, stale at once. raw: may be negative. 0 when broken.
  Units raw() const { return Count(word_.load(std::memory_order_relaxed)); }
  Units available() const { return raw() > 0 ? raw() : 0; }
  Units capacity() const { return capacity_.load(std::memory_order_relaxed); }
  // There are waiters, or it is broken: units are granted through the queue only.
  bool slow() const { return (word_.load(std::memory_order_relaxed) & kSlow) != 0; }
  size_t waiters() const {
    std::lock_guard lock(mutex_);
    return queue_.size();
  }
  Units held() const {
    std::lock_guard lock(mutex_);
    return HeldLocked();
  }

 private:
  static constexpr Units kWaiters = 1, kBroken = 2, kSlow = kWaiters | kBroken;
  static constexpr Units Count(Units word) { return word >> 2; }  // arithmetic: keeps the sign
  static constexpr Units ToWord(Units units) { return units * 4; }

  // Runs `change` under the mutex, then ends every wait that may end, waking outside of it. May free this.
  template <typename Change>
  void Locked(Change& change) {
    bool more, dead;
    {
      WakeBatch batch;
      {
        std::lock_guard lock(mutex_);
        change(batch);
        more = GrantLocked(batch);
        if (more) ++refs_;  // we come back
        dead = DeadLocked();
      }
      batch.WakeAll();
    }
    while (more) {
      WakeBatch batch;
      {
        std::lock_guard lock(mutex_);
        more = GrantLocked(batch);
        if (!more) --refs_;
        dead = DeadLocked();
      }
      batch.WakeAll();
    }
    if (dead) Free();
  }
  __attribute__((noinline)) void Free() { delete this; }  // inlined into a limiter g++ takes it for a member's end

  __attribute__((noinline)) void GiveSlow(Units units) {
    auto change = [&](WakeBatch&) {
      if (broken()) {
        held_ -= units;
        SLUICE_CHECK(held_ >= 0);  // more came back than was held
      } else {
        AddLocked(units);
      }
    };
    Locked(change);
  }

  // An RMW also where the bit is clear and others race. Release and acquire: giver or taker, see the head.
  void AddLocked(Units units) {
    const Units count = Count(word_.fetch_add(ToWord(units), std::memory_order_acq_rel)) + units;
    SLUICE_CHECK(count >= -kUnitsMax && count <= kUnitsMax);
  }
  void AddTotalLocked(Units units) {
    total_ += units;
    AddLocked(units);
  }

  Outcome EnqueueLocked(Waiter& waiter, Wakeup& wakeup, WakeBatch& batch) {
    const Units units = waiter.units_;
    Units word = word_.load(std::memory_order_relaxed);
    while (true) {
      if ((word & kBroken) != 0) {
        waiter.reason_ = reason_.load(std::memory_order_relaxed);
        return Settle(waiter, Outcome::kBroken);
      }
      if (open_) return Settle(waiter, Outcome::kDismissed);
      if (units > capacity_.load(std::memory_order_relaxed)) return Settle(waiter, Outcome::kTooLarge);
      if ((word & kWaiters) != 0) break;
      // Acquire: pairs with the release in Give. Failure: the count has changed, look again.
      const bool take = Count(word) >= units;
      const Units next = take ? word - ToWord(units) : word | kWaiters;
      if (word_.compare_exchange_weak(word, next, std::memory_order_acquire, std::memory_order_relaxed)) {
        if (take) {
          NoteGrant(waiter);
          return Settle(waiter, Outcome::kGranted);
        }
        break;
      }
    }
    const typename Queue::Admission admission = queue_.Admit(waiter, waiters_max_);
    if (!admission.admitted) return Settle(waiter, Outcome::kQueueFull);
    if (admission.displaced != nullptr) Decide(static_cast<Waiter&>(*admission.displaced), Outcome::kDisplaced, batch);
    waiter.wakeup_ = std::move(wakeup);
    return Settle(waiter, Outcome::kWaiting);
  }
  Outcome Settle(Waiter& waiter, Outcome outcome) {
    waiter.outcome_.store(outcome, std::memory_order_relaxed);  // the owner is the caller, or comes by the mutex
    return outcome;
  }

  void NoteGrant(const Waiter& waiter) {
    if (waiter.adopts_) unadopted_ += waiter.units_;
  }

  // Ends the wait of one that has been taken out of the queue.
  void Decide(Waiter& waiter, Outcome outcome, WakeBatch& batch) {
    batch.Add(std::move(waiter.wakeup_));
    waiter.reason_ = reason_.load(std::memory_order_relaxed);
    // Release: pairs with Waiter::outcome. The waiter may be gone after it.
    waiter.outcome_.store(outcome, std::memory_order_release);
  }

  // Serves from the front while it can. True: the batch is full, there is more.
  bool GrantLocked(WakeBatch& batch) {
    const Units word = word_.load(std::memory_order_relaxed);  // stable while the bit is set
    if ((word & kWaiters) == 0) return false;
    Units count = Count(word);
    bool more = false;
    while (typename Queue::Node* node = queue_.Front()) {
      Waiter& first = static_cast<Waiter&>(*node);
      Outcome outcome = Outcome::kGranted;
      if ((word & kBroken) != 0) {
        outcome = Outcome::kBroken;
      } else if (open_) {
        outcome = Outcome::kDismissed;
      } else if (first.units_ > capacity_.load(std::memory_order_relaxed)) {
        outcome = Outcome::kTooLarge;
      } else if (first.units_ > count) {
        break;
      }
      if (batch.full()) {
        more = true;
        break;
      }
      queue_.Pop(first);
      if (outcome == Outcome::kGranted) {
        count -= first.units_;
        NoteGrant(first);
      }
      Decide(first, outcome, batch);
    }
    if ((word & kBroken) != 0) return more;
    // Release: pairs with the acquire in TryTake, for all units given back under the mutex.
    word_.store(ToWord(count) | (queue_.size() > 0 ? kWaiters : 0), std::memory_order_release);
    return more;
  }

  Units HeldLocked() const {
    const Units word = word_.load(std::memory_order_relaxed);
    return (word & kBroken) != 0 ? held_ : total_ - Count(word);
  }
  bool DeadLocked() const { return disowned_ && refs_ == 0 && held_ == 0; }

  Atomic<Units> word_;
  std::atomic<Units> capacity_;
  mutable typename Traits::Mutex mutex_;
  Queue queue_;
  Units total_;          // while not broken: held = total_ - count
  Units held_ = 0;       // once broken
  Units unadopted_ = 0;  // of total_ - count, or held_: granted to waiters that adopt, and not adopted yet
  size_t waiters_max_;
  size_t refs_ = 0;  // counted waiters, and threads between two batches
  bool open_;
  bool disowned_ = false;
  std::atomic<base::ErrorKind> reason_{base::ErrorKind::kInternal};  // of Break; written once
};

}  // namespace sluice::sync
