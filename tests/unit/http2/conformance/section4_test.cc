// RFC 9113 4: frame format, frame size, header compression; what a script cannot say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

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

// A literal that enters the table as its newest entry, and the reference to that.
const std::string kAdd("\x40\x01k\x01v", 5), kRefer("\xbe", 1);

// Everything that a session says in its life is looked at as bytes.
void ExpectOnlyDefinedBits(std::string wire, Role role) {
  if (role == Role::kClient) wire.erase(0, h2::Preface().size());
  //                               DATA HEADERS PRIORITY RST SETTINGS PUSH PING GOAWAY WINDOW CONTINUATION
  constexpr uint8_t kDefined[] = {0x01, 0x05, 0x00, 0x00, 0x01, 0x00, 0x01, 0x00, 0x00, 0x04};  // we never pad
  size_t at = 0, seen[10] = {};
  auto byte = [&](size_t i) { return static_cast<uint8_t>(wire[at + i]); };
  while (at + 9 <= wire.size()) {
    const size_t length = static_cast<size_t>(byte(0)) << 16 | static_cast<size_t>(byte(1)) << 8 | byte(2);
    ASSERT_LT(byte(3), 10) << "a type that RFC 9113 does not define";
    ASSERT_NE(byte(3), h2::kPushPromise);
    EXPECT_EQ(byte(4) & ~kDefined[byte(3)], 0) << "flags of type " << int{byte(3)};
    EXPECT_EQ(byte(5) & 0x80, 0) << "reserved bit of type " << int{byte(3)};
    EXPECT_LE(length, 16384u);
    if (byte(3) == h2::kWindowUpdate || byte(3) == h2::kGoaway) {
      EXPECT_EQ(byte(9) & 0x80, 0) << "reserved bit inside";
    }
    ++seen[byte(3)];
    at += 9 + length;
  }
  EXPECT_EQ(at, wire.size());
  for (uint8_t type : {h2::kData, h2::kHeaders, h2::kRstStream, h2::kSettings, h2::kPing, h2::kGoaway,
                       h2::kWindowUpdate, h2::kContinuation}) {
    EXPECT_GT(seen[type], 0u) << int{type};
  }
}

TEST(Section4, WhatWeSendHasNoUndefinedFlagsAndNoReservedBits) {
  const h2::Fields large = {{"x-large", std::string(40000, 'x')}};
  for (Role role : {Role::kServer, Role::kClient}) {
    SessionHarness peer(role);
    peer.session->Start();
    std::string wire;
    peer.Feed((role == Role::kServer ? h2::Preface() : "") + h2::Settings({{6, 100000}}) + h2::Ping(1));
    Stream* one;
    Stream* two;
    if (role == Role::kServer) {
      one = &peer.Request(1);
      two = &peer.Request(3);
      one->SendHeaders(h2::List(peer.interns, With(h2::GrpcResponse(), large)), false);
    } else {
      one = &peer.Open(false, With(h2::GrpcRequest(), large));
      two = &peer.Open();
      peer.Feed(h2::Answer(1));
    }
    for (int i = 0; i < 16; ++i) peer.Feed(h2::Data(1, std::string(16384, 'd')));
    one->Consume(16 * 16384);
    one->SendData(base::Slice::Copy(std::string(40000, 'x')), false);
    one->SendHeaders(h2::List(peer.interns, large), true);
    two->Reset(ErrorCode::kCancel);
    peer.session->Ping(7);
    wire += peer.Written();
    peer.session->GoawayGracefully();
    peer.session->GoawayNow(ErrorCode::kNoError, "bye");
    wire += peer.Written();
    ExpectOnlyDefinedBits(wire, role);
  }
}

TEST(Section4, UnusedFlagsChangeNothingOfWhatFramesDo) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  const std::string block = Block(h2::GrpcRequest());
  // HEADERS without END_HEADERS, CONTINUATION with the bits of END_STREAM, PADDED and PRIORITY: none of its own.
  server.Feed(h2::Headers(1, block.substr(0, 9), 0xd2 & ~h2::kEndHeaders) + h2::Continuation(1, block.substr(9), 0xff));
  ASSERT_TRUE(server.streams.count(1));
  EXPECT_FALSE(server.Heard(1).end);
  server.Feed(h2::Data(1, "abc", 0xf6));
  EXPECT_EQ(server.Heard(1).data, "abc");
  EXPECT_FALSE(server.Heard(1).end);
  server.Feed(h2::RawFrame(h2::kRstStream, 0xff, 1, h2::Big(8, 4)));
  EXPECT_THAT(server.log.back(), "1: reset CANCEL peer");
  server.Feed(h2::RawFrame(h2::kGoaway, 0xff, 0x80000000, h2::Big(0x80000000, 4) + h2::Big(0, 4)));
  EXPECT_THAT(server.log.back(), HasSubstr("goaway NO_ERROR last=0"));
  EXPECT_THAT(server.Said(), IsEmpty());
}

TEST(Section4, FramesOf16384BytesAreTaken) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  std::string block = Block(With(h2::GrpcRequest(), {{"x", std::string(20000, 'x')}}));
  EXPECT_TRUE(server.Feed(h2::Headers(1, block.substr(0, 16384), 0) + h2::Continuation(1, block.substr(16384))));
  EXPECT_TRUE(server.Feed(h2::Data(1, std::string(16384, 'x'))));
  EXPECT_EQ(server.Heard(1).data.size(), 16384u);
  block = Block(With(h2::GrpcRequest(), {{"x", std::string(16384, 'x')}}));
  const size_t rest = 16384 - (block.size() - 16384);
  block = Block(With(h2::GrpcRequest(), {{"x", std::string(rest, 'x')}}));
  ASSERT_EQ(block.size(), 16384u);
  EXPECT_TRUE(server.Feed(h2::Headers(3, block)));
  EXPECT_TRUE(server.streams.count(3));
}

