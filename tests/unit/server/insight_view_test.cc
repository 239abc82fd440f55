// What a sample says of all calls.
#include "server/insight_view.h"

#include <gtest/gtest.h>

namespace sluice::server {
namespace {

TEST(ShareInterval, IsWideWhereTheSampleIsSmall) {
  const Interval nine = ShareInterval(1.0 / 9, 9);
  EXPECT_NEAR(nine.low, 0.020, 0.002);
  EXPECT_NEAR(nine.high, 0.435, 0.002);
  const Interval thousand = ShareInterval(0.1, 1000);
  EXPECT_NEAR(thousand.low, 0.083, 0.001);
  EXPECT_NEAR(thousand.high, 0.120, 0.001);
}

TEST(ShareInterval, StaysBetweenNoneAndAll) {
  for (const double share : {0.0, 1.0}) {
    const Interval interval = ShareInterval(share, 100);
    EXPECT_GE(interval.low, 0);
    EXPECT_LE(interval.high, 1);
    EXPECT_LE(interval.low, share + 1e-9);
    EXPECT_GE(interval.high, share - 1e-9);
  }
}

}  // namespace
}  // namespace sluice::server
