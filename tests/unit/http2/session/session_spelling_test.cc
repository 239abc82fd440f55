// Fields that peers spell otherwise, or that are more than we take: what a session passes on, answers and resets, and
// that neither the connection nor its other streams pay for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/h2_harness.h"

namespace sluice::http2 {
namespace {

using h2::Block;
using h2::Fields;
using h2::GrpcRequest;
using h2::GrpcResponse;
using h2::GrpcTrailers;
using h2::Headers;
using h2::SessionHarness;
using h2::With;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint8_t kLastBlock = h2::kEndHeaders | h2::kEndStream;

const char* const kUndecodable[] = {"%%%", "_-8", "Y===", "\xff", "YWJj,%", "Y"};

TEST(SessionSpelling, ARequestGoesOnInOneSpelling) {
  SessionHarness peer(Role::kServer);
  peer.Handshake();
  peer.Feed(
      Headers(1, Block(With(GrpcRequest(), {{"x-bin", "YWJj,ZGVm"}, {"y", " z\t"}, {"w-bin", "YR=="}})), kLastBlock));
  ASSERT_EQ(peer.log.size(), 1u);
  EXPECT_THAT(peer.log[0], HasSubstr("x-bin=YWJj, x-bin=ZGVm, y=z, w-bin=YQ END"));
  EXPECT_THAT(peer.Said(), IsEmpty());
}

TEST(SessionSpelling, ARequestThatDoesNotDecodeIsAnsweredAndTheConnectionGoesOn) {
  for (const char* value : kUndecodable) {
    SessionHarness peer(Role::kServer);
    peer.Handshake();
    EXPECT_TRUE(peer.Feed(Headers(1, Block(With(GrpcRequest(), {{"x-bin", value}})), kLastBlock))) << value;
    EXPECT_THAT(peer.log, IsEmpty()) << "it was passed on";
    const std::vector<h2::Frame> frames = peer.Frames();
    ASSERT_EQ(frames.size(), 1u);
    EXPECT_EQ(frames[0].type, h2::kHeaders);
    EXPECT_TRUE(frames[0].has(h2::kEndStream));
    EXPECT_THAT(frames[0].payload, HasSubstr("x-bin"));
    peer.Request(3);
    EXPECT_EQ(peer.log.size(), 1u);
  }
}

// A hundred of them a second are a client's mistake, and no flood.
TEST(SessionSpelling, AnsweredRequestsAreNotChargedAsResets) {
  SessionOptions options;
  options.resets_per_second = 10;
  SessionHarness peer(Role::kServer, options);
  peer.Handshake();
  for (uint32_t id = 1; id < 1000; id += 2) {
    ASSERT_TRUE(peer.Feed(Headers(id, Block(With(GrpcRequest(), {{"x-bin", "%"}})), kLastBlock))) << peer.error;
    peer.Frames();
  }
}

TEST(SessionSpelling, TrailersOfARequestAreSpelledOrRefused) {
  SessionHarness peer(Role::kServer);
  peer.Handshake();
  peer.Request(1);
  peer.Request(3);
  peer.Frames();
  peer.log.clear();
  peer.Feed(Headers(1, Block({{"x-bin", "YQ=="}, {"y", "z "}}), kLastBlock));
  EXPECT_THAT(peer.log, ElementsAre("1: headers x-bin=YQ, y=z END"));
  peer.log.clear();
  peer.Feed(Headers(3, Block({{"x-bin", "%"}}), kLastBlock));
  EXPECT_THAT(peer.log, ElementsAre("3: reset CANCEL metadata"));
  const std::vector<h2::Frame> frames = peer.Frames();
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].stream, 3u);
  EXPECT_TRUE(frames[0].has(h2::kEndStream));
}