// 4.3: blocks without a consumer are decoded all the same.
TEST(Section4, ABlockThatIsDroppedStillChangesTheTable) {
  SessionOptions options;
  options.concurrent_streams_max = 3;
  options.header_list_bytes_max = 4096;
  const std::string request = Block(h2::GrpcRequest());
  struct {
    const char* name;
    std::function<void(SessionHarness&)> send;
  } const cases[] = {
      {"on a stream that we have reset",
       [&](SessionHarness& server) {
         server.Request(1).Reset(ErrorCode::kCancel);
         server.Feed(h2::Headers(1, kAdd, h2::kEnd));
       }},
      {"on a stream that the peer has reset",
       [&](SessionHarness& server) {
         server.Request(1);
         server.Feed(h2::RstStream(1, 8) + h2::Headers(1, kAdd, h2::kEnd));
       }},
      {"after END_STREAM",
       [&](SessionHarness& server) {
         server.Request(1, h2::kEnd);
         server.Feed(h2::Headers(1, kAdd, h2::kEnd));
       }},
      {"malformed", [&](SessionHarness& server) { server.Feed(h2::Headers(1, kAdd, h2::kEnd)); }},
      {"too large",
       [&](SessionHarness& server) {
         server.Feed(h2::Headers(1, Block(With(h2::GrpcRequest(), {{"x", std::string(5000, 'x')}})) + kAdd, h2::kEnd));
       }},
      {"of trailers without END_STREAM",
       [&](SessionHarness& server) {
         server.Request(1);
         server.Feed(h2::Headers(1, kAdd));
       }},
      {"refused",
       [&](SessionHarness& server) {
         for (uint32_t id : {1, 3, 5}) server.Request(id);
         server.Feed(h2::Headers(7, request + kAdd));
         server.Feed(h2::RstStream(1, 8));
       }},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(test.name);
    SessionHarness server(Role::kServer, options);
    server.Handshake();
    test.send(server);
    EXPECT_TRUE(server.Feed(h2::Headers(9, request + kRefer, h2::kEnd))) << server.error;
    EXPECT_THAT(server.log.back(), HasSubstr("te=trailers, k=v"));
  }
}

TEST(Section4, ABlockThatIsDroppedStillChangesTheTableOfAClient) {
  for (const std::string& dropped : {h2::Headers(1, kAdd), h2::Answer(1, h2::kEnd) + h2::Headers(1, kAdd, h2::kEnd),
                                     h2::RstStream(1, 8) + h2::Headers(1, kAdd, h2::kEnd)}) {
    SessionHarness client(Role::kClient);
    client.Handshake();
    client.Open();
    client.Open();
    EXPECT_TRUE(client.Feed(dropped + h2::Headers(3, Block(h2::GrpcResponse()) + kRefer))) << client.error;
    EXPECT_THAT(client.log.back(), EndsWith("k=v"));
  }
}

// 4.3.1
TEST(Section4, AfterAReductionOfThePeersTableTheNextBlockBeginsWithAnUpdate) {
  for (Role role : {Role::kServer, Role::kClient}) {
    SessionHarness peer(role);
    peer.Handshake();
    if (role == Role::kServer) peer.Request(1);
    peer.Feed(h2::Settings({{1, 0}}));
    if (role == Role::kServer) {
      peer.streams.at(1)->SendHeaders(h2::List(peer.interns, h2::GrpcResponse()), true);
    } else {
      peer.Open();
    }
    const std::vector<h2::Frame> frames = peer.Frames();
    ASSERT_THAT(h2::Describe(frames), ElementsAre("SETTINGS ack", HasSubstr("HEADERS[1]")));
    EXPECT_EQ(frames[1].payload[0], 0x20);  // RFC 7541 6.3: a size of 0
  }
}

TEST(Section4, AfterAReductionOfOurTableTheNextBlockMustBeginWithAnUpdate) {
  SessionOptions options;
  options.header_table_bytes = 100;
  const std::string request = Block(h2::GrpcRequest());
  const std::string to_100("\x3f\x45", 2), to_101("\x3f\x46", 2);
  for (auto [update, ok] : {std::pair<std::string, bool>{"", false}, {to_101, false}, {to_100, true}, {"\x20", true}}) {
    SessionHarness server(Role::kServer, options);
    server.session->Start();
    // Until it has acknowledged the setting the peer may use what the protocol begins with.
    EXPECT_TRUE(server.Feed(h2::Preface() + h2::Settings() + h2::Headers(1, request)));
    server.Feed(h2::SettingsAck());
    server.Frames();
    EXPECT_EQ(server.Feed(h2::Headers(3, update + request)), ok);
    if (!ok) {
      EXPECT_THAT(server.Said(), ElementsAre("GOAWAY last=1 code=9"));
    }
  }
}

// RFC 7541 6.3: the limit is the last value that was acknowledged.
TEST(Section4, ALargerTableCountsFromItsAcknowledgmentOn) {
  SessionOptions options;
  options.header_table_bytes = 8192;
  for (bool acknowledged : {false, true}) {
    SessionHarness server(Role::kServer, options);
    server.session->Start();
    server.Feed(h2::Preface() + h2::Settings() + (acknowledged ? h2::SettingsAck() : ""));
    server.Frames();
    const std::string to_8192("\x3f\xe1\x3f", 3);
    EXPECT_EQ(server.Feed(h2::Headers(1, to_8192 + Block(h2::GrpcRequest()))), acknowledged);
    if (!acknowledged) {
      EXPECT_THAT(server.Said(), ElementsAre("GOAWAY last=0 code=9"));
    }
  }
}

}  // namespace
}  // namespace sluice::http2
