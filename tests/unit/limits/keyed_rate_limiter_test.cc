// KeyedRateLimiter: its bound, its evictions, no gain by new keys, changes, threads.
#include "limits/keyed_rate_limiter.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "base/hash.h"
#include "base/random.h"
#include "support/manual_worker.h"

namespace sluice::limits {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const base::TimePoint kStart{std::chrono::hours(1)};
base::TimePoint At(int64_t ms) { return kStart + milliseconds(ms); }
constexpr uint32_t kWays = KeyedRateLimiter::kWays;

RateOptions Each(double rate, uint32_t burst, bool capped = false) { return {rate, burst, capped, 0}; }
uint64_t Key(uint64_t n) { return base::Hash64(n, 17); }

// Starts as many calls of the key as may start now; they end at once. queue_max is 0, so no call waits.
int Calls(KeyedRateLimiter& table, uint64_t key, base::TimePoint now, int most = 1'000'000) {
  int went = 0;
  while (went < most) {
    auto limiter = table.Get(key, now);
    RateLimiter::Ticket ticket;
    if (limiter == nullptr || ticket.Ask(*limiter, now, base::kNever).kind != Verdict::Kind::kGo) break;
    ++went;
  }
  return went;
}

TEST(KeyedRateLimiter, EachKeyHasItsOwnBucket) {
  KeyedRateLimiter table(Each(10, 3), 100);
  EXPECT_EQ(Calls(table, Key(1), kStart), 3);
  EXPECT_EQ(Calls(table, Key(2), kStart), 3);
  EXPECT_EQ(Calls(table, Key(1), kStart), 0);
  EXPECT_EQ(Calls(table, Key(1), At(200)), 2);
  EXPECT_EQ(table.Get(Key(1), At(200)), table.Get(Key(1), At(200)));
  EXPECT_EQ(table.keys(), 2u);
}

TEST(KeyedRateLimiter, TheTableIsBoundedAndUsesAllItsPlaces) {
  for (uint32_t keys_max : {1u, 5u, 16u, 31u, 32u, 100u, 1000u}) {
    KeyedRateLimiter table(Each(10, 3), keys_max);
    for (uint64_t key = 0; key < 20ull * keys_max + 100; ++key) {
      ASSERT_NE(table.Get(Key(key), kStart), nullptr);
      ASSERT_LE(table.keys(), keys_max);
    }
    EXPECT_EQ(table.keys(), keys_max);
    EXPECT_EQ(table.keys() + table.evictions(), 20ull * keys_max + 100);
  }
}

TEST(KeyedRateLimiter, TheKeyUnusedForLongestGoesFirst) {
  KeyedRateLimiter table(Each(10, 3), kWays);
  std::vector<std::weak_ptr<RateLimiter>> there;
  for (uint64_t key = 0; key < kWays; ++key) there.push_back(table.Get(Key(key), kStart));
  (void)table.Get(Key(0), kStart);
  (void)table.Get(Key(100), kStart);
  EXPECT_TRUE(there[1].expired());
  (void)table.Get(Key(101), kStart);
  EXPECT_TRUE(there[2].expired());
  EXPECT_FALSE(there[0].expired());
  EXPECT_EQ(table.evictions(), 2u);
}

TEST(KeyedRateLimiter, AKeyInUseIsNotEvictedAndAFullTableRefuses) {
  test::ManualWorker worker;  // its task is what the waiters leave a wake-up for
  struct Flow {
    static runtime::Task<> Run() {
      KeyedRateLimiter table({10, 1, true, 10}, 2);
      auto first = table.Get(Key(1), kStart), second = table.Get(Key(2), kStart);
      RateLimiter::Ticket holder, waiter, taken;
      EXPECT_EQ(holder.Ask(*first, kStart, base::kNever).kind, Verdict::Kind::kGo);
      EXPECT_EQ(taken.Ask(*second, kStart, base::kNever).kind, Verdict::Kind::kGo);
      EXPECT_EQ(waiter.Ask(*second, kStart, base::kNever).kind, Verdict::Kind::kWait);
      taken.Drop();
      EXPECT_EQ(table.Get(Key(3), kStart), nullptr);  // one has a token out, the other has a waiter
      EXPECT_EQ(table.refusals(), 1u);
      EXPECT_NE(table.Get(Key(1), kStart), nullptr);
      waiter.Drop();
      second.reset();
      EXPECT_NE(table.Get(Key(3), kStart), nullptr);
      EXPECT_EQ(table.evictions(), 1u);
      co_return;
    }
  };
  worker.runtime.SpawnOn(worker.worker, Flow::Run());
  worker.Run();
  EXPECT_EQ(worker.runtime.LiveTasks(), 0u);
}

TEST(KeyedRateLimiter, AnEvictedKeyDoesNotComeBackFull) {
  KeyedRateLimiter table(Each(10, 10), kWays);
  EXPECT_EQ(Calls(table, Key(0), kStart), 10);
  for (uint64_t key = 1; key <= kWays; ++key) (void)table.Get(Key(key), kStart);
  EXPECT_EQ(table.evictions(), 1u);
  EXPECT_EQ(Calls(table, Key(0), kStart), 0);
  EXPECT_EQ(Calls(table, Key(200), At(300)), 3);  // the debt decays at the rate, also for a key never seen
  EXPECT_EQ(Calls(table, Key(201), At(2000)), 10);
}

TEST(KeyedRateLimiter, ManyNamesBringNoMoreThanThePlacesTheyHave) {
  for (bool capped : {false, true}) {
    for (uint64_t names : {17u, 64u, 100'000u}) {
      constexpr uint32_t kKeys = 64;
      KeyedRateLimiter table(Each(10, 20, capped), kKeys);
      base::Random random(names);
      uint64_t went = 0;
      base::TimePoint now = kStart;
      for (int step = 0; step < 20'000; ++step, now += milliseconds(1)) {
        went +=
            static_cast<uint64_t>(Calls(table, Key(random.Below(names)), now, 1 + static_cast<int>(random.Below(50))));
      }
      const double share = kKeys * (20 + 10 * 20.0);
      EXPECT_LE(static_cast<double>(went), share + kKeys) << names;
    }
  }
}

// An honest client beside the attacker: keeps its bucket while it is used more often than the others.
TEST(KeyedRateLimiter, AKeyInSteadyUseKeepsItsBucket) {
  KeyedRateLimiter table(Each(10, 10), 64);
  EXPECT_EQ(Calls(table, Key(7), kStart), 10);
  base::TimePoint now = kStart;
  int honest = 0;
  for (uint64_t step = 0; step < 1000; ++step, now += milliseconds(10)) {
    for (uint64_t i = 0; i < 5; ++i) (void)Calls(table, Key(1000 + 5 * step + i), now, 100);
    honest += Calls(table, Key(7), now, 1);
  }
  EXPECT_GE(honest, 99);  // 10 s at 10 a second
}

TEST(KeyedRateLimiter, OptionsReachKeysThatAreThereAndNewOnes) {
  KeyedRateLimiter table(Each(10, 10), 64);
  EXPECT_EQ(Calls(table, Key(1), kStart), 10);
  table.Configure(Each(100, 5), kStart);
  EXPECT_EQ(Calls(table, Key(1), At(10)), 1);
  EXPECT_EQ(Calls(table, Key(2), At(10)), 5);
  table.Configure(Each(100, 5, true), At(10));  // another kind of bucket, at the level of the old one
  EXPECT_EQ(Calls(table, Key(1), At(10)), 0);
  EXPECT_EQ(Calls(table, Key(1), At(21)), 1);
  EXPECT_TRUE(table.Get(Key(1), At(21))->capped());
  table.Configure(Each(0, 5), At(30));
  EXPECT_EQ(Calls(table, Key(1), At(30), 1000), 1000);
  EXPECT_EQ(table.keys(), 0u);
  table.Configure(Each(10, 2), At(40));
  EXPECT_EQ(Calls(table, Key(1), At(40)), 2);
}

TEST(KeyedRateLimiter, ADebtInTokensSurvivesAChangeOfRate) {
  KeyedRateLimiter table(Each(10, 10), kWays);
  EXPECT_EQ(Calls(table, Key(0), kStart), 10);
  for (uint64_t key = 1; key <= kWays; ++key) (void)table.Get(Key(key), kStart);  // evicts it, ten calls in debt
  table.Configure(Each(1, 10), kStart);
  EXPECT_EQ(Calls(table, Key(100), At(5001)), 5);
}

TEST(KeyedRateLimiter, ADebtInTokensSurvivesAChangeOfRateAndKind) {
  KeyedRateLimiter slower(Each(1000, 10), 64);
  EXPECT_EQ(Calls(slower, Key(1), kStart), 10);
  slower.Configure(Each(1, 10, true), kStart);  // ten calls in debt: 10 ms before, 10 s now
  EXPECT_EQ(Calls(slower, Key(1), At(1)), 0);
  EXPECT_EQ(Calls(slower, Key(1), At(3001)), 3);
  KeyedRateLimiter faster(Each(1, 10), 64);
  EXPECT_EQ(Calls(faster, Key(1), kStart, 4), 4);
  faster.Configure(Each(1000, 10, true), kStart);
  EXPECT_EQ(Calls(faster, Key(1), kStart), 6);
}

TEST(KeyedRateLimiter, TheMemoryOfAKeyIsAsStated) {
  EXPECT_LE(KeyedRateLimiter::kBytesPerKey, 256u);
#ifndef SLUICE_SANITIZED
  constexpr uint32_t kKeys = 20'000;
  const size_t before = mallinfo2().uordblks;
  KeyedRateLimiter table(Each(10, 10), kKeys);
  const size_t empty = mallinfo2().uordblks - before;
  EXPECT_LE(empty, 6 * kKeys);
  for (uint64_t key = 0; key < 3 * kKeys; ++key) (void)table.Get(Key(key), kStart);
  const size_t full = mallinfo2().uordblks - before;
  EXPECT_EQ(table.keys(), kKeys);
  EXPECT_LE((full - empty) / kKeys, KeyedRateLimiter::kBytesPerKey);
  RecordProperty("bytes_per_key", static_cast<int>((full - empty) / kKeys));
#endif
}

TEST(KeyedRateLimiterStress, ThreadsGetEvictHoldAndConfigure) {
#ifdef SLUICE_SANITIZED
  constexpr int kSteps = 10'000;
#else
  constexpr int kSteps = 100'000;
#endif
  KeyedRateLimiter table(Each(1e5, 5, true), 40);
  std::atomic<int64_t> clock{0};
  std::vector<std::thread> threads;
  std::atomic<uint64_t> went{0};
  for (uint64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      base::Random random(t);
      struct {
        std::shared_ptr<RateLimiter> limiter;
        RateLimiter::Ticket ticket;
      } held[8];
      for (int i = 0; i < kSteps; ++i) {
        const base::TimePoint now = kStart + base::Nanos(clock.fetch_add(5000, std::memory_order_relaxed));
        auto& [limiter, ticket] = held[random.Below(8)];
        ticket.Drop();
        limiter = table.Get(Key(random.Below(random.Below(2) == 0 ? 10 : 200)), now);
        if (limiter != nullptr && ticket.Ask(*limiter, now, base::kNever).kind == Verdict::Kind::kGo) {
          went.fetch_add(1, std::memory_order_relaxed);
        }
        ASSERT_LE(table.keys(), 40u);
        if (t == 0 && i % 1000 == 0) table.Configure(Each(1e5 + i, 5, random.Below(4) != 0), now);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(went.load(), 1000u);
  EXPECT_GT(table.evictions(), 100u);
  const base::TimePoint now = kStart + std::chrono::hours(1);
  for (uint64_t key = 0; key < 200; ++key) EXPECT_EQ(table.Get(Key(key), now)->outstanding(), 0u);
}

}  // namespace
}  // namespace sluice::limits
