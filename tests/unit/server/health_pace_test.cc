// How long the health task waits between two passes.
#include <gtest/gtest.h>

#include "server/health_task.h"

namespace sluice::server {
namespace {

using base::Nanos;
using base::TimePoint;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using upstream::Judge;
using Pace = HealthPace::Pace;

const TimePoint kStart = TimePoint() + seconds(100);

TEST(HealthPace, TheUsualOneAndTheCloserOne) {
  HealthPace pace(kStart);
  EXPECT_EQ(pace.Next(Pace::kUsual, kStart, kStart), Judge::kPeriod);
  EXPECT_EQ(pace.Next(Pace::kCloser, kStart, kStart), Judge::kCloser);
}

TEST(HealthPace, CloserPassesThatTakeLongAreRarer) {
  HealthPace pace(kStart);
  EXPECT_EQ(pace.Next(Pace::kCloser, kStart, kStart + milliseconds(2)), milliseconds(40));
  EXPECT_EQ(pace.Next(Pace::kCloser, kStart, kStart + milliseconds(50)), Judge::kPeriod);
}

TEST(HealthPace, TwiceAsOftenWhereCallsComeAndPassesAreShort) {
  HealthPace pace(kStart);
  EXPECT_EQ(pace.Next(Pace::kBusy, kStart, kStart), Judge::kBusy);
  EXPECT_EQ(pace.Next(Pace::kBusy, kStart, kStart + microseconds(300)), milliseconds(60));
  EXPECT_EQ(pace.Next(Pace::kBusy, kStart, kStart + milliseconds(2)), Judge::kPeriod);
}

// A thousand endpoints that are watched and have no calls.
TEST(HealthPace, LongPassesAreRarer) {
  HealthPace pace(kStart);
  EXPECT_EQ(pace.Next(Pace::kUsual, kStart, kStart + microseconds(500)), Judge::kPeriod);
  EXPECT_EQ(pace.Next(Pace::kUsual, kStart, kStart + microseconds(800)), milliseconds(160));
  EXPECT_EQ(pace.Next(Pace::kUsual, kStart, kStart + milliseconds(5)), 2 * Judge::kPeriod);
}

TEST(HealthPace, AfterALongTimeWithoutWorkPassesAreRare) {
  HealthPace pace(kStart);
  const TimePoint idle = kStart + seconds(3);
  EXPECT_EQ(pace.Next(Pace::kUsual, idle, idle), Judge::kPeriod);
  const TimePoint before = idle + HealthPace::kIdleAfter - Nanos(1), then = idle + HealthPace::kIdleAfter;
  EXPECT_EQ(pace.Next(Pace::kIdle, before, before), Judge::kPeriod);
  EXPECT_EQ(pace.Next(Pace::kIdle, then, then), HealthPace::kIdlePeriod);
  EXPECT_EQ(pace.Next(Pace::kUsual, then, then), Judge::kPeriod) << "a call has come";
  EXPECT_EQ(pace.Next(Pace::kIdle, then, then + seconds(1)), 2 * Judge::kPeriod);
}

}  // namespace
}  // namespace sluice::server
