// ConcurrencyLimiter: bounds the calls under way; a call that finds no room waits its turn or is refused.
// docs/semaphore.md
//
// A semaphore of `max` units whose queue is fair between client connections (limits/fair_queue.h). Thread safety: any
// thread, all of it; a Ticket is one call's and used by one thread at a time. Nothing here suspends: a call that is
// told to wait is woken when its verdict has changed, and asks again with Poll.
//
// Lifetime: every holder of a unit and every waiter keeps the limiter alive. Not by a count in each ticket: two
// read-modify-writes a call on a word of all workers would cost more than the units do. The proxy's calls hold it by
// their worker's count (proxy/worker_ref.h).
//
//   without a ticket:   TryTake ... Return      a unit, or nothing; for calls that do not wait (yet)
//
//   Ticket:   idle --Ask--> holding            (go: has a unit)     holding --Detach--> idle, the unit is the caller's
//               |  \------> waiting --Poll, Expire--> holding, or idle (go without a unit; refused)
//               \---------> idle               (go: no limit; refused)          any --Drop--> idle
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "limits/fair_queue.h"
#include "limits/options.h"
#include "limits/return_rate.h"
#include "limits/verdict.h"
#include "sync/semaphore_core.h"

namespace sluice::limits {

// The seam for tests.
struct ConcurrencyLimiterTraits : sync::SemaphoreTraits {
  using Queue = FairQueue;
  // The time of this worker's turn; kNever where there is none.
  static base::TimePoint Now();
};

template <typename Traits>
class BasicConcurrencyLimiter {
  using Core = sync::BasicSemaphoreCore<Traits>;
  using Outcome = sync::SemaphoreOutcome;

 public:
  explicit BasicConcurrencyLimiter(const ConcurrencyOptions& options)
      : max_(options.max),
        in_force_(options),
        enabled_(options.enabled()),
        queue_time_(options.queue_time),
        core_(ToLimits(options)) {}

  // While calls wait, too: a larger max lets them go at once, a smaller one takes effect as calls end, 0 lets all
  // go. A limit set after there was none counts the calls that ask from then on, and those from before it was
  // lifted.
  void Configure(const ConcurrencyOptions& options) {
    std::lock_guard lock(configure_);
    if (!closed_) Apply(options);
  }
  // The limit is removed for good: all waiters go at once, later calls too, holding nothing.
  void Close() {
    std::lock_guard lock(configure_);
    closed_ = true;
    Apply(ConcurrencyOptions{.max = 0});
  }

  // Part of the limit's units may be another process's (docs/handover.md): they are neither free nor in use here, and
  // both processes together have no more than the limit says.
  // Takes away up to `most` units that are free, while no call waits; how many.
  uint32_t Lend(uint32_t most) {
    std::lock_guard lock(configure_);
    if (closed_ || !in_force_.enabled()) return 0;
    const auto units = static_cast<uint32_t>(std::min<int64_t>(most, core_.available()));
    if (units == 0 || !core_.TryTake(units)) return 0;  // a call was faster, or waits
    core_.Forget(units);
    lent_ += units;
    return units;
  }
  // `units` more are another process's, whether they are free here or not; negative: so many of them have come back,
  // and the first waiters get them.
  void AddLent(int64_t units) {
    std::lock_guard lock(configure_);
    lent_ = std::max<int64_t>(0, lent_ + units);
    if (!closed_) core_.Configure(ToLimits(in_force_));
  }
  int64_t lent() const {
    std::lock_guard lock(configure_);
    return lent_;
  }
  // Units that are this process's, free or in use. Without a limit: 0.
  uint32_t own() const {
    std::lock_guard lock(configure_);
    return in_force_.enabled() ? static_cast<uint32_t>(std::max<int64_t>(0, int64_t{max_} - lent_)) : 0;
  }

  // There is a limit.
  bool enabled() const { return enabled_.load(std::memory_order_relaxed); }
  // How long a call may wait; 0: up to its deadline. The caller sees to it (Ticket::Expire).
  std::chrono::milliseconds queue_time() const { return queue_time_.load(std::memory_order_relaxed); }
  // Whether a call would go at once. A cheap look at what others change: for choosing, not for admitting.
  bool HasRoom() const { return !enabled() || (!core_.slow() && core_.raw() > 0); }
  // Calls that hold a unit now.
  uint32_t in_use() const { return static_cast<uint32_t>(core_.held()); }
  size_t waiting() const { return core_.waiters(); }

  // Takes a unit if one is free and no call waits. The caller gives it back by Return. Where there is no limit there
  // may be none to take: ask enabled() first.
  bool TryTake() { return core_.TryTake(1); }
  // A unit taken by TryTake or a ticket's Detach comes back: the first waiter gets it.
  void Return() {
    if (core_.slow()) [[unlikely]]
      return ReturnToQueue();
    core_.Give(1);
  }

  // A refusal with the time after which a call that asks now would go.
  Verdict Refuse(Refusal why = Refusal::kQueueFull) const {
    return Verdict::Refused(why, returns_.TimeFor(waiting() + 1));
  }

  // One call's place at one limiter, which outlives it or its Drop. May be used again after Drop or a refusal.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;
    ~Ticket() { Drop(); }

