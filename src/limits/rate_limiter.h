// RateLimiter: when may the next call start? A token bucket, and an explicit FIFO queue of the calls that it delays.
// docs/token-bucket.md
//
//   queue empty:     Ask takes a token by CAS, without the lock.
//   queue not empty: Ask queues, under a small mutex. Only the first of the queue grabs, and only it has a time
//                    (check_at) at which to ask again; the others are woken when they have become first.
//
// So the order is exact, leaving the queue is free (a waiter has claimed nothing, so there is nothing to refund), and a
// limiter costs one timer at a time, which is the caller's.
//
// The first waits for time, or, capped, for the end of a call, if even time would not let it go. It then says so in
// wants_release_, and the next Drop() of a call wakes it.
//
// Two pairs of store-buffering, all four sides seq_cst (with release and acquire both sides could miss each other):
//   Ask queued:   waiting_ += 1; look for tokens          an Ask without lock: bring tokens; look at waiting_
//   first blocks: wants_release_ = true; look for tokens  Drop: release a token; look at wants_release_
//
// Rules: no wake-up runs under the mutex. A ticket that is out of the queue belongs to its owner again, which may
// destroy it as soon as the mutex is free: what is still needed of it (the wake-up) is moved out before.
//
// Any thread. Never suspends: a caller that gets kWait suspends until check_at or a wake. `now` may differ
// between callers by a loop turn, and go back. Lifetime: waiters and holders of a capped token keep it alive; not by a
// count in each ticket, which would be two read-modify-writes a call (limits/concurrency_limiter.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <variant>

#include "base/check.h"
#include "base/clock.h"
#include "base/intrusive_list.h"
#include "concurrent/token_bucket.h"
#include "limits/options.h"
#include "limits/verdict.h"
#include "runtime/waker.h"

namespace sluice::limits {

// The seam for tests.
struct RateLimiterTraits {
  template <typename V>
  using Atomic = std::atomic<V>;
  using Mutex = std::mutex;
  // Copyable, default: wakes no task; ForRunningTask(); Wake() from any thread, spuriously, and after the task's end.
  using Wakeup = runtime::Waker;
};

template <typename Traits>
class BasicRateLimiter {
 public:
  class Ticket;

  // Starts full, but for what is missing at `now` to be full at `full_at`: a bucket that goes on from another one.
  // `debt`: until `full_at` a refusal is due to what others have taken (kDebt).
  BasicRateLimiter(const RateOptions& options, base::TimePoint now, base::TimePoint full_at = base::TimePoint::min(),
                   bool debt = false);
  BasicRateLimiter(const BasicRateLimiter&) = delete;
  BasicRateLimiter& operator=(const BasicRateLimiter&) = delete;
  ~BasicRateLimiter();

  // While calls wait and run: the time so far counts at the old rate, the first waiter asks again. Not enabled: all
  // waiters go. CHECK: CanBecome(options). Calls of Configure and Close take turns by themselves.
  void Configure(const RateOptions& options, base::TimePoint now);
  // Whether Configure can do it: `capped` is chosen at construction.
  bool CanBecome(const RateOptions& options) const { return !options.enabled() || options.capped == capped(); }
  // The limit is removed for good: all waiters go at once, later Asks too, and hold nothing.
  void Close();

