// How many resets are recent.
#include "http2/session/reset_tally.h"

#include <gtest/gtest.h>

namespace sluice::http2 {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

TEST(ResetTally, TheyAreForgottenOneByOne) {
  const base::TimePoint start{hours(1)};
  ResetTally tally;
  EXPECT_EQ(tally.Count(start), 0u);
  for (int i = 0; i < 10; ++i) tally.Add();
  tally.Tick(start);
  EXPECT_EQ(tally.count(), 10u);
  EXPECT_EQ(tally.Count(start + ResetTally::kForgotten - base::Nanos(1)), 10u);
  EXPECT_EQ(tally.Count(start + ResetTally::kForgotten), 9u);
  EXPECT_EQ(tally.Count(start + 3 * ResetTally::kForgotten), 7u);
  EXPECT_EQ(tally.Count(start + hours(1)), 0u);
  EXPECT_EQ(tally.count(), 10u) << "as of the last look";
}

TEST(ResetTally, ASteadyRateBelowTheirsCountsToNothing) {
  base::TimePoint now{hours(1)};
  ResetTally tally;
  for (int i = 0; i < 1000; ++i) {
    tally.Add();
    tally.Tick(now += seconds(1));
  }
  EXPECT_EQ(tally.count(), 1u);
}

TEST(ResetTally, OneAboveItCountsTheRest) {
  base::TimePoint now{hours(1)};
  ResetTally tally;
  for (int i = 0; i < 1000; ++i) {
    tally.Add();
    tally.Tick(now += ResetTally::kForgotten / 10);
  }
  EXPECT_NEAR(tally.count(), 900, 2);
  tally.Add();
  tally.Tick(now += seconds(30));
  EXPECT_NEAR(tally.count(), 811, 3);
}

TEST(ResetTally, ABurstCountsFromWhenItIsSeen) {
  const base::TimePoint start{hours(1)};
  ResetTally tally;
  tally.Tick(start);
  for (int i = 0; i < 100; ++i) tally.Add();
  EXPECT_EQ(tally.Count(start + hours(1)), 100u);
  tally.Tick(start + hours(1));
  EXPECT_EQ(tally.Count(start + hours(1)), 100u);
}

}  // namespace
}  // namespace sluice::http2
