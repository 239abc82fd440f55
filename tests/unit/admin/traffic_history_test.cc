// Rates and quantiles of the last ten minutes, from sums that are read now and then.
#include "admin/traffic_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::admin {
namespace {

using metrics::Histogram;
using std::chrono::seconds;

ClusterTraffic Sum(const std::string& cluster, uint64_t ok, uint64_t unavailable, uint64_t nanos_of_each) {
  ClusterTraffic sum;
  sum.cluster = cluster;
  sum.statuses[0] = ok;
  sum.statuses[14] = unavailable;
  sum.duration.buckets[Histogram::BucketOf(nanos_of_each)] = ok + unavailable;
  sum.duration.count = ok + unavailable;
  return sum;
}

class TrafficHistoryTest : public testing::Test {
 protected:
  void Read(std::vector<ClusterTraffic> sums) {
    history.Add(sums, {}, now);
    now += TrafficHistory::kPeriod;
  }
  base::TimePoint now{seconds(100)};
  TrafficHistory history;
};

TEST_F(TrafficHistoryTest, TheFirstReadingSaysNothing) {
  EXPECT_TRUE(history.Of("a").empty());
  Read({Sum("a", 1000, 0, 1)});
  EXPECT_TRUE(history.Of("a").empty());
}

TEST_F(TrafficHistoryTest, ARateIsWhatCameBetweenTwoReadings) {
  Read({Sum("a", 1000, 5, 1'000'000)});
  Read({Sum("a", 1080, 25, 1'000'000)});
  const auto points = history.Of("a");
  ASSERT_EQ(points.size(), 1u);
  EXPECT_DOUBLE_EQ(points[0].calls, 10);
  EXPECT_DOUBLE_EQ(points[0].failed, 2);
  EXPECT_DOUBLE_EQ(history.Statuses("a")[14], 2);
  EXPECT_DOUBLE_EQ(history.Statuses("a")[0], 8);
}

TEST_F(TrafficHistoryTest, QuantilesAreThoseOfThePeriodAlone) {
  ClusterTraffic sum = Sum("a", 1000, 0, 1'000'000'000);
  Read({sum});
  sum.duration.buckets[Histogram::BucketOf(2'000'000)] += 10;
  Read({sum});
  EXPECT_EQ(static_cast<uint64_t>(history.Of("a")[0].p99.count()),
            Histogram::UpperBound(Histogram::BucketOf(2'000'000)));
  Read({sum});
  EXPECT_EQ(history.Of("a")[1].p99, base::Nanos(0)) << "no call";
}

TEST_F(TrafficHistoryTest, ABucketWithoutABoundIsNoNegativeTime) {
  Read({Sum("a", 0, 0, 1)});
  Read({Sum("a", 1, 0, uint64_t{1} << 50)});
  EXPECT_GT(history.Of("a")[0].p99, base::Nanos(0));
}

TEST_F(TrafficHistoryTest, TheLastTenMinutesAreKeptOldestFirst) {
  uint64_t calls = 0;
  Read({Sum("a", 0, 0, 1)});
  for (uint64_t i = 1; i <= TrafficHistory::kPoints + 5; ++i) Read({Sum("a", calls += i * 10, 0, 1)});
  const auto points = history.Of("a");
  ASSERT_EQ(points.size(), TrafficHistory::kPoints);
  EXPECT_DOUBLE_EQ(points.front().calls, 6);
  EXPECT_DOUBLE_EQ(points.back().calls, static_cast<double>(TrafficHistory::kPoints + 5));
}

TEST_F(TrafficHistoryTest, AClusterThatIsGoneIsForgotten) {
  Read({Sum("a", 0, 0, 1), Sum("b", 0, 0, 1)});
  Read({Sum("a", 10, 0, 1), Sum("b", 10, 0, 1)});
  Read({Sum("b", 20, 0, 1)});
  EXPECT_TRUE(history.Of("a").empty());
  EXPECT_EQ(history.Of("b").size(), 2u);
  Read({Sum("a", 5, 0, 1)});
  EXPECT_TRUE(history.Of("a").empty()) << "it begins anew";
}

TEST_F(TrafficHistoryTest, AllClustersTogetherAreASeriesOfTheirOwn) {
  Read({Sum("a", 10, 0, 1'000'000), Sum("b", 0, 0, 1)});
  Read({Sum("a", 30, 0, 1'000'000), Sum("b", 0, 10, 2'000'000), Sum("c", 500, 0, 1)});
  ASSERT_EQ(history.OfAll().size(), 1u);
  EXPECT_DOUBLE_EQ(history.OfAll()[0].calls, 3) << "what was counted before the first reading of c is not known";
  EXPECT_DOUBLE_EQ(history.OfAll()[0].failed, 1);
  EXPECT_EQ(static_cast<uint64_t>(history.OfAll()[0].p99.count()),
            Histogram::UpperBound(Histogram::BucketOf(2'000'000)));
}

TEST_F(TrafficHistoryTest, ReasonsHaveRates) {
  history.Add({}, {{"busy", 100}}, now);
  EXPECT_EQ(history.RateOf("busy"), 0);
  history.Add({}, {{"busy", 150}, {"new", 10}}, now + seconds(10));
  EXPECT_DOUBLE_EQ(history.RateOf("busy"), 5);
  EXPECT_DOUBLE_EQ(history.RateOf("new"), 1);
  EXPECT_EQ(history.RateOf("never"), 0);
}

// Those of long ago say nothing of an endpoint that was added meanwhile.
TEST_F(TrafficHistoryTest, SharesOfCallsAreThoseOfTheLastMinutes) {
  ClusterTraffic sum = Sum("a", 0, 0, 1);
  sum.endpoints = {{"x", 1'000}};
  EXPECT_TRUE(history.SharesOfCalls("a", sum.endpoints).empty());
  Read({sum});
  EXPECT_TRUE(history.SharesOfCalls("a", sum.endpoints).empty()) << "no call";
  EXPECT_THAT(history.SharesOfCalls("a", {{"x", 1'030}, {"new", 10}}), testing::ElementsAre(0.75, 0.25));
  sum.endpoints = {{"x", 1'030}, {"new", 10}};
  for (size_t i = 0; i < 2 * TrafficHistory::kShareReadings; ++i) Read({sum});
  EXPECT_THAT(history.SharesOfCalls("a", {{"x", 1'040}, {"new", 20}}), testing::ElementsAre(0.5, 0.5));
}

TEST_F(TrafficHistoryTest, EndpointsAreBounded) {
  ClusterTraffic many = Sum("a", 0, 0, 1);
  for (size_t i = 0; i <= TrafficHistory::kEndpointsMax; ++i) many.endpoints.push_back({std::to_string(i), 0});
  Read({many});
  EXPECT_TRUE(history.SharesOfCalls("a", {{"0", 5}}).empty());
}

TEST_F(TrafficHistoryTest, ItsTableIsBounded) {
  std::vector<ClusterTraffic> sums;
  for (size_t i = 0; i < TrafficHistory::kClustersMax + 1; ++i) sums.push_back(Sum(std::to_string(i), 0, 0, 1));
  Read(sums);
  Read(sums);
  EXPECT_EQ(history.Of("0").size(), 1u);
  EXPECT_TRUE(history.Of(std::to_string(TrafficHistory::kClustersMax)).empty());
}

TEST_F(TrafficHistoryTest, NoQuantileIsAboveTheLongestCall) {
  constexpr uint64_t kDeadline = 2'000'000'000;
  ClusterTraffic before = Sum("a", 10, 0, kDeadline), after = Sum("a", 110, 0, kDeadline);
  before.duration.max = after.duration.max = kDeadline;
  Read({before});
  Read({after});
  EXPECT_EQ(history.Of("a")[0].p99, base::Nanos(kDeadline));
  EXPECT_EQ(history.OfAll()[0].p99, base::Nanos(kDeadline));
}

}  // namespace
}  // namespace sluice::admin
