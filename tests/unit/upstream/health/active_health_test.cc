// An endpoint's own word: when it is asked, and what follows of each answer and end. Time is turned by hand.
#include "upstream/health/active_health.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>

namespace sluice::upstream {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Act = ActiveHealth::Act;
using Kind = HealthEnd::Kind;
using Verdict = ActiveHealth::Verdict;

class ActiveHealthTest : public testing::Test {
 public:
  ActiveHealthTest() { options.mode = HealthMode::kWatch; }

  // A pass, as ClusterHealth makes it.
  Act Pass(base::Nanos after = milliseconds(100)) {
    now += after;
    if (report != nullptr) health.Read(*report, now, random);
    if (!health.asking()) report.reset();
    const Act act = health.Next(options, now, random);
    if (act == Act::kStop) report.reset();
    if (act == Act::kWatch || act == Act::kCheck) report = std::make_shared<HealthReport>();
    return act;
  }
  // Passes until something is begun; how long that took.
  base::Nanos UntilBegun(Act wanted, base::Nanos at_most = seconds(120)) {
    const base::TimePoint from = now;
    while (now - from < at_most) {
      const Act act = Pass();
      if (act == Act::kWatch || act == Act::kCheck) {
        EXPECT_EQ(act, wanted);
        return now - from;
      }
    }
    ADD_FAILURE() << "nothing is begun";
    return at_most;
  }
  void Open() { report->Opened(); }
  void Say(ServingStatus status) {
    report->Opened();
    report->Answered(status);
    Pass();
  }
  void End(Kind kind, uint32_t status = 0, std::string detail = "why") {
    report->Ended({kind, status, std::move(detail)});
  }
  // A Check from its beginning to its end.
  void Check(ServingStatus status) {
    if (report == nullptr) UntilBegun(Act::kCheck);
    report->Opened();
    report->Answered(status);
    End(Kind::kStatus, 0, "OK");
    Pass();
  }

  HealthOptions options;
  ActiveHealth health;
  std::shared_ptr<HealthReport> report;
  base::TimePoint now{std::chrono::hours(1)};
  base::Random random{1};
};

TEST_F(ActiveHealthTest, OffNothingIsAsked) {
  options.mode = HealthMode::kOff;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Pass(), Act::kNothing);
  EXPECT_FALSE(health.active());
  EXPECT_EQ(health.Describe(), "");
}

TEST_F(ActiveHealthTest, EachAnswerOfAWatchIsTheVerdict) {
  EXPECT_EQ(Pass(), Act::kWatch);
  EXPECT_EQ(health.verdict(), Verdict::kNone) << "an endpoint that has not answered yet is as it was";
  EXPECT_EQ(health.Describe(), "watch: no answer yet");
  Say(ServingStatus::kServing);
  EXPECT_EQ(health.verdict(), Verdict::kServing);
  for (const ServingStatus status :
       {ServingStatus::kNotServing, ServingStatus::kServiceUnknown, ServingStatus::kUnknown}) {
    Say(status);
    EXPECT_EQ(health.verdict(), Verdict::kNotServing);
    EXPECT_EQ(health.why(), "the health service says " + std::string(ToString(status)));
    EXPECT_EQ(health.Describe(), "watch: " + std::string(ToString(status)));
    Say(ServingStatus::kServing);
    EXPECT_EQ(health.verdict(), Verdict::kServing);
    EXPECT_FALSE(health.brief()) << "it was not serving by its own word";
  }
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(Pass(), Act::kNothing) << "silence is in order";
}

TEST_F(ActiveHealthTest, BeginningIsPutOffWhereOthersBegin) {
  EXPECT_EQ(health.Next(options, now, random, /*may_begin=*/false), Act::kNothing);
  EXPECT_EQ(health.Next(options, now, random), Act::kWatch);
}

