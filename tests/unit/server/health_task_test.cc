// How a pass over many endpoints is cut into turns of workers.
#include "server/health_task.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace sluice::server {
namespace {

proxy::Snapshot SnapshotOf(const std::vector<size_t>& sizes) {
  proxy::Snapshot snapshot;
  for (const size_t size : sizes) {
    auto cluster = std::make_shared<upstream::ClusterState>();
    cluster->endpoints.resize(size);
    snapshot.clusters.push_back(std::move(cluster));
  }
  return snapshot;
}

// The ends of all turns.
std::vector<size_t> Turns(const std::vector<size_t>& sizes) {
  const proxy::Snapshot snapshot = SnapshotOf(sizes);
  std::vector<size_t> ends;
  for (size_t at = 0; at < sizes.size(); ends.push_back(at)) at = HealthTask::EndOfTurn(snapshot, at);
  return ends;
}

TEST(HealthTaskTest, AFewEndpointsAreOneTurn) {
  EXPECT_EQ(Turns({}), std::vector<size_t>());
  EXPECT_EQ(Turns({3}), std::vector<size_t>({1}));
  EXPECT_EQ(Turns({2, 3, 0, 5}), std::vector<size_t>({4}));
}

TEST(HealthTaskTest, ALongListIsATurnOfItsOwn) {
  EXPECT_EQ(Turns({1'000, 1'000, 10, 1'000}), std::vector<size_t>({1, 2, 4}));
}

TEST(HealthTaskTest, ClustersWithoutEndpointsTakeTimeToo) {
  const std::vector<size_t> ends = Turns(std::vector<size_t>(1'000, 0));
  EXPECT_EQ(ends.front(), HealthTask::kEndpointsPerTurn);
  EXPECT_EQ(ends.back(), 1'000u);
}

}  // namespace
}  // namespace sluice::server
