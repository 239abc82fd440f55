// TokenBucket: admission by rate, shared by all threads without a lock. docs/token-bucket.md
//
// After Seastar's shared_token_bucket: counters that only grow ("rovers"), compared by signed difference, so that
// wrapping is normal operation (at 10^6 calls a second it happens every 203 days).
//
//        released            tail                  due                 ceil = released + cap
//   --------+-----------------+---------------------+-------------------+----------------> tokens
//           | under way       | available           |
//           | (capped only)   | = head - tail       |      head = due, or the smaller of due and ceil where capped
//
//   tail      claimed. Grab moves it and returns where it stood: the ticket. Served in that order, like a ticket lock.
//   due       paid for by time. Replenish moves it, never past `limit` ahead of tail (and of ceil).
//   released  given back by calls that ended; capped only.
//   A ticket may go when head has reached it.
//
// Capped, what time brings while head stands at ceil is not lost, as it is in the original, where every late completion
// lowers the rate for good: due passes ceil, by at most `limit`, and Release makes that credit available at once. Since
// available + carried = due - tail <= limit, no window of t seconds admits more than rate * t + limit + one request.
//
// Orders: the counters carry no payload, nothing may use the bucket to publish data, relaxed would do inside. Three
// points:
//   - only the thread that moved `stamp` by CAS adds that span to due; the losers return;
//   - clamp and add are one CAS on due: two winners of successive spans cannot use the same room twice;
//   - Release's CAS releases the claims before it to the next Release's load (acquire), whose audit must see them.
// What makes tokens available (the CAS on due, the one on released) and what looks for them (Head) is seq_cst, so that
// a queue beside the bucket can build store-buffering on it: see limits/rate_limiter.h. On x86 that is free.
//
// Costs: 64 bytes, written by all that take; not aligned to a cache line, because of tables with a bucket for each
// client. Any thread; never suspends; no time is read, it is passed in.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>

#include "base/check.h"
#include "base/clock.h"
#include "concurrent/token_bucket_rate.h"

namespace sluice::concurrent {

// What one call costs: so fine that slow rates do not round.
inline constexpr uint64_t kTokensPerCall = uint64_t{1} << 20;

struct TokenBucketTraits {
  template <typename V>
  using Atomic = std::atomic<V>;
};

struct TokenBucketOptions {
  double rate = 0;                  // tokens a second, 0..TokenRate::kMax. 0: closed, nothing comes
  uint64_t limit = kTokensPerCall;  // the burst, in tokens: 1..2^60
  uint64_t cap = 0;                 // capped: tokens that may be under way, up to 2^60. 0: as many as `limit`
  uint64_t threshold = 1;           // spans worth less are left to grow. Clamped to [1, limit]
  uint64_t origin = 0;              // where the rovers start; tests start them just below a wrap
};

// Tokens there at the start, where it is not a number: clamped to `limit`.
inline constexpr uint64_t kStartFull = UINT64_MAX;
inline constexpr uint64_t kStartEmpty = 0;

template <bool kCapped, typename Traits = TokenBucketTraits>
class BasicTokenBucket {
 public:
  using Ticket = uint64_t;
  static constexpr uint64_t kTokensMax = uint64_t{1} << 60;  // of a limit, a cap, a grab

  // `initial`: tokens there already: kStartFull, kStartEmpty, or as many as given, at most `limit`.
  BasicTokenBucket(const TokenBucketOptions& options, uint64_t initial, base::TimePoint now)
      : tail_(options.origin),
        due_(options.origin + std::min(initial, options.limit)),
        released_(options.origin),
        stamp_(TokenRate::Instant(now)),
        rate_(TokenRate::Encode(options.rate)),
        limit_(options.limit),
        threshold_(std::clamp<uint64_t>(options.threshold, 1, options.limit)),
        cap_(options.cap == 0 ? options.limit : options.cap) {
    SLUICE_CHECK(TokenRate::Valid(options.rate));
    SLUICE_CHECK(options.limit > 0 && options.limit <= kTokensMax && options.cap <= kTokensMax);
  }
  BasicTokenBucket(const BasicTokenBucket&) = delete;
  BasicTokenBucket& operator=(const BasicTokenBucket&) = delete;

