// The happy path of both roles, the start, PING, GOAWAY and the end of a connection.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/h2_harness.h"

namespace sluice::http2 {
namespace {

using h2::Block;
using h2::SessionHarness;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Start, ServerSendsSettingsAndOpensTheConnectionWindow) {
  SessionHarness server(Role::kServer);
  server.session->Start();
  std::vector<h2::Frame> frames = server.Frames();
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(Describe(frames[0]), "SETTINGS");
  EXPECT_EQ(frames[0].payload, h2::Big(3, 2) + h2::Big(1000, 4) + h2::Big(4, 2) + h2::Big(256 * 1024, 4) +
                                   h2::Big(6, 2) + h2::Big(64 * 1024, 4));
  EXPECT_EQ(Describe(frames[1]), "WINDOW_UPDATE[0] +" + std::to_string(4 * 1024 * 1024 - 65535));
}

TEST(Start, ClientSendsThePrefaceAndForbidsPush) {
  SessionHarness client(Role::kClient);
  client.session->Start();
  std::string wire = client.Written();
  ASSERT_EQ(wire.substr(0, 24), h2::Preface());
  wire.erase(0, 24);
  std::vector<h2::Frame> frames = h2::TakeFrames(wire);
  EXPECT_THAT(frames.at(0).payload, HasSubstr(h2::Big(2, 2) + h2::Big(0, 4)));
}

TEST(Start, WrongClientPrefaceEndsTheConnection) {
  SessionHarness server(Role::kServer);
  server.session->Start();
  EXPECT_FALSE(server.Feed("GET / HTTP/1.1\r\n"));
  EXPECT_THAT(server.error, HasSubstr("PROTOCOL_ERROR"));
  EXPECT_THAT(server.Said(), Contains("GOAWAY last=0 code=1"));
}

TEST(Start, FirstFrameOtherThanSettingsEndsTheConnection) {
  for (Role role : {Role::kServer, Role::kClient}) {
    for (const std::string& first : {h2::Ping(1), h2::SettingsAck(), h2::WindowUpdate(0, 1)}) {
      SessionHarness peer(role);
      peer.session->Start();
      EXPECT_FALSE(peer.Feed((role == Role::kServer ? h2::Preface() : "") + first));
      EXPECT_THAT(peer.Said(), Contains("GOAWAY last=0 code=1"));
    }
  }
}

TEST(Call, UnaryCallThroughAServer) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  Stream& stream = server.Request(1);
  server.Feed(h2::Data(1, "hello", h2::kEndStream));
  EXPECT_THAT(server.log, ElementsAre("1: request :method=POST, :scheme=http, :path=/pkg.Service/Method, "
                                      ":authority=test, content-type=application/grpc, te=trailers",
                                      "1: data 5 END"));
  stream.SendHeaders(h2::List(server.interns, h2::GrpcResponse()), false);
  stream.SendData(base::Slice::Copy("world!"), false);
  EXPECT_EQ(server.Heard(1).sent, 6u);
  stream.SendHeaders(h2::List(server.interns, h2::GrpcTrailers()), true);
  EXPECT_TRUE(stream.send_complete());
  EXPECT_EQ(stream.state(), StreamState::kClosed);
  std::vector<h2::Frame> frames = server.Frames();
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_EQ(frames[1].payload, "world!");
  EXPECT_EQ(frames[2].flags, h2::kEndHeaders | h2::kEndStream);
  EXPECT_EQ(server.session->open_streams(), 0u);
  server.Release(1);
  EXPECT_THAT(server.Said(), IsEmpty());
}

TEST(Call, UnaryCallThroughAClient) {
  SessionHarness client(Role::kClient);
  client.Handshake();
  Stream& stream = client.Open();
  stream.SendData(base::Slice::Copy("hello"), true);
  EXPECT_THAT(client.Said(), ElementsAre(HasSubstr("HEADERS[1] flags=4"), "DATA[1] flags=1 len=5"));
  client.Feed(h2::Headers(1, Block(h2::GrpcResponse())) + h2::Data(1, "world") +
              h2::Headers(1, Block(h2::GrpcTrailers()), h2::kEndHeaders | h2::kEndStream));
  EXPECT_THAT(client.log,
              ElementsAre("1: headers :status=200, content-type=application/grpc", "1: headers grpc-status=0 END"));
  EXPECT_EQ(client.Heard(1).data, "world");
  EXPECT_EQ(stream.state(), StreamState::kClosed);
  EXPECT_GT(client.capacity_signals, 0);
}

