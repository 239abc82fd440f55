#include "proxy/call/hedge_delay.h"

#include <gtest/gtest.h>

namespace sluice::proxy {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

class HedgeDelayTest : public ::testing::Test {
 public:
  void Observe(int calls, base::Nanos took, uint32_t worker = 0) {
    for (int i = 0; i < calls; ++i) delay.Observe(worker, took, now);
  }
  HedgeDelay delay{2};
  base::TimePoint now{std::chrono::hours(1)};
};

TEST_F(HedgeDelayTest, IsUnknownWithFewCalls) {
  EXPECT_FALSE(delay.Get(0, now));
  Observe(19, milliseconds(5));
  now += seconds(1);
  EXPECT_FALSE(delay.Get(0, now));
  Observe(1, milliseconds(5));
  now += seconds(1);
  ASSERT_TRUE(delay.Get(0, now));
  EXPECT_FALSE(delay.Get(1, now));  // each worker by what it has seen
}

TEST_F(HedgeDelayTest, IsThe95thPercentileWithinAQuarter) {
  Observe(95, milliseconds(10));
  Observe(5, milliseconds(400));
  now += seconds(1);
  ASSERT_TRUE(delay.Get(0, now));
  EXPECT_GE(*delay.Get(0, now), milliseconds(10));
  EXPECT_LE(*delay.Get(0, now), microseconds(12'500));
  Observe(2, milliseconds(400));
  now += seconds(1);
  EXPECT_GE(*delay.Get(0, now), milliseconds(400));
  EXPECT_LE(*delay.Get(0, now), milliseconds(500));
}

TEST_F(HedgeDelayTest, IsNeverBelowAMillisecond) {
  Observe(100, microseconds(3));
  now += seconds(1);
  EXPECT_EQ(delay.Get(0, now), HedgeDelay::kLeast);
  Observe(1, -milliseconds(1));  // no clock goes back, but if
  Observe(10'000, std::chrono::hours(1000));
  now += seconds(1);
  EXPECT_GT(*delay.Get(0, now), std::chrono::hours(1));
}

TEST_F(HedgeDelayTest, ForgetsWhatIsOlderThanTenSeconds) {
  Observe(100, milliseconds(300));
  now += seconds(9);
  EXPECT_GE(*delay.Get(0, now), milliseconds(300));
  Observe(100, milliseconds(2));
  now += seconds(1);
  EXPECT_LT(*delay.Get(0, now), milliseconds(3));
  now += seconds(9);
  EXPECT_FALSE(delay.Get(0, now));
  Observe(20, milliseconds(2));
  now += std::chrono::hours(24);
  EXPECT_FALSE(delay.Get(0, now));
}

}  // namespace
}  // namespace sluice::proxy
