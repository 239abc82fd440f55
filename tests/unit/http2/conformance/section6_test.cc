// RFC 9113 6: what frames do, where a script cannot say it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/conformance/script.h"
#include "support/h2_harness.h"

namespace sluice::http2 {
namespace {

using h2::Block;
using h2::SessionHarness;
using h2::With;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

base::Slice Bytes(size_t n) { return base::Slice::Copy(std::string(n, 'x')); }
size_t DataBytes(const std::vector<h2::Frame>& frames) {
  size_t sum = 0;
  for (const h2::Frame& frame : frames) sum += frame.type == h2::kData ? frame.payload.size() : 0;
  return sum;
}
uint64_t Credit(const std::vector<h2::Frame>& frames, uint32_t stream) {
  uint64_t sum = 0;
  for (const h2::Frame& frame : frames)
    sum += frame.type == h2::kWindowUpdate && frame.stream == stream ? frame.Word() : 0;
  return sum;
}

// 6.1 and 6.2: padding is no content, and END_STREAM counts with it.
TEST(Section6, PaddingIsDropped) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  server.Request(1);
  server.Feed(h2::PaddedData(1, "abc", 0) + h2::PaddedData(1, "", 7) + h2::PaddedData(1, "def", 255, h2::kEndStream));
  EXPECT_EQ(server.Heard(1).data, "abcdef");
  EXPECT_TRUE(server.Heard(1).end);
  server.Feed(h2::RawFrame(h2::kHeaders, h2::kEnd | h2::kPadded, 3, "\x03" + Block(h2::GrpcRequest()) + "abc"));
  EXPECT_TRUE(server.streams.count(3));
}

// 6.4: a stream that the peer has reset is over for its consumer, and its queue is dropped.
TEST(Section6, AResetEndsAStreamAtOnce) {
  for (Role role : {Role::kServer, Role::kClient}) {
    SessionHarness peer(role);
    peer.Handshake({{4, 0}});
    Stream& stream = role == Role::kServer ? peer.Request(1) : peer.Open();
    if (role == Role::kServer) stream.SendHeaders(h2::List(peer.interns, h2::GrpcResponse()), false);
    stream.SendData(Bytes(100), true);
    peer.Frames();
    peer.Feed(h2::RstStream(1, 8));
    EXPECT_EQ(stream.state(), StreamState::kClosed);
    EXPECT_THAT(peer.log, Contains("1: reset CANCEL peer"));
    peer.Feed(h2::WindowUpdate(1, 1000));
    EXPECT_THAT(peer.Said(), IsEmpty());
    EXPECT_EQ(peer.session->buffered_bytes(), 0u);
  }
}

// 6.5.3: each value applies when its acknowledgment is written, the last of several wins.
TEST(Section6, SettingsApplyInTheirOrderBeforeTheirAcknowledgment) {
  SessionHarness client(Role::kClient);
  client.Handshake();
  Stream& stream = client.Open();
  client.Frames();
  client.Feed(h2::Settings({{4, 10}, {3, 5}, {4, 20}, {3, 1}}));
  EXPECT_EQ(client.session->peer_concurrent_streams_max(), 1u);
  EXPECT_FALSE(client.session->CanOpen());
  stream.SendData(Bytes(100), false);
  const std::vector<h2::Frame> frames = client.Frames();
  EXPECT_EQ(Describe(frames.at(0)), "SETTINGS ack");
  EXPECT_EQ(DataBytes(frames), 20u);
}

TEST(Section6, InitialWindowSizeCountsForNewStreamsAndOpenOnes) {
  SessionHarness server(Role::kServer);
  server.Handshake({{4, 10}});
  for (uint32_t id : {1, 3}) {
    if (id == 3) server.Feed(h2::Settings({{4, 25}}));
    Stream& stream = server.Request(id);
    stream.SendHeaders(h2::List(server.interns, h2::GrpcResponse()), false);
    stream.SendData(Bytes(100), false);
  }
  size_t one = 0, three = 0;
  for (const h2::Frame& frame : server.Frames())
    (frame.stream == 1 ? one : three) += frame.type == h2::kData ? frame.payload.size() : 0;
  EXPECT_EQ(one, 25u);
  EXPECT_EQ(three, 25u);
}

// 6.9.2: below zero nothing is sent, and what was sent too much is worked off first.
TEST(Section6, ANegativeWindowIsTracked) {
  SessionHarness client(Role::kClient);
  client.Handshake();
  Stream& stream = client.Open();
  stream.SendData(Bytes(50000), false);
  EXPECT_EQ(DataBytes(client.Frames()), 50000u);
  client.Feed(h2::Settings({{4, 16384}}));  // 16384 - 50000
  stream.SendData(Bytes(10), false);
  EXPECT_EQ(DataBytes(client.Frames()), 0u);
  client.Feed(h2::WindowUpdate(1, 50000 - 16384));  // 0
  EXPECT_EQ(DataBytes(client.Frames()), 0u);
  client.Feed(h2::WindowUpdate(1, 4));
  EXPECT_EQ(DataBytes(client.Frames()), 4u);
}

// 6.9.2: SETTINGS cannot alter the connection's window.
TEST(Section6, TheConnectionsWindowIsOnlyChangedByWindowUpdate) {
  SessionHarness client(Role::kClient);
  client.Handshake({{4, 1 << 20}});
  Stream& stream = client.Open();
  stream.SendData(Bytes(100000), false);
  EXPECT_EQ(DataBytes(client.Frames()), 52428u);  // four fifths: a stream's share (send_path.h)
  client.Feed(h2::Settings({{4, 1 << 21}}));
  EXPECT_EQ(DataBytes(client.Frames()), 0u);
  client.Feed(h2::WindowUpdate(0, 2000));
  EXPECT_EQ(DataBytes(client.Frames()), 2000u);
}

// 6.9.1: DATA without bytes needs no window.
TEST(Section6, AnEmptyEndOfStreamNeedsNoWindow) {
  SessionHarness client(Role::kClient);
  client.Handshake({{4, 0}});
  Stream& stream = client.Open();
  client.Frames();
  stream.SendData(base::Slice(), true);
  EXPECT_THAT(client.Said(), ElementsAre("DATA[1] flags=1 len=0"));
}

// 6.5.2: SETTINGS_MAX_FRAME_SIZE of the peer.
TEST(Section6, FramesAreWithinWhatThePeerTakes) {
  SessionHarness server(Role::kServer);
  server.Handshake({{4, 1 << 20}});
  server.Feed(h2::WindowUpdate(0, 1 << 20));
  Stream& stream = server.Request(1);
  stream.SendHeaders(h2::List(server.interns, With(h2::GrpcResponse(), {{"x", std::string(50000, 'x')}})), false);
  stream.SendData(Bytes(100000), true);
  for (const h2::Frame& frame : server.Frames()) EXPECT_LE(frame.payload.size(), 16384u);
}

// 6.7: the answer repeats the eight bytes, and an answer is not answered.
TEST(Section6, APingIsAnsweredWithItsBytes) {
  for (Role role : {Role::kServer, Role::kClient}) {
    SessionHarness peer(role);
    peer.Handshake();
    peer.Feed(h2::Ping(0x0102030405060708) + h2::Ping(9, h2::kAck));
    const std::vector<h2::Frame> frames = peer.Frames();
    ASSERT_EQ(frames.size(), 1u);
    EXPECT_EQ(frames[0].flags, h2::kAck);
    EXPECT_EQ(frames[0].payload, h2::Big(0x0102030405060708, 8));
  }
}

// 6.8
TEST(Section6, TheLastIdOfOurGoawaysNeverGrows) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  server.Request(1);
  server.session->GoawayNow(ErrorCode::kNoError, "");
  server.Feed(h2::Headers(3, Block(h2::GrpcRequest())));  // ignored
  server.session->GoawayNow(ErrorCode::kNoError, "");
  EXPECT_FALSE(server.Feed(h2::WindowUpdate(0, 0)));
  EXPECT_THAT(server.Said(), ElementsAre("GOAWAY last=1 code=0", "GOAWAY last=1 code=0", "GOAWAY last=1 code=1"));
}

