// What counts as a flood of control frames: what the peer makes us write and leaves unread, and nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http2/session/session.h"
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

TEST(ControlFlood, SettingsWhoseAnswersAreNotReadEndTheConnection) {
  SessionHarness server(Role::kServer, FewControlFrames());
  server.Handshake();
  int taken = 0;
  while (taken < 200 && server.Feed(h2::Settings())) ++taken;
  EXPECT_EQ(taken, 50);
  EXPECT_EQ(server.session->abuse(), FloodKind::kUnreadAnswers);
}

TEST(ControlFlood, AnswersThatAreWrittenAreForgotten) {
  SessionHarness server(Role::kServer, FewControlFrames());
  server.Handshake();
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(server.Feed(h2::Ping(1)));
    if (i % 40 == 39) server.Frames();
  }
}

// Also where the output is never empty: what counts is how far behind the peer is.
TEST(ControlFlood, AnswersOfWhichSomeAlwaysWaitAreForgottenToo) {
  constexpr size_t kAnswerBytes = 17;
  SessionHarness server(Role::kServer, FewControlFrames());
  server.Handshake();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(server.Feed(h2::Ping(1)));
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(server.Feed(h2::Ping(1))) << i;
    server.session->output().Consume(kAnswerBytes);
  }
}

TEST(ControlFlood, OurOwnResetsAreNotThePeersDoing) {
  SessionHarness client(Role::kClient, FewControlFrames());
  client.Handshake();
  for (int i = 0; i < 90; ++i) {
    client.Open();
    client.Release(static_cast<uint32_t>(2 * i + 1));
  }
  // It has read nothing yet; its next word is welcome.
  EXPECT_TRUE(client.Feed(h2::WindowUpdate(0, 1)));
}

}  // namespace
}  // namespace sluice::http2
