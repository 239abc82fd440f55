// Clock: deadlines that do not wrap, a clock turned by hand.
#include "base/clock.h"

#include <gtest/gtest.h>

namespace sluice::base {
namespace {

TEST(Clock, DeadlinesStopAtNever) {
  TimePoint now = ManualClock().Now();
  EXPECT_EQ(DeadlineAfter(now, std::chrono::seconds(1)), now + std::chrono::seconds(1));
  EXPECT_EQ(DeadlineAfter(now, Nanos(0)), now);
  EXPECT_EQ(DeadlineAfter(now, Nanos::max()), kNever);
  EXPECT_EQ(DeadlineAfter(now, kNever - now), kNever);
  EXPECT_LT(DeadlineAfter(now, kNever - now - Nanos(1)), kNever);
  EXPECT_LT(DeadlineAfter(now, Nanos(-5)), now);
}

TEST(Clock, ManualClockStandsUntilAdvanced) {
  ManualClock clock;
  TimePoint start = clock.Now();
  EXPECT_EQ(clock.Now(), start);
  clock.Advance(std::chrono::milliseconds(5));
  EXPECT_EQ(clock.Now() - start, std::chrono::milliseconds(5));
}

TEST(Clock, SteadyClockDoesNotGoBack) {
  TimePoint first = Clock::Steady().Now();
  EXPECT_GE(Clock::Steady().Now(), first);
}

}  // namespace
}  // namespace sluice::base
