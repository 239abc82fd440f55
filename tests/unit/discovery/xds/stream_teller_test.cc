// StreamTeller: lines for what has changed for good, and no others.
#include "discovery/xds/stream_teller.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace sluice::discovery {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

class StreamTellerTest : public ::testing::Test {
 protected:
  // What it says by then; "": nothing.
  std::string After(base::Nanos wait) {
    now += wait;
    const auto line = teller.Take(now);
    return line ? (line->well ? "+ " : "- ") + line->text : "";
  }
  void Stands(const std::string& server = "a:1") { teller.Stands(server, now); }
  void Ends(const std::string& why = "why", const std::string& server = "a:1") { teller.Ended(server, why, now); }

  StreamTeller teller;
  base::TimePoint now{std::chrono::hours(1)};
};

TEST_F(StreamTellerTest, TheFirstStreamIsToldAtOnceAndOnce) {
  EXPECT_EQ(teller.due_at(), base::kNever);
  Stands();
  EXPECT_EQ(teller.due_at(), now);
  EXPECT_EQ(After({}), "+ a:1 has answered");
  Stands();
  EXPECT_EQ(teller.due_at(), base::kNever);
  EXPECT_EQ(After(minutes(60)), "");
}

TEST_F(StreamTellerTest, AStreamThatIsFollowedByTheNextIsNotTold) {
  Stands();
  After({});
  for (int i = 0; i < 1000; ++i) {
    Ends();
    EXPECT_EQ(After(seconds(4)), "") << i;
    Stands();
    EXPECT_EQ(After(seconds(1 + i % 90)), "") << i;
  }
}

TEST_F(StreamTellerTest, AServerThatIsAwayIsToldOnceWhateverItsErrors) {
  Stands();
  After({});
  now += minutes(10);
  Ends("first");
  EXPECT_EQ(After(seconds(4)), "");
  Ends("second");
  EXPECT_EQ(teller.due_at(), now + seconds(1));
  EXPECT_EQ(After(seconds(1)), "- no stream to a:1: second");
  for (int i = 0; i < 100; ++i) {
    Ends(std::to_string(i), i % 2 == 0 ? "a:1" : "b:2");
    EXPECT_EQ(After(seconds(15)), "") << i;
  }
  Stands();
  EXPECT_EQ(After({}), "+ a:1 has answered") << "at once";
}

TEST_F(StreamTellerTest, AStartWithoutAServerIsTold) {
  Ends();
  EXPECT_EQ(After(StreamTeller::kAwayAfter), "- no stream to a:1: why");
}

// Up for half a minute, away for ten seconds, and so on.
TEST_F(StreamTellerTest, AServerThatComesAndGoesIsToldSeldom) {
  int lines = 0;
  const auto go_on = [&](seconds time) {
    for (int i = 0; i < time.count(); ++i) lines += After(seconds(1)).empty() ? 0 : 1;
  };
  for (int i = 0; i < 90; ++i) {
    Stands();
    go_on(seconds(30));
    Ends();
    go_on(seconds(10));
  }
  EXPECT_LE(lines, 2 * (60 / 5 + 1)) << "in an hour";
  EXPECT_GE(lines, 60 / 5);
}

TEST_F(StreamTellerTest, AnotherServerIsToldButNotEachMinute) {
  Stands("a:1");
  EXPECT_EQ(After({}), "+ a:1 has answered");
  now += minutes(10);
  Stands("b:2");
  EXPECT_EQ(After({}), "+ b:2 has answered");
  now += minutes(1);
  Stands("a:1");
  EXPECT_EQ(After({}), "");
  now += minutes(1);
  Stands("b:2");
  EXPECT_EQ(teller.due_at(), base::kNever) << "as it was told";
  now += minutes(1);
  Stands("a:1");
  EXPECT_EQ(After(minutes(2)), "+ a:1 has answered");
}

TEST_F(StreamTellerTest, AStreamThatIsNotWantedIsNotMissed) {
  Stands();
  After({});
  Ends();
  teller.Rest();
  EXPECT_EQ(After(minutes(60)), "");
}

}  // namespace
}  // namespace sluice::discovery