// A17: TRANSIENT_FAILURE, one attempt at once, then with exponential back-off.
TEST_F(ActiveHealthTest, AWatchThatFailsIsNotServingUntilItIsAnsweredAgain) {
  Pass();
  Say(ServingStatus::kServing);
  End(Kind::kStatus, 14, "UNAVAILABLE: restarting");
  EXPECT_EQ(Pass(), Act::kWatch) << "at once, since there was an answer";
  EXPECT_EQ(health.verdict(), Verdict::kNotServing);
  EXPECT_EQ(health.why(), "Watch failed: UNAVAILABLE: restarting");
  double expected = 1;
  for (int i = 0; i < 10; ++i) {
    Open();
    End(Kind::kStatus, 0, "OK");
    const double waited = std::chrono::duration<double>(UntilBegun(Act::kWatch)).count();
    EXPECT_GE(waited, expected * 0.8);
    EXPECT_LE(waited, expected * 1.2 + 0.2);
    expected = std::min(expected * 2, 60.0);
  }
  EXPECT_EQ(health.verdict(), Verdict::kNotServing);
  Say(ServingStatus::kServing);
  EXPECT_EQ(health.verdict(), Verdict::kServing);
  EXPECT_FALSE(health.brief()) << "minutes have passed";
  End(Kind::kBroken);
  EXPECT_EQ(Pass(), Act::kWatch);
  Say(ServingStatus::kServing);
  EXPECT_TRUE(health.brief()) << "a moment, on a connection that stayed";
  End(Kind::kBroken);
  Pass();
  Open();
  End(Kind::kStatus, 14);
  const double waited = std::chrono::duration<double>(UntilBegun(Act::kWatch)).count();
  EXPECT_LE(waited, 1.4) << "the answer began the back-off anew";
}

TEST_F(ActiveHealthTest, AWatchWithoutAFirstAnswerFailsAtTheTimeout) {
  EXPECT_EQ(Pass(), Act::kWatch);
  EXPECT_EQ(Pass(seconds(5)), Act::kNothing) << "it waits for a connection, which has its own bound";
  Open();
  EXPECT_EQ(Pass(), Act::kNothing);
  EXPECT_EQ(Pass(milliseconds(900)), Act::kNothing);
  EXPECT_EQ(Pass(), Act::kStop);
  EXPECT_EQ(health.verdict(), Verdict::kNotServing);
  EXPECT_EQ(health.why(), "Watch failed: no answer in 1000 ms");
  EXPECT_GE(UntilBegun(Act::kWatch), milliseconds(800));
}

// Its connection was closed by age or GOAWAY, or was lost: that alone says nothing, the next Watch does.
TEST_F(ActiveHealthTest, AWatchThatLosesItsConnectionIsBegunAtOnceAndTheVerdictStays) {
  Pass();
  for (const Kind kind : {Kind::kMoved, Kind::kLost}) {
    for (const ServingStatus status : {ServingStatus::kNotServing, ServingStatus::kServing}) {
      Say(status);
      const Verdict before = health.verdict();
      End(kind);
      EXPECT_EQ(Pass(), Act::kWatch);
      EXPECT_EQ(health.verdict(), before);
    }
  }
  End(Kind::kMoved);
  EXPECT_GE(UntilBegun(Act::kWatch), milliseconds(800)) << "the second in a row without an answer has to wait";
  EXPECT_EQ(health.verdict(), Verdict::kServing);
  End(Kind::kLost, 0, "the connection was lost");
  Pass();
  EXPECT_EQ(health.verdict(), Verdict::kNotServing);
  EXPECT_EQ(health.why(), "Watch failed: the connection was lost");
}

TEST_F(ActiveHealthTest, WithoutAConnectionItDoesNotServeAndARefusedPortIsTriedTwiceASecond) {
  Pass();
  Say(ServingStatus::kServing);
  End(Kind::kLost);
  EXPECT_EQ(Pass(), Act::kWatch);
  for (int i = 0; i < 20; ++i) {
    End(Kind::kRefused, 0, "connection refused");
    EXPECT_LE(UntilBegun(Act::kWatch), milliseconds(920)) << "with a pass to see the end";
  }
  EXPECT_EQ(health.verdict(), Verdict::kNotServing);
  EXPECT_EQ(health.why(), "no connection: connection refused");
  Say(ServingStatus::kServing);
  EXPECT_FALSE(health.brief()) << "it is another process";
  End(Kind::kNoConnection);
  EXPECT_GE(UntilBegun(Act::kWatch), milliseconds(0));
  End(Kind::kNoConnection);
  EXPECT_GE(UntilBegun(Act::kWatch), milliseconds(800));
}