  // Most callers use these two. Replenish comes first: else a bucket left full would give its burst twice in one
  // instant, once before and once after the idle time is counted.
  Ticket Take(uint64_t tokens, base::TimePoint now) {
    Replenish(now);
    return Grab(tokens);
  }
  bool TryTake(uint64_t tokens, base::TimePoint now) {
    Replenish(now);
    return TryGrab(tokens);
  }

  // Claims `tokens` (0 is legal); never fails, never waits. The ticket is granted when Deficiency(ticket) is 0; one
  // that is given up goes to Refund. More than cap() would never be granted: a bug of the caller. More than limit(),
  // where not capped, is granted after its time, a burst at a look.
  Ticket Grab(uint64_t tokens) {
    SLUICE_DCHECK(tokens <= kTokensMax);
    if constexpr (kCapped) SLUICE_CHECK(tokens <= cap_.load(std::memory_order_relaxed));
    return tail_.fetch_add(tokens, std::memory_order_relaxed) + tokens;
  }

  // Claims only tokens that no ticket has claimed: fails while tickets wait, so it cannot barge.
  bool TryGrab(uint64_t tokens) {
    uint64_t tail = tail_.load(std::memory_order_relaxed);
    while (Distance(head(), tail) >= static_cast<int64_t>(tokens)) {
      if (tail_.compare_exchange_weak(tail, tail + tokens, std::memory_order_relaxed, std::memory_order_relaxed))
        return true;
    }
    return false;
  }

  // Tokens claimed by the ticket and those before it that are not there yet. 0: go. Never grows, but by SetLimit and
  // SetCap.
  uint64_t Deficiency(Ticket ticket) const { return Positive(Distance(ticket, head())); }

  // Counts the time since the last time. Going back, standing, far jumps: a time not after the last changes nothing;
  // one span brings at most `limit`, however long it was, also where more is queued.
  void Replenish(base::TimePoint now) {
    const uint64_t to = TokenRate::Instant(now);
    uint64_t from = stamp_.load(std::memory_order_relaxed);
    if (to <= from) return;
    const uint64_t worth = TokenRate::Worth(rate_.load(std::memory_order_relaxed), from, to);
    if (worth < threshold_.load(std::memory_order_relaxed)) return;
    if (!stamp_.compare_exchange_strong(from, to, std::memory_order_relaxed, std::memory_order_relaxed)) return;
    Add(std::min(worth, limit_.load(std::memory_order_relaxed)));
  }

  // A call has ended, whatever its outcome. False, and nothing changes, where it is more than is claimed and not given
  // back: it would raise the cap for ever. A release that is forgotten lowers it for ever; so guard objects, and
  // outstanding() for the audit.
  [[nodiscard]] bool Release(uint64_t tokens) requires kCapped { return GiveBack(tokens); }

  // For a ticket given up, or granted and not used. What has no room is lost. Capped: false as in Release.
  bool Refund(uint64_t tokens) {
    if constexpr (kCapped) {
      if (!GiveBack(tokens)) return false;
    }
    Add(tokens);
    return true;
  }

  // Goes on from another bucket: `missing` tokens are not there, and `outstanding` are claimed by calls that this one
  // has not seen start (0 where it is not capped). Of a bucket that is full and new.
  void Resume(uint64_t missing, uint64_t outstanding) {
    SLUICE_DCHECK(outstanding <= kTokensMax);
    missing = std::min(missing, limit_.load(std::memory_order_relaxed));
    tail_.fetch_add(outstanding, std::memory_order_relaxed);
    due_.fetch_add(outstanding - missing, std::memory_order_seq_cst);  // wraps where it goes back, as rovers do
  }

