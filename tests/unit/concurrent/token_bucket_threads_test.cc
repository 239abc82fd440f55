// TokenBucket from several threads: every interleaving of a few operations (sequential consistency only), then stress,
// which is what TSan looks at.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "base/random.h"
#include "concurrent/token_bucket.h"
#include "support/interleave.h"

namespace sluice::concurrent {
namespace {

#ifdef SLUICE_SANITIZED
constexpr int kScale = 10;
#else
constexpr int kScale = 1;
#endif

constexpr uint64_t kCall = kTokensPerCall;
const base::TimePoint kStart{std::chrono::hours(1)};
base::TimePoint At(int64_t ms) { return kStart + std::chrono::milliseconds(ms); }

struct StepTraits {
  template <typename V>
  using Atomic = interleave::Atomic<V>;
};
template <bool kCapped>
struct State {
  explicit State(uint64_t initial, uint64_t burst = 4)
      : bucket({.rate = 1000.0 * kCall, .limit = burst * kCall, .origin = 0 - 3 * kCall}, initial, kStart) {}
  BasicTokenBucket<kCapped, StepTraits> bucket;
  int got[3] = {};
};

// The original read the room and added in two steps: winners of successive spans used the same room twice.
TEST(TokenBucketInterleave, TwoReplenishersUseTheRoomOnce) {
  const auto result = interleave::Explore(
      [](interleave::Run& run) {
        auto s = std::make_shared<State<false>>(kStartEmpty, 2);
        run.Thread([=] { s->bucket.Replenish(At(2)); });
        run.Thread([=] { s->bucket.Replenish(At(4)); });
        run.Thread([=] { s->got[0] = s->bucket.TryGrab(kCall); });
        run.AtEnd([=] {
          const uint64_t tail = s->bucket.tail(), head = s->bucket.head();
          EXPECT_LE(head - tail, 2 * kCall);
          EXPECT_GE(head - tail + s->got[0] * kCall, 2 * kCall);
        });
      },
      {.preemptions_max = 2});
  EXPECT_GT(result.schedules, 100u);
}

// The span is counted by one of them, once: also with room for both.
TEST(TokenBucketInterleave, ASpanIsCountedOnce) {
  const auto result = interleave::Explore([](interleave::Run& run) {
    auto s = std::make_shared<State<false>>(kStartEmpty);
    run.Thread([=] { s->bucket.Replenish(At(2)); });
    run.Thread([=] { s->bucket.Replenish(At(2)); });
    run.AtEnd([=] { EXPECT_EQ(s->bucket.available(), 2 * kCall); });
  });
  EXPECT_GT(result.schedules, 20u);
}

TEST(TokenBucketInterleave, TheLastTokenGoesToOne) {
  const auto result = interleave::Explore([](interleave::Run& run) {
    auto s = std::make_shared<State<true>>(kCall);
    for (int i = 0; i < 2; ++i) {
      run.Thread([=] { s->got[i] = s->bucket.TryTake(kCall, kStart); });
    }
    run.AtEnd([=] {
      EXPECT_EQ(s->got[0] + s->got[1], 1);
      EXPECT_EQ(s->bucket.outstanding(), kCall);
    });
  });
  EXPECT_GT(result.schedules, 20u);
}

TEST(TokenBucketInterleave, ARefundServesTheTicketBehindAndNothingGrows) {
  const auto result = interleave::Explore([](interleave::Run& run) {
    auto s = std::make_shared<State<false>>(kCall, 2);
    run.Thread([=] {
      (void)s->bucket.Grab(kCall);
      s->bucket.Refund(kCall);
    });
    run.Thread([=] {
      const auto ticket = s->bucket.Grab(kCall);
      const uint64_t before = s->bucket.Deficiency(ticket);
      EXPECT_LE(s->bucket.Deficiency(ticket), before);
    });
    run.AtEnd([=] {
      EXPECT_EQ(s->bucket.Deficiency(s->bucket.tail()), 0u);
      EXPECT_LE(s->bucket.available(), 2 * kCall);
    });
  });
  EXPECT_GT(result.schedules, 20u);
}

TEST(TokenBucketInterleave, AReleaseOfTheSameCallTwiceIsRefusedOnce) {
  const auto result = interleave::Explore([](interleave::Run& run) {
    auto s = std::make_shared<State<true>>(kStartFull);
    (void)s->bucket.TryGrab(kCall);
    for (int i = 0; i < 2; ++i) {
      run.Thread([=] { s->got[i] = s->bucket.Release(kCall); });
    }
    run.AtEnd([=] {
      EXPECT_EQ(s->got[0] + s->got[1], 1);
      EXPECT_EQ(s->bucket.outstanding(), 0u);
      EXPECT_EQ(s->bucket.ceil() - s->bucket.cap(), s->bucket.tail());
    });
  });
  EXPECT_GT(result.schedules, 10u);
}

TEST(TokenBucketInterleave, AReleaseMeetsAReplenishAtTheCeiling) {
  const auto result = interleave::Explore([](interleave::Run& run) {
    auto s = std::make_shared<State<true>>(kStartFull, 1);
    (void)s->bucket.TryGrab(kCall);
    run.Thread([=] { s->bucket.Replenish(At(5)); });
    run.Thread([=] { EXPECT_TRUE(s->bucket.Release(kCall)); });
    run.AtEnd([=] {
      EXPECT_EQ(s->bucket.available(), kCall);  // neither order loses the credit
      EXPECT_LE(s->bucket.available(), s->bucket.cap());
    });
  });
  EXPECT_GT(result.schedules, 20u);
}

TEST(TokenBucketInterleave, ANewRateMeetsAReplenish) {
  const auto result = interleave::Explore([](interleave::Run& run) {
    auto s = std::make_shared<State<false>>(kStartEmpty, 100);
    run.Thread([=] { EXPECT_TRUE(s->bucket.SetRate(10'000.0 * kCall, At(2))); });
    run.Thread([=] { s->bucket.Replenish(At(3)); });
    run.AtEnd([=] {
      s->bucket.Replenish(At(4));
      // 2 ms at the old rate, the third at either, the fourth at the new one.
      EXPECT_GE(s->bucket.available(), 13 * kCall - 10);
      EXPECT_LE(s->bucket.available(), 22 * kCall + 10);
    });
  });
  EXPECT_GT(result.schedules, 20u);
}

// Threads with clocks of their own, behind and ahead of each other, while the rate changes.
TEST(TokenBucketStress, TheShareHoldsFromManyThreads) {
  TokenBucket bucket({.rate = 1e6 * kCall, .limit = 100 * kCall, .origin = 0 - 5000 * kCall}, kStartFull, kStart);
  std::atomic<int64_t> clock{0};
  std::atomic<uint64_t> granted{0};
  std::vector<std::thread> threads;
  const int64_t end = 400'000'000 / kScale;
  for (uint64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      base::Random random(t);
      uint64_t own = 0;
      while (true) {
        const int64_t now = clock.fetch_add(static_cast<int64_t>(random.Below(2000)), std::memory_order_relaxed);
        if (now > end) break;
        own += bucket.TryTake(kCall, kStart + base::Nanos(now - static_cast<int64_t>(random.Below(5000)))) ? 1 : 0;
        if (random.Below(100) == 0) {
          EXPECT_TRUE(t != 0 ||
                      bucket.SetRate(random.Below(2) == 0 ? 1e6 * kCall : 0.5e6 * kCall, kStart + base::Nanos(now)));
        }
      }
      granted.fetch_add(own, std::memory_order_relaxed);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double span = static_cast<double>(clock.load()) * 1e-9;
  EXPECT_LE(static_cast<double>(granted.load()), 1e6 * span + 101);
  EXPECT_GE(static_cast<double>(granted.load()), 0.3e6 * span);
}

TEST(TokenBucketStress, NoTokenLeaksAndTheCapHolds) {
  constexpr uint64_t kCap = 3;
  CappedTokenBucket bucket({.rate = 1e7 * kCall, .limit = kCap * kCall, .origin = 0 - 5000 * kCall}, kStartFull,
                           kStart);
  std::atomic<int64_t> clock{0};
  std::atomic<int> under_way{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      base::Random random(t);
      int held = 0;
      for (int i = 0; i < 200'000 / kScale; ++i) {
        if (held > 0 && random.Below(2) == 0) {
          under_way.fetch_sub(1, std::memory_order_relaxed);
          ASSERT_TRUE(bucket.Release(kCall));
          --held;
        } else if (bucket.TryTake(kCall, kStart + base::Nanos(clock.fetch_add(50, std::memory_order_relaxed)))) {
          ASSERT_LE(under_way.fetch_add(1, std::memory_order_relaxed) + 1, static_cast<int>(kCap));
          ++held;
        }
      }
      for (; held > 0; --held) {
        under_way.fetch_sub(1, std::memory_order_relaxed);
        ASSERT_TRUE(bucket.Release(kCall));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(bucket.outstanding(), 0u);
  EXPECT_EQ(bucket.ceil() - bucket.cap(), bucket.tail());
  EXPECT_FALSE(bucket.Release(1));
}

}  // namespace
}  // namespace sluice::concurrent
