// The judge's way back for an endpoint that is out: probes, trials, and what follows them, on counts made by hand.
#include <gtest/gtest.h>

#include <chrono>

#include "judged_cluster.h"
#include "upstream/health/judge.h"

namespace sluice::upstream {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class JudgeReturnTest : public ::testing::Test {
 protected:
  void Eject(Cause cause = Cause::kUnavailable) {
    for (int i = 0; i < 5; ++i) {
      cluster[0].Sent();
      cluster[0].Bad(cause);
    }
    for (int pass = 0; pass < 2; ++pass) {
      GoodCalls(cluster, {1, 2}, 5);
      cluster.Pass();
    }
    ASSERT_EQ(cluster.State(0), HealthState::kEjected);
  }
  // Where no call may be repeated: a connection's word is taken after kTrialTime.
  void ReturnWithoutTrial() {
    UntilProbe();
    Probed("");
    EXPECT_TRUE(cluster[0].record.on_trial());
    cluster.Pass(10);
    ASSERT_EQ(cluster.State(0), HealthState::kWarming);
  }
  // Passes until it is probed; how long that took.
  base::Nanos UntilProbe() {
    const base::TimePoint from = cluster.now;
    for (int i = 0; i < 10000 && cluster.probing.empty(); ++i) cluster.Pass();
    return cluster.now - from;
  }
  void Probed(const std::string& error, bool refused = false) {
    cluster.judge.Probed(cluster[0].record, "e0", error, refused, cluster.now);
    cluster.probing.clear();
  }
  JudgedCluster cluster{3};
};

// A probe costs no client anything.
TEST_F(JudgeReturnTest, ItIsProbedEverySecondWithJitter) {
  Eject();
  const size_t changes = cluster.judge.changes().total();
  for (int i = 0; i < 100; ++i) {
    const base::Nanos wait = UntilProbe();
    EXPECT_GE(wait, milliseconds(700));
    EXPECT_LE(wait, milliseconds(1310));
    EXPECT_EQ(cluster.State(0), HealthState::kProbing);
    Probed("no SETTINGS in time");
    EXPECT_EQ(cluster.State(0), HealthState::kEjected);
  }
  EXPECT_EQ(cluster.judge.changes().total(), changes + 1) << "the same failure is no news";
}

// A return on the word of a connection alone may cost calls: it is made more and more rarely.
TEST_F(JudgeReturnTest, BackOffDoublesWhereOnlyAReturnShowsThatCallsFail) {
  Eject();
  double seconds_expected = 1;
  for (int i = 0; i < 9; ++i) {
    const double wait = std::chrono::duration<double>(UntilProbe()).count();
    EXPECT_GE(wait, seconds_expected * 0.8 - 0.1);
    EXPECT_LE(wait, seconds_expected * 1.2 + 0.11);
    Probed("");
    cluster.Pass(10);
    Eject();
    seconds_expected = std::min(60.0, seconds_expected * 2);
  }
}

// Ejected for its calls, it comes back for its calls: ten good ones, of those that may be repeated.
TEST_F(JudgeReturnTest, TenGoodCallsBringItBackAndThenItIsSpared) {
  Eject();
  UntilProbe();
  Probed("");
  for (uint32_t i = 0; i < EndpointRecord::kTrials; ++i) {
    EXPECT_EQ(cluster.State(0), HealthState::kProbing);
    EXPECT_TRUE(cluster[0].record.wants_trial());
    GoodCalls(cluster, {0, 1, 2}, 1);
    cluster.Pass();
  }
  EXPECT_EQ(cluster.State(0), HealthState::kWarming);
  EXPECT_EQ(cluster.Why(0), "10 calls were answered well");
  EXPECT_TRUE(cluster[0].record.spared());
  GoodCalls(cluster, {0, 1, 2}, 19);
  cluster.Pass();
  EXPECT_TRUE(cluster[0].record.spared());
  GoodCalls(cluster, {0, 1, 2}, 1);
  cluster.Pass(2);
  EXPECT_FALSE(cluster[0].record.spared());
}

TEST_F(JudgeReturnTest, ItIsNotSparedForEver) {
  Eject();
  UntilProbe();
  Probed("");
  GoodCalls(cluster, {0, 1, 2}, 10);
  cluster.Pass();
  ASSERT_TRUE(cluster[0].record.spared());
  cluster.Pass(31);
  EXPECT_EQ(cluster.State(0), HealthState::kWarming);
  EXPECT_FALSE(cluster[0].record.spared());
}

// One failure ends the trial; the next is a second later, as often as it takes.
TEST_F(JudgeReturnTest, ATrialThatFailsDoesNotLengthenTheWait) {
  Eject();
  for (int i = 0; i < 20; ++i) {
    EXPECT_LE(UntilProbe(), milliseconds(1310));
    Probed("");
    cluster.Pass();
    GoodCalls(cluster, {0}, 3);
    cluster[0].Call(false);
    GoodCalls(cluster, {1, 2}, 5);
    cluster.Pass();
    EXPECT_EQ(cluster.State(0), HealthState::kEjected);
  }
  EXPECT_EQ(cluster[0].record.last_error(), "a call failed: UNAVAILABLE");
}

TEST_F(JudgeReturnTest, ATrialWhoseCallsAreNotAnsweredFails) {
  Eject();
  UntilProbe();
  Probed("");
  int sent = 0;
  for (int i = 0; i < 11; ++i) {
    ASSERT_EQ(cluster.State(0), HealthState::kProbing) << "a second is not over";
    if (cluster[0].record.wants_trial()) cluster[0].Sent(), ++sent;
    GoodCalls(cluster, {1, 2}, 5);
    cluster.Pass();
  }
  EXPECT_EQ(sent, 2);
  EXPECT_EQ(cluster.State(0), HealthState::kEjected);
  EXPECT_EQ(cluster[0].record.last_error(), "no call was answered");
}

// Calls with requests that have not ended show nothing, whatever their number: whole ones are waited for.
TEST_F(JudgeReturnTest, RequestsThatDoNotEndBringNoHungEndpointBack) {
  Eject();
  UntilProbe();
  Probed("");
  uint32_t opened = 0;
  for (int i = 0; i < 20; ++i) {
    if (cluster[0].record.wants_trial()) cluster[0].Opened(), ++opened;
    GoodCalls(cluster, {1, 2}, 5);
    cluster.Pass();
  }
  EXPECT_EQ(opened, EndpointRecord::kTrialsOpen);
  EXPECT_EQ(cluster.State(0), HealthState::kProbing) << "a second is over";
  cluster[0].Owes();
  cluster.Pass(10);
  EXPECT_EQ(cluster.State(0), HealthState::kProbing) << "it has a second from now on";
  cluster.Pass();
  EXPECT_EQ(cluster.State(0), HealthState::kEjected);
  EXPECT_EQ(cluster[0].record.last_error(), "no call was answered");
}

TEST_F(JudgeReturnTest, RequestsThatDoNotEndAreNotWaitedForForEver) {
  Eject();
  UntilProbe();
  Probed("");
  cluster[0].Opened();
  cluster.Pass(49);
  EXPECT_EQ(cluster.State(0), HealthState::kProbing);
  cluster.Pass();
  EXPECT_EQ(cluster.State(0), HealthState::kWarming);
  EXPECT_EQ(cluster.Why(0), "a new connection to it works");
}

// A stream goes on after its answer has begun.
TEST_F(JudgeReturnTest, StreamsThatAreAnsweredBringItBack) {
  Eject();
  UntilProbe();
  Probed("");
  cluster[0].Opened();
  cluster[0].Owes();
  cluster[0].Answered(milliseconds(2));
  cluster.Pass(10);
  EXPECT_EQ(cluster.State(0), HealthState::kWarming);
  EXPECT_EQ(cluster.Why(0), "1 calls are being answered");
}

// Their hedges were faster: they end without an outcome.
TEST_F(JudgeReturnTest, ATrialWhoseCallsHaveGoneWithoutAnAnswerFails) {
  Eject();
  UntilProbe();
  Probed("");
  cluster[0].Sent(2);
  cluster.Pass();
  EXPECT_FALSE(cluster[0].record.wants_trial());
  cluster[0].in_flight = 0;
  cluster.Pass(8);
  EXPECT_EQ(cluster.State(0), HealthState::kProbing);
  cluster.Pass();
  EXPECT_EQ(cluster.State(0), HealthState::kEjected);
  EXPECT_EQ(cluster[0].record.last_error(), "no call was answered");
}

TEST_F(JudgeReturnTest, ATrialThatIsSlowFails) {
  for (int i = 0; i < 10; ++i) {
    GoodCalls(cluster, {0, 1, 2}, 20);
    cluster.Pass();
  }
  Eject();
  UntilProbe();
  Probed("");
  for (const int ms : {300, 1, 300}) {  // one that is quick is no proof
    ASSERT_TRUE(cluster[0].record.on_trial()) << "the median of three is slow, and no less";
    GoodCalls(cluster, {0}, 1, milliseconds(ms));
    GoodCalls(cluster, {1, 2}, 5);
    cluster.Pass();
  }
  EXPECT_EQ(cluster.State(0), HealthState::kEjected);
  EXPECT_EQ(cluster[0].record.last_error(), "it is slow");
}

TEST_F(JudgeReturnTest, AnOrderIsNoErrorOfTheEndpoint) {
  Eject();
  const std::string error = cluster[0].record.last_error();
  ASSERT_NE(error, "");
  cluster.judge.Eject(cluster[0].record, "e0", cluster.now);
  EXPECT_EQ(cluster[0].record.last_error(), error);
}

// A port that refused connections and answers now is another process: no trial.
TEST_F(JudgeReturnTest, AfterARefusalAConnectionIsEnough) {
  Eject();
  UntilProbe();
  Probed("connection refused", /*refused=*/true);
  UntilProbe();
  Probed("");
  EXPECT_EQ(cluster.State(0), HealthState::kWarming);
  EXPECT_FALSE(cluster[0].record.spared());
}

// It ended its connections in good order and was back before anything failed. Its cache is cold.
TEST_F(JudgeReturnTest, ARestartedProcessWarmsThoughItWasNeverOut) {
  for (int pass = 0; pass < 100; ++pass) {
    GoodCalls(cluster, {0, 1, 2}, 5);
    cluster.Pass();
  }
  cluster[0].port = EndpointPort::kRefused;
  cluster.Pass();
  EXPECT_EQ(cluster.State(0), HealthState::kUp) << "calls pass over a port that refuses without the judge";
  cluster[0].port = EndpointPort::kRestarted;
  cluster.Pass();
  ASSERT_EQ(cluster.State(0), HealthState::kWarming);
  EXPECT_EQ(cluster.Why(0), "its port refused connections, and takes them again");
  EXPECT_EQ(cluster[0].record.share(), cluster.slow_start.first);
  for (int pass = 0; pass < 400; ++pass) {
    GoodCalls(cluster, {0}, 5, milliseconds(pass < 280 ? 40 : 2));
    GoodCalls(cluster, {1, 2}, 5);
    cluster.Pass();
  }
  EXPECT_EQ(cluster.Ejections(), 0u);
}

// Its keys would go to too few: the first of a rolling restart may warm, the last one takes its calls at once.
TEST_F(JudgeReturnTest, ARestartedProcessWarmsOnlyWhereEnoughOthersAreWell) {
  cluster[0].port = EndpointPort::kRestarted;
  cluster[1].port = EndpointPort::kRefused;
  cluster.Pass();
  EXPECT_EQ(cluster.State(0), HealthState::kUp) << "a third of the weight is less than min_available";
  cluster[1].port = EndpointPort::kRestarted;
  cluster.Pass();
  EXPECT_EQ(cluster.State(1), HealthState::kWarming) << "two thirds are enough";
  cluster[0].port = EndpointPort::kRestarted;
  cluster.Pass();
  EXPECT_EQ(cluster.State(0), HealthState::kUp) << "one that warms is not well yet";
  for (const size_t place : {0, 1, 2}) cluster[place].port = EndpointPort::kRestarted;
  cluster.Pass();
  EXPECT_EQ(cluster.State(2), HealthState::kUp) << "all have restarted";
}

TEST_F(JudgeReturnTest, WithoutSlowStartARestartedProcessTakesItsCallsAtOnce) {
  cluster.slow_start.window = {};
  cluster.Configure();
  cluster[0].port = EndpointPort::kRestarted;
  cluster.Pass();
  EXPECT_EQ(cluster.State(0), HealthState::kUp);
  EXPECT_EQ(cluster.judge.changes().total(), 0u);
}

TEST_F(JudgeReturnTest, ARefusedPortIsProbedWithinASecondForHours) {
  Eject(Cause::kConnect);
  for (int i = 0; i < 5000; ++i) {
    ASSERT_LE(UntilProbe(), milliseconds(580));
    Probed("connection refused", /*refused=*/true);
  }
}

TEST_F(JudgeReturnTest, ItWarmsFromAFewPercentToAllInTheWindow) {
  Eject();
  ReturnWithoutTrial();
  EXPECT_EQ(cluster[0].record.share(), 0.05);
  double share = 0;
  const base::TimePoint from = cluster.now;
  while (cluster.State(0) == HealthState::kWarming) {
    GoodCalls(cluster, {0, 1, 2}, 2);
    cluster.Pass();
    ASSERT_GE(cluster[0].record.share(), share) << "a key that came home stays";
    share = cluster[0].record.share();
    ASSERT_LT(cluster.now - from, seconds(40));
  }
  EXPECT_GE(cluster.now - from, seconds(29));
  EXPECT_EQ(cluster[0].record.share(), 1);
}

TEST_F(JudgeReturnTest, TheShareGrowsSlowlyWhileItIsSlowOrHasAnsweredNothing) {
  Eject();
  ReturnWithoutTrial();
  const base::TimePoint from = cluster.now;
  while (cluster.State(0) == HealthState::kWarming && cluster.now - from < seconds(200)) {
    GoodCalls(cluster, {0}, 2, milliseconds(50));
    GoodCalls(cluster, {1, 2}, 2);
    cluster.Pass();
  }
  EXPECT_GT(cluster.now - from, seconds(100));
  EXPECT_LT(cluster.now - from, seconds(125)) << "held, and not for ever";
}

// It passes its probe and fails its first calls: two are enough.
TEST_F(JudgeReturnTest, AtItsReturnTwoFailuresAreEnough) {
  Eject();
  ReturnWithoutTrial();
  cluster[0].Call(false);
  cluster[0].Call(false);
  for (int pass = 0; pass < 2; ++pass) {
    GoodCalls(cluster, {1, 2}, 5);
    cluster.Pass();
  }
  EXPECT_EQ(cluster.State(0), HealthState::kEjected);
  EXPECT_GE(UntilProbe(), milliseconds(1500)) << "the back-off goes on where it was";
}

TEST_F(JudgeReturnTest, AfterATimeInGoodHealthTheBackOffBeginsAnew) {
  Eject();
  ReturnWithoutTrial();
  for (int i = 0; i < 1000; ++i) {
    GoodCalls(cluster, {0, 1, 2}, 2);
    cluster.Pass();
  }
  ASSERT_EQ(cluster.State(0), HealthState::kUp);
  Eject();
  EXPECT_LE(UntilProbe(), milliseconds(1300));
}

TEST_F(JudgeReturnTest, ByRpcItStaysOutUntilItIsRestored) {
  cluster.judge.Eject(cluster[0].record, "e0", cluster.now);
  cluster.Pass(36000);
  EXPECT_EQ(cluster.State(0), HealthState::kEjected);
  EXPECT_TRUE(cluster.probing.empty());
  cluster.judge.Restore(cluster[0].record, "e0", cluster.now);
  EXPECT_EQ(cluster.State(0), HealthState::kWarming);
}

TEST_F(JudgeReturnTest, ResetBackoffProbesAtOnce) {
  Eject();
  for (int i = 0; i < 6; ++i) {
    UntilProbe();
    Probed("no SETTINGS in time");
  }
  cluster[0].record.ResetBackoff(cluster.now);
  EXPECT_LE(UntilProbe(), milliseconds(100));
}

// The list loses two endpoints in rotation: those that are out are more than half of what is left.
TEST_F(JudgeReturnTest, TheBoundHoldsWhenTheListShrinks) {
  Eject();
  cluster.all.pop_back();
  cluster.Pass();
  EXPECT_EQ(cluster.State(0), HealthState::kEjected) << "one of two is half";
  cluster[1].draining = true;
  cluster.Pass();
  EXPECT_EQ(cluster.State(1), HealthState::kDraining);
  EXPECT_EQ(cluster.State(0), HealthState::kWarming);
  EXPECT_EQ(cluster.Why(0), "too few others are left");
}

TEST_F(JudgeReturnTest, SwitchedOffAllComeBack) {
  Eject();
  cluster.options.enabled = false;
  cluster.Configure();
  cluster.Pass();
  EXPECT_FALSE(cluster[0].record.out());
  for (int i = 0; i < 50; ++i) {
    for (int k = 0; k < 20; ++k) cluster[0].Call(false);
    GoodCalls(cluster, {1, 2}, 20);
    cluster.Pass();
  }
  EXPECT_EQ(cluster.Ejections(), 1u);
}

}  // namespace
}  // namespace sluice::upstream
