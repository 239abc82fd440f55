// What an endpoint says of itself, among the judge's states: it is obeyed, bounds or not, and its way back is the
// judge's.
#include <gtest/gtest.h>

#include "judged_cluster.h"

namespace sluice::upstream {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class NotServingTest : public testing::Test {
 public:
  void Says(size_t i, bool serves) {
    cluster[i].Says(serves ? ServingStatus::kServing : ServingStatus::kNotServing, cluster.now);
    cluster.Pass();
  }
  JudgedCluster cluster{4};
};

TEST_F(NotServingTest, ItIsOutFromThePassOnAndComesBackWarming) {
  Says(0, true);
  EXPECT_EQ(cluster.State(0), HealthState::kUp);
  EXPECT_EQ(cluster[0].record.why(), "") << "nothing has changed";
  Says(0, false);
  EXPECT_EQ(cluster.State(0), HealthState::kNotServing);
  EXPECT_EQ(cluster.Why(0), "the health service says NOT_SERVING");
  EXPECT_TRUE(cluster[0].record.out());
  EXPECT_EQ(cluster[0].record.share(), 0);
  cluster.Pass(100);
  EXPECT_TRUE(cluster.probing.empty()) << "it is not ejected";
  Says(0, true);
  EXPECT_EQ(cluster.State(0), HealthState::kWarming);
  EXPECT_EQ(cluster.Why(0), "the health service says SERVING");
  EXPECT_NEAR(cluster[0].record.share(), cluster.slow_start.first, 0.01);
  EXPECT_EQ(cluster.Ejections(), 0u);
}

TEST_F(NotServingTest, AWatchThatFailedForAMomentDoesNotWarm) {
  Says(0, true);
  base::Random random(1);
  HealthReport failed;
  cluster[0].watch->Ended({HealthEnd::Kind::kStatus, 14, "UNAVAILABLE"});
  cluster[0].own_word.Read(*cluster[0].watch, cluster.now, random);
  cluster.Pass();
  EXPECT_EQ(cluster.State(0), HealthState::kNotServing);
  Says(0, true);
  EXPECT_EQ(cluster.State(0), HealthState::kUp);
}

// min_available bounds what the detectors find; what an endpoint says of itself is no guess.
TEST_F(NotServingTest, AllMayBeOutByTheirOwnWord) {
  for (size_t i = 0; i < 4; ++i) Says(i, false);
  EXPECT_EQ(cluster.InRotation(), 0u);
  cluster.Pass(10);
  EXPECT_EQ(cluster.InRotation(), 0u);
}

// They count as little as endpoints that drain: of the two that serve one may be ejected, the last one not.
TEST_F(NotServingTest, TheBoundIsOfThoseThatServe) {
  Says(2, false);
  Says(3, false);
  for (int i = 0; i < 5; ++i) cluster[0].Call(false);
  for (int i = 0; i < 5; ++i) cluster[1].Call(true);
  cluster.Pass();
  for (int i = 0; i < 5; ++i) cluster[1].Call(true);
  cluster.Pass(2);
  EXPECT_EQ(cluster.State(0), HealthState::kEjected);
  for (int i = 0; i < 50; ++i) cluster[1].Call(false);
  cluster.Pass(3);
  EXPECT_FALSE(cluster[1].record.out()) << "the last one that serves stays";
  EXPECT_EQ(cluster.State(2), HealthState::kNotServing);
}

// Where none that serves is left, the least bad of the ejected ones comes back.
TEST_F(NotServingTest, AnEjectedEndpointComesBackWhenTheOthersStopServing) {
  for (int i = 0; i < 5; ++i) cluster[0].Call(false);
  for (int i = 0; i < 5; ++i) cluster[1].Call(true);
  cluster.Pass();
  for (int i = 0; i < 5; ++i) cluster[1].Call(true);
  cluster.Pass(2);
  ASSERT_EQ(cluster.State(0), HealthState::kEjected);
  for (size_t i = 1; i < 4; ++i) Says(i, false);
  EXPECT_EQ(cluster.State(0), HealthState::kWarming);
}

TEST_F(NotServingTest, AnEjectedEndpointStaysSoAndIsNotServingWhenItIsBack) {
  cluster.judge.Eject(cluster[0].record, "e0", cluster.now);
  Says(0, false);
  EXPECT_EQ(cluster.State(0), HealthState::kEjected);
  EXPECT_TRUE(cluster[0].record.manual());
  cluster.judge.Restore(cluster[0].record, "e0", cluster.now);
  cluster.Pass();
  EXPECT_EQ(cluster.State(0), HealthState::kNotServing);
  cluster.judge.Restore(cluster[0].record, "e0", cluster.now);
  EXPECT_EQ(cluster.State(0), HealthState::kNotServing) << "only its own word brings it back";
  cluster.judge.Eject(cluster[0].record, "e0", cluster.now);
  EXPECT_TRUE(cluster[0].record.manual());
}

TEST_F(NotServingTest, NeitherEjectionOffNorAShortListBringsItBack) {
  Says(0, false);
  cluster.options.enabled = false;
  cluster.Configure();
  cluster.Pass(3);
  EXPECT_EQ(cluster.State(0), HealthState::kNotServing);
}

TEST_F(NotServingTest, WhileItDrainsItIsNotLookedAt) {
  Says(0, false);
  cluster[0].draining = true;
  cluster.Pass();
  EXPECT_EQ(cluster.State(0), HealthState::kDraining);
  cluster[0].draining = false;
  cluster.Pass();
  EXPECT_EQ(cluster.State(0), HealthState::kNotServing);
}

TEST_F(NotServingTest, WhenItIsNotAskedAnyMoreItComesBack) {
  Says(0, false);
  cluster[0].own_word = ActiveHealth();
  cluster.Pass();
  EXPECT_EQ(cluster.State(0), HealthState::kWarming);
  EXPECT_EQ(cluster.Why(0), "its health service has no say any more");
}

}  // namespace
}  // namespace sluice::upstream
