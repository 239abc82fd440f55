// What is due when, without a socket or a timer. Through a connection: connection_life_test.cc.
#include "http2/connection/time_bounds.h"

#include <gtest/gtest.h>

namespace sluice::http2 {
namespace {

using base::kNever;
using base::TimePoint;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Act = TimeBounds::Act;

class TimeBoundsTest : public ::testing::Test {
 public:
  TimeBoundsTest() {
    life.headers_timeout = life.send_timeout = life.stall_timeout = life.idle_timeout = milliseconds(0);
  }
  TimeBounds Make(base::Nanos delay = base::Nanos(0), double age_share = 1) {
    TimeBounds bounds(life, keepalive, /*sweeps=*/4);
    bounds.Start(start, delay, age_share);
    return bounds;
  }
  TimePoint At(milliseconds after) const { return start + after; }
  // Next() is when, and Due() says what then and nothing just before.
  void ExpectDue(TimeBounds& bounds, milliseconds when, Act act) {
    EXPECT_EQ(bounds.Next(start, situation.open_streams), At(when));
    EXPECT_EQ(bounds.Due(At(when) - milliseconds(1), situation), Act::kNothing);
    EXPECT_EQ(bounds.Due(At(when), situation), act);
  }

  LifeOptions life;
  KeepaliveOptions keepalive;
  TimeBounds::Situation situation;
  const TimePoint start{std::chrono::hours(1)};
};

TEST_F(TimeBoundsTest, WithoutBoundsNothingIsEverDue) {
  TimeBounds bounds = Make();
  bounds.Pending(5, start);
  bounds.Blocked(start);
  bounds.Queued(start);
  EXPECT_FALSE(bounds.wants_streams());
  EXPECT_EQ(bounds.Next(start, 0), kNever);
  EXPECT_EQ(bounds.Due(start + std::chrono::hours(1000), situation), Act::kNothing);
}

TEST_F(TimeBoundsTest, WhatThePeerBeginsItEndsInTime) {
  life.headers_timeout = seconds(10);
  TimeBounds bounds = Make();
  EXPECT_EQ(bounds.Next(start, 0), kNever);
  EXPECT_EQ(bounds.Pending(1, start), At(seconds(10)));
  ExpectDue(bounds, seconds(10), Act::kEndHeaders);
  bounds.Pending(0, At(seconds(10)));
  EXPECT_EQ(bounds.Due(At(seconds(100)), situation), Act::kNothing);
}

TEST_F(TimeBoundsTest, WhileWeDoNotListenItsTimeBeginsAnew) {
  life.headers_timeout = seconds(10);
  TimeBounds bounds = Make();
  bounds.Pending(1, start);
  situation.listening = false;
  EXPECT_EQ(bounds.Due(At(seconds(10)), situation), Act::kNothing);
  situation.listening = true;
  EXPECT_EQ(bounds.Next(At(seconds(10)), 0), At(seconds(20)));
  EXPECT_EQ(bounds.Due(At(seconds(20)), situation), Act::kEndHeaders);
}

TEST_F(TimeBoundsTest, ASocketThatTakesNothingIsDueUntilItTakesAByte) {
  life.send_timeout = seconds(60);
  TimeBounds bounds = Make();
  EXPECT_EQ(bounds.Blocked(start), At(seconds(60)));
  EXPECT_EQ(bounds.Blocked(At(seconds(30))), kNever);  // it has been blocked all the time
  bounds.Wrote();
  EXPECT_EQ(bounds.Due(At(seconds(60)), situation), Act::kNothing);
  bounds.Blocked(At(seconds(60)));
  ExpectDue(bounds, seconds(120), Act::kEndSend);
}

TEST_F(TimeBoundsTest, AnOldConnectionIsRetiredThenEnded) {
  life.age_max = seconds(100);
  life.age_grace = seconds(30);
  TimeBounds bounds = Make(base::Nanos(0), 1.1);
  ExpectDue(bounds, seconds(110), Act::kRetire);
  bounds.Retire(At(seconds(110)));
  ExpectDue(bounds, seconds(140), Act::kEndAge);
}

TEST_F(TimeBoundsTest, IdlenessCountsFromTheLastStream) {
  life.idle_timeout = seconds(60);
  TimeBounds bounds = Make();
  situation.open_streams = 1;
  EXPECT_EQ(bounds.Due(At(seconds(100)), situation), Act::kNothing);
  situation.open_streams = 0;
  bounds.Idle(At(seconds(100)));
  EXPECT_EQ(bounds.Next(At(seconds(100)), 0), At(seconds(160)));
  EXPECT_EQ(bounds.Due(At(seconds(160)), situation), Act::kEndIdle);
  bounds.Retire(At(seconds(160)));  // it has been told: from here on age_grace counts
  EXPECT_EQ(bounds.Due(At(seconds(161)), situation), Act::kNothing);
}

TEST_F(TimeBoundsTest, SilenceIsAnsweredWithAPingAndThatWithTheEnd) {
  keepalive.interval = seconds(10);
  keepalive.timeout = seconds(3);
  situation.server = true;
  TimeBounds bounds = Make();
  bounds.Heard(At(seconds(5)));
  EXPECT_EQ(bounds.Due(At(seconds(10)), situation), Act::kNothing);
  EXPECT_EQ(bounds.Due(At(seconds(15)), situation), Act::kPing);
  bounds.PingAnswered();
  bounds.Heard(At(seconds(16)));
  EXPECT_EQ(bounds.Due(At(seconds(26)), situation), Act::kPing);
  EXPECT_EQ(bounds.Next(At(seconds(26)), 0), At(seconds(29)));
  EXPECT_EQ(bounds.Due(At(seconds(29)), situation), Act::kEndDeaf);
}

TEST_F(TimeBoundsTest, AClientAsksOnlyWhereItWaitsForSomething) {
  keepalive.interval = seconds(10);
  TimeBounds bounds = Make();
  EXPECT_EQ(bounds.Due(At(seconds(10)), situation), Act::kNothing);
  EXPECT_EQ(bounds.Next(At(seconds(10)), 0), At(seconds(20)));
  situation.open_streams = 1;
  EXPECT_EQ(bounds.Due(At(seconds(20)), situation), Act::kPing);
}

// gRPC's servers count PINGs while they are silent themselves.
TEST_F(TimeBoundsTest, WhereOnlyAnAnswerHasComeTheNextPingIsLater) {
  keepalive.interval = seconds(10);
  keepalive.repeat = seconds(60);
  situation.open_streams = 1;
  TimeBounds bounds = Make();
  EXPECT_EQ(bounds.Due(At(seconds(10)), situation), Act::kPing);
  bounds.Heard(At(seconds(11)));
  bounds.PingAnswered();
  EXPECT_EQ(bounds.Next(At(seconds(11)), 1), At(seconds(71)));
  EXPECT_EQ(bounds.Due(At(seconds(70)), situation), Act::kNothing);
  EXPECT_EQ(bounds.Due(At(seconds(71)), situation), Act::kPing);
  bounds.Heard(At(seconds(72)));
  bounds.PingAnswered();
  bounds.Heard(At(seconds(73)));  // the call goes on
  EXPECT_EQ(bounds.Due(At(seconds(83)), situation), Act::kPing);
}

TEST_F(TimeBoundsTest, WhatIsPausedIsNotAsked) {
  keepalive.interval = seconds(10);
  situation = {.open_streams = 1, .server = true, .listening = false, .paused = true};
  TimeBounds bounds = Make();
  EXPECT_EQ(bounds.Due(At(seconds(10)), situation), Act::kNothing);
  EXPECT_EQ(bounds.Announced(At(seconds(10))), At(seconds(15)));
  EXPECT_EQ(bounds.Due(At(seconds(15)), situation), Act::kNothing);
  situation.paused = false;
  EXPECT_EQ(bounds.Due(At(seconds(19)), situation), Act::kNothing);
  EXPECT_EQ(bounds.Due(At(seconds(20)), situation), Act::kPing);
  EXPECT_EQ(bounds.Due(At(seconds(20)), situation), Act::kBindDrain);
  EXPECT_EQ(bounds.Due(At(seconds(20)), situation), Act::kNothing);
}

TEST_F(TimeBoundsTest, StreamsAreLookedAtFourTimesInTheirBound) {
  life.stall_timeout = seconds(40);
  life.body_timeout = seconds(80);
  TimeBounds bounds = Make();
  EXPECT_EQ(bounds.Queued(start), At(seconds(10)));
  EXPECT_TRUE(bounds.wants_streams());
  EXPECT_EQ(bounds.HasStreams(start), At(seconds(20)));
  EXPECT_FALSE(bounds.wants_streams());
  EXPECT_EQ(bounds.Queued(At(seconds(5))), kNever);  // a look is planned
  EXPECT_EQ(bounds.Due(At(seconds(20)), situation), Act::kSweepUnread);
  EXPECT_EQ(bounds.Due(At(seconds(20)), situation), Act::kSweepSilent);
  EXPECT_EQ(bounds.Due(At(seconds(20)), situation), Act::kNothing);
  EXPECT_TRUE(bounds.wants_streams());
  EXPECT_EQ(bounds.Queued(At(seconds(20))), At(seconds(30)));
}

TEST_F(TimeBoundsTest, ADelayPutsOffAllThatThePeerIsAskedFor) {
  life.headers_timeout = seconds(1);
  TimeBounds bounds(life, keepalive, 4);
  bounds.Pending(1, start);
  bounds.Start(start, seconds(5), 1);
  EXPECT_TRUE(bounds.delayed());
  ExpectDue(bounds, seconds(5), Act::kRead);
  EXPECT_FALSE(bounds.delayed());
  EXPECT_EQ(bounds.Due(At(milliseconds(5999)), situation), Act::kNothing);
  EXPECT_EQ(bounds.Due(At(seconds(6)), situation), Act::kEndHeaders);
}

}  // namespace
}  // namespace sluice::http2