TEST(Ping, IsAnsweredWithItsPayload) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  server.Feed(h2::Ping(0x0102030405060708));
  std::vector<h2::Frame> frames = server.Frames();
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].flags, h2::kAck);
  EXPECT_EQ(frames[0].payload, h2::Big(0x0102030405060708, 8));
}

TEST(Ping, AckReachesTheOwner) {
  SessionHarness client(Role::kClient);
  client.Handshake();
  client.session->Ping(77);
  EXPECT_THAT(client.Said(), ElementsAre("PING"));
  client.Feed(h2::Ping(77, h2::kAck));
  EXPECT_THAT(client.log, ElementsAre("ping ack 77"));
}

TEST(Goaway, GracefulEndTellsTheLastIdOnlyAfterARoundTrip) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  server.Request(1);
  server.session->GoawayGracefully();
  EXPECT_TRUE(server.session->closing());
  std::vector<h2::Frame> frames = server.Frames();
  ASSERT_THAT(Describe(frames), ElementsAre("GOAWAY last=2147483647 code=0", "PING"));
  server.Request(3);  // was on its way: served
  server.Feed(h2::RawFrame(h2::kPing, h2::kAck, 0, frames[1].payload));
  EXPECT_THAT(server.Said(), ElementsAre("GOAWAY last=3 code=0"));
  server.log.clear();
  // Above the last id: ignored with all that belongs to it, but the HPACK table stays in step.
  EXPECT_TRUE(server.Feed(h2::Headers(5, Block(h2::GrpcRequest())) + h2::Data(5, "x") + h2::RstStream(5, 8)));
  EXPECT_THAT(server.log, IsEmpty());
  server.Feed(h2::Data(1, "still", h2::kEndStream));
  EXPECT_EQ(server.Heard(1).data, "still");
  EXPECT_THAT(server.Said(), IsEmpty());
}

TEST(Goaway, ReceivedRefusesTheStreamsAboveItsLastId) {
  SessionHarness client(Role::kClient);
  client.Handshake();
  client.Open();
  client.Open();
  client.Open();
  // What the handler of one does to another must not matter.
  client.Heard(3).on_reset = [&] { client.Release(5); };
  client.Feed(h2::Goaway(1, 0, "bye"));
  EXPECT_THAT(client.log, ElementsAre("3: reset REFUSED_STREAM refused", "goaway NO_ERROR last=1 bye"));
  EXPECT_FALSE(client.session->CanOpen());
  EXPECT_TRUE(client.session->closing());
  client.Feed(h2::Headers(1, Block(h2::GrpcResponse())));
  EXPECT_FALSE(client.Heard(1).reset);
  EXPECT_EQ(client.Heard(1).headers.size(), 1u);
}

TEST(Goaway, NowTellsCodeAndLastId) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  server.Request(7);
  server.session->GoawayNow(ErrorCode::kEnhanceYourCalm, "too much");
  std::vector<h2::Frame> frames = server.Frames();
  EXPECT_THAT(Describe(frames), ElementsAre("GOAWAY last=7 code=11"));
  EXPECT_THAT(frames[0].payload, HasSubstr("too much"));
}

TEST(Goaway, FromAClientEndsItsOpens) {
  SessionHarness client(Role::kClient);
  client.Handshake();
  client.session->GoawayGracefully();
  EXPECT_THAT(client.Said(), ElementsAre("GOAWAY last=0 code=0"));
  EXPECT_FALSE(client.session->CanOpen());
}

TEST(End, LostTransportResetsEveryOpenStream) {
  SessionHarness client(Role::kClient);
  client.Handshake();
  client.Open();
  client.Open(true);
  client.Heard(1).on_reset = [&] { client.Release(1); };
  client.session->TransportClosed("gone");
  EXPECT_THAT(client.log, ::testing::UnorderedElementsAre("1: reset NO_ERROR lost", "3: reset NO_ERROR lost"));
  EXPECT_FALSE(client.session->CanOpen());
  EXPECT_EQ(client.session->open_streams(), 0u);
}

TEST(End, ConnectionErrorResetsEveryOpenStreamAndNothingMoreIsParsed) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  Stream& stream = server.Request(1);
  server.Heard(1).on_reset = [&] { stream.SendData(base::Slice::Copy("late"), true); };
  EXPECT_FALSE(server.Feed(h2::RawFrame(h2::kPing, 0, 0, "short") + h2::Ping(1)));
  EXPECT_THAT(server.log, Contains("1: reset FRAME_SIZE_ERROR lost"));
  EXPECT_THAT(server.Said(), ElementsAre("GOAWAY last=1 code=6"));
  EXPECT_FALSE(server.Feed(h2::Ping(1)));
  EXPECT_THAT(server.error, HasSubstr("FRAME_SIZE_ERROR: PING"));
  EXPECT_THAT(server.Said(), IsEmpty());
}

