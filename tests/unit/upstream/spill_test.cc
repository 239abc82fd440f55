// Which keys lower priorities take: a stable set that comes home, with hysteresis; none in good health.
#include "upstream/spill.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "keyed_cluster.h"

namespace sluice::upstream {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Order = ClusterHealth::Order;
using Owners = KeyedCluster::Owners;

// --- The shares ---

class SpillShares : public testing::Test {
 public:
  // The shares of the tiers 0 and 2 after `passes` with that much of each in health.
  void Pass(double first, double second = 1, int passes = 1) {
    for (int i = 0; i < passes; ++i) {
      now += Judge::kPeriod;
      Spill::Weights weights{};
      weights[0] = {10, 10 * first};
      weights[2] = {10, 10 * second};
      moves += spill.Update(weights, options, now) ? 1 : 0;
    }
  }
  double First() { return spill.ShareOf(0); }
  double Second() { return spill.ShareOf(2); }

  Spill spill;
  SpillOptions options;
  base::TimePoint now{std::chrono::hours(1)};
  int moves = 0;
};

TEST_F(SpillShares, WhatTheFirstCanCarryItKeeps) {
  Pass(1, 1, 100);
  EXPECT_EQ(First(), 1);
  EXPECT_EQ(Second(), 0);
  Pass(0.7);  // times 1.4
  EXPECT_EQ(First(), 1) << "a spill of less than a tenth is none";
  Pass(0.5);
  EXPECT_NEAR(First(), 0.7, 1e-6);
  EXPECT_NEAR(Second(), 0.3, 1e-6);
  Pass(0);
  EXPECT_EQ(First(), 0);
  EXPECT_EQ(Second(), 1);
}

TEST_F(SpillShares, KeysLeaveAtOnceAndComeHomeAfterFiveSeconds) {
  Pass(0.5);
  const int before = moves;
  Pass(1, 1, 50);
  EXPECT_NEAR(First(), 0.7, 1e-6) << "not for five seconds";
  Pass(1, 1, 2);
  EXPECT_EQ(First(), 1);
  EXPECT_EQ(moves, before + 1);
}

TEST_F(SpillShares, AnEndpointThatComesAndGoesMovesNoKeys) {
  Pass(0.5);
  const int before = moves;
  for (int i = 0; i < 100; ++i) {
    Pass(1, 1, 40);
    Pass(0.5, 1, 10);
  }
  EXPECT_EQ(moves, before);
  EXPECT_NEAR(First(), 0.7, 1e-6);
}

TEST_F(SpillShares, SmallChangesMoveNoKeys) {
  Pass(0.4);
  const int before = moves;
  for (int i = 0; i < 200; ++i) Pass(i % 2 == 0 ? 0.36 : 0.46);
  EXPECT_EQ(moves, before);
  EXPECT_NEAR(First(), 0.56, 1e-6);
}

// Of what was wanted in the five seconds the most careful.
TEST_F(SpillShares, ComingHomeGoesAsFarAsAllOfTheTimeAllowed) {
  Pass(0);
  for (int i = 0; i < 60; ++i) Pass(i == 30 ? 0.4 : 0.6);
  EXPECT_NEAR(First(), 0.56, 1e-6);
}

TEST_F(SpillShares, WithNoneInHealthTheFirstHasAll) {
  Pass(0, 0, 10);
  EXPECT_EQ(First(), 1);
}

// Half of each: the second cannot carry the rest, so both carry more than is good for them.
TEST_F(SpillShares, WhatIsTooMuchForAllIsCarriedByAll) {
  Pass(0.5, 0.25);
  EXPECT_NEAR(First() + Second(), 1, 1e-6);
  EXPECT_NEAR(First(), 0.7 / (0.7 + 0.3 * 0.35), 1e-6);
  Pass(0.5, 0);
  EXPECT_EQ(First(), 1) << "no other one is there";
}

TEST_F(SpillShares, WithoutHeadroomEveryLossSpills) {
  options.headroom = 0;
  Pass(0.8);
  EXPECT_NEAR(First(), 0.8, 1e-6);
}

TEST_F(SpillShares, TheSpilledKeysAreAStableSet) {
  struct Id {
    uint8_t id;
  };
  const std::vector<Id> tiers = {{0}, {2}};
  std::vector<bool> spilled(10000, false);
  for (const double health : {0.6, 0.5, 0.3, 0.1, 0.0}) {
    Pass(health);
    size_t count = 0;
    for (uint64_t i = 0; i < spilled.size(); ++i) {
      const bool now_spilled = spill.TierOf(base::Hash64(i, 42), tiers) == 1;
      if (spilled[i]) {
        ASSERT_TRUE(now_spilled) << "more spill takes none home";
      }
      spilled[i] = now_spilled;
      count += now_spilled ? 1 : 0;
    }
    EXPECT_NEAR(static_cast<double>(count) / 10000, 1 - std::min(1.0, health * 1.4), 0.02);
  }
}

// --- Whole clusters ---

std::vector<WantedEndpoint> TwoPriorities() {
  return {KeyedCluster::At("a", 0), KeyedCluster::At("b", 0), KeyedCluster::At("c", 0),
          KeyedCluster::At("d", 0), KeyedCluster::At("x", 1), KeyedCluster::At("y", 1)};
}

bool IsLower(const std::string& name) { return name == "x" || name == "y"; }

TEST(SpillTest, InGoodHealthNoKeyGoesToALowerPriority) {
  for (const Policy policy : {Policy::kRingHash, Policy::kRoundRobin, Policy::kLeastRequest}) {
    KeyedCluster cluster({}, policy);
    cluster.ReplaceWith(TwoPriorities());
    cluster.Pass(10);
    const Owners owners = cluster.Place();
    EXPECT_EQ(KeyedCluster::ShareOf(owners, "x") + KeyedCluster::ShareOf(owners, "y"), 0) << ToString(policy);
    EXPECT_GT(KeyedCluster::ShareOf(owners, "c"), 0.15) << ToString(policy);
  }
}

// A tier's ring is what a walk along the ring of the whole list gives, so a key's endpoint is that of a list of this
// priority alone.
TEST(SpillTest, KeysAreWhereAListOfThisPriorityAlonePutsThem) {
  KeyedCluster cluster({});
  cluster.ReplaceWith(TwoPriorities());
  EXPECT_EQ(cluster.Place(), KeyedCluster({"a", "b", "c", "d"}).Place());
  for (const char* name : {"a", "b", "c", "d"}) cluster.Get(name).SetAdmission({true, 0});
  EXPECT_EQ(cluster.Place(), KeyedCluster({"x", "y"}).Place());
}

TEST(SpillTest, WhatIsSpilledIsStableAndComesHome) {
  KeyedCluster cluster({});
  cluster.ReplaceWith(TwoPriorities());
  cluster.Pass();
  const Owners home = cluster.Place();
  ASSERT_TRUE(cluster.Order("a", Order::kEject).ok());
  cluster.Pass();
  const Owners one_out = cluster.Place();
  for (size_t i = 0; i < home.size(); ++i) {
    ASSERT_FALSE(IsLower(one_out[i])) << "three of four can carry it, with 40% each";
    if (home[i] != "a") {
      ASSERT_EQ(one_out[i], home[i]);
    }
  }
  ASSERT_TRUE(cluster.Order("b", Order::kEject).ok());
  cluster.Pass();
  const Owners two_out = cluster.Place();
  size_t spilled = 0;
  for (size_t i = 0; i < home.size(); ++i) {
    spilled += IsLower(two_out[i]) ? 1 : 0;
    if (!IsLower(two_out[i]) && one_out[i] != "b") {
      ASSERT_EQ(two_out[i], one_out[i]) << "what stays in the priority stays where it is";
    }
  }
  EXPECT_NEAR(static_cast<double>(spilled) / KeyedCluster::kKeys, 0.3, 0.02);
  cluster.Pass(100);
  EXPECT_EQ(cluster.Place(), two_out);
  // Both are back: the spilled keys stay away until one is warm, then go home at once.
  ASSERT_TRUE(cluster.Order("a", Order::kRestore).ok());
  ASSERT_TRUE(cluster.Order("b", Order::kRestore).ok());
  Moves moves(two_out);
  for (int i = 0; i < 80; ++i) {
    cluster.Pass(5);
    const Owners owners = cluster.Place();
    moves.See(owners);
    if (cluster.State("a") != HealthState::kWarming) continue;
    for (size_t k = 0; k < owners.size(); ++k) ASSERT_EQ(IsLower(owners[k]), IsLower(two_out[k]));
  }
  EXPECT_EQ(cluster.Place(), home);
  EXPECT_EQ(moves.most(), 1) << "each key goes home in one step";
}

TEST(SpillTest, WithAllOfAPriorityOutTheNextHasAllKeys) {
  KeyedCluster cluster({});
  cluster.ReplaceWith(TwoPriorities());
  cluster.Pass();
  const Owners home = cluster.Place();
  for (const char* name : {"a", "b", "c", "d"}) ASSERT_TRUE(cluster.Order(name, Order::kEject).ok());
  cluster.Pass();
  for (const std::string& owner : cluster.Place()) ASSERT_TRUE(IsLower(owner));
  for (const char* name : {"a", "b", "c", "d"}) ASSERT_TRUE(cluster.Order(name, Order::kRestore).ok());
  cluster.Pass(400);
  EXPECT_EQ(cluster.Place(), home);
}

// What is new adds to what its priority carries; that it warms takes nothing away.
TEST(SpillTest, NewEndpointsSpillNothing) {
  KeyedCluster cluster({});
  std::vector<WantedEndpoint> list = TwoPriorities();
  cluster.ReplaceWith(list);
  cluster.Pass();
  for (const char* name : {"e", "f", "g"}) list.push_back(KeyedCluster::At(name, 0));
  cluster.ReplaceWith(list);
  ASSERT_EQ(cluster.State("e"), HealthState::kWarming);
  while (cluster.State("e") == HealthState::kWarming) {
    cluster.Pass(20);
    for (const std::string& owner : cluster.Place()) ASSERT_FALSE(IsLower(owner));
  }
}

// The first of a new highest priority: all keys are to be its, and it has to warm like any.
TEST(SpillTest, ANewPriorityTakesTheKeysAsItWarms) {
  KeyedCluster cluster({});
  std::vector<WantedEndpoint> list = {KeyedCluster::At("x", 1), KeyedCluster::At("y", 1), KeyedCluster::At("z", 1)};
  cluster.ReplaceWith(list);
  cluster.Pass();
  list.push_back(KeyedCluster::At("a", 0));
  cluster.ReplaceWith(list);
  EXPECT_EQ(KeyedCluster::ShareOf(cluster.Place(), "a"), 0) << "before the first pass";
  cluster.Pass();
  EXPECT_LT(KeyedCluster::ShareOf(cluster.Place(), "a"), 0.2);
  cluster.Pass(400);
  EXPECT_EQ(KeyedCluster::ShareOf(cluster.Place(), "a"), 1);
}

TEST(SpillTest, DrainedWeightIsLost) {
  KeyedCluster cluster({});
  std::vector<WantedEndpoint> list = TwoPriorities();
  list[0].draining = list[1].draining = true;
  cluster.ReplaceWith(list);
  cluster.Pass();
  const Owners owners = cluster.Place();
  EXPECT_NEAR(KeyedCluster::ShareOf(owners, "x") + KeyedCluster::ShareOf(owners, "y"), 0.3, 0.02);
}

}  // namespace
}  // namespace sluice::upstream
