// Rows of failures that applications make too.
#include <gtest/gtest.h>

#include "judged_cluster.h"

namespace sluice::upstream {
namespace {

using std::chrono::milliseconds;

// Statuses that applications give too: as many in a row as are no chance beside the others.
TEST(JudgeTest, ARowOfInternalIsEvidenceWhereTheOthersHaveNextToNone) {
  JudgedCluster cluster(3);
  for (int i = 0; i < 10; ++i) {
    GoodCalls(cluster, {0, 1, 2}, 20);
    cluster.Pass();
  }
  const auto fail = [&](size_t place, int n) {
    for (int i = 0; i < n; ++i) {
      cluster[place].Sent();
      cluster[place].Answered(milliseconds(2));
      cluster[place].Soft();
    }
  };
  fail(0, 4);
  GoodCalls(cluster, {1, 2}, 4);
  cluster.PassAfter(Judge::kCloser);
  EXPECT_EQ(cluster.State(0), HealthState::kUp);
  fail(0, 3);
  GoodCalls(cluster, {1, 2}, 4);
  cluster.PassAfter(Judge::kCloser);
  EXPECT_EQ(cluster.State(0), HealthState::kSuspect);
  EXPECT_TRUE(cluster[0].record.doubted());
  for (int i = 0; i < 2; ++i) {
    GoodCalls(cluster, {1, 2}, 4);
    cluster.PassAfter(Judge::kCloser);
  }
  EXPECT_TRUE(cluster[0].record.ejected()) << "no further call is lost for the second look";
  EXPECT_EQ(cluster.Why(0), "7 failures in a row: INTERNAL; of the others' calls 0.0%");
}

TEST(JudgeTest, ARowOfInternalThatTheOthersShareIsNone) {
  JudgedCluster cluster(3);
  for (int i = 0; i < 10; ++i) {
    GoodCalls(cluster, {0, 1, 2}, 20);
    cluster.Pass();
  }
  for (int i = 0; i < 20; ++i) {
    for (size_t place : {0, 1, 2}) {
      for (int n = 0; n < 10; ++n) {
        cluster[place].Sent();
        cluster[place].Answered(milliseconds(2));
        cluster[place].Soft();
      }
    }
    cluster.PassAfter(Judge::kCloser);
    for (size_t place : {0, 1, 2}) EXPECT_EQ(cluster.State(place), HealthState::kUp) << place;
  }
}

// One in twenty of the others' calls fails, too: a row must be longer.
TEST(JudgeTest, ARowIsLongerWhereTheOthersFailMore) {
  JudgedCluster cluster(2);
  for (int i = 0; i < 20; ++i) {
    GoodCalls(cluster, {0, 1}, 17);
    for (size_t place : {0, 1}) {
      for (int n = 0; n < 3; ++n) {
        cluster[place].Sent();
        cluster[place].Answered(milliseconds(2));
        cluster[place].Soft();
      }
      cluster[place].Call(true);
    }
    cluster.Pass();
  }
  int row = 0;
  while (cluster.State(0) == HealthState::kUp && row < 100) {
    ++row;
    cluster[0].Sent();
    cluster[0].Answered(milliseconds(2));
    cluster[0].Soft();
    GoodCalls(cluster, {1}, 1);
    cluster.PassAfter(Judge::kCloser);
  }
  EXPECT_GT(row, 8);
  EXPECT_LE(row, 20);
}

// A caller that cancels its calls before any endpoint could answer them, and has the endpoint to itself.
TEST(JudgeTest, CallsThatTheirClientTakesBackAreNotOwed) {
  JudgedCluster cluster(3);
  for (int i = 0; i < 20; ++i) {
    GoodCalls(cluster, {0, 1, 2}, 20, milliseconds(10));
    cluster.Pass();
  }
  for (int i = 0; i < 100; ++i) {
    cluster[0].Sent(10);
    GoodCalls(cluster, {1, 2}, 10, milliseconds(10));
    cluster.PassAsAsked();
    cluster[0].Withdrawn(10);
    ASSERT_EQ(cluster.State(0), HealthState::kUp) << i;
  }
}

}  // namespace
}  // namespace sluice::upstream
