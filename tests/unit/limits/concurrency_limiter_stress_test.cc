// ConcurrencyLimiter: every interleaving of a few operations, and threads that ask, wait, leave and configure at
// random.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "limits/concurrency_limiter.h"
#include "support/interleave.h"

namespace sluice::limits {
namespace {

using Kind = Verdict::Kind;

// What happens under it is one step: see the semaphore's interleavings for those inside.
struct WholeMutex {
  void lock() {
    interleave::Point();
    slot = std::exchange(interleave::internal::t_slot, nullptr);
  }
  void unlock() { interleave::internal::t_slot = slot; }
  interleave::internal::Slot* slot = nullptr;
};
struct NoWakeup {
  static NoWakeup ForRunningTask() { return {}; }
  void Wake() const {}
};
struct StepTraits : ConcurrencyLimiterTraits {
  template <typename T>
  using Atomic = interleave::Atomic<T>;
  using Mutex = WholeMutex;
  using Wakeup = NoWakeup;
};
using StepLimiter = BasicConcurrencyLimiter<StepTraits>;

struct State {
  explicit State(ConcurrencyOptions options) : limiter(std::make_shared<StepLimiter>(options)) {}
  std::shared_ptr<StepLimiter> limiter;
  StepLimiter::Ticket tickets[3];
};
using Shared = std::shared_ptr<State>;

template <typename Setup>
uint64_t Explore(ConcurrencyOptions options, const Setup& setup) {
  auto explore = [&](interleave::Run& run) { setup(run, std::make_shared<State>(options)); };
  return interleave::Explore(explore, {.preemptions_max = 2}).schedules;
}

TEST(ConcurrencyLimiterInterleave, ARequestBesideAnEndIsNotForgotten) {
  const uint64_t schedules = Explore({.max = 1, .queue_max = 10}, [](interleave::Run& run, Shared state) {
    state->tickets[0].Ask(*state->limiter, 0);
    run.Thread([=] { state->tickets[0].Drop(); });
    for (int i : {1, 2}) {
      run.Thread([=] { state->tickets[i].Ask(*state->limiter, static_cast<uint64_t>(i)); });
    }
    run.AtEnd([=] {
      const bool first = state->tickets[1].Poll().kind == Kind::kGo;
      const bool second = state->tickets[2].Poll().kind == Kind::kGo;
      EXPECT_NE(first, second);
      state->tickets[first ? 1 : 2].Drop();
      EXPECT_EQ(state->tickets[first ? 2 : 1].Poll().kind, Kind::kGo);
    });
  });
  EXPECT_GT(schedules, 50u);
}

TEST(ConcurrencyLimiterInterleave, NoWaiterIsLeftWhenTheLimitIsLifted) {
  Explore({.max = 1, .queue_max = 10}, [](interleave::Run& run, Shared state) {
    state->tickets[0].Ask(*state->limiter, 0);
    run.Thread([=] { state->limiter->Configure({.max = 0}); });
    auto verdict = std::make_shared<Verdict>();
    run.Thread([=] { *verdict = state->tickets[1].Ask(*state->limiter, 1); });
    run.AtEnd([=] {
      if (verdict->kind == Kind::kWait) *verdict = state->tickets[1].Poll();
      EXPECT_EQ(verdict->kind, Kind::kGo);
      EXPECT_EQ(state->limiter->waiting(), 0u);
    });
  });
}

TEST(ConcurrencyLimiterInterleave, ADisplacedCallMayLeaveMeanwhile) {
  Explore({.max = 1, .queue_max = 2}, [](interleave::Run& run, Shared state) {
    auto holder = std::make_shared<StepLimiter::Ticket>();
    holder->Ask(*state->limiter, 9);
    state->tickets[0].Ask(*state->limiter, 0);
    state->tickets[1].Ask(*state->limiter, 0);
    run.Thread([=] { state->tickets[1].Drop(); });
    run.Thread([=] { EXPECT_EQ(state->tickets[2].Ask(*state->limiter, 1).kind, Kind::kWait); });
    run.AtEnd([=] {
      EXPECT_EQ(state->limiter->waiting(), 2u);
      holder->Drop();
      EXPECT_EQ(state->limiter->in_use(), 1u);
    });
  });
}

// Its time is up while a unit comes back: it has the unit, or the next has it; it is never lost, and never two have it.
TEST(ConcurrencyLimiterInterleave, AWaitThatEndsByTimeBesideAGrantLosesNoUnit) {
  bool expired = false, granted = false;
  Explore({.max = 1, .queue_max = 10}, [&](interleave::Run& run, Shared state) {
    state->tickets[0].Ask(*state->limiter, 0);
    EXPECT_EQ(state->tickets[1].Ask(*state->limiter, 1).kind, Kind::kWait);
    EXPECT_EQ(state->tickets[2].Ask(*state->limiter, 2).kind, Kind::kWait);
    run.Thread([=] { state->tickets[0].Drop(); });
    auto verdict = std::make_shared<Verdict>();
    run.Thread([=] { *verdict = state->tickets[1].Expire(Refusal::kQueueTime); });
    run.AtEnd([=, &expired, &granted] {
      const bool went = verdict->kind == Kind::kGo;
      (went ? granted : expired) = true;
      EXPECT_EQ(state->tickets[1].holding(), went);
      EXPECT_EQ(state->limiter->in_use(), 1u);
      EXPECT_EQ(state->tickets[2].Poll().kind, went ? Kind::kWait : Kind::kGo);
      state->tickets[1].Drop();
      EXPECT_EQ(state->tickets[2].Poll().kind, Kind::kGo);
      state->tickets[2].Drop();
      EXPECT_EQ(state->limiter->in_use(), 0u);
    });
  });
  EXPECT_TRUE(expired && granted);
}

// A wake-up its thread looks for.
struct FlagWakeup {
  static inline std::atomic<uint64_t> wakes{0};
  static FlagWakeup ForRunningTask() { return {true}; }
  void Wake() const {
    if (live) wakes.fetch_add(1, std::memory_order_relaxed);
  }
  bool live = false;
};
struct ThreadTraits : ConcurrencyLimiterTraits {
  using Wakeup = FlagWakeup;
};
using ThreadLimiter = BasicConcurrencyLimiter<ThreadTraits>;

TEST(ConcurrencyLimiterStress, NeverMoreThanMaxAndNoWaiterForgotten) {
  constexpr int kThreads = 4, kTimes = 4'000;
  constexpr uint32_t kMax = 2;
  auto limiter = std::make_shared<ThreadLimiter>(ConcurrencyOptions{.max = kMax, .queue_max = 2});
  std::atomic<uint32_t> under_way{0}, most{0};
  std::atomic<uint64_t> went{0}, refused{0}, left{0};
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<uint32_t>(t) + 100);
      for (int i = 0; i < kTimes; ++i) {
        ThreadLimiter::Ticket ticket;
        Verdict verdict =
            random() % 8 == 0 ? ticket.TryAsk(*limiter) : ticket.Ask(*limiter, static_cast<uint64_t>(t) / 2);
        const bool impatient = random() % 8 == 0;
        while (verdict.kind == Kind::kWait && !impatient) {
          std::this_thread::yield();
          verdict = ticket.Poll();
        }
        if (verdict.kind == Kind::kWait) {
          left.fetch_add(1, std::memory_order_relaxed);
        } else if (verdict.kind == Kind::kRefused) {
          refused.fetch_add(1, std::memory_order_relaxed);
        } else {
          went.fetch_add(1, std::memory_order_relaxed);
          const uint32_t now = under_way.fetch_add(1, std::memory_order_relaxed) + 1;
          if (now > most.load(std::memory_order_relaxed)) most.store(now, std::memory_order_relaxed);
          if (random() % 16 == 0) std::this_thread::yield();
          under_way.fetch_sub(1, std::memory_order_relaxed);
        }
      }
    });
  }
  threads.clear();
  EXPECT_LE(most.load(), kMax);
  EXPECT_EQ(went.load() + refused.load() + left.load(), uint64_t{kThreads} * kTimes);
  EXPECT_GT(went.load(), uint64_t{kTimes});
  EXPECT_EQ(limiter->in_use(), 0u);
  EXPECT_EQ(limiter->waiting(), 0u);
  EXPECT_TRUE(limiter->HasRoom());
}

TEST(ConcurrencyLimiterStress, ConfiguredUnderCalls) {
  constexpr int kThreads = 3, kTimes = 5'000;
  auto limiter = std::make_shared<ThreadLimiter>(ConcurrencyOptions{.max = 1, .queue_max = 8});
  std::atomic<int> running{kThreads};
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kTimes; ++i) {
        ThreadLimiter::Ticket ticket;
        Verdict verdict = ticket.Ask(*limiter, static_cast<uint64_t>(t));
        while (verdict.kind == Kind::kWait) {
          std::this_thread::yield();
          verdict = ticket.Poll();
        }
      }
      running.fetch_sub(1, std::memory_order_relaxed);
    });
  }
  std::mt19937 random(5);
  while (running.load(std::memory_order_relaxed) > 0) {
    limiter->Configure({.max = static_cast<uint32_t>(random() % 4), .queue_max = 8});
    std::this_thread::yield();
  }
  threads.clear();
  limiter->Configure({.max = 7, .queue_max = 8});
  EXPECT_EQ(limiter->in_use(), 0u);
  EXPECT_EQ(limiter->waiting(), 0u);
}

}  // namespace
}  // namespace sluice::limits