TEST(Section6, FramesAboveTheLastIdKeepTablesAndWindowsInStep) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  server.Request(1);
  server.session->GoawayNow(ErrorCode::kNoError, "");
  server.Frames();
  server.log.clear();
  const std::string block = Block(h2::GrpcRequest());
  server.Feed(h2::Headers(3, block.substr(0, 7), 0) +
              h2::Continuation(3, block.substr(7) + std::string("\x40\x01k\x01v", 5)));
  uint64_t credit = 0;
  for (int i = 0; i < 400; ++i) {  // more than the connection's window, at a pace that is no flood
    server.now += std::chrono::milliseconds(10);
    ASSERT_TRUE(server.Feed(h2::Data(3, std::string(16384, 'x')))) << server.error;
    credit += Credit(server.Frames(), 0);
  }
  EXPECT_GT(credit, 4u << 20);
  EXPECT_THAT(server.log, IsEmpty());
  server.Feed(h2::Headers(1, std::string("\xbe", 1), h2::kEnd));
  EXPECT_THAT(server.log, ElementsAre("1: headers k=v END"));
}

TEST(Section6, AfterAGoawayNothingIsOpened) {
  SessionHarness client(Role::kClient);
  client.Handshake();
  client.Open();
  client.Feed(h2::RawFrame(h2::kGoaway, 0, 0, h2::Big(0xffffffff, 4) + h2::Big(0, 4)));  // the reserved bit is ignored
  EXPECT_THAT(client.log, ElementsAre("goaway NO_ERROR last=2147483647 "));
  EXPECT_FALSE(client.session->CanOpen());
  client.Feed(h2::Settings({{3, 1000}}));
  EXPECT_FALSE(client.session->CanOpen());
}