TEST_F(ActiveHealthTest, AWatchThatGaveWayComesBackAfterTheInterval) {
  Pass();
  Say(ServingStatus::kServing);
  End(Kind::kGaveWay);
  EXPECT_GE(UntilBegun(Act::kWatch), seconds(8));
  EXPECT_EQ(health.verdict(), Verdict::kServing);
}

// A17: as healthy. Checks are made then, because a server may have one without the other.
TEST_F(ActiveHealthTest, WithoutWatchChecksAreMadeEachInterval) {
  Pass();
  Open();
  End(Kind::kStatus, 12, "UNIMPLEMENTED");
  EXPECT_EQ(Pass(), Act::kCheck);
  EXPECT_EQ(health.verdict(), Verdict::kServing);
  Check(ServingStatus::kServing);
  for (int i = 0; i < 5; ++i) {
    const base::Nanos waited = UntilBegun(Act::kCheck);
    EXPECT_GE(waited, seconds(8) - milliseconds(200));
    EXPECT_LE(waited, seconds(12) + milliseconds(200));
    Check(ServingStatus::kServing);
  }
  EXPECT_EQ(health.Describe(), "check: SERVING");
  for (uint32_t i = 0; i < options.fall; ++i) Check(ServingStatus::kNotServing);
  EXPECT_EQ(health.verdict(), Verdict::kNotServing);
  // Another process, perhaps of a later version: Watch is tried again.
  UntilBegun(Act::kCheck);
  Open();
  End(Kind::kLost);
  UntilBegun(Act::kWatch);
}

TEST_F(ActiveHealthTest, AServerWithoutTheServiceIsTakenAsHealthy) {
  Pass();
  End(Kind::kNoConnection);
  Pass();
  EXPECT_EQ(health.verdict(), Verdict::kNotServing);
  UntilBegun(Act::kWatch);
  Open();
  End(Kind::kStatus, 12, "UNIMPLEMENTED");
  EXPECT_EQ(Pass(), Act::kCheck);
  EXPECT_EQ(health.verdict(), Verdict::kServing) << "at once";
  for (int i = 0; i < 5; ++i) {
    Open();
    End(Kind::kStatus, 12, "UNIMPLEMENTED");
    UntilBegun(Act::kCheck);
  }
  EXPECT_EQ(health.verdict(), Verdict::kServing);
  EXPECT_EQ(health.Describe(), "check: UNIMPLEMENTED, taken as healthy");
}

class CheckTest : public ActiveHealthTest {
 public:
  CheckTest() { options.mode = HealthMode::kCheck; }
};

TEST_F(CheckTest, FallInARowTakeItDownAndRiseBringItBack) {
  EXPECT_EQ(Pass(), Act::kCheck);
  Check(ServingStatus::kServing);
  EXPECT_EQ(health.verdict(), Verdict::kServing);
  Check(ServingStatus::kNotServing);
  Check(ServingStatus::kNotServing);
  Check(ServingStatus::kServing);
  Check(ServingStatus::kNotServing);
  Check(ServingStatus::kNotServing);
  EXPECT_EQ(health.verdict(), Verdict::kServing) << "never three in a row";
  Check(ServingStatus::kNotServing);
  EXPECT_EQ(health.verdict(), Verdict::kNotServing);
  EXPECT_EQ(health.why(), "3 checks failed: NOT_SERVING");
  Check(ServingStatus::kServing);
  EXPECT_EQ(health.verdict(), Verdict::kNotServing);
  Check(ServingStatus::kServing);
  EXPECT_EQ(health.verdict(), Verdict::kServing);
  EXPECT_EQ(health.why(), "2 checks passed: SERVING");
}

TEST_F(CheckTest, InDoubtItIsAskedEverySecond) {
  Check(ServingStatus::kServing);
  EXPECT_GE(UntilBegun(Act::kCheck), seconds(7));
  Check(ServingStatus::kNotServing);
  EXPECT_LE(UntilBegun(Act::kCheck), milliseconds(1400));
  Check(ServingStatus::kNotServing);
  EXPECT_LE(UntilBegun(Act::kCheck), milliseconds(1400));
  Check(ServingStatus::kNotServing);
  EXPECT_EQ(health.verdict(), Verdict::kNotServing);
  EXPECT_GE(UntilBegun(Act::kCheck), seconds(7)) << "there is no doubt any more";
}