TEST(End, StreamMayOutliveItsSession) {
  SessionHarness client(Role::kClient);
  client.Handshake();
  Stream& stream = client.Open();
  client.session.reset();
  EXPECT_THAT(client.log, ElementsAre("1: reset NO_ERROR lost"));
  stream.SendData(base::Slice::Copy("x"), true);
  stream.Consume(5);
  stream.Reset(ErrorCode::kCancel);
  client.Release(1);
}

// One that has ended both ways while its consumer held bytes of it.
TEST(End, AnEndedStreamMayBeConsumedAfterItsSession) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  Stream& stream = server.Request(1);
  server.Feed(h2::Data(1, "held", h2::kEndStream));
  stream.SendHeaders(h2::List(server.interns, {{":status", "200"}}), true);
  EXPECT_EQ(stream.state(), StreamState::kClosed);
  server.session.reset();
  stream.Consume(4);
  server.Release(1);
}

TEST(Capacity, HundredStreamsBeforeSettingsThenWhatTheySay) {
  SessionHarness client(Role::kClient);
  client.session->Start();
  for (int i = 0; i < 100; ++i) client.Open(true);
  EXPECT_FALSE(client.session->CanOpen());
  client.Feed(h2::Settings());  // no limit in it: none
  EXPECT_TRUE(client.session->CanOpen());
  EXPECT_EQ(client.capacity_signals, 1);
  client.Feed(h2::Settings({{3, 101}}));
  client.Open(true);
  EXPECT_FALSE(client.session->CanOpen());
  client.Feed(h2::Headers(1, Block({{":status", "200"}}), h2::kEndHeaders | h2::kEndStream));
  EXPECT_TRUE(client.session->CanOpen());
}

TEST(Capacity, IsSignalledOnceForAFeedThatEndsManyStreams) {
  SessionHarness client(Role::kClient);
  client.Handshake();
  for (int i = 0; i < 3; ++i) client.Open(true);
  client.capacity_signals = 0;
  std::string wire;
  for (uint32_t id : {1, 3, 5}) wire += h2::Headers(id, Block({{":status", "200"}}), h2::kEndHeaders | h2::kEndStream);
  client.Feed(wire);
  EXPECT_EQ(client.capacity_signals, 1);
}

TEST(Capacity, StreamsOpenedInTheSignalAreNotLost) {
  SessionHarness client(Role::kClient);
  client.Handshake({{3, 1}});
  client.Open(true);
  client.on_capacity = [&] {
    if (client.session->CanOpen()) client.Open(true);
  };
  client.Release(1);
  EXPECT_THAT(client.Said(), ElementsAre(HasSubstr("HEADERS[1]"), "RST_STREAM[1] 8", HasSubstr("HEADERS[3]")));
}

TEST(Output, IsSignalledWhenItBecomesNotEmpty) {
  SessionHarness client(Role::kClient);
  client.Handshake();
  client.output_signals = 0;
  Stream& stream = client.Open();
  EXPECT_EQ(client.output_signals, 1);
  stream.SendData(base::Slice::Copy("x"), false);
  EXPECT_EQ(client.output_signals, 1);
  client.Frames();
  stream.SendData(base::Slice::Copy("x"), false);
  EXPECT_EQ(client.output_signals, 2);
}

TEST(Trailers, OfARequestReachTheServer) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  server.Request(1);
  server.Feed(h2::Headers(1, Block({{"x-checksum", "1"}}), h2::kEndHeaders | h2::kEndStream));
  EXPECT_THAT(server.log, Contains("1: headers x-checksum=1 END"));
}

TEST(Interim, ResponsesComeBeforeTheFinalOne) {
  SessionHarness client(Role::kClient);
  client.Handshake();
  client.Open(true);
  client.Feed(h2::Headers(1, Block({{":status", "103"}})) + h2::Headers(1, Block({{":status", "200"}})) +
              h2::Data(1, "", h2::kEndStream));
  EXPECT_THAT(client.log, ElementsAre("1: headers :status=103", "1: headers :status=200", "1: data 0 END"));
}

}  // namespace
}  // namespace sluice::http2
