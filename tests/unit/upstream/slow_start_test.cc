// Which of 10,000 keys move, and how often, when endpoints come to a list, are ejected, drained and come back.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "keyed_cluster.h"

namespace sluice::upstream {
namespace {

using std::chrono::seconds;
using Owners = KeyedCluster::Owners;
using Order = ClusterHealth::Order;

TEST(SlowStartTest, ANewEndpointTakesItsKeysOneByOneAndEachMovesOnce) {
  KeyedCluster cluster({"a", "b", "c"});
  cluster.Pass();
  const Owners before = cluster.Place();
  Moves moves(before);
  cluster.Replace({"a", "b", "c", "d"});
  EXPECT_EQ(cluster.State("d"), HealthState::kWarming) << "before any pass: calls meet the list at once";
  EXPECT_EQ(cluster.Get("d").record().why(), "new in the list");
  double share = KeyedCluster::ShareOf(cluster.Place(), "d");
  EXPECT_GT(share, 0);
  EXPECT_LT(share, 0.03) << "5% of a quarter";
  while (cluster.State("d") == HealthState::kWarming) {
    cluster.Pass(5);
    const Owners owners = cluster.Place();
    for (size_t i = 0; i < owners.size(); ++i) {
      if (owners[i] != before[i]) {
        ASSERT_EQ(owners[i], "d") << "keys move to the new one only";
      }
    }
    moves.See(owners);
    const double grown = KeyedCluster::ShareOf(owners, "d");
    ASSERT_GE(grown, share);
    ASSERT_LT(grown - share, 0.02) << "0.5 s of 30";
    share = grown;
  }
  EXPECT_EQ(moves.most(), 1);
  KeyedCluster fresh({"a", "b", "c", "d"});
  EXPECT_EQ(cluster.Place(), fresh.Place()) << "in the end as if it had been there from the beginning";
}

TEST(SlowStartTest, AtTheStartAllTakeTheirKeys) {
  KeyedCluster cluster({"a", "b"});
  EXPECT_EQ(cluster.State("a"), HealthState::kUp);
  cluster.Pass();
  EXPECT_EQ(cluster.State("a"), HealthState::kUp);
  EXPECT_EQ(cluster.State("b"), HealthState::kUp);
}

TEST(SlowStartTest, OffTheNewOneTakesAllAtOnce) {
  KeyedCluster cluster({"a", "b"});
  cluster.options->slow_start.window = seconds(0);
  cluster.Replace({"a", "b", "c"});
  EXPECT_EQ(cluster.State("c"), HealthState::kUp);
  EXPECT_EQ(cluster.Place(), KeyedCluster({"a", "b", "c"}).Place());
  cluster.Pass();
  EXPECT_EQ(cluster.state->health->Changes(cluster.now).size(), 0u);
}

// Those that stay would have to take the keys of all others.
TEST(SlowStartTest, WhereTooFewStayTheNewOnesTakeTheirKeysAtOnce) {
  KeyedCluster cluster({"a", "b", "c", "d"});
  cluster.Replace({"a", "e", "f", "g"});
  for (const char* name : {"e", "f", "g"}) EXPECT_EQ(cluster.State(name), HealthState::kUp) << name;
  cluster.Replace({"a", "e", "h", "i"});
  for (const char* name : {"h", "i"}) EXPECT_EQ(cluster.State(name), HealthState::kWarming) << name;
  cluster.Replace({"x", "y"});
  for (const char* name : {"x", "y"}) EXPECT_EQ(cluster.State(name), HealthState::kUp) << name;
}

// The weight counts, not the number, and what drains carries nothing.
TEST(SlowStartTest, EnoughIsByWeightOfThoseThatTakeCalls) {
  KeyedCluster cluster({"a", "b"});
  std::vector<WantedEndpoint> list = {KeyedCluster::Want("a"), KeyedCluster::Want("b"), KeyedCluster::Want("c")};
  list[0].draining = true;
  cluster.ReplaceWith(list);
  EXPECT_EQ(cluster.State("c"), HealthState::kWarming) << "b has carried half";
  KeyedCluster other({"a", "b"});
  list[1].weight = 0.5;
  other.ReplaceWith(list);
  EXPECT_EQ(other.State("c"), HealthState::kUp) << "b stays, at half of its weight";
}

TEST(SlowStartTest, AfterAFaultEveryKeyIsWhereItWasAndOnlyTheSickOnesMoved) {
  KeyedCluster cluster({"a", "b", "c", "d", "e"});
  cluster.Pass();
  const Owners home = cluster.Place();
  for (const std::string sick : {"a", "d", "a"}) {
    for (int i = 0; i < 3; ++i) {
      cluster.Count(cluster.Get(sick), 0, 20);
      cluster.Pass();
    }
    ASSERT_TRUE(cluster.Get(sick).record().out());
    const Owners during = cluster.Place();
    Moves moves(during);
    for (size_t i = 0; i < home.size(); ++i) {
      ASSERT_NE(during[i], sick);
      if (home[i] != sick) {
        ASSERT_EQ(during[i], home[i]);
      }
    }
    ASSERT_TRUE(cluster.Order(sick, Order::kRestore).ok());
    while (cluster.State(sick) == HealthState::kWarming) {
      moves.See(cluster.Place());
      cluster.Pass(5);
    }
    moves.See(cluster.Place());
    EXPECT_EQ(moves.most(), 1);
    EXPECT_EQ(cluster.Place(), home);
  }
}

// What a list takes back comes back with a small share, also for the calls before the next pass.
TEST(SlowStartTest, AnEndpointThatWasDrainedWarms) {
  KeyedCluster cluster({"a", "b", "c"});
  cluster.Pass();
  const Owners home = cluster.Place();
  std::vector<WantedEndpoint> list = {KeyedCluster::Want("a"), KeyedCluster::Want("b"), KeyedCluster::Want("c")};
  list[1].draining = true;
  cluster.ReplaceWith(list);
  cluster.Pass();
  EXPECT_EQ(cluster.State("b"), HealthState::kDraining);
  EXPECT_EQ(cluster.state->health->Describe(cluster.Get("b"), cluster.now).share, 0);
  Moves moves(cluster.Place());
  list[1].draining = false;
  cluster.ReplaceWith(list);
  moves.See(cluster.Place());
  EXPECT_LT(KeyedCluster::ShareOf(cluster.Place(), "b"), 0.04);
  cluster.Pass();
  EXPECT_EQ(cluster.State("b"), HealthState::kWarming);
  while (cluster.State("b") == HealthState::kWarming) {
    moves.See(cluster.Place());
    cluster.Pass(5);
  }
  EXPECT_EQ(moves.most(), 1);
  EXPECT_EQ(cluster.Place(), home);
}

// Of calls, as these policies have no keys.
TEST(SlowStartTest, RoundRobinAndLeastRequestGiveTheNewOneAShareOfTheCalls) {
  for (const Policy policy : {Policy::kRoundRobin, Policy::kLeastRequest}) {
    KeyedCluster cluster({"a", "b", "c"}, policy);
    cluster.Replace({"a", "b", "c", "d"});
    const double first = KeyedCluster::ShareOf(cluster.Place(), "d");
    EXPECT_GT(first, 0.002) << ToString(policy);
    EXPECT_LT(first, 0.05) << ToString(policy);
    cluster.Pass(310);
    EXPECT_EQ(cluster.State("d"), HealthState::kUp);
    EXPECT_NEAR(KeyedCluster::ShareOf(cluster.Place(), "d"), 0.25, 0.03) << ToString(policy);
  }
}

}  // namespace
}  // namespace sluice::upstream
