#include "runtime/timer_wheel.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/random.h"

namespace sluice::runtime {
namespace {

using namespace std::chrono_literals;
using base::Nanos;
using base::TimePoint;

const TimePoint kStart{1h};

struct Recorder final : Timer {
  int fired = 0;
  TimePoint at;
  std::function<void(TimePoint)> then;
  void OnTimer(TimePoint now) override {
    ++fired;
    at = now;
    if (then) then(now);
  }
};

TEST(TimerWheel, ATimerFiresAtItsMillisecondAndNotBefore) {
  TimerWheel wheel(kStart);
  Recorder timer;
  wheel.Arm(timer, kStart + 5ms + Nanos(1));
  EXPECT_EQ(wheel.Advance(kStart + 5ms + Nanos(1)), 0u);  // rounded up
  EXPECT_EQ(wheel.Advance(kStart + 6ms - Nanos(1)), 0u);
  EXPECT_EQ(wheel.Advance(kStart + 6ms), 1u);
  EXPECT_FALSE(timer.armed());
}

TEST(TimerWheel, ATimeInThePastFiresAtTheNextAdvanceThatMakesATick) {
  TimerWheel wheel(kStart);
  wheel.Advance(kStart + 100ms);
  Recorder timer;
  wheel.Arm(timer, kStart - 1h);
  EXPECT_EQ(wheel.Advance(kStart + 101ms), 1u);
}

TEST(TimerWheel, ATimerThatRearmsInThePastDoesNotHoldAdvance) {
  TimerWheel wheel(kStart);
  Recorder timer;
  timer.then = [&](TimePoint now) { wheel.Arm(timer, now - 1s); };
  wheel.Arm(timer, kStart + 1ms);
  EXPECT_EQ(wheel.Advance(kStart + 10s), 1u);
  EXPECT_TRUE(timer.armed());
}

TEST(TimerWheel, ACallbackMayDestroyAndDisarmOtherDueTimers) {
  TimerWheel wheel(kStart);
  Recorder killer, victim_disarmed;
  auto victim = std::make_unique<Recorder>();
  wheel.Arm(killer, kStart + 1ms);
  wheel.Arm(*victim, kStart + 2ms);
  wheel.Arm(victim_disarmed, kStart + 3ms);
  killer.then = [&](TimePoint) {
    victim.reset();
    wheel.Disarm(victim_disarmed);
  };
  EXPECT_EQ(wheel.Advance(kStart + 10ms), 1u);
  EXPECT_EQ(victim_disarmed.fired, 0);
}

TEST(TimerWheel, NeverDisarms) {
  TimerWheel wheel(kStart);
  Recorder timer;
  wheel.Arm(timer, kStart + 1ms);
  wheel.Arm(timer, base::kNever);
  EXPECT_FALSE(timer.armed());
  EXPECT_EQ(wheel.NextExpiry(), base::kNever);
}

TEST(TimerWheel, ATimeBeyondTheWheelsReachIsKept) {
  TimerWheel wheel(kStart);
  Recorder timer;
  const TimePoint when = kStart + 24h * 30;
  wheel.Arm(timer, when);
  EXPECT_EQ(wheel.Advance(when - 1ms), 0u);
  EXPECT_EQ(wheel.Advance(when), 1u);
}

// Random arms, disarms and leaps of time against a sorted map.
TEST(TimerWheel, AgreesWithASortedMapOverAMillionSteps) {
  constexpr uint64_t kSeed = 42;
  SCOPED_TRACE(kSeed);
  base::Random random(kSeed);
  TimerWheel wheel(kStart);
  std::vector<Recorder> timers(200);
  std::multimap<TimePoint, size_t> model;
  std::vector<std::multimap<TimePoint, size_t>::iterator> where(timers.size(), model.end());
  TimePoint now = kStart;
  auto forget = [&](size_t i) {
    if (where[i] != model.end()) model.erase(where[i]);
    where[i] = model.end();
  };
  // When a timer armed at `now` for `when` is due: whole ms since the start, rounded up, and not this ms.
  auto due_at = [&](TimePoint when) {
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(when - kStart);
    const auto next = std::chrono::floor<std::chrono::milliseconds>(now - kStart) + 1ms;
    return kStart + std::max(ms, next);
  };
  for (int step = 0; step < 1'000'000; ++step) {
    const size_t i = random.Below(timers.size());
    const uint64_t kind = random.Below(10);
    if (kind < 5) {
      const uint64_t range = uint64_t{1} << random.Below(46);  // up to 19 hours, all scales alike
      const TimePoint when = now + Nanos(static_cast<int64_t>(random.Below(range))) - Nanos(1000);
      forget(i);
      where[i] = model.emplace(due_at(when), i);
      wheel.Arm(timers[i], when);
    } else if (kind == 5) {
      forget(i);
      wheel.Disarm(timers[i]);
    } else {
      if (!model.empty()) {
        ASSERT_LE(wheel.NextExpiry(), model.begin()->first);
      } else {
        ASSERT_EQ(wheel.NextExpiry(), base::kNever);
      }
      now += Nanos(static_cast<int64_t>(random.Below(uint64_t{1} << random.Below(40))));
      size_t expected = 0;
      while (!model.empty() && model.begin()->first <= now) {
        const size_t due = model.begin()->second;
        forget(due);
        timers[due].fired = -1;
        ++expected;
      }
      ASSERT_EQ(wheel.Advance(now), expected);
      for (Recorder& timer : timers) {
        ASSERT_TRUE(timer.fired == 0) << timer.fired;  // -1 + 1: exactly those, once
      }
    }
    ASSERT_EQ(timers[i].armed(), where[i] != model.end());
  }
}

// A loop that sleeps until NextExpiry wakes a handful of times a timer, not once a tick.
TEST(TimerWheel, SleepingUntilNextExpiryReachesALongTimerInFewSteps) {
  for (auto distance : {Nanos(30s), Nanos(1h), Nanos(24h)}) {
    TimerWheel wheel(kStart);
    Recorder timer;
    wheel.Arm(timer, kStart + distance);
    int wakes = 0;
    while (timer.fired == 0) {
      wheel.Advance(wheel.NextExpiry());
      ASSERT_LT(++wakes, 6);
    }
    EXPECT_EQ(timer.at, kStart + distance);
  }
}

}  // namespace
}  // namespace sluice::runtime