  // Counts the time up to `now` at the old rate, then changes it. False, and nothing changes: not a valid rate. Writers
  // of options take turns (the caller's business); all else may go on meanwhile.
  [[nodiscard]] bool SetRate(double tokens_per_second, base::TimePoint now) {
    if (!TokenRate::Valid(tokens_per_second)) return false;
    Settle(now);
    rate_.store(TokenRate::Encode(tokens_per_second), std::memory_order_relaxed);
    return true;
  }
  // 1..kTokensMax. Lower: what is there above the new burst is lost; a TryGrab that runs meanwhile may still get of it.
  void SetLimit(uint64_t limit) {
    SLUICE_CHECK(limit > 0 && limit <= kTokensMax);
    limit_.store(limit, std::memory_order_relaxed);
    threshold_.store(std::min(threshold_.load(std::memory_order_relaxed), limit), std::memory_order_relaxed);
    Trim();
  }
  // 1..kTokensMax. Lower: nothing goes until enough has been released. A ticket above it waits for ever.
  void SetCap(uint64_t cap) requires kCapped {
    SLUICE_CHECK(cap > 0 && cap <= kTokensMax);
    cap_.store(cap, std::memory_order_seq_cst);  // as Release: it makes tokens available
    Trim();
  }

  // How long `tokens` take to come due, in seconds; infinite at rate 0. Capped: at least, since a release is needed
  // too.
  double SecondsFor(uint64_t tokens) const { return tokens == 0 ? 0 : static_cast<double>(tokens) / rate(); }
  // When to look at the ticket next: the instant at which time alone will have brought head to it, or, for a ticket
  // further away than limit(), at which one span has brought all that it can. A caller that sleeps until then,
  // replenishes, and does so again while tokens are missing, is served at DueAt. Never early, never now for something
  // that is missing, kNever at rate 0. Capped: a lower bound, waiters need a wake on release too. May come out late by
  // one span while another thread is between its two steps of Replenish.
  base::TimePoint ReadyAt(Ticket ticket) const { return WhenDue(ticket, limit_.load(std::memory_order_relaxed)); }
  // When time will have brought head to the ticket, if Replenish is called at least as often as ReadyAt says: a
  // prediction, not a time to sleep until. Else as ReadyAt.
  base::TimePoint DueAt(Ticket ticket) const { return WhenDue(ticket, TokenRate::kWorthMax); }
  // Whether only a release can let the ticket go, because it lies beyond ceil.
  bool NeedsRelease(Ticket ticket) const requires kCapped { return Distance(ticket, ceil()) > 0; }

  // Each is exact, but several of them are not read in one moment.
  uint64_t tail() const { return tail_.load(std::memory_order_relaxed); }
  uint64_t head() const {
    const uint64_t due = due_.load(std::memory_order_seq_cst);
    if constexpr (kCapped) {
      const uint64_t top = ceil();
      if (Distance(top, due) < 0) return top;
    }
    return due;
  }
  uint64_t ceil() const requires kCapped {
    return released_.load(std::memory_order_seq_cst) + cap_.load(std::memory_order_seq_cst);
  }
  // Claimed and not given back: under way, or queued by Grab.
  uint64_t outstanding() const requires kCapped {
    const uint64_t released = released_.load(std::memory_order_acquire);  // before tail: never more than was claimed
    return tail() - released;
  }
  // Available to the next caller.
  uint64_t available() const { return Positive(Distance(head(), tail())); }
  // What time would still bring if no call came: the distance to full.
  uint64_t debt() const { return Positive(Distance(tail() + limit(), due_.load(std::memory_order_relaxed))); }
  double rate() const { return TokenRate::Decode(rate_.load(std::memory_order_relaxed)); }
  uint64_t limit() const { return limit_.load(std::memory_order_relaxed); }
  uint64_t cap() const requires kCapped { return cap_.load(std::memory_order_relaxed); }

 private:
  template <typename V>
  using Atomic = typename Traits::template Atomic<V>;

  // Rovers are at most 2^63 apart, wherever they have wrapped to.
  static int64_t Distance(uint64_t to, uint64_t from) { return static_cast<int64_t>(to - from); }
  static uint64_t Positive(int64_t distance) { return distance > 0 ? static_cast<uint64_t>(distance) : 0; }

