// How soon ClusterHealth wants its next pass.
#include "keyed_cluster.h"

namespace sluice::upstream {
namespace {

using Pace = ClusterHealth::Pace;

class ClusterPaceTest : public testing::Test {
 public:
  Pace Pass() {
    cluster.now += Judge::kPeriod;
    return cluster.state->health->Pass(*cluster.options, cluster.state->endpoints, *cluster.state->spill, cluster.now)
        .pace;
  }
  Endpoint& At(size_t i) { return *cluster.state->endpoints[i].endpoint; }

  KeyedCluster cluster{{"a", "b", "c"}};
};

TEST_F(ClusterPaceTest, WithoutCallsItIsIdle) {
  EXPECT_EQ(Pass(), Pace::kIdle);
  cluster.Count(At(0), 1, 0);
  EXPECT_EQ(Pass(), Pace::kUsual);
  EXPECT_EQ(Pass(), Pace::kIdle);
}

TEST_F(ClusterPaceTest, FailuresWantACloserLook) {
  Pass();
  cluster.Count(At(0), 0, 1);
  EXPECT_EQ(Pass(), Pace::kCloser);
}

// A call that is not answered may be the first one of a stall.
TEST_F(ClusterPaceTest, WhileACallIsOutItIsNotIdle) {
  Pass();
  At(0).metrics().in_flight->Add(0, 1);
  EXPECT_EQ(Pass(), Pace::kUsual);
  At(0).metrics().in_flight->Add(0, -1);
  EXPECT_EQ(Pass(), Pace::kIdle);
}

TEST_F(ClusterPaceTest, WhileAnEndpointIsOutOrOnItsWayBackItIsNotIdle) {
  using Order = ClusterHealth::Order;
  ASSERT_TRUE(cluster.Order("a", Order::kEject).ok());
  EXPECT_NE(Pass(), Pace::kIdle);
  ASSERT_TRUE(cluster.Order("a", Order::kRestore).ok());
  EXPECT_NE(Pass(), Pace::kIdle);
}

TEST_F(ClusterPaceTest, AnEndpointThatIsDrainedChangesNothing) {
  cluster.Change(EndpointChange::Kind::kDrain, "a");
  Pass();
  EXPECT_EQ(Pass(), Pace::kIdle);
}

}  // namespace
}  // namespace sluice::upstream
