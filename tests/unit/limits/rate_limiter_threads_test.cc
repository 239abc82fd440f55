// RateLimiter from several threads: every interleaving of the moments at which a wake-up could be lost (sequential
// consistency only; a lost one leaves its waiter for ever, and the explorer stops the test), then stress, which is what
// TSan looks at.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/random.h"
#include "support/interleave.h"
#include "unit/limits/rate_limiter_support.h"

namespace sluice::limits {
namespace {

using rate_test::FakeWakeup;
using std::chrono::milliseconds;

const base::TimePoint kStart{std::chrono::hours(1)};
base::TimePoint At(int64_t ms) { return kStart + milliseconds(ms); }

class StepMutex {
 public:
  void lock() {
    while (locked_.exchange(true)) interleave::Yield();
  }
  void unlock() { locked_.store(false); }

 private:
  interleave::Atomic<bool> locked_{false};
};
struct StepTraits {
  template <typename V>
  using Atomic = interleave::Atomic<V>;
  using Mutex = StepMutex;
  using Wakeup = FakeWakeup;
};
using StepLimiter = BasicRateLimiter<StepTraits>;

struct StepCall {
  explicit StepCall(std::shared_ptr<StepLimiter> l) : limiter(std::move(l)) {}
  bool Ask(base::TimePoint now) {
    FakeWakeup::Running() = wakes;
    verdict = ticket.Ask(*limiter, now, base::kNever);
    FakeWakeup::Running() = nullptr;
    return verdict.kind == Verdict::Kind::kGo;
  }
  // Time stands: only a wake-up makes it look again.
  void AskAndWait(base::TimePoint now) {
    int seen = 0;
    for (bool went = Ask(now); !went; went = ticket.Poll(now).kind == Verdict::Kind::kGo) {
      while (wakes->load() == seen) interleave::Yield();
      seen = wakes->load();
    }
  }
  std::shared_ptr<StepLimiter> limiter;
  FakeWakeup::Count wakes = std::make_shared<std::atomic<int>>(0);
  StepLimiter::Ticket ticket;
  Verdict verdict;
};

struct State {
  // Empty at kStart; a call a millisecond.
  State(uint32_t burst, bool capped, base::TimePoint full_at = base::TimePoint::max())
      : limiter(std::make_shared<StepLimiter>(RateOptions{1000, burst, capped, 10}, kStart, full_at)) {}
  std::shared_ptr<StepLimiter> limiter;
  StepCall a{limiter}, b{limiter}, c{limiter};
};

// One thread brings both tokens and is stopped half way; the other finds none, queues, and computes its time without
// the second token.
TEST(RateLimiterInterleave, AReplenishSeesAWaiterThatJustQueued) {
  for (bool capped : {false, true}) {
    const auto result = interleave::Explore(
        [capped](interleave::Run& run) {
          auto s = std::make_shared<State>(4, capped);
          run.Thread([=] { s->a.AskAndWait(At(2)); });
          run.Thread([=] { s->b.AskAndWait(At(2)); });
          run.AtEnd([=] { EXPECT_EQ(s->limiter->waiting(), 0u); });
        },
        {.preemptions_max = 2});
    EXPECT_GT(result.schedules, 200u);
  }
}

// As before, but the first thread brings half a token: it must queue itself, behind a waiter that may have computed its
// time without that half.
TEST(RateLimiterInterleave, AReplenishThatIsTooSmallTellsTheFirst) {
  const auto result = interleave::Explore([](interleave::Run& run) {
    auto s = std::make_shared<State>(4, false);
    const base::TimePoint half = kStart + std::chrono::microseconds(500);
    run.Thread([=] { EXPECT_FALSE(s->a.Ask(half)); });
    run.Thread([=] { EXPECT_FALSE(s->b.Ask(half)); });
    run.AtEnd([=] {
      const StepCall& first = s->a.verdict.check_at != base::kNever ? s->a : s->b;
      EXPECT_TRUE(first.verdict.check_at <= At(1) || first.wakes->load() > 0);
    });
  });
  EXPECT_GT(result.schedules, 100u);
}

TEST(RateLimiterInterleave, AnEndSeesAWaiterThatJustBlocked) {
  const auto result = interleave::Explore([](interleave::Run& run) {
    auto s = std::make_shared<State>(1, true);
    EXPECT_TRUE(s->a.Ask(At(1)));
    run.Thread([=] { s->a.ticket.Drop(); });
    run.Thread([=] { s->b.AskAndWait(At(5)); });
    run.AtEnd([=] {
      EXPECT_TRUE(s->b.ticket.holding());
      EXPECT_EQ(s->limiter->outstanding(), 1u);
    });
  });
  EXPECT_GT(result.schedules, 200u);
}

TEST(RateLimiterInterleave, TwoEndsServeTwoWaiters) {
  const auto result = interleave::Explore(
      [](interleave::Run& run) {
        auto s = std::make_shared<State>(1, true);
        EXPECT_TRUE(s->a.Ask(At(1)));
        run.Thread([=] { s->a.ticket.Drop(); });
        run.Thread([=] {
          s->b.AskAndWait(At(9));
          s->b.ticket.Drop();
          s->c.Ask(At(10));  // it may find the token, or leave at once: both are fine, nothing leaks
          s->c.ticket.Drop();
        });
        run.AtEnd([=] {
          EXPECT_EQ(s->limiter->outstanding(), 0u);
          EXPECT_EQ(s->limiter->waiting(), 0u);
        });
      },
      {.preemptions_max = 2});
  EXPECT_GT(result.schedules, 200u);
}

TEST(RateLimiterInterleave, LeavingTheHeadHandsItOn) {
  const auto result = interleave::Explore([](interleave::Run& run) {
    auto s = std::make_shared<State>(4, false);
    EXPECT_FALSE(s->a.Ask(kStart));
    run.Thread([=] { s->a.ticket.Drop(); });
    run.Thread([=] { s->b.AskAndWait(At(1)); });
    run.AtEnd([=] { EXPECT_EQ(s->limiter->waiting(), 0u); });
  });
  EXPECT_GT(result.schedules, 100u);
}

TEST(RateLimiterInterleave, ARemovedLimitForgetsNoWaiter) {
  for (bool close : {false, true}) {
    const auto result = interleave::Explore([close](interleave::Run& run) {
      auto s = std::make_shared<State>(4, true);
      run.Thread([=] { s->a.AskAndWait(kStart); });
      run.Thread([=] {
        if (close) {
          s->limiter->Close();
        } else {
          s->limiter->Configure({0, 1, true, 10}, kStart);
        }
      });
      run.AtEnd([=] {
        EXPECT_FALSE(s->a.ticket.holding());
        EXPECT_EQ(s->limiter->waiting(), 0u);
      });
    });
    EXPECT_GT(result.schedules, 50u);
  }
}

TEST(RateLimiterInterleave, ARefundSeesAWaiterThatJustQueued) {
  for (bool capped : {false, true}) {
    const auto result = interleave::Explore([capped](interleave::Run& run) {
      auto s = std::make_shared<State>(2, capped, At(1));  // one token
      EXPECT_TRUE(s->a.Ask(kStart));
      run.Thread([=] { capped ? s->a.ticket.DropUnused() : s->limiter->Refund(); });
      run.Thread([=] { s->b.AskAndWait(kStart); });
      run.AtEnd([=] { EXPECT_EQ(s->limiter->waiting(), 0u); });
    });
    EXPECT_GT(result.schedules, 50u);
  }
}

// Off and on again by two independent threads: a call that asks under the new limit is not let go for the old one's
// end.
TEST(RateLimiterInterleave, ALimitThatIsBackAppliesToLaterRequests) {
  const auto result = interleave::Explore([](interleave::Run& run) {
    auto s = std::make_shared<State>(4, false);
    run.Thread([=] { s->limiter->Configure({0, 4, false, 10}, kStart); });
    run.Thread([=] {
      s->limiter->Configure({1000, 4, false, 10}, kStart);
      s->a.Ask(kStart);
    });
    run.AtEnd([=] { EXPECT_EQ(s->limiter->waiting(), s->limiter->enabled() ? 1u : 0u); });
  });
  EXPECT_GT(result.schedules, 20u);
}

// A waiter whose time was computed at an old rate is told of the new one.
TEST(RateLimiterInterleave, ANewRateReachesAWaiterThatJustQueued) {
  const auto result = interleave::Explore([](interleave::Run& run) {
    auto s = std::make_shared<State>(4, false);
    run.Thread([=] {
      if (s->a.Ask(kStart)) return;
      while (s->a.wakes->load() == 0 && s->a.verdict.check_at > At(1)) interleave::Yield();
      EXPECT_EQ(s->a.ticket.Poll(At(1)).kind, Verdict::Kind::kGo);
    });
    run.Thread([=] { s->limiter->Configure({2000, 4, false, 10}, kStart); });
  });
  EXPECT_GT(result.schedules, 50u);
}

// Calls that ask, wait by a common clock, change their minds, run and end; tickets die as soon as they have gone.
void Stress(bool capped, bool configure) {
#ifdef SLUICE_SANITIZED
  constexpr int kCalls = 600;
#else
  constexpr int kCalls = 2'000;
#endif
  constexpr uint32_t kBurst = 8;
  auto limiter = std::make_shared<rate_test::Limiter>(RateOptions{1e6, kBurst, capped, 5}, kStart);
  std::atomic<int64_t> clock{0};
  std::atomic<uint64_t> went{0}, refused{0}, left{0};
  std::atomic<int> under_way{0};
  std::vector<std::thread> threads;
  auto now = [&](int64_t by) { return kStart + base::Nanos(clock.fetch_add(by, std::memory_order_relaxed)); };
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      base::Random random(t);
      std::vector<std::unique_ptr<rate_test::Call>> running;
      for (int i = 0; i < kCalls; ++i) {
        auto call = std::make_unique<rate_test::Call>();
        const base::TimePoint start = now(300);
        call->Ask(limiter, start - base::Nanos(random.Below(1000)),
                  random.Below(2) == 0 ? base::kNever : start + base::Nanos(random.Below(10'000)));
        const bool impatient = random.Below(10) == 0;
        while (call->waits()) {
          if (impatient && random.Below(5) == 0) break;
          if (call->Woken() || call->verdict.check_at <= now(100)) call->Poll(now(0));
          if (!running.empty() && random.Below(4) == 0) {  // the others go on: their ends are what it may wait for
            under_way.fetch_sub(1, std::memory_order_relaxed);
            running.pop_back();
          }
          std::this_thread::yield();
        }
        if (call->went()) {
          went.fetch_add(1, std::memory_order_relaxed);
          if (call->ticket.holding()) {
            const int count = under_way.fetch_add(1, std::memory_order_relaxed) + 1;
            EXPECT_TRUE(configure || count <= static_cast<int>(kBurst)) << count;
            running.push_back(std::move(call));
          }
        } else if (call->waits()) {
          left.fetch_add(1, std::memory_order_relaxed);
        } else {
          refused.fetch_add(1, std::memory_order_relaxed);
        }
        if (configure && t == 0 && i % 20 == 0) {
          const double rate = random.Below(4) == 0 ? 0 : 0.5e6 + random.Unit() * 1e6;
          limiter->Configure({rate, 1 + static_cast<uint32_t>(random.Below(kBurst)), capped, 5}, now(0));
        }
        while (running.size() > random.Below(3)) {
          under_way.fetch_sub(1, std::memory_order_relaxed);
          running.pop_back();
        }
      }
      under_way.fetch_sub(static_cast<int>(running.size()), std::memory_order_relaxed);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(limiter->waiting(), 0u);
  EXPECT_EQ(limiter->outstanding(), 0u);
  EXPECT_EQ(went + refused + left, 4u * kCalls);
  EXPECT_GT(went.load(), static_cast<uint64_t>(kCalls));
  if (!configure) {
    const double span = static_cast<double>(clock.load()) * 1e-9;
    EXPECT_LE(static_cast<double>(went.load()), span * 1e6 + kBurst + 1);
  }
}
TEST(RateLimiterStress, UncappedCallsFromManyThreads) { Stress(false, false); }
TEST(RateLimiterStress, CappedCallsFromManyThreads) { Stress(true, false); }
TEST(RateLimiterStress, OptionsChangeMeanwhile) {
  Stress(false, true);
  Stress(true, true);
}

}  // namespace
}  // namespace sluice::limits
