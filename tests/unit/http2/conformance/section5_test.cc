// RFC 9113 5: stream states, identifiers, errors; what a script cannot say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/conformance/script.h"
#include "support/h2_harness.h"

namespace sluice::http2 {
namespace {

using h2::Block;
using h2::SessionHarness;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// 5.1 half-closed (remote), as a client has it: the response has ended, the request has not.
TEST(Section5, AResponseThatHasEndedTakesNothingMore) {
  for (const std::string& more : {h2::Data(1, "x"), h2::Data(1, "", h2::kEndStream), h2::Answer(1),
                                  h2::Headers(1, Block({{"a", "b"}}), h2::kEnd)}) {
    SessionHarness client(Role::kClient);
    client.Handshake();
    client.Open();
    client.Feed(h2::Answer(1, h2::kEnd));
    client.Frames();
    EXPECT_TRUE(client.Feed(h2::WindowUpdate(1, 1) + h2::RawFrame(h2::kPriority, 0, 1, "abcde")));
    EXPECT_THAT(client.Said(), IsEmpty());
    EXPECT_TRUE(client.Feed(more));
    EXPECT_THAT(client.Said(), ElementsAre("RST_STREAM[1] 5"));
  }
}

// 5.1 half-closed (remote), as a server has it: it may still say all.
TEST(Section5, ARequestThatHasEndedIsAnswered) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  Stream& stream = server.Request(1, h2::kEnd);
  EXPECT_EQ(stream.state(), StreamState::kHalfClosedRemote);
  stream.SendHeaders(h2::List(server.interns, h2::GrpcResponse()), false);
  stream.SendData(base::Slice::Copy("x"), false);
  stream.SendHeaders(h2::List(server.interns, h2::GrpcTrailers()), true);
  EXPECT_EQ(stream.state(), StreamState::kClosed);
  EXPECT_THAT(server.Said(),
              ElementsAre(StartsWith("HEADERS[1] flags=4"), "DATA[1] flags=0 len=1", StartsWith("HEADERS[1] flags=5")));
}

// 5.1 half-closed (local) and closed: nothing but RST_STREAM, WINDOW_UPDATE and PRIORITY may follow our END_STREAM.
TEST(Section5, NothingIsSentBehindOurEnd) {
  SessionHarness client(Role::kClient);
  client.Handshake();
  Stream& stream = client.Open(true);
  EXPECT_EQ(stream.state(), StreamState::kHalfClosedLocal);
  client.Frames();
  stream.SendData(base::Slice::Copy("late"), false);
  stream.SendHeaders(h2::List(client.interns, h2::GrpcTrailers()), true);
  EXPECT_THAT(client.Said(), IsEmpty());
}

TEST(Section5, NothingIsSentOnAClosedStream) {
  for (bool by_peer : {true, false}) {
    SessionHarness server(Role::kServer);
    server.Handshake();
    Stream& stream = server.Request(1);
    stream.SendHeaders(h2::List(server.interns, h2::GrpcResponse()), false);
    for (int i = 0; i < 10; ++i) server.Feed(h2::Data(1, std::string(16384, 'x')));
    if (by_peer) {
      server.Feed(h2::RstStream(1, 8));
    } else {
      stream.Reset(ErrorCode::kCancel);
    }
    server.Frames();
    stream.SendData(base::Slice::Copy("late"), false);
    stream.SendHeaders(h2::List(server.interns, h2::GrpcTrailers()), true);
    stream.Consume(10 * 16384);
    stream.Reset(ErrorCode::kInternalError);
    EXPECT_THAT(server.Said(), IsEmpty());
  }
}

// 5.1 closed, 5.4.2, 6.4: what was on its way when we reset is processed as far as the connection needs, and dropped.
TEST(Section5, AnyFrameMayCrossOurReset) {
  const std::string block = Block({{"a", "b"}});
  for (const std::string& frames :
       {h2::Data(1, "x"), h2::PaddedData(1, "x", 5, h2::kEndStream), h2::Headers(1, block, h2::kEnd),
        h2::Headers(1, block.substr(0, 2), h2::kEndStream) + h2::Continuation(1, block.substr(2)),
        h2::WindowUpdate(1, 1), h2::WindowUpdate(1, 0x7fffffff), h2::RawFrame(h2::kPriority, 0, 1, "abcde"),
        h2::RstStream(1, 8), h2::RawFrame(0xaa, 0, 1, "x")}) {
    for (Role role : {Role::kServer, Role::kClient}) {
      SessionHarness peer(role);
      peer.Handshake();
      (role == Role::kServer ? peer.Request(1) : peer.Open()).Reset(ErrorCode::kCancel);
      peer.Frames();
      peer.log.clear();
      EXPECT_TRUE(peer.Feed(frames)) << peer.error;
      EXPECT_THAT(peer.Said(), IsEmpty());
      EXPECT_THAT(peer.log, IsEmpty());
    }
  }
}

// 5.4.2: no RST_STREAM answers one.
TEST(Section5, AResetIsNeverAnsweredWithAReset) {
  for (Role role : {Role::kServer, Role::kClient}) {
    SessionHarness peer(role);
    peer.Handshake();
    for (uint32_t id : {1, 3, 5, 7})
      role == Role::kServer ? peer.Request(id, id == 3 ? h2::kEnd : h2::kEndHeaders) : peer.Open(id == 3);
    peer.streams.at(5)->Reset(ErrorCode::kCancel);
    peer.Frames();
    for (uint32_t id : {1, 3, 5, 7}) EXPECT_TRUE(peer.Feed(h2::RstStream(id, id == 7 ? 99 : 1)));
    for (uint32_t id : {1, 3, 5, 7}) EXPECT_TRUE(peer.Feed(h2::RstStream(id, 1)));  // and once more
    EXPECT_THAT(peer.Said(), IsEmpty());
    EXPECT_EQ(peer.session->open_streams(), 0u);
  }
}

// 5.1.1
TEST(Section5, OurStreamsHaveOddAndRisingIds) {
  SessionHarness client(Role::kClient);
  client.Handshake();
  for (uint32_t id = 1; id < 20; id += 2) {
    EXPECT_EQ(client.Open(true).id(), id);
    if (id % 3 == 0) client.Release(id);  // an id is not used again
  }
}

// 5.1.1: ids that were skipped are closed.
TEST(Section5, SkippedIdsAreClosed) {
  for (const std::string& frames : {h2::Data(3, "x"), h2::WindowUpdate(3, 1), h2::RstStream(3, 8)}) {
    SessionHarness server(Role::kServer);
    server.Handshake();
    server.Request(5);
    EXPECT_TRUE(server.Feed(frames)) << server.error;
    EXPECT_THAT(server.Said(), IsEmpty());
  }
}

// 5.1.2: open and half-closed streams count, closed ones do not.
TEST(Section5, HalfClosedStreamsCountTowardsTheLimit) {
  SessionOptions options;
  options.concurrent_streams_max = 2;
  SessionHarness server(Role::kServer, options);
  server.Handshake();
  server.Request(1, h2::kEnd);
  server.Request(3);
  server.Feed(h2::Headers(5, Block(h2::GrpcRequest()), h2::kEnd));
  EXPECT_THAT(server.Said(), ElementsAre("RST_STREAM[5] 7"));
  server.streams.at(1)->SendHeaders(h2::List(server.interns, h2::GrpcResponse()), true);
  server.Frames();
  server.Request(7);
  EXPECT_THAT(server.Said(), IsEmpty());
}

TEST(Section5, WeDoNotExceedThePeersLimit) {
  SessionHarness client(Role::kClient);
  client.Handshake({{3, 2}});
  client.Open();
  client.Open(true);
  EXPECT_FALSE(client.session->CanOpen());
  // Lowered below what is open: those go on, and no other begins until there is room again.
  client.Feed(h2::Settings({{3, 1}}) + h2::Answer(1, h2::kEnd));
  EXPECT_FALSE(client.session->CanOpen());
  client.Feed(h2::Answer(3, h2::kEnd));
  EXPECT_FALSE(client.session->CanOpen()) << "the request of stream 1 has not ended";
  client.streams.at(1)->SendData(base::Slice(), true);
  EXPECT_TRUE(client.session->CanOpen());
  client.Feed(h2::Settings({{3, 0}}));
  EXPECT_FALSE(client.session->CanOpen());
}

// 5.4.1: whatever stream errors came before in the same bytes, the connection's is told, once and last.
TEST(Section5, AConnectionErrorIsAlwaysReported) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  server.Request(1);
  EXPECT_FALSE(server.Feed(h2::WindowUpdate(1, 0) + h2::RawFrame(h2::kPing, 0, 0, "short") + h2::WindowUpdate(0, 0)));
  EXPECT_THAT(server.Said(), ElementsAre("RST_STREAM[1] 1", "GOAWAY last=1 code=6"));
}

// 5.4.2: the first error of a stream is its only one.
TEST(Section5, AStreamIsResetOnce) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  server.Request(1);
  server.Feed(h2::WindowUpdate(1, 0) + h2::WindowUpdate(1, 0) + h2::RawFrame(h2::kPriority, 0, 1, "abcd") +
              h2::Headers(1, Block({{"a", "b"}})));
  EXPECT_THAT(server.Said(), ElementsAre("RST_STREAM[1] 1"));
}

}  // namespace
}  // namespace sluice::http2