    // Go, or refused (kQueueFull); never queues. Where there is no limit: goes holding nothing, no read-modify-write.
    Verdict TryAsk(BasicConcurrencyLimiter& limiter) {
      SLUICE_CHECK(limiter_ == nullptr);
      if (!limiter.enabled()) return Verdict::Go();
      if (!limiter.TryTake()) return limiter.Refuse();
      limiter_ = &limiter;
      holding_ = true;
      return Verdict::Go();
    }
    // Go, wait or refused: kQueueFull, or kTooLate where by its place and the units that lately came back it would
    // start after `latest`. `flow`: the client connection. On a worker, in the task to be woken.
    Verdict Ask(BasicConcurrencyLimiter& limiter, uint64_t flow, base::TimePoint latest = base::kNever) {
      SLUICE_CHECK(limiter_ == nullptr);
      if (!limiter.enabled()) return Verdict::Go();
      limiter_ = &limiter;
      if (limiter.TryTake()) {
        holding_ = true;
        return Verdict::Go();
      }
      waiter_.set_flow(flow);
      limiter.core_.Enqueue(waiter_, 1, Traits::Wakeup::ForRunningTask());
      return latest != base::kNever && limiter.StartsAfter(latest, waiter_) ? Expire(Refusal::kTooLate) : Poll();
    }
    // After a wake-up, or any time after Ask said wait: go, wait (check_at = kNever) or refused (had to make room).
    Verdict Poll() {
      SLUICE_CHECK(limiter_ != nullptr);
      if (holding_) return Verdict::Go();
      switch (waiter_.outcome()) {
        case Outcome::kWaiting:
          return Verdict::Wait(base::kNever);
        case Outcome::kGranted:
          waiter_.Reset();
          holding_ = true;
          return Verdict::Go();
        case Outcome::kDismissed:
          Drop();
          return Verdict::Go();
        default:
          break;  // kQueueFull, kDisplaced
      }
      const Verdict refused = limiter_->Refuse();
      Drop();
      return refused;
    }
    // While it waits: it has waited long enough, leaves the queue and is refused for `why`; but a unit that it was
    // granted meanwhile is its own: go, as by Poll.
    Verdict Expire(Refusal why) {
      SLUICE_CHECK(limiter_ != nullptr);
      if (holding_ || !limiter_->core_.Cancel(waiter_, Outcome::kTimedOut)) return Poll();
      waiter_.Reset();
      return std::exchange(limiter_, nullptr)->Refuse(why);
    }
    // Leaves the queue, or gives the unit back. Idempotent.
    void Drop() {
      if (limiter_ == nullptr) return;
      BasicConcurrencyLimiter& limiter = *std::exchange(limiter_, nullptr);
      // A unit granted and not noticed yet is given back like one that was used.
      if (!holding_ && !limiter.core_.Cancel(waiter_, Outcome::kCancelled)) {
        holding_ = waiter_.outcome() == Outcome::kGranted;
      }
      waiter_.Reset();
      if (std::exchange(holding_, false)) limiter.Return();
    }
    // Hands over the unit, if it holds one: true, and the caller calls Return. Not while it waits.
    [[nodiscard]] bool Detach() {
      SLUICE_CHECK(!waiting());
      limiter_ = nullptr;
      return std::exchange(holding_, false);
    }

    // waiting: Ask said so and Poll has not yet said otherwise; a wake-up may be under way.
    bool waiting() const { return limiter_ != nullptr && !holding_; }
    bool holding() const { return holding_; }

   private:
    BasicConcurrencyLimiter* limiter_ = nullptr;  // null: idle
    typename Core::Waiter waiter_;
    bool holding_ = false;
  };

 private:
  // Calls wait: when units come back is what their waits are foretold by.
  [[gnu::noinline]] void ReturnToQueue() {
    returns_.Note(Traits::Now());
    core_.Give(1);
    if (!core_.slow()) returns_.Pause();
  }

  typename Core::Limits ToLimits(const ConcurrencyOptions& options) const {
    // No limit: the units stay as they were, so that those that are out come back into the same account.
    return {
        .total = int64_t{max_} - lent_, .capacity = 1, .waiters_max = options.queue_max, .open = !options.enabled()};
  }
  void Apply(const ConcurrencyOptions& options) {
    if (options.enabled()) max_ = options.max;
    in_force_ = options;
    queue_time_.store(options.queue_time, std::memory_order_relaxed);
    // Before the waiters go and after the units are there. relaxed: it publishes nothing; a reader of the old value
    // meets Limits::open, or goes as it would have a moment ago.
    if (!options.enabled()) enabled_.store(false, std::memory_order_relaxed);
    core_.Configure(ToLimits(options));
    if (options.enabled()) enabled_.store(true, std::memory_order_relaxed);
  }

  // Whether a waiter that has just queued cannot start by `latest`, as far as is known.
  bool StartsAfter(base::TimePoint latest, const typename Core::Waiter& waiter) const {
    const base::TimePoint now = Traits::Now();
    size_t ahead = 0;
    if (now == base::kNever || !core_.LookAtQueue(waiter, [&](const auto& queue) { ahead = queue.Ahead(waiter); }))
      return false;
    const auto wait = returns_.WaitFor(ahead + 1, now);
    return wait.has_value() && base::DeadlineAfter(now, *wait) > latest;
  }

  mutable std::mutex configure_;  // one Configure, Close or change of what is lent at a time
  // Under configure_:
  uint32_t max_;  // of the newest limit
  ConcurrencyOptions in_force_;
  int64_t lent_ = 0;
  bool closed_ = false;
  typename Traits::template Atomic<bool> enabled_;
  std::atomic<std::chrono::milliseconds> queue_time_;
  Core core_;
  ReturnRate returns_;
};

using ConcurrencyLimiter = BasicConcurrencyLimiter<ConcurrencyLimiterTraits>;

}  // namespace sluice::limits
