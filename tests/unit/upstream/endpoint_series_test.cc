#include "upstream/endpoint_series.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "upstream/cluster.h"

namespace sluice::upstream {
namespace {

// Which bucket of the sums a time is counted in.
size_t BucketOf(uint64_t nanos) {
  EndpointSeries series(1);
  series.of(0).Answered(metrics::Histogram::BucketOf(nanos), base::Nanos(static_cast<int64_t>(nanos)));
  const EndpointSeries::Sums sums = series.Read();
  EXPECT_EQ(std::accumulate(sums.buckets.begin(), sums.buckets.end(), uint64_t{0}), 1u);
  return static_cast<size_t>(std::find(sums.buckets.begin(), sums.buckets.end(), 1u) - sums.buckets.begin());
}

TEST(EndpointSeries, ATimeIsAtMostTheBoundOfItsBucketAndAboveTheOneBefore) {
  EXPECT_EQ(BucketOf(0), 0u);
  EXPECT_EQ(BucketOf(1), 0u);
  for (size_t i = 0; i + 1 < EndpointSeries::kBuckets; ++i) {
    const uint64_t bound = EndpointSeries::UpperBound(i);
    EXPECT_EQ(BucketOf(bound), i) << bound;
    EXPECT_EQ(BucketOf(bound + 1), i + 1) << bound;
    EXPECT_EQ(BucketOf(bound - bound / 5), i) << bound;
  }
  EXPECT_EQ(BucketOf(uint64_t{1} << 60), EndpointSeries::kBuckets - 1);
}

TEST(EndpointSeries, TheCellsOfAllWorkersAreSummed) {
  EndpointSeries series(3);
  series.of(0).Ended(0);
  series.of(1).Ended(0);
  series.of(2).Ended(16);
  series.of(0).Answered(0, base::Nanos(700));
  series.of(2).Answered(0, base::Nanos(300));
  const EndpointSeries::Sums sums = series.Read();
  EXPECT_EQ(sums.statuses[0], 2u);
  EXPECT_EQ(sums.statuses[16], 1u);
  EXPECT_EQ(sums.nanos, 1000u);
  EXPECT_EQ(sums.buckets[0], 2u);
}

class NamedSeries : public ::testing::Test {
 public:
  static constexpr size_t kMax = EndpointSeries::kNamedMax;
  using State = std::shared_ptr<const ClusterState>;
  State Build(size_t first, size_t end, const ClusterState* previous = nullptr) {
    std::vector<WantedEndpoint> wanted;
    for (size_t i = first; i < end; ++i)
      wanted.push_back({"e" + std::to_string(i), *net::Address::Parse("10.0.0.1:1"), 1, false});
    return *BuildClusterState(options, wanted, previous, ListSource::kConfig, 1, registry);
  }
  static size_t Named(const ClusterState& state) {
    return static_cast<size_t>(std::count_if(state.endpoints.begin(), state.endpoints.end(),
                                             [](const auto& e) { return e.endpoint->has_own_series(); }));
  }
  metrics::Registry registry{1};
  std::shared_ptr<ClusterOptions> options = std::make_shared<ClusterOptions>();
};

TEST_F(NamedSeries, FurtherEndpointsOfAListShareTheirs) {
  const State state = Build(0, kMax + 2);
  EXPECT_EQ(Named(*state), kMax);
  EndpointSeries& last = state->endpoints[kMax + 1].endpoint->series();
  EXPECT_EQ(&last, &state->endpoints[kMax].endpoint->series());
  EXPECT_EQ(&last, &state->load->shared_series());
  EXPECT_NE(&last, &state->endpoints[0].endpoint->series());
}

TEST_F(NamedSeries, AnEndpointKeepsItsOwnAndNewOnesTakeThePlacesOfThoseThatLeft) {
  const State before = Build(0, kMax + 1);
  const State fewer = Build(10, kMax + 1, before.get());
  EXPECT_EQ(Named(*fewer), kMax - 10);
  EXPECT_FALSE(fewer->endpoints.back().endpoint->has_own_series()) << "its counts stay where they are";
  const State more = Build(10, kMax + 21, fewer.get());
  EXPECT_EQ(Named(*more), kMax);
  // All are replaced at once, though the former ones still have calls.
  EXPECT_EQ(Named(*Build(1000, 1000 + kMax, more.get())), kMax);
}

}  // namespace
}  // namespace sluice::upstream
