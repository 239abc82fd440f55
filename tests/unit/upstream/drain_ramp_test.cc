// An endpoint that is drained over a time gives its keys away one by one, each once, and then is drained.
#include "upstream/drain_ramp.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "keyed_cluster.h"

namespace sluice::upstream {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Kind = EndpointChange::Kind;
using Owners = KeyedCluster::Owners;

TEST(DrainRampTest, TheShareFallsFromAllToNothingInTheTime) {
  const base::TimePoint start{std::chrono::hours(1)};
  const DrainRamp ramp{start, DrainRamp::Milliseconds(60000), 1};
  EXPECT_EQ(ramp.ShareAt(start), 1);
  EXPECT_EQ(ramp.ShareAt(start - seconds(1)), 1) << "a clock that was read a moment earlier";
  EXPECT_NEAR(ramp.ShareAt(start + seconds(15)), 0.75, 1e-6);
  EXPECT_NEAR(ramp.ShareAt(start + seconds(59)), 1 / 60.0, 1e-6);
  EXPECT_EQ(ramp.ShareAt(start + seconds(60)), 0);
  EXPECT_EQ(ramp.ShareAt(start + std::chrono::hours(100)), 0);
  EXPECT_EQ(DrainRamp{}.ShareAt(start), 0) << "no ramp: at once";
  const DrainRamp longest{start, DrainRamp::Milliseconds(DrainRamp::kOverMax), 1};
  EXPECT_NEAR(longest.ShareAt(start + std::chrono::hours(12)), 0.5, 1e-6);
}

TEST(DrainRampTest, EachKeyLeavesOnceAndIsBackInTheEnd) {
  KeyedCluster cluster({"a", "b", "c", "d"});
  cluster.Pass();
  const Owners home = cluster.Place();
  cluster.Change(Kind::kDrain, "b", seconds(60));
  EXPECT_EQ(cluster.Place(), home) << "nothing moves at its beginning";
  Moves moves(home);
  double share = KeyedCluster::ShareOf(home, "b");
  while (cluster.State("b") != HealthState::kDraining) {
    cluster.Pass(10);
    const Owners owners = cluster.Place();
    for (size_t i = 0; i < owners.size(); ++i) {
      if (home[i] != "b") {
        ASSERT_EQ(owners[i], home[i]) << "a key of another endpoint";
      }
    }
    moves.See(owners);
    const double left = KeyedCluster::ShareOf(owners, "b");
    ASSERT_LE(left, share);
    ASSERT_LT(share - left, 0.02) << "1 s of 60";
    share = left;
  }
  EXPECT_EQ(share, 0);
  EXPECT_EQ(moves.most(), 1);
  EXPECT_FALSE(cluster.state->endpoints[1].TakesCalls());
  cluster.Change(Kind::kUndrain, "b");
  while (cluster.State("b") != HealthState::kUp) {
    cluster.Pass(10);
    moves.See(cluster.Place());
  }
  EXPECT_EQ(moves.most(), 2) << "away and back";
  EXPECT_EQ(cluster.Place(), home);
}

TEST(DrainRampTest, AnotherOrderGoesOnFromWhereItIs) {
  KeyedCluster cluster({"a", "b"});
  cluster.Change(Kind::kDrain, "b", seconds(60));
  cluster.Pass(300);
  const double half = KeyedCluster::ShareOf(cluster.Place(), "b");
  Moves moves(cluster.Place());
  cluster.Change(Kind::kDrain, "b", seconds(10));
  EXPECT_NEAR(cluster.state->endpoints[1].ramp.ShareAt(cluster.now), 0.5, 1e-6);
  cluster.Pass();
  EXPECT_LE(KeyedCluster::ShareOf(cluster.Place(), "b"), half) << "what went does not come back";
  for (int i = 0; i < 100; ++i) {
    moves.See(cluster.Place());
    cluster.Pass();
  }
  EXPECT_EQ(cluster.State("b"), HealthState::kDraining);
  EXPECT_EQ(moves.most(), 1);
  cluster.Change(Kind::kDrain, "b", seconds(10));
  EXPECT_EQ(KeyedCluster::ShareOf(cluster.Place(), "b"), 0) << "it has nothing to give any more";
  cluster.Change(Kind::kUndrain, "b");
  cluster.Change(Kind::kDrain, "b");
  EXPECT_EQ(KeyedCluster::ShareOf(cluster.Place(), "b"), 0) << "without a time: at once";
}

TEST(DrainRampTest, TakenBackBeforeItsEndAllKeysAreBackAtOnce) {
  KeyedCluster cluster({"a", "b"});
  cluster.Pass();
  const Owners home = cluster.Place();
  cluster.Change(Kind::kDrain, "b", seconds(60));
  cluster.Pass(300);
  cluster.Change(Kind::kUndrain, "b");
  cluster.Pass();
  EXPECT_EQ(cluster.State("b"), HealthState::kUp);
  EXPECT_EQ(cluster.Place(), home);
}

// It is judged until it is drained: its keys do not stay with a sick one.
TEST(DrainRampTest, OneThatFailsWhileItDrainsIsEjected) {
  KeyedCluster cluster({"a", "b", "c"});
  cluster.Pass();
  cluster.Change(Kind::kDrain, "b", seconds(60));
  for (int i = 0; i < 3; ++i) {
    cluster.Count(cluster.Get("b"), 0, 20);
    cluster.Pass();
  }
  EXPECT_TRUE(cluster.Get("b").record().out());
  EXPECT_EQ(KeyedCluster::ShareOf(cluster.Place(), "b"), 0);
  cluster.Pass(620);
  EXPECT_EQ(cluster.State("b"), HealthState::kDraining);
}

// The ring stays; the list says from the beginning that it drains, so a state file does too.
TEST(DrainRampTest, TheListSaysSoFromTheBeginningAndKeepsItOverOtherChanges) {
  KeyedCluster cluster({"a", "b", "c"});
  const uint64_t digest = cluster.state->balancer->Digest();
  cluster.Change(Kind::kDrain, "b", seconds(60));
  EXPECT_EQ(cluster.state->balancer->Digest(), digest);
  EXPECT_TRUE(WantedOf(*cluster.state)[1].draining);
  const DrainRamp ramp = cluster.state->endpoints[1].ramp;
  cluster.Change(Kind::kReweight, "a");
  EXPECT_EQ(cluster.state->endpoints[1].ramp, ramp);
  cluster.ReplaceWith(WantedOf(*cluster.state));
  EXPECT_EQ(cluster.state->endpoints[1].ramp, ramp) << "a reload that keeps the list";
}

}  // namespace
}  // namespace sluice::upstream