  // What a call was told without a ticket.
  enum class Start : uint8_t {
    kNo,         // it must queue, by a ticket
    kUnlimited,  // there is no limit
    kFree,       // has a token, uncapped: nothing to give back
    kHeld,       // has a capped token: Release or ReleaseUnused at its end
  };
  // Takes a token if one is available and no call waits; no lock.
  Start TryStart(base::TimePoint now) {
    if (!on_.load(std::memory_order_relaxed)) return Start::kUnlimited;
    if (waiting_.load(std::memory_order_relaxed) != 0) return Start::kNo;
    const bool took = TryTake(now);
    // seq_cst: after what TryTake has brought, part of which another may have just queued for. Pairs with the store of
    // waiting_ by a caller that queues, which comes before that caller's look.
    if (waiting_.load(std::memory_order_seq_cst) != 0) WakeFirst();
    return !took ? Start::kNo : capped() ? Start::kHeld : Start::kFree;
  }
  // A call that has a capped token has ended.
  void Release() {
    SLUICE_CHECK(std::get_if<Capped>(&bucket_)->Release(concurrent::kTokensPerCall));
    // seq_cst: after the release. Pairs with LookForFirst, which says that it wants one and then looks for it.
    if (wants_release_.load(std::memory_order_seq_cst)) WakeReleaseWaiter();
  }
  // As Release, for one that did not start: the credit for its token comes back too.
  void ReleaseUnused();
  // A call that was let go will not start after all: its token comes back, for the next. For uncapped grants, which no
  // ticket holds; at most once a grant. What has no room in the bucket is lost. Capped: nothing; a call without a
  // token there was let go while there was no limit.
  void Refund();

  // There is a limit.
  bool enabled() const { return on_.load(std::memory_order_relaxed); }
  // How long a call may wait; 0: up to its deadline. The caller sees to it (Ask's `latest`, Ticket::Expire).
  std::chrono::milliseconds queue_time() const { return queue_time_.load(std::memory_order_relaxed); }
  // Calls that wait now.
  size_t waiting() const { return waiting_.load(std::memory_order_relaxed); }
  // Calls a second; 0: no limit.
  double rate() const;
  bool capped() const { return std::holds_alternative<Capped>(bucket_); }
  // Capped: calls that hold a token. For audits: 0 when no ticket holds.
  uint64_t outstanding() const;
  // What another process's limiter goes on from.
  struct Level {
    uint64_t missing = 0;      // tokens until the bucket is full; kTokensPerCall a call
    uint64_t outstanding = 0;  // capped: calls that hold a token
  };
  Level LevelAt(base::TimePoint now);
  // Goes on from `level`, before any call: calls of the other process that hold a token give it back by Release.
  void Resume(const Level& level);
  // `calls` of the other process have ended; of those that hold a token by level.outstanding. One thread at a time.
  void ReleaseForOther(uint64_t calls);
  // When the bucket will be full if no call comes; in the past if it is. `now`: time is counted up to it first.
  base::TimePoint FullAt(base::TimePoint now);

 private:
  template <typename V>
  using Atomic = typename Traits::template Atomic<V>;
  using Wakeup = typename Traits::Wakeup;
  struct BucketTraits {
    template <typename V>
    using Atomic = typename Traits::template Atomic<V>;
  };
  using Plain = concurrent::BasicTokenBucket<false, BucketTraits>;
  using Capped = concurrent::BasicTokenBucket<true, BucketTraits>;
  using Lock = std::unique_lock<typename Traits::Mutex>;
  static constexpr double kCallTokens = static_cast<double>(concurrent::kTokensPerCall);
  static constexpr size_t kWakeBatch = 32;

  using Bucket = std::variant<Plain, Capped>;

  static Bucket MakeBucket(const RateOptions& options, base::TimePoint now, base::TimePoint full_at);
  // fn(Plain&) or fn(Capped&).
  template <typename Fn>
  auto WithBucket(Fn fn) {
    if (auto* plain = std::get_if<Plain>(&bucket_)) return fn(*plain);
    return fn(*std::get_if<Capped>(&bucket_));
  }
  template <typename Fn>
  auto WithBucket(Fn fn) const {
    if (const auto* plain = std::get_if<Plain>(&bucket_)) return fn(*plain);
    return fn(*std::get_if<Capped>(&bucket_));
  }