TEST(SessionSpelling, ARequestsTrailersAboveOurLimitAreAnsweredOnTheirStream) {
  SessionHarness peer(Role::kServer);
  peer.Handshake();
  http2::Stream& begun = peer.Request(1);
  peer.Request(3);
  begun.SendHeaders(h2::List(peer.interns, GrpcResponse()), false);
  peer.Frames();
  peer.log.clear();
  const std::string trailers = Block({{"x", std::string(40000, 'x')}, {"y", std::string(30000, 'y')}});
  for (uint32_t id : {1, 3}) {
    EXPECT_TRUE(peer.Feed(Headers(id, trailers.substr(0, 16384), h2::kEndStream) +
                          h2::Continuation(id, trailers.substr(16384, 16384), 0) +
                          h2::Continuation(id, trailers.substr(32768, 16384), 0) +
                          h2::Continuation(id, trailers.substr(49152, 16384), 0) +
                          h2::Continuation(id, trailers.substr(65536))));
    const std::vector<h2::Frame> frames = peer.Frames();
    ASSERT_EQ(frames.size(), 1u);
    EXPECT_TRUE(frames[0].has(h2::kEndStream));
    EXPECT_THAT(frames[0].payload, HasSubstr("request trailers of 70066 bytes are above the limit of 65536 bytes"));
    EXPECT_EQ(frames[0].payload.front() == '\x88', id == 3) << "only what begins the response has :status 200";
  }
  EXPECT_THAT(peer.log, ElementsAre("1: reset CANCEL too large", "3: reset CANCEL too large"));
}

TEST(SessionSpelling, AResponseGoesOnInOneSpellingAndWithoutWhatDoesNotDecode) {
  SessionHarness peer(Role::kClient);
  peer.Handshake();
  peer.Open();
  peer.Frames();
  peer.Feed(Headers(1, Block(With(GrpcResponse(), {{"x-bin", "YWJj,ZGVm"}, {"y-bin", "%%%"}, {"z", " w"}}))));
  peer.Feed(
      Headers(1, Block({{"grpc-status", "5"}, {"grpc-message", "no such user: "}, {"-bin", "YWJj"}}), kLastBlock));
  EXPECT_THAT(peer.log,
              ElementsAre("1: headers :status=200, content-type=application/grpc, x-bin=YWJj, x-bin=ZGVm, z=w",
                          "1: headers grpc-status=5, grpc-message=no such user:%20 END"));
  EXPECT_THAT(peer.Said(), IsEmpty());
}

// RFC 9113 8.2.1: these have no reading that is safe.
TEST(SessionSpelling, LineEndsAndBlanksOfPseudoHeadersStayMalformed) {
  for (const Fields& fields : {With(GrpcResponse(), {{"x", "a\r"}}), With(GrpcResponse(), {{"x", "a\nb"}}),
                               With(GrpcResponse(), {{"x", std::string("a\0", 2)}}), Fields{{":status", "200 "}}}) {
    SessionHarness peer(Role::kClient);
    peer.Handshake();
    peer.Open();
    peer.Feed(Headers(1, Block(fields)));
    EXPECT_THAT(peer.log, ElementsAre("1: reset PROTOCOL_ERROR protocol"));
  }
}

// Whatever else is wrong is found behind the field that is respelled.
TEST(SessionSpelling, RespelledMessagesAreValidatedWhole) {
  SessionHarness peer(Role::kClient);
  peer.Handshake();
  peer.Open();
  peer.Feed(Headers(1, Block(With(GrpcResponse(), {{"a", " b"}, {"connection", "close"}}))));
  EXPECT_THAT(peer.log, ElementsAre("1: reset PROTOCOL_ERROR protocol"));
}