  // Where due may go at most. Read from rovers that only grow: an old value gives less room, never more.
  uint64_t DueMax() const {
    uint64_t from = tail_.load(std::memory_order_relaxed);
    if constexpr (kCapped) {
      const uint64_t top = ceil();
      if (Distance(top, from) < 0) from = top;  // a queue before a closed door brings no credit without end
    }
    return from + limit_.load(std::memory_order_relaxed);
  }

  // Clamp and add in one CAS. What has no room is lost: that is the burst's limit.
  void Add(uint64_t tokens) {
    uint64_t due = due_.load(std::memory_order_relaxed);
    while (true) {
      const uint64_t more = std::min(tokens, Positive(Distance(DueMax(), due)));
      if (more == 0) return;
      // seq_cst: before the caller's look for waiters. Pairs with head() of a waiter that has just queued.
      if (due_.compare_exchange_weak(due, due + more, std::memory_order_seq_cst, std::memory_order_relaxed)) return;
    }
  }

  // The end of the span that brings what the ticket misses, at most `most`, at the present rate.
  base::TimePoint WhenDue(Ticket ticket, uint64_t most) const {
    const uint64_t missing = Positive(Distance(ticket, due_.load(std::memory_order_seq_cst)));
    if (missing == 0) return TokenRate::When(1, 0, 0);
    // The threshold is at most the limit, but another thread may be changing the two.
    const uint64_t least = threshold_.load(std::memory_order_relaxed);
    return TokenRate::When(rate_.load(std::memory_order_relaxed), stamp_.load(std::memory_order_relaxed),
                           std::max(std::min(missing, most), least));
  }

  bool GiveBack(uint64_t tokens) {
    SLUICE_DCHECK(tokens <= kTokensMax);
    uint64_t released = released_.load(std::memory_order_acquire);
    do {
      // Acquire above and in a failed CAS: the thread that moved released had claimed before, so tail counts it.
      if (Distance(tail(), released + tokens) < 0) return false;
      // seq_cst: before the caller's look for a waiter that needs a release. Pairs with that waiter's ceil().
    } while (!released_.compare_exchange_weak(released, released + tokens, std::memory_order_seq_cst,
                                              std::memory_order_acquire));
    return true;
  }

  // Replenish whatever the span is worth: the next span is counted at another rate.
  void Settle(base::TimePoint now) {
    const uint64_t to = TokenRate::Instant(now);
    uint64_t from = stamp_.load(std::memory_order_relaxed);
    while (from < to) {
      if (stamp_.compare_exchange_weak(from, to, std::memory_order_relaxed, std::memory_order_relaxed)) {
        const uint64_t worth = TokenRate::Worth(rate_.load(std::memory_order_relaxed), from, to);
        return Add(std::min(worth, limit_.load(std::memory_order_relaxed)));
      }
    }
  }

  // Takes back what lies above a limit that was lowered, but nothing from the tickets there are.
  void Trim() {
    uint64_t due = due_.load(std::memory_order_relaxed);
    while (true) {
      uint64_t most = DueMax();
      const uint64_t claimed = tail();
      if (Distance(most, claimed) < 0) most = claimed;  // a lower cap: ceil is behind what is under way
      if (Distance(due, most) <= 0) return;
      if (due_.compare_exchange_weak(due, most, std::memory_order_relaxed, std::memory_order_relaxed)) return;
    }
  }

  Atomic<uint64_t> tail_;
  Atomic<uint64_t> due_;
  Atomic<uint64_t> released_;  // written where capped only
  Atomic<uint64_t> stamp_;     // instant up to which time has been counted; only grows
  // Written by configuration changes only.
  Atomic<uint64_t> rate_;  // TokenRate
  Atomic<uint64_t> limit_;
  Atomic<uint64_t> threshold_;
  Atomic<uint64_t> cap_;
};

using TokenBucket = BasicTokenBucket<false>;
using CappedTokenBucket = BasicTokenBucket<true>;

}  // namespace sluice::concurrent
