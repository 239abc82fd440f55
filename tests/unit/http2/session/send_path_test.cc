// Frames and the connection's window. With streams: session_flow_test.cc, through a session.
#include "http2/session/send_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/h2_frames.h"

namespace sluice::http2 {
namespace {

using ::testing::ElementsAre;

class SendPathTest : public ::testing::Test {
 public:
  std::vector<std::string> Said() {
    std::string wire = send.output().ToString();
    send.output().Consume(wire.size());
    return h2::Describe(h2::TakeFrames(wire));
  }

  InternTable interns;
  uint8_t signals = 0;
  SendPath send{interns, signals, /*shared=*/false};
};

TEST_F(SendPathTest, WritesFramesInTheirOrder) {
  send.WriteSettings(SessionOptions(), /*server=*/true);
  send.WriteSettingsAck();
  send.WritePing(7, kFlagAck);
  send.WriteReset(5, ErrorCode::kCancel);
  send.WriteWindowUpdate(3, 100);
  send.WriteGoaway(9, ErrorCode::kNoError, "bye");
  EXPECT_THAT(Said(), ElementsAre("SETTINGS", "SETTINGS ack", "PING ack", "RST_STREAM[5] 8", "WINDOW_UPDATE[3] +100",
                                  "GOAWAY last=9 code=0"));
  EXPECT_EQ(send.stats().frames_sent, 6u);
  EXPECT_EQ(send.stats().resets_sent, 1u);
}

TEST_F(SendPathTest, ThePrefaceIsNoFrame) {
  send.WritePreface();
  EXPECT_EQ(send.output().ToString(), h2::Preface());
  EXPECT_EQ(send.stats().frames_sent, 0u);
}

TEST_F(SendPathTest, SignalsWhenTheOutputIsNoLongerEmpty) {
  send.WritePing(1, 0);
  EXPECT_EQ(signals, SendPath::kSignalOutput);
  signals = 0;
  send.WritePing(2, 0);
  EXPECT_EQ(signals, 0);
  Said();
  send.WritePing(3, 0);
  EXPECT_EQ(signals, SendPath::kSignalOutput);
}

TEST_F(SendPathTest, KnowsWhatHasBeenWritten) {
  send.WritePing(1, 0);
  send.AddAnswer();
  send.WritePing(2, kFlagAck);
  EXPECT_EQ(send.appended(), 34u);
  EXPECT_EQ(send.written(), 0u);
  send.output().Consume(17);
  EXPECT_EQ(send.written(), 17u);
  EXPECT_EQ(send.unread_answers(), 1u);
  send.output().Consume(17);
  EXPECT_EQ(send.unread_answers(), 0u);
}

// RFC 9113 6.9.1.
TEST_F(SendPathTest, AWindowBeyondItsBoundIsSeen) {
  EXPECT_EQ(send.window(), 65535);
  EXPECT_TRUE(send.GrowWindow(0x7fffffff - 65535));
  EXPECT_FALSE(send.GrowWindow(1));
}

// RFC 9113 6.9.2: by how much the windows of open streams move.
TEST_F(SendPathTest, TheInitialWindowMovesByTheDifference) {
  EXPECT_EQ(send.SetInitialWindow(65536), 1);
  EXPECT_EQ(send.SetInitialWindow(0), -65536);
  EXPECT_EQ(send.SetInitialWindow(0x7fffffff), 0x7fffffff);
  EXPECT_EQ(send.initial_window(), 0x7fffffffu);
}

TEST_F(SendPathTest, NothingIsHeldBackWhereNothingWaits) {
  EXPECT_EQ(send.held_back(), nullptr);
  EXPECT_FALSE(send.can_frame());
  EXPECT_EQ(send.TakeTurn(1 << 20), nullptr);
}

}  // namespace
}  // namespace sluice::http2