  bool TryTake(base::TimePoint now) {
    return WithBucket([now](auto& bucket) { return bucket.TryTake(concurrent::kTokensPerCall, now); });
  }
  // Under mutex_, for the first of the queue: takes its token, or says when to look again.
  Verdict LookForFirst(base::TimePoint now);
  // Under mutex_. When time could let the `position`th of the queue go (from 1): exact, or a lower bound where capped.
  base::TimePoint PredictedStart(size_t position) const;
  static std::chrono::milliseconds RetryAfter(base::TimePoint start, base::TimePoint now);
  // Under mutex_. Of a call that would have started at `start`.
  Verdict Refuse(Refusal why, base::TimePoint start, base::TimePoint now) const;
  // Under mutex_. Takes `ticket` out of the queue; if it was the first, the next one's wake-up, to be called outside.
  [[nodiscard]] Wakeup Leave(Ticket& ticket);
  [[nodiscard]] Wakeup FirstWakeup();
  void WakeFirst();
  // Empties the queue, in batches, as long as on_ is false: no call queues meanwhile.
  void LetAllGo();
  void WakeReleaseWaiter();

  Bucket bucket_;
  Atomic<uint64_t> others_{0};         // capped: calls of another process that hold a token
  Atomic<bool> on_;                    // false: no limit; written under mutex_
  Atomic<bool> wants_release_{false};  // the first waits for the end of a call
  Atomic<uint32_t> waiting_{0};        // size of queue_; written under mutex_
  std::atomic<std::chrono::milliseconds> queue_time_;
  const base::TimePoint debt_until_;  // before it a refusal is kDebt
  mutable typename Traits::Mutex mutex_;
  // Under mutex_:
  uint32_t queue_max_;
  bool closed_ = false;
  base::IntrusiveList<Ticket, RateLimiterTraits> queue_;
};

// One call's place at one limiter, which outlives it or its Drop. Ask once; then, while it says kWait, Poll; Drop at
// the call's end, or to leave. Not movable: the queue points at it. One task at a time; no call may run beside another
// on the same ticket.
template <typename Traits>
class BasicRateLimiter<Traits>::Ticket : public base::ListNode<RateLimiterTraits> {
 public:
  Ticket() = default;
  ~Ticket() { Drop(); }

  // Goes, queues (leaving a wake-up for the running task), or is refused: kQueueFull, or kTooLate where by its place it
  // would start after `latest`, or kDebt for either. retry_after: the time it would wait, in whole milliseconds, at
  // least 1. The ticket is idle: no Ask before, or Drop after it.
  Verdict Ask(BasicRateLimiter& limiter, base::TimePoint now, base::TimePoint latest);
  // After a wake-up or at check_at; spurious calls are fine. Goes, or waits; not refused, the deadline is the caller's.
  Verdict Poll(base::TimePoint now);
  // While it waits: it has waited long enough, leaves the queue and is refused for `why`. retry_after: as of Ask, for a
  // call that asks now. Goes where the limit has just been lifted.
  Verdict Expire(base::TimePoint now, Refusal why);
  // Leaves the queue (the next is woken if this was first), or, capped, gives the token back. Idempotent.
  void Drop();
  // Drop for a call that did not start: capped, the credit for its token comes back too.
  void DropUnused();
  // Hands over the capped token, if it holds one: true, and the caller releases it. Not while it waits.
  [[nodiscard]] bool Detach();

  bool waiting() const { return state_ == State::kWaiting; }
  // Capped: has a token that Drop gives back. Uncapped grants hold nothing.
  bool holding() const { return state_ == State::kHolding; }

 private:
  friend class BasicRateLimiter;
  enum class State : uint8_t { kIdle, kWaiting, kHolding };

  State state_ = State::kIdle;           // the owner's
  BasicRateLimiter* limiter_ = nullptr;  // the owner's; while waiting or holding
  Wakeup wakeup_;                        // under the limiter's mutex while queued; the owner's otherwise
};

using RateLimiter = BasicRateLimiter<RateLimiterTraits>;
extern template class BasicRateLimiter<RateLimiterTraits>;  // other Traits: include limits/rate_limiter_impl.h

}  // namespace sluice::limits