// A server's trailers above our limit are one call's: it loses the stream, not its good name and not the connection.
TEST(SessionSpelling, AResponseAboveOurLimitsIsResetWithoutACharge) {
  SessionOptions options;
  options.header_list_bytes_max = 4096;
  options.resets_per_second = 10;
  SessionHarness peer(Role::kClient, options);
  peer.Handshake({{3, 1000}});
  const std::string large(5000, 'x');
  for (uint32_t id = 1; id < 200; id += 2) {
    peer.Open(/*end_stream=*/true);
    peer.Frames();
    peer.log.clear();
    std::string frames = Headers(id, Block(GrpcResponse()));
    frames += Headers(id, Block(With(GrpcTrailers(), {{"x", large}})), kLastBlock);
    ASSERT_TRUE(peer.Feed(frames)) << peer.error;
    ASSERT_EQ(peer.log.back(), std::to_string(id) + ": reset CANCEL too large");
    EXPECT_EQ(peer.streams.at(id)->oversized().bytes, 5033u + 44u);
    EXPECT_EQ(peer.streams.at(id)->oversized().bytes_max, 4096u);
    peer.Release(id);
  }
}

// The block that one caller asked for costs its own stream, though it is larger than a client of ours may send.
TEST(SessionSpelling, AResponsesBlockOfHundredsOfKilobytesIsItsStreamsAlone) {
  SessionOptions options;
  options.header_block_bytes_max = 1024 * 1024;  // a cluster's default
  SessionHarness peer(Role::kClient, options);
  peer.Handshake({{3, 1000}});
  peer.Open(/*end_stream=*/true);
  peer.Open(/*end_stream=*/true);
  peer.Frames();
  const std::string block = Block(With(GrpcTrailers(), {{"x", std::string(500'000, 'x')}}));
  std::string frames = Headers(1, Block(GrpcResponse())) + Headers(1, block.substr(0, 16384), h2::kEndStream);
  for (size_t at = 16384; at < block.size(); at += 16384) {
    frames += h2::Continuation(1, block.substr(at, 16384), at + 16384 < block.size() ? 0 : h2::kEndHeaders);
  }
  ASSERT_TRUE(peer.Feed(frames)) << peer.error;
  EXPECT_EQ(peer.log.back(), "1: reset CANCEL too large");
  ASSERT_TRUE(peer.Feed(Headers(3, Block(GrpcResponse())) + Headers(3, Block(GrpcTrailers()), kLastBlock)));
  EXPECT_THAT(peer.log.back(), HasSubstr("3: "));
  EXPECT_THAT(peer.log.back(), HasSubstr("END"));
  // Without end it is a flood.
  peer.Open(/*end_stream=*/true);
  frames = Headers(5, std::string(16384, 'x'), 0);
  for (int i = 0; i < 64; ++i) frames += h2::Continuation(5, std::string(16384, 'x'), 0);
  EXPECT_FALSE(peer.Feed(frames));
}

TEST(SessionSpelling, TheListMayGrowByItsSpellingUpToOurLimit) {
  SessionOptions options;
  options.header_count_max = 20;
  SessionHarness peer(Role::kServer, options);
  peer.Handshake();
  peer.Feed(Headers(1, Block(With(GrpcRequest(), {{"x-bin", std::string(13, ',')}})), kLastBlock));
  EXPECT_EQ(peer.log.size(), 1u);
  peer.Frames();
  peer.Feed(Headers(3, Block(With(GrpcRequest(), {{"x-bin", std::string(14, ',')}})), kLastBlock));
  EXPECT_EQ(peer.log.size(), 1u);
  const std::vector<h2::Frame> frames = peer.Frames();
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_THAT(frames[0].payload, HasSubstr("20 fields"));
}

TEST(SessionSpelling, ThePeersLimitIsKnown) {
  SessionHarness peer(Role::kServer);
  peer.Handshake();
  EXPECT_EQ(peer.session->peer_header_list_max(), UINT32_MAX);
  peer.Feed(h2::Settings({{6, 8192}}));
  EXPECT_EQ(peer.session->peer_header_list_max(), 8192u);
  peer.Feed(h2::Settings({{6, 0}}));
  EXPECT_EQ(peer.session->peer_header_list_max(), UINT32_MAX) << "0 is how some say that there is none";
}

}  // namespace
}  // namespace sluice::http2