// 6.9: DATA counts on the connection whatever becomes of its stream.
TEST(Section6, DataInErrorCountsOnTheConnection) {
  struct {
    const char* name;
    std::string before, data;
  } const cases[] = {
      {"after END_STREAM", h2::Data(1, "", h2::kEndStream), h2::Data(1, std::string(16384, 'x'))},
      {"after the peer's reset", h2::RstStream(1, 8), h2::Data(1, std::string(16384, 'x'))},
      {"beyond content-length", h2::Headers(5, Block(With(h2::GrpcRequest(), {{"content-length", "1"}}))),
       h2::Data(5, std::string(16384, 'x'))},
      {"of a malformed request", h2::Headers(5, Block({{"a", "b"}})), h2::Data(5, std::string(16384, 'x'))},
      {"with padding", h2::RstStream(1, 8), h2::PaddedData(1, std::string(16128, 'x'), 255)},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(test.name);
    SessionOptions options;
    options.connection_window_bytes = 65535;
    SessionHarness server(Role::kServer, options);
    server.Handshake();
    server.Request(1);
    server.Feed(test.before);
    uint64_t credit = 0;
    for (int i = 0; i < 40; ++i) {
      ASSERT_TRUE(server.Feed(test.data)) << server.error;
      credit += Credit(server.Frames(), 0);
    }
    EXPECT_GE(credit + 65535 / 2, 40u * 16384);
    EXPECT_LE(credit, 40u * 16384);
  }
}

// 6.9: a window may still be told when everything has been sent.
TEST(Section6, WindowUpdateOnAClosedStreamIsNoError) {
  for (Role role : {Role::kServer, Role::kClient}) {
    SessionHarness peer(role);
    peer.Handshake();
    Stream& stream = role == Role::kServer ? peer.Request(1, h2::kEnd) : peer.Open(true);
    if (role == Role::kServer) {
      stream.SendHeaders(h2::List(peer.interns, h2::GrpcResponse()), true);
    } else {
      peer.Feed(h2::Answer(1, h2::kEnd));
    }
    ASSERT_EQ(stream.state(), StreamState::kClosed);
    peer.Frames();
    EXPECT_TRUE(peer.Feed(h2::WindowUpdate(1, 100) + h2::WindowUpdate(1, 0x7fffffff))) << peer.error;
    EXPECT_THAT(peer.Said(), IsEmpty());
  }
}

// 6.10: END_STREAM is the HEADERS frame's, however many parts follow.
TEST(Section6, EndOfStreamStandsOnTheHeadersFrameOfABlockInParts) {
  SessionHarness client(Role::kClient);
  client.Handshake();
  client.Open(true);
  const std::string block = Block(With(h2::GrpcResponse(), {{"grpc-status", "0"}}));
  client.Feed(h2::Headers(1, block.substr(0, 3), h2::kEndStream) + h2::Continuation(1, "", 0) +
              h2::Continuation(1, block.substr(3, 4), 0));
  EXPECT_THAT(client.log, IsEmpty());
  client.Feed(h2::Continuation(1, block.substr(7)));
  EXPECT_THAT(client.log, ElementsAre(EndsWith("grpc-status=0 END")));
}

}  // namespace
}  // namespace sluice::http2
