#include "base/log_limit.h"

#include <gtest/gtest.h>

namespace sluice::base {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(LogLimit, SoManyLinesInAPeriodAreWrittenAndTheRestIsCounted) {
  LogLimit limit(2, seconds(10));
  const TimePoint start{seconds(5)};
  EXPECT_EQ(limit.Allow(start), "");
  EXPECT_EQ(limit.Allow(start + seconds(9)), "");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(limit.Allow(start + milliseconds(9'999)), std::nullopt);
  EXPECT_EQ(limit.Allow(start + seconds(10)), " (and 3 lines of this kind before it)");
  EXPECT_EQ(limit.Allow(start + seconds(10)), "");  // said once
  EXPECT_EQ(limit.Allow(start + seconds(10)), std::nullopt);
}

TEST(LogLimit, APeriodBeginsWithALine) {
  LogLimit limit(1, seconds(10));
  EXPECT_EQ(limit.Allow(TimePoint{seconds(100)}), "");
  EXPECT_EQ(limit.Allow(TimePoint{seconds(119)}), "");  // and not at 120
  EXPECT_EQ(limit.Allow(TimePoint{seconds(121)}), std::nullopt);
  EXPECT_NE(limit.Allow(TimePoint{seconds(129)}), std::nullopt);
}

TEST(LogLimit, TheFirstLineIsWrittenWheneverTheClockBegins) {
  LogLimit limit(1, seconds(10));
  EXPECT_EQ(limit.Allow(TimePoint{}), "");
  EXPECT_EQ(limit.Allow(TimePoint{}), std::nullopt);
  EXPECT_EQ(LogLimit(1, seconds(10)).Allow(TimePoint{-seconds(100)}), "");
}

TEST(LogLimit, OfPeersTenInASecond) {
  LogLimit limit;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(limit.Allow(TimePoint{}), "");
  EXPECT_EQ(limit.Allow(TimePoint{milliseconds(999)}), std::nullopt);
  EXPECT_NE(limit.Allow(TimePoint{seconds(1)}), std::nullopt);
}

}  // namespace
}  // namespace sluice::base
