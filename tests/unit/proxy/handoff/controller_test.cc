// When calls move, and how many: the controller against made-up loads.
#include "proxy/handoff/controller.h"

#include <gtest/gtest.h>

#include <array>

namespace sluice::proxy {
namespace {

HandoffController::Sample Load(double busy, double own, std::span<const double> others, double moved = 0,
                               double burst = 1) {
  return {busy, own, others, moved, burst};
}

TEST(HandoffControllerTest, AWorkerWithTimeToSpareMovesNothing) {
  HandoffController policy(1);
  const double idle[] = {0.0};
  for (int i = 0; i < 10; ++i) {
    policy.Update(Load(0.5, 0.5, idle));
    EXPECT_FALSE(policy.active());
  }
}

TEST(HandoffControllerTest, ABusyOneBesideAnIdleOneMovesMostAtOnce) {
  HandoffController policy(1);
  const double idle[] = {0.0};
  policy.Update(Load(0.95, 0.95, idle));
  ASSERT_TRUE(policy.active());
  EXPECT_NEAR(policy.share(0), 0.7, 0.01);
}

TEST(HandoffControllerTest, WorkersThatAreAllBusyKeepTheirOwn) {
  HandoffController policy(3);
  const double busy[] = {0.9, 0.95, 0.92};
  for (int i = 0; i < 10; ++i) policy.Update(Load(0.95, 0.9, busy));
  ASSERT_TRUE(policy.active());
  for (size_t t = 0; t < 3; ++t) EXPECT_LT(policy.share(t), 0.02);
}

// Home costs 1 a call that stays and 0.5 one that moves, away 0.75: the loads meet where the share is 0.8.
TEST(HandoffControllerTest, ItComesToRestWhereTheThreadsUseTheSame) {
  HandoffController policy(1);
  double share = 0;
  for (int i = 0; i < 40; ++i) {
    const double own = 1 - 0.5 * share;
    const double away[] = {0.75 * share};
    policy.Update(Load(own, own, away, share));
    ASSERT_TRUE(policy.active()) << i;  // also where the move has made it less busy
    share = policy.share(0);
  }
  EXPECT_NEAR(share, 0.8, 0.02);
}

TEST(HandoffControllerTest, ItEndsWhenTheLoadDoes) {
  HandoffController policy(1);
  const double idle[] = {0.0};
  policy.Update(Load(1, 1, idle));
  policy.Update(Load(0.45, 0.45, idle, 0));
  EXPECT_TRUE(policy.active());  // between the two marks it stays as it is
  policy.Update(Load(0.3, 0.3, idle, 0));
  EXPECT_FALSE(policy.active());
}

// A worker that shares its core is behind at a lower mark, but not for calls that come one by one.
TEST(HandoffControllerTest, BurstsLowerTheMark) {
  const double idle[] = {0.0};
  HandoffController single(1), bursts(1), calm(1);
  single.Update(Load(0.3, 0.3, idle, 0, 2));
  EXPECT_FALSE(single.active());
  bursts.Update(Load(0.3, 0.3, idle, 0, 50));
  EXPECT_TRUE(bursts.active());
  calm.Update(Load(0.1, 0.1, idle, 0, 50));
  EXPECT_FALSE(calm.active());
}

TEST(HandoffControllerTest, SharesOfSeveralTargetsAreNotMoreThanAll) {
  HandoffController policy(4);
  const double idle[] = {0, 0, 0, 0};
  for (int i = 0; i < 100; ++i) policy.Update(Load(1, 1, idle));
  double sum = 0;
  for (size_t t = 0; t < 4; ++t) sum += policy.share(t);
  EXPECT_NEAR(sum, 1, 1e-9);
}

TEST(HandoffControllerTest, ATurnsCallsGoToOneOrStayAndTheSharesHoldOverTime) {
  HandoffController policy(2);
  const double others[] = {0.0, 0.4};
  policy.Update(Load(1, 1, others));
  std::array<uint32_t, 2> plan{};
  std::array<double, 2> got{};
  double calls = 0;
  for (uint32_t turn = 0; turn < 1000; ++turn) {
    const uint32_t n = 4 + turn % 37;
    policy.Plan(n, plan);
    EXPECT_TRUE(plan[0] == 0 || plan[1] == 0);
    EXPECT_TRUE(plan[0] + plan[1] == 0 || plan[0] + plan[1] == n);
    for (size_t t = 0; t < 2; ++t) got[t] += plan[t];
    calls += n;
  }
  for (size_t t = 0; t < 2; ++t) EXPECT_NEAR(got[t] / calls, policy.share(t), 0.03);
}

TEST(HandoffControllerTest, FewCallsStay) {
  HandoffController policy(1);
  const double idle[] = {0.0};
  policy.Update(Load(1, 1, idle));
  std::array<uint32_t, 1> plan{};
  for (int i = 0; i < 100; ++i) {
    policy.Plan(HandoffController::kCallsMin - 1, plan);
    EXPECT_EQ(plan[0], 0u);
  }
}

}  // namespace
}  // namespace sluice::proxy
