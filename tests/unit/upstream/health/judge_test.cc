// The judge's detectors and its bounds, on counts made by hand.
#include "upstream/health/judge.h"

#include <gtest/gtest.h>

#include <chrono>

#include "judged_cluster.h"

namespace sluice::upstream {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Four failures are none too many, five in a row are; the last outcome before them does not matter.
TEST(JudgeTest, FiveFailuresInARowEjectOnceTheOthersAreSeenToAnswer) {
  JudgedCluster cluster(3);
  for (int i = 0; i < 4; ++i) cluster[0].Call(false);
  GoodCalls(cluster, {1, 2}, 5);
  cluster.Pass();
  EXPECT_EQ(cluster.State(0), HealthState::kUp);
  cluster[0].Call(false);
  GoodCalls(cluster, {1, 2}, 5);
  cluster.Pass();
  EXPECT_EQ(cluster.State(0), HealthState::kSuspect);
  cluster.Pass();
  EXPECT_EQ(cluster.State(0), HealthState::kEjected);
  EXPECT_EQ(cluster.Why(0), "5 failures in a row: UNAVAILABLE");
  EXPECT_EQ(cluster.judge.counts().ejections[static_cast<size_t>(Detector::kConsecutive)], 1u);
  EXPECT_TRUE(cluster[0].record.out());
  EXPECT_EQ(cluster[0].record.share(), 0);
}

// All five between two passes: whether the others answer is seen in the next one.
TEST(JudgeTest, ARowWaitsForWitnesses) {
  JudgedCluster cluster(3);
  for (int i = 0; i < 5; ++i) cluster[0].Call(false);
  GoodCalls(cluster, {1, 2}, 5);
  cluster.Pass(2);
  EXPECT_EQ(cluster.State(0), HealthState::kSuspect) << "the others may fail by now";
  GoodCalls(cluster, {1, 2}, 2);
  cluster.Pass();
  EXPECT_EQ(cluster.State(0), HealthState::kEjected);
}

// The others are idle: there is nothing to compare with, and room elsewhere.
TEST(JudgeTest, WhereTheOthersHaveNoCallsTheRowIsEnough) {
  JudgedCluster cluster(3);
  for (int i = 0; i < 5; ++i) cluster[0].Call(false);
  cluster.Pass(2);
  EXPECT_EQ(cluster.State(0), HealthState::kEjected);
}

TEST(JudgeTest, AGoodAnswerEndsTheRow) {
  JudgedCluster cluster(3);
  for (int pass = 0; pass < 50; ++pass) {
    for (int i = 0; i < 4; ++i) cluster[0].Call(false);
    cluster[0].Call(true);
    GoodCalls(cluster, {1, 2}, 1);
    cluster.Pass();
    EXPECT_EQ(cluster[0].record.streak, 0u);
    cluster[0].record.window.Forget();  // the error rate is another test's
  }
  EXPECT_EQ(cluster.State(0), HealthState::kUp);
}

// A row of INTERNAL makes a suspect; it ejects where others have had answers meanwhile, or as an error rate.
TEST(JudgeTest, InternalInARowIsSureByTheOthersAnswersOrAsARate) {
  JudgedCluster cluster(2);
  for (int i = 0; i < 19; ++i) {
    cluster[0].Sent();
    cluster[0].Soft();
  }
  GoodCalls(cluster, {1}, 20);
  cluster.Pass(3);
  EXPECT_EQ(cluster.State(0), HealthState::kSuspect);
  cluster[0].Sent();
  cluster[0].Soft();
  cluster.Pass(2);
  EXPECT_EQ(cluster.State(0), HealthState::kEjected);
  EXPECT_EQ(cluster.Why(0), "20 of 20 calls failed (INTERNAL), the others 0.0%");
}

// Twenty failures in a row need not be a large part of the last seconds.
TEST(JudgeTest, ARowOfInternalIsSeenWhateverWasBefore) {
  JudgedCluster cluster(3);
  for (int i = 0; i < 20; ++i) {
    GoodCalls(cluster, {0, 1, 2}, 20);
    cluster.Pass();
  }
  int passes = 0;
  for (; !cluster[0].record.out() && passes < 50; ++passes) {
    for (int i = 0; i < 4; ++i) {
      cluster[0].Sent();
      cluster[0].Soft();
    }
    GoodCalls(cluster, {1, 2}, 4);
    cluster.PassAsAsked();
  }
  EXPECT_LE(passes, 5);
  EXPECT_EQ(cluster.judge.counts().ejections[static_cast<size_t>(Detector::kConsecutive)], 1u);
  EXPECT_LE(cluster[0].counts.soft, 20u);
}

// The others fail as it does: whatever they stand on does.
TEST(JudgeTest, ARowOfInternalThatAllHaveEjectsNone) {
  JudgedCluster cluster(3);
  for (int i = 0; i < 20; ++i) {
    GoodCalls(cluster, {0, 1, 2}, 20);
    cluster.Pass();
  }
  for (int pass = 0; pass < 100; ++pass) {
    for (size_t place : {0, 1, 2}) {
      for (int i = 0; i < 4; ++i) {
        cluster[place].Sent();
        cluster[place].Soft();
      }
    }
    cluster.PassAsAsked();
  }
  EXPECT_EQ(cluster.Ejections(), 0u);
}

// A look every 100 ms, and every 20 ms while an endpoint fails calls or owes answers.
TEST(JudgeTest, ItLooksMoreCloselyWhereSomethingIsWrong) {
  JudgedCluster cluster(3);
  GoodCalls(cluster, {0, 1, 2}, 5);
  cluster.Pass();
  EXPECT_FALSE(cluster.judge.looks_closer());
  cluster[0].Call(false);
  cluster.Pass();
  EXPECT_TRUE(cluster.judge.looks_closer());
  GoodCalls(cluster, {0, 1, 2}, 5);
  cluster.Pass();
  EXPECT_FALSE(cluster.judge.looks_closer());
  cluster[0].Sent(2);
  GoodCalls(cluster, {1, 2}, 5);
  cluster.Pass();
  EXPECT_TRUE(cluster.judge.looks_closer());
}

// Also where the last answer came since the last pass, but not lately.
TEST(JudgeTest, ItLooksMoreCloselyWhereAnswersHaveStopped) {
  for (const int since : {10, 60}) {
    JudgedCluster cluster(2);
    GoodCalls(cluster, {0, 1}, 20);
    cluster.Pass();
    GoodCalls(cluster, {0, 1}, 5);
    cluster[0].Sent(2);
    cluster[0].answered_at = cluster.now + Judge::kPeriod - milliseconds(since);
    cluster.Pass();
    EXPECT_EQ(cluster.judge.looks_closer(), since > 25) << since;
  }
}

// In quick succession the looks are still kConfirm apart.
TEST(JudgeTest, AnEjectionTakesTimeAndNotTwoLooksAlone) {
  JudgedCluster cluster(3);
  for (int i = 0; i < 5; ++i) cluster[0].Call(false);
  cluster.PassAfter(Judge::kCloser);
  EXPECT_EQ(cluster.State(0), HealthState::kSuspect);
  GoodCalls(cluster, {1, 2}, 5);
  cluster.PassAfter(Judge::kCloser);
  EXPECT_EQ(cluster.State(0), HealthState::kSuspect);
  GoodCalls(cluster, {1, 2}, 5);
  cluster.PassAfter(Judge::kCloser);
  EXPECT_EQ(cluster.State(0), HealthState::kEjected);
}

// Two endpoints, twenty calls each, eight failed and never two in a row.
TEST(JudgeTest, ErrorRateWorksWithTwoEndpointsAndTwentyCalls) {
  JudgedCluster cluster(2);
  for (int i = 0; i < 20; ++i) cluster[0].Call(i % 5 < 3);
  GoodCalls(cluster, {1}, 20);
  cluster[0].Call(true);
  cluster.Pass(2);
  EXPECT_EQ(cluster.State(0), HealthState::kUp) << "8 of 21 may be chance with 20 calls of the other";
  GoodCalls(cluster, {1}, 80);
  cluster.Pass(2);
  EXPECT_EQ(cluster.State(0), HealthState::kEjected);
  EXPECT_EQ(cluster.Why(0), "8 of 21 calls failed (UNAVAILABLE), the others 0.0%");
}

// One call in twenty: evidence where it is UNAVAILABLE and the like. A status of the application's may be one client's
// doing, a deadline too, and would be so at the next endpoint.
TEST(JudgeTest, OneFailureInTwentyIsEvidenceWhereItIsTheEndpointsOwn) {
  for (const Cause cause : {Cause::kUnavailable, Cause::kDeadline, Cause::kLost, Cause::kInternal}) {
    SCOPED_TRACE(ToString(cause));
    JudgedCluster cluster(3);
    for (int i = 0; i < 100; ++i) {
      GoodCalls(cluster, {0}, 19);
      cluster[0].Sent();
      if (cause == Cause::kInternal)
        cluster[0].Soft();
      else
        cluster[0].Bad(cause);
      GoodCalls(cluster, {1, 2}, 20);
      cluster.PassAsAsked();
      if (cluster[0].record.out()) break;
    }
    EXPECT_EQ(cluster[0].record.out(), cause == Cause::kUnavailable) << cluster.Why(0);
    EXPECT_LE(cause == Cause::kUnavailable ? cluster[0].counts.bad : 0, 40u);
  }
}

// Two seconds have too few calls to show it, and ten too many from before it began.
TEST(JudgeTest, OneFailureInTwentyShowsInTheSecondsSinceItBegan) {
  JudgedCluster cluster(2);
  for (int i = 0; i < 100; ++i) {
    GoodCalls(cluster, {0, 1}, 20);
    cluster.PassAsAsked();
  }
  const base::TimePoint from = cluster.now;
  while (!cluster[0].record.out()) {
    ASSERT_LT(cluster.now - from, milliseconds(4500));
    GoodCalls(cluster, {0, 1}, 19);
    cluster[0].Call(false);
    cluster[1].Call(true);
    cluster.PassAfter(Judge::kPeriod);
  }
  EXPECT_GT(cluster.now - from, seconds(2)) << "the 400 calls of two seconds are too few";
}

// One connection with twelve calls is lost, once: the calls of half a second are no rate.
TEST(JudgeTest, ABurstOfFailuresIsNoRate) {
  for (const Cause cause : {Cause::kLost, Cause::kReset}) {
    SCOPED_TRACE(ToString(cause));
    JudgedCluster cluster(5);
    for (int pass = 0; pass < 100; ++pass) {
      GoodCalls(cluster, {0, 1, 2, 3, 4}, 10);
      for (int i = 0; i < (pass == 50 ? 12 : 0); ++i) {
        cluster[0].Sent();
        cluster[0].Bad(cause);
        if (i % 4 == 3) cluster[0].Call(true);
      }
      cluster.PassAsAsked();
    }
    EXPECT_EQ(cluster.Ejections(), 0u) << cluster.Why(0);
  }
}

// Where few of its calls failed a trial of ten would pass it: it is as long as it takes to meet three failures.
TEST(JudgeTest, TheTrialIsLongerWhereFewCallsFailed) {
  struct Case {
    uint32_t good;  // to each failure
    uint32_t trials;
  };
  for (const Case& each : {Case{0, 10}, Case{3, 12}, Case{9, 30}, Case{19, 60}}) {
    SCOPED_TRACE(each.good);
    JudgedCluster cluster(3);
    while (!cluster[0].record.out()) {
      if (each.good > 0) GoodCalls(cluster, {0}, each.good);
      cluster[0].Call(false);
      GoodCalls(cluster, {1, 2}, 20);
      cluster.PassAsAsked();
    }
    EXPECT_EQ(cluster[0].record.trials(), each.trials) << cluster.Why(0);
    while (cluster.probing.empty()) {
      GoodCalls(cluster, {1, 2}, 1);
      cluster.Pass();
    }
    cluster.judge.Probed(cluster[0].record, "e0", "", false, cluster.now);
    GoodCalls(cluster, {0, 1, 2}, each.trials - 1);
    cluster.Pass();
    EXPECT_EQ(cluster.State(0), HealthState::kProbing);
    GoodCalls(cluster, {0, 1, 2}, 1);
    cluster.Pass();
    EXPECT_EQ(cluster.State(0), HealthState::kWarming);
  }
}

TEST(JudgeTest, StuckWhileTheOthersAnswer) {
  JudgedCluster cluster(3);
  for (int i = 0; i < 20; ++i) {
    GoodCalls(cluster, {0, 1, 2}, 20);
    cluster.Pass();
  }
  int passes = 0;
  while (!cluster[0].record.out() && passes < 50) {
    cluster[0].Sent(20);
    GoodCalls(cluster, {1, 2}, 20);
    cluster.Pass();
    ++passes;
  }
  EXPECT_LE(passes, 3) << "within 300 ms";
  EXPECT_EQ(cluster.judge.counts().ejections[static_cast<size_t>(Detector::kStuck)], 1u) << cluster.Why(0);
}

// Requests that end together are owed their answers from then on, however long nothing was owed before.
TEST(JudgeTest, ATimeInWhichNothingIsOwedIsNoSilence) {
  JudgedCluster cluster(3);
  for (int i = 0; i < 10; ++i) {
    GoodCalls(cluster, {0, 1, 2}, 20);
    cluster.Pass();
  }
  cluster[0].Opened(5);
  for (int i = 0; i < 100; ++i) {
    GoodCalls(cluster, {1, 2}, 20);
    cluster.Pass();
  }
  cluster[0].Owes(5);
  GoodCalls(cluster, {1, 2}, 20);
  cluster.Pass();
  EXPECT_EQ(cluster.State(0), HealthState::kUp) << cluster.Why(0);
  EXPECT_FALSE(cluster[0].record.doubted());
  for (int i = 0; i < 3; ++i) {
    GoodCalls(cluster, {1, 2}, 20);
    cluster.Pass();
  }
  EXPECT_EQ(cluster.State(0), HealthState::kEjected);
}

// Before it is called stuck, calls that may not be repeated pass it over; they come again with its answers.
TEST(JudgeTest, OneThatOwesAnswersIsDoubtedBeforeItIsStuck) {
  JudgedCluster cluster(2);
  for (int i = 0; i < 20; ++i) {
    GoodCalls(cluster, {0, 1}, 20, milliseconds(10));
    cluster.Pass();
  }
  const auto owe = [&](base::Nanos time) {
    for (const base::TimePoint end = cluster.now + time; cluster.now < end;) {
      cluster[0].Sent(5);
      GoodCalls(cluster, {1}, 5, milliseconds(10));
      cluster.PassAfter(Judge::kCloser);
    }
  };
  owe(milliseconds(40));
  EXPECT_FALSE(cluster[0].record.doubted());
  owe(milliseconds(40));
  EXPECT_TRUE(cluster[0].record.doubted());
  EXPECT_EQ(cluster.State(0), HealthState::kUp);
  EXPECT_FALSE(cluster[1].record.doubted());
  EXPECT_TRUE(cluster.judge.looks_closer());
  cluster[0].Answered(milliseconds(80));
  cluster.PassAsAsked();
  EXPECT_FALSE(cluster[0].record.doubted());
  owe(milliseconds(200));
  EXPECT_TRUE(cluster[0].record.ejected()) << cluster.Why(0);
  EXPECT_FALSE(cluster[0].record.doubted());
}

// As long as calls come that may be repeated, and until the evidence has been looked at twice; without them the others
// must show what becomes of it then.
TEST(JudgeTest, ASuspectIsDoubtedWhileCallsCome) {
  for (const bool come : {true, false}) {
    JudgedCluster cluster(3);
    GoodCalls(cluster, {0, 1, 2}, 5);
    cluster.Pass();
    for (int i = 0; i < 5; ++i) cluster[0].Call(false);
    cluster.PassAfter(Judge::kCloser);
    EXPECT_EQ(cluster.State(0), HealthState::kSuspect);
    for (int i = 0; i < 4; ++i) {
      EXPECT_TRUE(cluster[0].record.doubted());
      if (come) cluster[0].Call(false);
      cluster.PassAfter(Judge::kCloser);
      EXPECT_EQ(cluster.State(0), HealthState::kSuspect) << "no other has had an answer meanwhile";
    }
    EXPECT_EQ(cluster[0].record.doubted(), come);
    cluster[0].Call(true);
    cluster.PassAfter(Judge::kCloser);
    EXPECT_EQ(cluster.State(0), HealthState::kUp);
    EXPECT_FALSE(cluster[0].record.doubted());
  }
}

// It owes answers: they show what becomes of it, and it needs no more calls for that.
TEST(JudgeTest, ADoubtLastsWhileAnswersAreOwed) {
  JudgedCluster cluster(2);
  for (int i = 0; i < 20; ++i) {
    GoodCalls(cluster, {0, 1}, 20, milliseconds(10));
    cluster.Pass();
  }
  cluster[0].Sent(5);
  for (int i = 0; i < 3; ++i) {
    GoodCalls(cluster, {1}, 5, milliseconds(10));
    cluster.PassAfter(Judge::kCloser);
  }
  EXPECT_TRUE(cluster[0].record.doubted());
  GoodCalls(cluster, {1}, 5, milliseconds(10));
  cluster.PassAfter(Judge::kCloser);
  EXPECT_TRUE(cluster[0].record.doubted());
  for (int i = 0; i < 5; ++i) {
    cluster[0].Answered(milliseconds(90));
    cluster[0].Good();
  }
  cluster.PassAfter(Judge::kCloser);
  EXPECT_FALSE(cluster[0].record.doubted());
}

// Weight that must stay in rotation takes all calls.
TEST(JudgeTest, NotMoreIsDoubtedThanMayBeEjected) {
  JudgedCluster cluster(4);
  cluster.options.min_available = 0.75;
  cluster.Configure();
  for (int i = 0; i < 20; ++i) {
    GoodCalls(cluster, {0, 1, 2, 3}, 20);
    cluster.Pass();
  }
  for (const size_t place : {0, 1}) {
    for (int i = 0; i < 5; ++i) cluster[place].Call(false);
  }
  GoodCalls(cluster, {2, 3}, 5);
  cluster.PassAfter(Judge::kCloser);
  EXPECT_EQ(cluster.State(0), HealthState::kSuspect);
  EXPECT_EQ(cluster.State(1), HealthState::kSuspect);
  EXPECT_TRUE(cluster[0].record.doubted());
  EXPECT_FALSE(cluster[1].record.doubted());
}

// A shared database hangs, or this process was stopped.
TEST(JudgeTest, NotStuckWhereNoEndpointAnswers) {
  for (int calls : {20, 1}) {
    JudgedCluster cluster(3);
    for (int i = 0; i < 100; ++i) {
      GoodCalls(cluster, {0, 1, 2}, calls);
      cluster.Pass();
    }
    for (int i = 0; i < 50; ++i) {
      for (size_t place : {0, 1, 2}) cluster[place].Sent(static_cast<uint32_t>(calls));
      cluster.Pass();
    }
    EXPECT_EQ(cluster.Ejections(), 0u);
  }
}

// Half of the calls here are subscriptions that say nothing for hours; one endpoint gets some in a row.
TEST(JudgeTest, CallsThatWaitEverywhereAreNotStuck) {
  JudgedCluster cluster(3);
  for (int i = 0; i < 50; ++i) {
    for (size_t place : {0, 1, 2}) {
      cluster[place].Sent(4);
      for (int k = 0; k < 4; ++k) cluster[place].Call(true);
    }
    cluster.Pass();
  }
  for (int i = 0; i < 5; ++i) {
    cluster[0].Sent(1);
    GoodCalls(cluster, {1, 2}, 4);
    cluster.Pass();
  }
  EXPECT_EQ(cluster.State(0), HealthState::kUp);
}

TEST(JudgeTest, SlowLosesWeightAndThenItsPlace) {
  JudgedCluster cluster(3);
  auto work = [&](int n) {
    for (int i = 0; i < n; ++i) cluster[0].Call(true, milliseconds(60));
    GoodCalls(cluster, {1, 2}, n, milliseconds(10));
    cluster.Pass();
  };
  int passes = 0;
  while (cluster.State(0) == HealthState::kUp && ++passes < 100) work(20);
  EXPECT_EQ(cluster.State(0), HealthState::kSuspect);
  EXPECT_EQ(cluster[0].record.share(), 0.25);
  while (cluster.State(0) == HealthState::kSuspect && ++passes < 200) work(5);
  EXPECT_EQ(cluster.State(0), HealthState::kEjected);
  EXPECT_EQ(cluster.judge.counts().ejections[static_cast<size_t>(Detector::kSlow)], 1u);
  EXPECT_EQ(cluster.Why(0).substr(0, 26), "median time to first byte ");
}

TEST(JudgeTest, ASlowSuspectThatIsFastAgainGoesFree) {
  JudgedCluster cluster(2);
  for (int i = 0; i < 20 && cluster.State(0) == HealthState::kUp; ++i) {
    GoodCalls(cluster, {0}, 20, milliseconds(100));
    GoodCalls(cluster, {1}, 20);
    cluster.Pass();
  }
  ASSERT_EQ(cluster.State(0), HealthState::kSuspect);
  for (int i = 0; i < 20; ++i) {
    GoodCalls(cluster, {0, 1}, 20);
    cluster.Pass();
  }
  EXPECT_EQ(cluster.State(0), HealthState::kUp);
  EXPECT_EQ(cluster.Ejections(), 0u);
}

// Three times as slow, and only 4 ms more.
TEST(JudgeTest, SlowByLessThanTheFloorIsFine) {
  JudgedCluster cluster(2);
  for (int i = 0; i < 100; ++i) {
    GoodCalls(cluster, {0}, 20, milliseconds(6));
    GoodCalls(cluster, {1}, 20, milliseconds(1));
    cluster.Pass();
  }
  EXPECT_EQ(cluster.State(0), HealthState::kUp);
}

TEST(JudgeTest, HalfOfTheWeightStaysAndSuppressionsAreCounted) {
  JudgedCluster cluster(5);
  for (int pass = 0; pass < 20; ++pass) {
    for (size_t i = 0; i < 3; ++i) {
      if (!cluster[i].record.out())
        for (int k = 0; k < 5; ++k) cluster[i].Call(false);
    }
    GoodCalls(cluster, {3, 4}, 20);
    cluster.Pass();
  }
  EXPECT_EQ(cluster.InRotation(), 3u);
  EXPECT_EQ(cluster.judge.counts().suppressed[static_cast<size_t>(Suppression::kMinAvailable)], 1u);
}

TEST(JudgeTest, TheLastOneStays) {
  JudgedCluster cluster(2);
  cluster.options.min_available = 0;
  cluster.Configure();
  for (int pass = 0; pass < 5; ++pass) {
    if (!cluster[0].record.out())
      for (int k = 0; k < 10; ++k) cluster[0].Call(false);
    GoodCalls(cluster, {1}, 5);
    cluster.Pass();
  }
  ASSERT_TRUE(cluster[0].record.out());
  for (int pass = 0; pass < 200; ++pass) {
    for (int k = 0; k < 10; ++k) cluster[1].Call(false);
    cluster.Pass();
    ASSERT_FALSE(cluster[1].record.out());
  }
}

// Where all fail, a row says nothing of one endpoint.
TEST(JudgeTest, AllFailingAtOnceEjectsNone) {
  JudgedCluster cluster(4);
  GoodCalls(cluster, {0, 1, 2, 3}, 20);
  for (int pass = 0; pass < 100; ++pass) {
    for (auto& e : cluster.all)
      for (int k = 0; k < 5; ++k) e->Call(false);
    cluster.Pass();
  }
  EXPECT_EQ(cluster.Ejections(), 0u);
  EXPECT_GT(cluster.judge.counts().suppressed[static_cast<size_t>(Suppression::kAllFailing)], 0u);
}

// One worker has seen failures alone since all began to fail, another one the first good answer behind it.
TEST(JudgeTest, AFailureThatAllSharedIsNoRowOfTheOneThatEndsItLast) {
  JudgedCluster cluster(3);
  for (int i = 0; i < 20; ++i) {
    GoodCalls(cluster, {0, 1, 2}, 20);
    cluster.Pass();
  }
  for (int i = 0; i < 40; ++i) {
    for (const size_t place : {0, 1, 2}) cluster[place].Call(false);
    cluster.PassAsAsked();
  }
  GoodCalls(cluster, {1, 2}, 1);
  const uint32_t row = cluster[0].row;
  cluster[0].Call(true);
  cluster[0].Call(false);
  cluster[0].row = row + 1;
  cluster.PassAsAsked();
  GoodCalls(cluster, {0, 1, 2}, 1);
  cluster.PassAsAsked();
  EXPECT_EQ(cluster.Ejections(), 0u) << cluster.Why(0);
}

// It had no calls in the seconds before all failed, the others did.
TEST(JudgeTest, RatesAreComparedAtTheTimesOfTheCalls) {
  for (const bool alone : {false, true}) {
    JudgedCluster cluster(3);
    for (int i = 0; i < 70; ++i) {
      GoodCalls(cluster, {1, 2}, 10);
      cluster.Pass();
    }
    for (int i = 0; i < 20; ++i) {
      for (const size_t place : {0, 1, 2}) {
        for (int k = 0; k < 10; ++k) cluster[place].Call(k % 2 == 0 || (alone && place != 0));
      }
      cluster.Pass();
    }
    EXPECT_EQ(cluster.Ejections(), alone ? 1u : 0u) << cluster.Why(0);
  }
}

// Of endpoints that are all bad, the one that is much worse goes.
TEST(JudgeTest, WhereMostFailTheWorstGoes) {
  JudgedCluster cluster(3);
  for (int pass = 0; pass < 20; ++pass) {
    if (!cluster[0].record.out())
      for (int k = 0; k < 20; ++k) cluster[0].Call(false);
    for (size_t i : {1, 2})
      for (int k = 0; k < 20; ++k) cluster[i].Call(k % 2 == 0);
    cluster.Pass();
  }
  EXPECT_TRUE(cluster[0].record.out());
  EXPECT_EQ(cluster.InRotation(), 2u);
}

TEST(JudgeTest, TheLogOfChangesIsBounded) {
  JudgedCluster cluster(2);
  for (int i = 0; i < 200; ++i) {
    cluster.judge.Eject(cluster[0].record, "e0", cluster.now);
    cluster.judge.Restore(cluster[0].record, "e0", cluster.now);
  }
  EXPECT_EQ(cluster.judge.changes().changes().size(), ChangeLog::kChangesMax);
  EXPECT_EQ(cluster.judge.changes().total(), 400u);
}

}  // namespace
}  // namespace sluice::upstream
