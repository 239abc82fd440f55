// What counts as a flood of control frames: what the peer makes us write and leaves unread, and nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http2/session.h"
#include "support/h2_harness.h"

namespace sluice::http2 {
namespace {

using h2::SessionHarness;

SessionOptions FewControlFrames() {
  SessionOptions options;
  options.control_frames_max = 50;
  return options;
}

TEST(ControlFlood, PingsWhoseAnswersAreNotReadEndTheConnection) {
  SessionHarness server(Role::kServer, FewControlFrames());
  server.Handshake();
  bool ok = true;
  for (int i = 0; i < 200 && ok; ++i) ok = server.Feed(h2::Ping(1));
  EXPECT_FALSE(ok);
  EXPECT_THAT(server.error, ::testing::HasSubstr("ENHANCE_YOUR_CALM"));
}

TEST(ControlFlood, AnswersThatAreWrittenAreForgotten) {
  SessionHarness server(Role::kServer, FewControlFrames());
  server.Handshake();
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(server.Feed(h2::Ping(1)));
    if (i % 40 == 39) server.Frames();
  }
}

TEST(ControlFlood, OurOwnResetsAreNotThePeersDoing) {
  SessionHarness client(Role::kClient, FewControlFrames());
  client.Handshake();
  for (int i = 0; i < 90; ++i) {
    client.Open();
    client.Release(static_cast<uint32_t>(2 * i + 1));
  }
  // The stalled peer has read it all; its next word is welcome.
  client.Frames();
  EXPECT_TRUE(client.Feed(h2::WindowUpdate(0, 1)));
}

}  // namespace
}  // namespace sluice::http2
