// Which endpoints form a tier, and what a change of the list does to tiers.
#include "upstream/tiers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "keyed_cluster.h"

namespace sluice::upstream {
namespace {

TEST(TiersTest, PriorityComesFirstAndThenWhereItIs) {
  EXPECT_EQ(TierIdOf({0, ""}, "eu"), 0) << "not said where: as near as any";
  EXPECT_EQ(TierIdOf({0, "eu"}, "eu"), 0);
  EXPECT_EQ(TierIdOf({0, "us"}, "eu"), 1);
  EXPECT_EQ(TierIdOf({1, "eu"}, "eu"), 2);
  EXPECT_EQ(TierIdOf({0, "us"}, ""), 0) << "not known where we are";
  EXPECT_EQ(TierIdOf({kPrioritiesMax - 1, "us"}, "eu"), kTiersMax - 1);
}

TEST(TiersTest, OfOnePriorityThereAreNone) {
  KeyedCluster cluster({"a", "b"});
  EXPECT_TRUE(cluster.state->tiers.empty());
  cluster.ReplaceWith({KeyedCluster::At("a", 3), KeyedCluster::At("b", 3)});
  EXPECT_TRUE(cluster.state->tiers.empty());
  EXPECT_EQ(cluster.state->StandingOf(1).priority, 3u);
}

TEST(TiersTest, ThoseNearbyAreBeforeThoseElsewhere) {
  KeyedCluster cluster({});
  cluster.options->locality = "eu";
  cluster.ReplaceWith({KeyedCluster::At("a", 0, "us"), KeyedCluster::At("b", 0, "eu"), KeyedCluster::At("c", 0),
                       KeyedCluster::At("d", 1, "eu")});
  ASSERT_EQ(cluster.state->tiers.size(), 3u);
  EXPECT_EQ(cluster.state->tiers[0].places, (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(cluster.state->tiers[1].places, (std::vector<uint32_t>{0}));
  EXPECT_EQ(cluster.state->tiers[2].places, (std::vector<uint32_t>{3}));
  for (const std::string& owner : cluster.Place()) ASSERT_TRUE(owner == "b" || owner == "c");
}

// Standings go with the entries of a change, and the result is what a list made from nothing gives.
TEST(TiersTest, AChangeKeepsTheStandingOfTheOthers) {
  KeyedCluster cluster({});
  cluster.ReplaceWith({KeyedCluster::At("a", 0), KeyedCluster::At("b", 1), KeyedCluster::At("c", 1)});
  EndpointChange add;
  add.kind = EndpointChange::Kind::kAdd;
  add.endpoints = {{"d", "10.0.0.9:1", 1, 2, "us"}};
  auto change = ApplyChange(*cluster.state, add, cluster.now);
  ASSERT_TRUE(change.ok());
  cluster.state = *ChangeClusterState(*cluster.state, *change, 1, cluster.registry);
  cluster.Change(EndpointChange::Kind::kRemove, "b");
  const std::vector<WantedEndpoint> list = WantedOf(*cluster.state);
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].standing, Standing());
  EXPECT_EQ(list[1].standing, (Standing{1, ""}));
  EXPECT_EQ(list[2].standing, (Standing{2, "us"}));
  ASSERT_EQ(cluster.state->tiers.size(), 3u);
  EXPECT_EQ(cluster.state->tiers[2].id, 4);
}

TEST(TiersTest, BadStandingsAreRefused) {
  KeyedCluster cluster({"a"});
  for (const Standing& bad : {Standing{kPrioritiesMax, ""}, Standing{0, std::string(65, 'x')}, Standing{0, "a\nb"}}) {
    const auto wanted = KeyedCluster::At("b", bad.priority, bad.locality);
    EXPECT_FALSE(CheckList(*cluster.options, {wanted}).ok()) << bad.priority << " " << bad.locality;
  }
}

}  // namespace
}  // namespace sluice::upstream
