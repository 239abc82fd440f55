// A consumer that leaves while its response is queued, and streams whose connection is lost before they were sent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "http2/session/session.h"
#include "support/h2_harness.h"

namespace sluice::http2 {
namespace {

using h2::SessionHarness;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

h2::Fields ResponseHead() { return {{":status", "200"}, {"content-type", "application/grpc"}}; }

// A server whose peer has a stream window of 10 bytes, with a response of 25 bytes and trailers queued, released.
void AnswerAndLeave(SessionHarness& server, uint8_t request_flags) {
  server.Handshake({{4, 10}});
  Stream& stream = server.Request(1, request_flags);
  stream.SendHeaders(h2::List(server.interns, ResponseHead()), false);
  stream.SendData(base::Slice::Copy(std::string(25, 'x')), false);
  stream.SendHeaders(h2::List(server.interns, {{"grpc-status", "0"}}), true);
  server.Release(1);
}

TEST(Release, QueuedResponseIsSentToTheEndAsTheWindowOpens) {
  SessionHarness server(Role::kServer);
  AnswerAndLeave(server, h2::kEndHeaders | h2::kEndStream);
  EXPECT_THAT(server.Said(), ElementsAre(HasSubstr("HEADERS[1]"), HasSubstr("DATA[1]")));
  EXPECT_EQ(server.session->open_streams(), 1u);
  server.Feed(h2::WindowUpdate(1, 100));
  EXPECT_THAT(server.Said(), ElementsAre(HasSubstr("DATA[1]"), HasSubstr("HEADERS[1]")));
  EXPECT_EQ(server.session->open_streams(), 0u);
  EXPECT_EQ(server.session->buffered_bytes(), 0u);
}

TEST(Release, RequestThatGoesOnIsStoppedOnceTheQueuedResponseIsOut) {
  SessionHarness server(Role::kServer);
  AnswerAndLeave(server, h2::kEndHeaders);
  server.Frames();
  server.Feed(h2::Data(1, "still talking"));  // dropped, and credited
  server.Feed(h2::WindowUpdate(1, 100));
  EXPECT_THAT(server.Said(), ElementsAre(HasSubstr("DATA[1]"), HasSubstr("HEADERS[1]"), "RST_STREAM[1] 0"));
  EXPECT_EQ(server.session->open_streams(), 0u);
}

TEST(Release, QueuedResponseIsDroppedWhenThePeerResetsOrLeaves) {
  for (bool lost : {false, true}) {
    SessionHarness server(Role::kServer);
    AnswerAndLeave(server, h2::kEndHeaders | h2::kEndStream);
    server.Frames();
    if (lost) {
      server.session->TransportClosed("gone", true);
    } else {
      server.Feed(h2::RstStream(1, 8));
    }
    EXPECT_EQ(server.session->open_streams(), 0u);
    EXPECT_EQ(server.session->buffered_bytes(), 0u);
    EXPECT_THAT(server.Said(), IsEmpty());
  }
}

TEST(Release, DroppedDataOfALeftRequestKeepsTheConnectionWindowOpen) {
  SessionOptions options;
  options.connection_window_bytes = 65535;
  SessionHarness server(Role::kServer, options);
  AnswerAndLeave(server, h2::kEndHeaders);
  server.Frames();
  for (int i = 0; i < 16; ++i) ASSERT_TRUE(server.Feed(h2::Data(1, std::string(4096, 'y'))));
  EXPECT_THAT(server.Said(), Contains(HasSubstr("WINDOW_UPDATE[0]")));
}

TEST(Lost, StreamsWhoseHeadersWereNeverWrittenAreSafeToTryAgain) {
  SessionHarness client(Role::kClient);
  client.Handshake();
  client.Open();
  client.Frames();  // written
  client.Open();    // still in the output
  client.session->TransportClosed("gone", /*output_lost=*/true);
  EXPECT_THAT(client.log, ElementsAre("3: reset NO_ERROR refused", "1: reset NO_ERROR lost"));
}

TEST(Lost, NothingIsSafeToTryAgainWhileTheOutputMayStillBeWritten) {
  SessionHarness client(Role::kClient);
  client.Handshake();
  client.Open();
  client.session->TransportClosed("closing", /*output_lost=*/false);
  EXPECT_THAT(client.log, ElementsAre("1: reset NO_ERROR lost"));
}

TEST(Lost, HalfWrittenHeadersWereNeverSeen) {
  SessionHarness client(Role::kClient);
  client.Handshake();
  client.Open();
  client.session->output().Consume(client.session->output().size() - 1);
  client.session->TransportClosed("gone", /*output_lost=*/true);
  EXPECT_THAT(client.log, ElementsAre("1: reset NO_ERROR refused"));
}

}  // namespace
}  // namespace sluice::http2
