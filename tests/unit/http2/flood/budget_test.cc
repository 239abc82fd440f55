#include "http2/flood/budget.h"

#include <gtest/gtest.h>

namespace sluice::http2 {
namespace {

using std::chrono::milliseconds;

class FloodBudgetsTest : public ::testing::Test {
 public:
  FloodBudgetsTest() {
    options.pings_per_second = 40;
    guard = FloodBudgets(options);
    guard.Begin(now);
  }
  // How many are granted in a row, refilled where they are used up.
  uint32_t Grants(uint32_t work = 0, uint32_t most = 10000) {
    uint32_t granted = 0;
    while (granted < most) {
      if (!guard.Spend(Budget::kPings, 1)) {
        guard.Refill(Budget::kPings, work, now);
        if (!guard.Spend(Budget::kPings, 1)) break;
      }
      ++granted;
    }
    return granted;
  }

  SessionOptions options;
  base::TimePoint now{std::chrono::hours(1)};
  FloodBudgets guard{options};
};

TEST_F(FloodBudgetsTest, ASecondsWorthIsThereAtOnceAndNoMore) {
  EXPECT_EQ(Grants(), 40u);
  EXPECT_EQ(Grants(), 0u);
}

TEST_F(FloodBudgetsTest, TimeFillsItUpToASecondsWorth) {
  EXPECT_EQ(Grants(), 40u);
  now += milliseconds(500);
  EXPECT_EQ(Grants(), 20u);
  now += std::chrono::hours(5);
  EXPECT_EQ(Grants(), 40u);
}

TEST_F(FloodBudgetsTest, FractionsOfAUnitAreNotLost) {
  EXPECT_EQ(Grants(), 40u);
  uint32_t granted = 0;
  for (int i = 0; i < 1000; ++i) {
    now += milliseconds(1);  // a 25th of a unit
    granted += Grants();
  }
  EXPECT_EQ(granted, 40u);
}

TEST_F(FloodBudgetsTest, WorkFillsItUpToASecondsWorth) {
  EXPECT_EQ(Grants(), 40u);
  EXPECT_EQ(Grants(7), 7u);
  EXPECT_EQ(Grants(7), 0u);
  EXPECT_EQ(Grants(1000007), 40u);
}

TEST_F(FloodBudgetsTest, WorkMayWrap) {
  EXPECT_EQ(Grants(0xfffffffe), 80u);  // the first refill is of all the work before
  EXPECT_EQ(Grants(3), 5u);
}

TEST_F(FloodBudgetsTest, BudgetsAreApart) {
  EXPECT_EQ(Grants(), 40u);
  EXPECT_TRUE(guard.Spend(Budget::kResets, options.resets_per_second));
  EXPECT_FALSE(guard.Spend(Budget::kResets, 1));
  EXPECT_TRUE(guard.Spend(Budget::kSettings, 1));
}

}  // namespace
}  // namespace sluice::http2