TEST_F(CheckTest, WhatFailsACheck) {
  options.fall = 1;
  options.rise = 1;
  struct Case {
    bool answered;
    Kind kind;
    uint32_t status;
    const char* why;
  };
  const Case cases[] = {{true, Kind::kStatus, 13, "1 check failed: why"},
                        {false, Kind::kStatus, 5, "1 check failed: why"},
                        {false, Kind::kStatus, 0, "1 check failed: OK without an answer"},
                        {true, Kind::kBroken, 0, "1 check failed: why"},
                        {true, Kind::kLost, 0, "1 check failed: why"},
                        {false, Kind::kRefused, 0, "1 check failed: no connection: why"},
                        {false, Kind::kNoConnection, 0, "1 check failed: no connection: why"}};
  for (const Case& each : cases) {
    Check(ServingStatus::kServing);
    ASSERT_EQ(health.verdict(), Verdict::kServing);
    UntilBegun(Act::kCheck);
    Open();
    if (each.answered) report->Answered(ServingStatus::kServing);
    End(each.kind, each.status);
    Pass();
    EXPECT_EQ(health.verdict(), Verdict::kNotServing) << each.why;
    EXPECT_EQ(health.why(), each.why);
  }
}

TEST_F(CheckTest, ACheckThatIsNotDoneInTimeFails) {
  options.fall = 1;
  for (const bool answered : {false, true}) {
    UntilBegun(Act::kCheck);
    Open();
    if (answered) report->Answered(ServingStatus::kServing);
    Pass();
    EXPECT_EQ(Pass(milliseconds(900)), Act::kNothing);
    EXPECT_EQ(Pass(), Act::kStop) << "an answer without a status is none";
    EXPECT_EQ(health.why(), "1 check failed: no answer in 1000 ms");
    Check(ServingStatus::kServing);
    Check(ServingStatus::kServing);
    EXPECT_EQ(health.verdict(), Verdict::kServing);
  }
}

TEST_F(CheckTest, ACheckThatWeEndedCountsForNothing) {
  Check(ServingStatus::kServing);
  UntilBegun(Act::kCheck);
  End(Kind::kMoved);
  EXPECT_EQ(Pass(), Act::kCheck) << "once more at once";
  for (int i = 0; i < 5; ++i) {
    End(Kind::kMoved);
    EXPECT_GE(UntilBegun(Act::kCheck), seconds(8));
  }
  EXPECT_EQ(health.verdict(), Verdict::kServing);
}

TEST_F(ActiveHealthTest, AReloadBeginsAnewAndOffForgetsAll) {
  Pass();
  Say(ServingStatus::kNotServing);
  options.interval = seconds(20);
  EXPECT_EQ(Pass(), Act::kNothing) << "nothing of what is asked has changed";
  EXPECT_EQ(health.verdict(), Verdict::kNotServing);
  options.service = "other";
  EXPECT_EQ(Pass(), Act::kStop);
  EXPECT_EQ(health.verdict(), Verdict::kNone) << "of the other service nothing is known";
  EXPECT_EQ(Pass(), Act::kWatch);
  options.mode = HealthMode::kCheck;
  EXPECT_EQ(Pass(), Act::kStop);
  EXPECT_EQ(Pass(), Act::kCheck);
  options.mode = HealthMode::kOff;
  EXPECT_EQ(Pass(), Act::kStop);
  EXPECT_EQ(Pass(), Act::kNothing);
  EXPECT_FALSE(health.active());
}

TEST_F(ActiveHealthTest, HurryEndsTheBackOff) {
  Pass();
  for (int i = 0; i < 6; ++i) {
    End(Kind::kNoConnection);
    UntilBegun(Act::kWatch);
  }
  End(Kind::kNoConnection);
  EXPECT_EQ(Pass(), Act::kNothing);
  health.Hurry(now);
  EXPECT_EQ(Pass(), Act::kWatch);
}

}  // namespace
}  // namespace sluice::upstream
