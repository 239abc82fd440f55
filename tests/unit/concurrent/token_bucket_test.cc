// TokenBucket: its contract and the traps of the original, one by one, on a clock that stands still until told.
#include "concurrent/token_bucket.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/random.h"

namespace sluice::concurrent {
namespace {

using std::chrono::duration_cast;
using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr uint64_t kCall = kTokensPerCall;
const base::TimePoint kStart{hours(1)};

TokenBucketOptions Calls(double rate, uint64_t burst, uint64_t origin = 0) {
  return {.rate = rate * static_cast<double>(kCall), .limit = burst * kCall, .origin = origin};
}

TEST(TokenBucket, StartsFullOrEmptyAsConfigured) {
  TokenBucket full(Calls(10, 5), kStartFull, kStart), empty(Calls(10, 5), kStartEmpty, kStart);
  TokenBucket some(Calls(10, 5), 2 * kCall, kStart);
  EXPECT_EQ(full.available(), 5 * kCall);
  EXPECT_EQ(full.debt(), 0u);
  EXPECT_EQ(empty.available(), 0u);
  EXPECT_EQ(empty.debt(), 5 * kCall);
  EXPECT_EQ(some.available(), 2 * kCall);
  EXPECT_EQ(some.debt(), 3 * kCall);
  EXPECT_FALSE(empty.TryGrab(1));
  EXPECT_TRUE(empty.TryGrab(0));
  EXPECT_EQ(empty.Deficiency(empty.Grab(0)), 0u);
}

TEST(TokenBucket, TicketsAreServedInTheirOrder) {
  TokenBucket bucket(Calls(1000, 1), kStartEmpty, kStart);
  const auto first = bucket.Take(kCall, kStart), second = bucket.Take(kCall, kStart);
  EXPECT_EQ(bucket.Deficiency(first), kCall);
  EXPECT_EQ(bucket.Deficiency(second), 2 * kCall);
  EXPECT_FALSE(bucket.TryTake(kCall, kStart + milliseconds(1)));  // what came is for the first
  EXPECT_EQ(bucket.Deficiency(first), 0u);
  EXPECT_EQ(bucket.Deficiency(second), kCall);
  bucket.Replenish(kStart + milliseconds(2));
  EXPECT_EQ(bucket.Deficiency(second), 0u);
}

TEST(TokenBucket, AGrabAboveTheLimitIsGrantedAfterItsTime) {
  TokenBucket bucket(Calls(1000, 2), kStartFull, kStart);
  const auto ticket = bucket.Take(10 * kCall, kStart);
  base::TimePoint now = kStart;
  for (int ms = 0; ms < 8; ++ms, now += milliseconds(1)) {
    bucket.Replenish(now);
    EXPECT_GT(bucket.Deficiency(ticket), 0u);
  }
  bucket.Replenish(now);
  EXPECT_EQ(bucket.Deficiency(ticket), 0u);
}

// Trap 1: whatever the period of looking, neither more nor less than the rate, to the token.
TEST(TokenBucket, TheRemainderOfASpanIsNeitherLostNorGivenTwice) {
  for (double rate : {0.001, 1.0, 7.0, 100.0, 1000.0, 12345.678, 1e6, 1e7}) {
    for (nanoseconds period : {nanoseconds(1), nanoseconds(microseconds(10)), nanoseconds(microseconds(333)),
                               nanoseconds(microseconds(1400)), nanoseconds(milliseconds(10))}) {
      TokenBucket often(Calls(rate, 1'000'000), kStartEmpty, kStart);
      TokenBucket once(Calls(rate, 1'000'000), kStartEmpty, kStart);
      base::TimePoint now = kStart;
      for (int i = 0; i < 1000; ++i) often.Replenish(now += period);
      once.Replenish(now);
      ASSERT_EQ(often.available(), once.available()) << rate << " a second, every " << period.count() << " ns";
    }
  }
}

TEST(TokenBucket, TenSecondsGiveTheRateWithinHalfAPercent) {
  for (double rate : {1.0, 10.0, 100.0, 1000.0, 1e4, 1e5, 1e6}) {
    for (microseconds period :
         {microseconds(10), microseconds(100), microseconds(1000), microseconds(1400), microseconds(10'000)}) {
      // A burst as large as the tokens of one period, or one request: the smallest that can keep up.
      const auto burst = static_cast<uint64_t>(rate * 1e-6 * static_cast<double>(period.count())) + 2;
      TokenBucket bucket(Calls(rate, burst), kStartEmpty, kStart);
      uint64_t granted = 0;
      auto ticket = bucket.Grab(kCall);
      base::TimePoint now = kStart;
      for (; now <= kStart + seconds(10); now += period) {
        bucket.Replenish(now);
        while (bucket.Deficiency(ticket) == 0) {
          ++granted;
          ticket = bucket.Grab(kCall);
        }
      }
      // Whole requests, and a part of the next.
      const double got = static_cast<double>(granted) + 1 - static_cast<double>(bucket.Deficiency(ticket)) / kCall;
      ASSERT_NEAR(got, rate * 10, rate * 10 * 0.005) << rate << " a second, every " << period.count() << " us";
    }
  }
}

// Trap 3: a wait is never 0 for something that is missing, and never early.
TEST(TokenBucket, TheTimeToWaitIsNeverEarlyAndNeverZero) {
  base::Random random(31);
  for (int i = 0; i < 100'000; ++i) {
    const double rate = std::ldexp(1.0, static_cast<int>(random.Below(34)) - 10) * (1 + random.Unit());
    TokenBucket bucket(Calls(rate, 1 + random.Below(1000)), kStartEmpty, kStart);
    const auto ticket = bucket.Grab(1 + random.Below(bucket.limit()));
    EXPECT_GT(bucket.SecondsFor(1), 0.0);
    const base::TimePoint when = bucket.ReadyAt(ticket);
    ASSERT_GT(when, kStart);
    bucket.Replenish(when - nanoseconds(1));
    ASSERT_GT(bucket.Deficiency(ticket), 0u);
    bucket.Replenish(when);
    ASSERT_EQ(bucket.Deficiency(ticket), 0u);
    ASSERT_LE(bucket.ReadyAt(ticket), when);
  }
  TokenBucket closed(Calls(0, 1), kStartEmpty, kStart);
  EXPECT_EQ(closed.ReadyAt(closed.Grab(1)), base::kNever);
  EXPECT_TRUE(std::isinf(closed.SecondsFor(1)));
  EXPECT_EQ(closed.SecondsFor(0), 0.0);
}

// Traps 4 and 6: a pause of any length brings one limit, with a queue and without.
TEST(TokenBucket, ALongPauseBringsOneLimit) {
  for (nanoseconds pause :
       {nanoseconds(hours(1)), nanoseconds(hours(24 * 365 * 100)), nanoseconds(base::kNever - kStart)}) {
    for (double rate : {1e4, 1e7, TokenRate::kMax / static_cast<double>(kCall)}) {
      TokenBucket idle(Calls(rate, 100), kStartEmpty, kStart);
      idle.Replenish(kStart + pause);
      EXPECT_EQ(idle.available(), 100 * kCall);
      TokenBucket queued(Calls(rate, 100), kStartEmpty, kStart);
      const auto ticket = queued.Grab(1000 * kCall);
      queued.Replenish(kStart + pause);
      EXPECT_EQ(queued.Deficiency(ticket), 900 * kCall);
    }
  }
  // 2^8 tokens a nanosecond for 2^56 of them: exactly 0 in 64 bits.
  TokenBucket wrapped({.rate = 256e9, .limit = kCall}, kStartEmpty, kStart);
  wrapped.Replenish(kStart + nanoseconds(int64_t{1} << 56));
  EXPECT_EQ(wrapped.available(), kCall);
}

TEST(TokenBucket, TimeThatStandsOrGoesBackChangesNothing) {
  TokenBucket bucket(Calls(1000, 10), kStartEmpty, kStart);
  bucket.Replenish(kStart + milliseconds(3));
  for (nanoseconds at : {nanoseconds(milliseconds(3)), nanoseconds(0), nanoseconds(-hours(1)), nanoseconds(-hours(2)),
                         nanoseconds(-hours(24))}) {
    bucket.Replenish(kStart + at);
    EXPECT_EQ(bucket.available(), 3 * kCall);
  }
  bucket.Replenish(kStart + milliseconds(4));
  EXPECT_EQ(bucket.available(), 4 * kCall);
}

// A ticket for more than the burst needs several looks, since a span brings at most the burst. A sleeper that asks for
// each is served when the tokens are due, not after 10 + 9 + ... + 1 spans.
TEST(TokenBucket, ASleeperWithATicketBeyondTheBurstIsServedWhenItIsDue) {
  for (uint64_t threshold : {uint64_t{1}, kCall, 10 * kCall}) {
    TokenBucketOptions options = Calls(1000, 10);
    options.threshold = threshold;
    TokenBucket bucket(options, kStartEmpty, kStart);
    const auto ticket = bucket.Grab(100 * kCall);
    const base::TimePoint due = bucket.DueAt(ticket);
    EXPECT_EQ(due, kStart + milliseconds(100));
    base::TimePoint now = kStart;
    int looks = 0;
    while (bucket.Deficiency(ticket) > 0) {
      const base::TimePoint next = bucket.ReadyAt(ticket);
      ASSERT_GT(next, now);
      now = next;
      bucket.Replenish(now);
      ASSERT_LE(++looks, 10);
    }
    EXPECT_EQ(now, due);
  }
}

TEST(TokenBucket, SpansBelowTheThresholdGrow) {
  TokenBucketOptions options = Calls(1000, 10);
  options.threshold = 2 * kCall;
  TokenBucket bucket(options, kStartEmpty, kStart);
  const auto ticket = bucket.Grab(kCall);
  bucket.Replenish(kStart + microseconds(1999));
  EXPECT_EQ(bucket.Deficiency(ticket), kCall);
  EXPECT_EQ(bucket.ReadyAt(ticket), kStart + milliseconds(2));
  bucket.Replenish(kStart + milliseconds(2));
  EXPECT_EQ(bucket.Deficiency(ticket), 0u);
  EXPECT_EQ(bucket.available(), kCall);
  options.threshold = 100 * kCall;  // clamped to the limit, or nothing would ever come
  TokenBucket clamped(options, kStartEmpty, kStart);
  clamped.Replenish(kStart + milliseconds(10));
  EXPECT_EQ(clamped.available(), 10 * kCall);
}

// Trap 8.
TEST(TokenBucket, AnIdleBucketGivesItsBurstOnce) {
  TokenBucket bucket(Calls(1000, 10), kStartFull, kStart);
  const base::TimePoint now = kStart + seconds(60);
  EXPECT_EQ(bucket.Deficiency(bucket.Take(10 * kCall, now)), 0u);
  EXPECT_GT(bucket.Deficiency(bucket.Take(10 * kCall, now)), 0u);
}

// Every window, also right after idling: rate x t + limit + one request.
TEST(TokenBucket, NoWindowAdmitsMoreThanItsShare) {
  base::Random random(77);
  for (int run = 0; run < 200; ++run) {
    const uint64_t burst = 1 + random.Below(50);
    const double rate = 10 + random.Unit() * 1e5;
    TokenBucket bucket(Calls(rate, burst), random.Below(2) == 0 ? kStartFull : kStartEmpty, kStart);
    std::vector<double> grants;  // seconds
    base::TimePoint now = kStart;
    for (int step = 0; step < 400; ++step) {
      now += nanoseconds(random.Below(10) == 0 ? random.Below(1'000'000'000) : random.Below(200'000));
      for (uint64_t n = random.Below(30); n > 0 && bucket.TryTake(kCall, now); --n) {
        grants.push_back(std::chrono::duration<double>(now - kStart).count());
      }
    }
    for (size_t first = 0; first < grants.size(); ++first) {
      for (size_t last = first; last < grants.size(); last += 7) {
        ASSERT_LE(static_cast<double>(last - first + 1),
                  rate * (grants[last] - grants[first]) + static_cast<double>(burst) + 1);
      }
    }
  }
}

TEST(TokenBucket, RoversWrapAsIfNothingWere) {
  for (uint64_t edge : {uint64_t{0}, uint64_t{1} << 63}) {
    CappedTokenBucket bucket(Calls(1000, 4, edge - 2 * kCall), kStartFull, kStart);
    base::TimePoint now = kStart;
    for (int i = 0; i < 20; ++i, now += milliseconds(1)) {
      ASSERT_TRUE(bucket.TryTake(kCall, now)) << i;
      ASSERT_EQ(bucket.outstanding(), kCall);
      ASSERT_TRUE(bucket.Release(kCall));
      ASSERT_FALSE(bucket.Release(kCall));
    }
    TokenBucket queue(Calls(1000, 4, edge - 2 * kCall), kStartEmpty, kStart);
    std::vector<TokenBucket::Ticket> tickets;
    for (int i = 0; i < 8; ++i) tickets.push_back(queue.Grab(kCall));
    for (int i = 0; i < 8; ++i) {
      ASSERT_EQ(queue.Deficiency(tickets[i]), (i + 1) * kCall);
      ASSERT_EQ(queue.DueAt(tickets[i]), kStart + milliseconds(i + 1));
      ASSERT_EQ(queue.ReadyAt(tickets[i]), kStart + milliseconds(std::min(i + 1, 4)));  // one span brings the limit
    }
    for (int i = 0; i < 8; ++i) {
      queue.Replenish(kStart + milliseconds(i + 1));
      ASSERT_EQ(queue.Deficiency(tickets[i]), 0u);
      ASSERT_EQ(queue.Deficiency(tickets[7]), (7 - i) * kCall);
    }
  }
}

// Trap 5, and the settling.
TEST(TokenBucket, ANewRateCountsFromItsMoment) {
  TokenBucket bucket(Calls(1000, 1000), kStartEmpty, kStart);
  EXPECT_TRUE(bucket.SetRate(10.0 * kCall, kStart + milliseconds(100)));  // 100 at the old rate
  bucket.Replenish(kStart + milliseconds(1100));
  EXPECT_NEAR(static_cast<double>(bucket.available()), 110.0 * kCall, 2);
  EXPECT_TRUE(bucket.SetRate(0, kStart + milliseconds(1100)));
  EXPECT_TRUE(bucket.SetRate(1000.0 * kCall, kStart + seconds(100)));  // closed time is worth nothing
  bucket.Replenish(kStart + seconds(100) + milliseconds(1));
  EXPECT_NEAR(static_cast<double>(bucket.available()), 111.0 * kCall, 2);
  for (double bad : {-1.0, std::nan(""), TokenRate::kMax * 1.001, static_cast<double>(INFINITY)}) {
    EXPECT_FALSE(bucket.SetRate(bad, kStart + seconds(101)));
  }
  EXPECT_NEAR(bucket.rate(), 1000.0 * kCall, 1000.0 * kCall * 1e-9);
}

TEST(TokenBucket, ALowerLimitTakesBackWhatLiesAboveIt) {
  TokenBucket bucket(Calls(1000, 100), kStartFull, kStart);
  bucket.SetLimit(3 * kCall);
  EXPECT_EQ(bucket.available(), 3 * kCall);
  bucket.SetLimit(5 * kCall);
  EXPECT_EQ(bucket.available(), 3 * kCall);
  bucket.Replenish(kStart + seconds(1));
  EXPECT_EQ(bucket.available(), 5 * kCall);
}

TEST(TokenBucket, ARefundGoesToTheNextAndNeverPastTheLimit) {
  TokenBucket bucket(Calls(1000, 2), kStartFull, kStart);
  const auto a = bucket.Take(2 * kCall, kStart), b = bucket.Take(kCall, kStart), c = bucket.Take(kCall, kStart);
  EXPECT_EQ(bucket.Deficiency(a), 0u);
  EXPECT_TRUE(bucket.Refund(kCall));  // b is given up
  EXPECT_EQ(bucket.Deficiency(b), 0u);
  EXPECT_EQ(bucket.Deficiency(c), kCall);  // stands where b stood: one call from the front
  bucket.Replenish(kStart + milliseconds(1));
  EXPECT_EQ(bucket.Deficiency(c), 0u);
  TokenBucket full(Calls(1000, 2), kStartFull, kStart);
  EXPECT_TRUE(full.Refund(kCall));
  EXPECT_EQ(full.available(), 2 * kCall);
}

template <typename Bucket>
concept CanRelease = requires(Bucket bucket) {
  bucket.Release(1);
};
static_assert(CanRelease<CappedTokenBucket>);
static_assert(!CanRelease<TokenBucket>);
static_assert(sizeof(TokenBucket) == 64 && sizeof(CappedTokenBucket) == 64);

TEST(CappedTokenBucket, OnlyTheCapIsUnderWay) {
  CappedTokenBucket bucket(Calls(1000, 3), kStartFull, kStart);
  base::TimePoint now = kStart;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(bucket.TryTake(kCall, now));
  now += seconds(10);
  EXPECT_FALSE(bucket.TryTake(kCall, now));
  EXPECT_EQ(bucket.outstanding(), 3 * kCall);
  const auto ticket = bucket.Grab(kCall);
  EXPECT_TRUE(bucket.NeedsRelease(ticket));
  EXPECT_EQ(bucket.Deficiency(ticket), kCall);
  EXPECT_TRUE(bucket.Release(kCall));
  EXPECT_FALSE(bucket.NeedsRelease(ticket));
  EXPECT_EQ(bucket.Deficiency(ticket), 0u);  // the time it waited for has long passed
}

// Trap 2: time at the ceiling is carried, at most `limit`, and a window still holds.
TEST(CappedTokenBucket, TimeAtTheCeilingIsCarriedUpToTheLimit) {
  CappedTokenBucket bucket(Calls(1000, 3), kStartFull, kStart);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(bucket.TryTake(kCall, kStart));
  const base::TimePoint late = kStart + seconds(10);
  bucket.Replenish(late);
  EXPECT_EQ(bucket.head(), bucket.ceil());
  EXPECT_TRUE(bucket.Release(3 * kCall));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(bucket.TryTake(kCall, late));
  EXPECT_TRUE(bucket.Release(3 * kCall));
  EXPECT_FALSE(bucket.TryTake(kCall, late)) << "credit above the limit";
  EXPECT_TRUE(bucket.TryTake(kCall, late + milliseconds(1)));
}

TEST(CappedTokenBucket, AQueueAtTheCeilingBringsNoCreditAboveTheLimit) {
  CappedTokenBucket bucket(Calls(1000, 3), kStartFull, kStart);
  std::vector<CappedTokenBucket::Ticket> tickets;
  for (int i = 0; i < 50; ++i) tickets.push_back(bucket.Take(kCall, kStart));
  for (int i = 1; i <= 60; ++i) bucket.Replenish(kStart + seconds(i));
  size_t granted = 3;
  for (size_t ended = 0; ended < granted; ++ended) {
    EXPECT_TRUE(bucket.Release(kCall));
    while (bucket.Deficiency(tickets[granted]) == 0) ++granted;
  }
  EXPECT_EQ(granted, 6u);  // three at the start, three of credit
}

TEST(CappedTokenBucket, AReleaseOfMoreThanIsUnderWayIsRefused) {
  CappedTokenBucket bucket(Calls(1000, 3), kStartFull, kStart);
  EXPECT_FALSE(bucket.Release(1));
  EXPECT_TRUE(bucket.TryTake(kCall, kStart));
  EXPECT_FALSE(bucket.Release(kCall + 1));
  EXPECT_TRUE(bucket.Release(kCall));
  EXPECT_FALSE(bucket.Release(1));
  EXPECT_EQ(bucket.ceil() - bucket.cap(), bucket.tail());
}

TEST(CappedTokenBucket, ARefundedTicketRaisesCeilAndHead) {
  CappedTokenBucket bucket(Calls(1000, 2), kStartFull, kStart);
  EXPECT_EQ(bucket.Deficiency(bucket.Take(2 * kCall, kStart)), 0u);
  const auto given_up = bucket.Take(kCall, kStart), next = bucket.Take(kCall, kStart);
  EXPECT_GT(bucket.Deficiency(given_up), 0u);
  EXPECT_TRUE(bucket.Refund(kCall));
  EXPECT_TRUE(bucket.Release(2 * kCall));
  bucket.Replenish(kStart + milliseconds(1));
  EXPECT_EQ(bucket.Deficiency(next), 0u);
  EXPECT_TRUE(bucket.Release(kCall));
  EXPECT_EQ(bucket.outstanding(), 0u);
  EXPECT_FALSE(bucket.Refund(1)) << "nothing is claimed any more";
}

TEST(CappedTokenBucket, ACapCanBeChangedWhileCallsAreUnderWay) {
  CappedTokenBucket bucket({.rate = 1000.0 * kCall, .limit = 4 * kCall, .cap = 8 * kCall}, kStartFull, kStart);
  base::TimePoint now = kStart + seconds(1);
  EXPECT_TRUE(bucket.TryTake(4 * kCall, now));
  bucket.SetCap(1 * kCall);
  bucket.SetLimit(1 * kCall);
  EXPECT_EQ(bucket.outstanding(), 4 * kCall);
  bucket.SetLimit(4 * kCall);
  bucket.SetCap(2 * kCall);
  now += seconds(1);
  EXPECT_FALSE(bucket.TryTake(kCall, now));
  EXPECT_TRUE(bucket.Release(2 * kCall));
  EXPECT_FALSE(bucket.TryTake(kCall, now));
  EXPECT_TRUE(bucket.Release(kCall));
  EXPECT_TRUE(bucket.TryTake(kCall, now));
  bucket.SetCap(3 * kCall);
  EXPECT_TRUE(bucket.TryTake(kCall, now));
  EXPECT_EQ(bucket.outstanding(), 3 * kCall);
}

TEST(CappedTokenBucketDeathTest, AGrabThatCouldNeverBeGrantedIsABug) {
  CappedTokenBucket bucket(Calls(1000, 2), kStartFull, kStart);
  EXPECT_DEATH(bucket.Grab(2 * kCall + 1), "cap_");
}

}  // namespace
}  // namespace sluice::concurrent
