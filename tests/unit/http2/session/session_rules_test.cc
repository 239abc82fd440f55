// What RFC 9113 forbids, frame by frame: each rule as bytes in and the error that must come out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/h2_harness.h"

namespace sluice::http2 {
namespace {

using h2::Block;
using h2::SessionHarness;
using h2::With;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr uint8_t kEnd = h2::kEndHeaders | h2::kEndStream;

// Stream 1 is open (server: a request; client: sent, not answered); stream 2 never is; stream 101 is idle.
struct Rule {
  const char* name;
  std::string frames;
  int code;  // of GOAWAY
};
void PrintTo(const Rule& rule, std::ostream* out) { *out << rule.name; }

class ConnectionError : public ::testing::TestWithParam<std::tuple<Role, Rule>> {};

TEST_P(ConnectionError, EndsTheConnectionWithTheCode) {
  auto [role, rule] = GetParam();
  SessionHarness peer(role);
  peer.Handshake();
  role == Role::kServer ? peer.Request(1) : peer.Open();
  peer.Frames();
  EXPECT_FALSE(peer.Feed(rule.frames));
  std::vector<std::string> said = peer.Said();
  ASSERT_FALSE(said.empty());
  EXPECT_THAT(said.back(), HasSubstr("GOAWAY"));
  EXPECT_THAT(said.back(), ::testing::EndsWith(" code=" + std::to_string(rule.code)));
  EXPECT_TRUE(peer.Heard(1).reset);
}

const Rule kBothRoles[] = {
    {"DataOnStream0", h2::Data(0, "x"), 1},
    {"DataOnIdleStream", h2::Data(101, "x"), 1},
    {"DataOnEvenStream", h2::Data(2, "x"), 1},
    {"DataAllPadding", h2::RawFrame(h2::kData, h2::kPadded, 1, std::string("\x01", 1)), 1},
    {"DataPaddedButEmpty", h2::RawFrame(h2::kData, h2::kPadded, 1, ""), 6},
    {"FrameAboveMaxFrameSize", h2::Data(1, std::string(16385, 'x')), 6},
    {"HeadersOnStream0", h2::Headers(0, Block(h2::GrpcRequest())), 1},
    {"HeadersOnEvenStream", h2::Headers(2, Block(h2::GrpcRequest())), 1},
    {"HeadersAllPadding", h2::RawFrame(h2::kHeaders, h2::kEndHeaders | h2::kPadded, 1, std::string("\x02\x00", 2)), 1},
    {"HeadersPaddedButEmpty", h2::RawFrame(h2::kHeaders, h2::kEndHeaders | h2::kPadded, 1, ""), 6},
    {"HeadersWithCutPriority", h2::RawFrame(h2::kHeaders, h2::kEndHeaders | h2::kPriorityFlag, 1, "abcd"), 6},
    {"HeaderBlockThatHpackCannotRead", h2::Headers(1, std::string("\xff\xff\xff\xff\xff\xff", 6)), 9},
    {"HeaderBlockWithIndex0", h2::Headers(1, std::string("\x80", 1)), 9},
    {"PriorityOnStream0", h2::RawFrame(h2::kPriority, 0, 0, "abcde"), 1},
    {"PriorityOfWrongSizeOnIdleStream", h2::RawFrame(h2::kPriority, 0, 101, "abcd"), 6},
    {"RstStreamOnStream0", h2::RstStream(0, 8), 1},
    {"RstStreamOfWrongSize", h2::RawFrame(h2::kRstStream, 0, 1, "abc"), 6},
    {"SettingsOnAStream", h2::RawFrame(h2::kSettings, 0, 1, ""), 1},
    {"SettingsCutShort", h2::RawFrame(h2::kSettings, 0, 0, "abcde"), 6},
    {"SettingsAckWithPayload", h2::RawFrame(h2::kSettings, h2::kAck, 0, "abcdef"), 6},
    {"SettingsEnablePush2", h2::Settings({{2, 2}}), 1},
    {"SettingsInitialWindowAbove31Bits", h2::Settings({{4, 0x80000000}}), 3},
    {"SettingsMaxFrameSizeBelow16384", h2::Settings({{5, 16383}}), 1},
    {"SettingsMaxFrameSizeAbove24Bits", h2::Settings({{5, 1 << 24}}), 1},
    {"SettingsWindowOverflow", h2::WindowUpdate(1, 0x7fffffff - 65535) + h2::Settings({{4, 65536}}), 3},
    {"PushPromise", h2::RawFrame(h2::kPushPromise, h2::kEndHeaders, 1, h2::Big(2, 4)), 1},
    {"PingOnAStream", h2::RawFrame(h2::kPing, 0, 1, "12345678"), 1},
    {"PingOfWrongSize", h2::RawFrame(h2::kPing, 0, 0, "1234567"), 6},
    {"GoawayOnAStream", h2::RawFrame(h2::kGoaway, 0, 1, "12345678"), 1},
    {"GoawayBelow8Bytes", h2::RawFrame(h2::kGoaway, 0, 0, "1234567"), 6},
    {"WindowUpdateOfWrongSize", h2::RawFrame(h2::kWindowUpdate, 0, 1, "123"), 6},
    {"WindowUpdateOnIdleStream", h2::WindowUpdate(101, 1), 1},
    {"WindowUpdateOf0OnTheConnection", h2::WindowUpdate(0, 0), 1},
    {"WindowUpdateOverflowOfTheConnection", h2::WindowUpdate(0, 0x7fffffff), 3},
    {"ContinuationWithoutHeaders", h2::Continuation(1, ""), 1},
    {"ContinuationOnAnotherStream", h2::Headers(1, "", 0) + h2::Continuation(3, ""), 1},
    {"ContinuationInterruptedByData", h2::Headers(1, "", 0) + h2::Data(1, "x"), 1},
    {"ContinuationInterruptedByPing", h2::Headers(1, "", 0) + h2::Ping(1), 1},
    {"ContinuationInterruptedByUnknownFrame", h2::Headers(1, "", 0) + h2::RawFrame(0xaa, 0, 0, ""), 1},
};
std::string RuleName(const ::testing::TestParamInfo<std::tuple<Role, Rule>>& info) {
  return std::string(std::get<0>(info.param) == Role::kServer ? "Server" : "Client") + std::get<1>(info.param).name;
}
INSTANTIATE_TEST_SUITE_P(BothRoles, ConnectionError,
                         ::testing::Combine(::testing::Values(Role::kServer, Role::kClient),
                                            ::testing::ValuesIn(kBothRoles)),
                         RuleName);

const Rule kClientOnly[] = {
    {"RstStreamOnIdleStream", h2::RstStream(101, 8), 1},  // a server's: below
    {"SettingsEnablePush1", h2::Settings({{2, 1}}), 1},
    {"HeadersOnIdleStream", h2::Headers(101, Block(h2::GrpcResponse())), 1},
};
INSTANTIATE_TEST_SUITE_P(ClientRole, ConnectionError,
                         ::testing::Combine(::testing::Values(Role::kClient), ::testing::ValuesIn(kClientOnly)),
                         RuleName);

const Rule kServerOnly[] = {
    {"DataAfterEndBothWays", h2::Headers(3, Block(h2::GrpcRequest()), kEnd) + h2::Data(3, "x"), 5},
    {"HeadersAfterEndBothWays", h2::Headers(3, Block(h2::GrpcRequest()), kEnd) + h2::Headers(3, Block({{"a", "b"}})),
     5},
};
class ClosedByEnd : public ConnectionError {};
TEST_P(ClosedByEnd, EndsTheConnectionWithTheCode) {
  auto [role, rule] = GetParam();
  SessionHarness server(role);
  server.Handshake();
  server.on_request = [&](Stream& stream) -> StreamEvents* {
    stream.SendHeaders(h2::List(server.interns, h2::GrpcResponse()), true);
    return &server.Heard(stream.id());
  };
  EXPECT_FALSE(server.Feed(rule.frames));
  EXPECT_THAT(server.Said().back(), "GOAWAY last=3 code=" + std::to_string(rule.code));
}
INSTANTIATE_TEST_SUITE_P(ServerRole, ClosedByEnd,
                         ::testing::Combine(::testing::Values(Role::kServer), ::testing::ValuesIn(kServerOnly)),
                         RuleName);

class StreamErrorRule : public ::testing::TestWithParam<std::tuple<Role, Rule>> {};

TEST_P(StreamErrorRule, ResetsTheStreamAndSparesTheConnection) {
  auto [role, rule] = GetParam();
  SessionHarness peer(role);
  peer.Handshake();
  if (role == Role::kServer) {
    peer.Request(1);
    peer.Request(3);
  } else {
    peer.Open();
    peer.Open();
  }
  peer.Frames();
  EXPECT_TRUE(peer.Feed(rule.frames)) << peer.error;
  EXPECT_THAT(peer.Said(), Contains("RST_STREAM[1] " + std::to_string(rule.code)));
  EXPECT_TRUE(peer.Heard(1).reset);
  EXPECT_FALSE(peer.Heard(3).reset);
  EXPECT_TRUE(peer.Feed(h2::Ping(1)));
  EXPECT_THAT(peer.Said(), ElementsAre("PING ack"));
}

const Rule kStreamBothRoles[] = {
    {"WindowUpdateOf0", h2::WindowUpdate(1, 0), 1},
    {"WindowUpdateOverflow", h2::WindowUpdate(1, 0x7fffffff), 3},
    {"PriorityOfWrongSize", h2::RawFrame(h2::kPriority, 0, 1, "abcd"), 6},
};
INSTANTIATE_TEST_SUITE_P(BothRoles, StreamErrorRule,
                         ::testing::Combine(::testing::Values(Role::kServer, Role::kClient),
                                            ::testing::ValuesIn(kStreamBothRoles)),
                         RuleName);
const Rule kStreamServer[] = {
    {"DataAfterEndStream", h2::Data(1, "x", h2::kEndStream) + h2::Data(1, "y"), 5},
    {"HeadersAfterEndStream", h2::Data(1, "x", h2::kEndStream) + h2::Headers(1, Block({{"a", "b"}}), kEnd), 5},
    {"TrailersWithoutEndStream", h2::Headers(1, Block({{"a", "b"}})), 1},
    {"TrailersWithPseudo", h2::Headers(1, Block({{":path", "/"}}), kEnd), 1},
    {"TrailersWithUppercaseName", h2::Headers(1, Block({{"A", "b"}}), kEnd), 1},
};
INSTANTIATE_TEST_SUITE_P(ServerRole, StreamErrorRule,
                         ::testing::Combine(::testing::Values(Role::kServer), ::testing::ValuesIn(kStreamServer)),
                         RuleName);
const std::string kAnswer = h2::Headers(1, Block({{":status", "200"}}));
const Rule kStreamClient[] = {
    {"DataBeforeHeaders", h2::Data(1, "x"), 1},
    {"DataAfterInterim", h2::Headers(1, Block({{":status", "100"}})) + h2::Data(1, "x"), 1},
    {"NoStatus", h2::Headers(1, Block({{"a", "b"}})), 1},
    {"StatusOfTwoDigits", h2::Headers(1, Block({{":status", "20"}})), 1},
    {"StatusBelow100", h2::Headers(1, Block({{":status", "099"}})), 1},
    {"StatusNotANumber", h2::Headers(1, Block({{":status", "2x0"}})), 1},
    {"StatusTwice", h2::Headers(1, Block({{":status", "200"}, {":status", "200"}})), 1},
    {"SwitchingProtocols", h2::Headers(1, Block({{":status", "101"}})), 1},
    {"InterimWithEndStream", h2::Headers(1, Block({{":status", "103"}}), kEnd), 1},
    {"RequestPseudoInResponse", h2::Headers(1, Block({{":status", "200"}, {":path", "/"}})), 1},
    {"PseudoInTrailers", kAnswer + h2::Headers(1, Block({{":status", "200"}}), kEnd), 1},
    {"TrailersWithoutEndStream", kAnswer + h2::Headers(1, Block({{"a", "b"}})), 1},
    {"DataAfterEndStream", kAnswer + h2::Data(1, "x", h2::kEndStream) + h2::Data(1, "x"), 5},
    {"ContentLengthWithoutData", h2::Headers(1, Block({{":status", "200"}, {"content-length", "1"}}), kEnd), 1},
    {"ContentLengthExceeded", h2::Headers(1, Block({{":status", "200"}, {"content-length", "1"}})) + h2::Data(1, "xy"),
     1},
    {"ContentLengthNotReachedByTrailers",
     h2::Headers(1, Block({{":status", "200"}, {"content-length", "1"}})) + h2::Headers(1, Block({{"a", "b"}}), kEnd),
     1},
};
INSTANTIATE_TEST_SUITE_P(ClientRole, StreamErrorRule,
                         ::testing::Combine(::testing::Values(Role::kClient), ::testing::ValuesIn(kStreamClient)),
                         RuleName);

struct Malformed {
  const char* name;
  h2::Fields fields;
};
void PrintTo(const Malformed& malformed, std::ostream* out) { *out << malformed.name; }
class MalformedRequest : public ::testing::TestWithParam<Malformed> {};

TEST_P(MalformedRequest, IsResetAndNeverSeen) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  EXPECT_TRUE(server.Feed(h2::Headers(1, Block(GetParam().fields), kEnd)));
  EXPECT_THAT(server.log, IsEmpty());
  EXPECT_THAT(server.Said(), ElementsAre("RST_STREAM[1] 1"));
  server.Feed(h2::Headers(3, Block(h2::GrpcRequest())));
  EXPECT_EQ(server.log.size(), 1u);
}

const h2::Fields kGood = {{":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {":authority", "a"}};
h2::Fields Without(const std::string& name) {
  h2::Fields out;
  for (const auto& field : kGood) {
    if (field.first != name) out.push_back(field);
  }
  return out;
}
const Malformed kMalformed[] = {
    {"NoMethod", Without(":method")},
    {"NoScheme", Without(":scheme")},
    {"NoPath", Without(":path")},
    {"EmptyPath", With(Without(":path"), {{":path", ""}})},
    {"PathWithoutSlash", With(Without(":path"), {{":path", "x"}})},
    {"StarPathWithGet", With(Without(":path"), {{":path", "*"}})},
    {"MethodTwice", With(kGood, {{":method", "GET"}})},
    {"PathTwice", With(kGood, {{":path", "/"}})},
    {"UnknownPseudo", With(kGood, {{":unknown", "x"}})},
    {"ProtocolPseudo", With(kGood, {{":protocol", "websocket"}})},
    {"StatusInRequest", With(kGood, {{":status", "200"}})},
    {"PseudoAfterRegular", {{":method", "GET"}, {":scheme", "http"}, {"a", "b"}, {":path", "/"}}},
    {"UppercaseName", With(kGood, {{"X-Name", "v"}})},
    {"EmptyName", With(kGood, {{"", "v"}})},
    {"SpaceInName", With(kGood, {{"a b", "v"}})},
    {"ColonInName", With(kGood, {{"a:b", "v"}})},
    {"ControlInName", With(kGood, {{"a\x7f", "v"}})},
    {"HighByteInName", With(kGood, {{"a\x80", "v"}})},
    {"LineFeedInValue", With(kGood, {{"a", "v\nw"}})},
    {"CarriageReturnInValue", With(kGood, {{"a", "v\rw"}})},
    {"NulInValue", With(kGood, {{"a", std::string("v\0w", 3)}})},
    {"Connection", With(kGood, {{"connection", "close"}})},
    {"ProxyConnection", With(kGood, {{"proxy-connection", "close"}})},
    {"KeepAlive", With(kGood, {{"keep-alive", "1"}})},
    {"TransferEncoding", With(kGood, {{"transfer-encoding", "chunked"}})},
    {"Upgrade", With(kGood, {{"upgrade", "h2c"}})},
    {"TeOtherThanTrailers", With(kGood, {{"te", "gzip"}})},
    {"HostThatDiffers", With(kGood, {{"host", "b"}})},
    {"ContentLengthNotANumber", With(kGood, {{"content-length", "-1"}})},
    {"ContentLengthTwiceAndDifferent", With(kGood, {{"content-length", "0"}, {"content-length", "1"}})},
    {"ContentLengthWithoutData", With(kGood, {{"content-length", "1"}})},
    {"ConnectWithPath", {{":method", "CONNECT"}, {":authority", "a"}, {":path", "/"}}},
    {"ConnectWithScheme", {{":method", "CONNECT"}, {":authority", "a"}, {":scheme", "http"}}},
    {"ConnectWithoutAuthority", {{":method", "CONNECT"}}},
};
INSTANTIATE_TEST_SUITE_P(Server, MalformedRequest, ::testing::ValuesIn(kMalformed),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(WellFormedRequest, IsSeen) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  uint32_t id = 1;
  for (const h2::Fields& fields : std::vector<h2::Fields>{
           kGood,
           Without(":authority"),
           With(kGood, {{"te", "trailers"}}),
           With(kGood, {{"host", "A"}}),
           With(kGood, {{"a", ""}}),
           With(kGood, {{"a", "v w\x80"}}),
           With(kGood, {{"content-length", "0"}, {"content-length", "0"}}),
           {{":method", "OPTIONS"}, {":scheme", "http"}, {":path", "*"}},
       }) {
    server.Feed(h2::Headers(id, Block(fields), kEnd));
    EXPECT_TRUE(server.streams.count(id)) << id;
    id += 2;
  }
}

TEST(ContentLength, IsComparedWithTheDataOfARequest) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  std::string request = Block(With(h2::GrpcRequest(), {{"content-length", "4"}}));
  server.Feed(h2::Headers(1, request) + h2::Data(1, "ab") + h2::PaddedData(1, "cd", 9, h2::kEndStream));
  EXPECT_TRUE(server.Heard(1).end);
  server.Feed(h2::Headers(3, request) + h2::Data(3, "abc", h2::kEndStream));
  EXPECT_TRUE(server.Heard(3).reset);
  server.Feed(h2::Headers(5, request) + h2::Data(5, "abcde"));
  EXPECT_TRUE(server.Heard(5).reset);
  EXPECT_THAT(server.Said(), ElementsAre("RST_STREAM[3] 1", "RST_STREAM[5] 1"));
}

TEST(ContentLength, OfHeadAnd304CountsNothing) {
  SessionHarness client(Role::kClient);
  client.Handshake();
  client.Open(true, {{":method", "HEAD"}, {":scheme", "http"}, {":path", "/"}});
  client.Open(true);
  client.Feed(h2::Headers(1, Block({{":status", "200"}, {"content-length", "5"}}), kEnd) +
              h2::Headers(3, Block({{":status", "304"}, {"content-length", "5"}}), kEnd));
  EXPECT_FALSE(client.Heard(1).reset);
  EXPECT_FALSE(client.Heard(3).reset);
}

TEST(StreamIds, MayNotGoBack) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  server.Request(5);
  // RFC 9113 5.1.1: an id below that was never used is closed; a request on it is unexpected.
  EXPECT_FALSE(server.Feed(h2::Headers(3, Block(h2::GrpcRequest()))));
  EXPECT_THAT(server.Said(), ElementsAre("GOAWAY last=5 code=1"));
}

TEST(ClosedStream, FramesAfterOurResetAreIgnored) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  server.Request(1).Reset(ErrorCode::kCancel);
  server.Frames();
  EXPECT_TRUE(server.Feed(h2::Data(1, "x") + h2::WindowUpdate(1, 1) + h2::Headers(1, Block({{"a", "b"}}), kEnd) +
                          h2::RstStream(1, 8)));
  EXPECT_THAT(server.Said(), IsEmpty());
}

TEST(ClosedStream, DataAfterThePeersOwnResetIsAStreamError) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  server.Request(1);
  EXPECT_TRUE(server.Feed(h2::RstStream(1, 8) + h2::Data(1, "x")));
  EXPECT_THAT(server.log, Contains("1: reset CANCEL peer"));
  EXPECT_THAT(server.Said(), ElementsAre("RST_STREAM[1] 5"));
}

TEST(ClosedStream, WindowUpdateAndResetMayCrossOurEnd) {
  SessionHarness client(Role::kClient);
  client.Handshake();
  client.Open(true);
  EXPECT_TRUE(client.Feed(h2::Headers(1, Block({{":status", "200"}}), kEnd) + h2::WindowUpdate(1, 5) +
                          h2::RstStream(1, 0) + h2::RawFrame(h2::kPriority, 0, 1, "abcde")));
  EXPECT_FALSE(client.Heard(1).reset);
}

// What gRPC C++ 1.51 sends for a call that first its deadline and then its handler's end cancel: two responses,
// each with a reset (docs/http2.md).
TEST(ClosedStream, ASecondResponseIsDroppedAndDoesNotCostTheConnection) {
  for (bool request_ended : {true, false}) {  // else the first reset ends the stream
    SessionHarness client(Role::kClient);
    client.Handshake();
    client.Open(request_ended);
    client.Open(true);
    client.Frames();
    std::string first = h2::Headers(1, Block(h2::GrpcResponse()), kEnd) + h2::RstStream(1, 0);
    std::string fields = Block(h2::GrpcResponse()) + std::string("\x40\x01k\x01v", 5);
    std::string second = h2::Headers(1, fields, kEnd) + h2::RstStream(1, 0);
    EXPECT_TRUE(client.Feed(first));
    std::vector<std::string> heard = client.log;
    EXPECT_TRUE(client.Feed(second));
    EXPECT_EQ(client.log, heard);
    EXPECT_THAT(client.Said(), IsEmpty());
    // It was decoded all the same: stream 3 uses the entry that it has added to the table.
    EXPECT_TRUE(client.Feed(h2::Headers(3, Block(h2::GrpcResponse()) + std::string("\xbe", 1), kEnd)));
    EXPECT_THAT(client.log.back(), HasSubstr("k=v"));
  }
}

TEST(ClosedStream, NothingButLateResponsesEndsTheConnection) {
  SessionHarness client(Role::kClient);
  client.Handshake();
  std::string late;
  for (uint32_t id = 1; id <= 5; id += 2) {
    client.Open(true);
    ASSERT_TRUE(client.Feed(h2::Headers(id, Block(h2::GrpcResponse()), kEnd)));
    late.clear();
    for (int i = 0; i < 1000; ++i) late += h2::Headers(id, Block(h2::GrpcResponse()), kEnd);
    ASSERT_TRUE(client.Feed(late));  // a stream that ends in between shows that the server does its work
  }
  client.Frames();
  EXPECT_FALSE(client.Feed(h2::Headers(5, Block(h2::GrpcResponse()), kEnd)));
  EXPECT_THAT(client.Said(), ElementsAre("GOAWAY last=0 code=11"));
}

TEST(ClosedStream, DataOfAServerAfterBothEndsIsAStreamError) {
  SessionHarness client(Role::kClient);
  client.Handshake();
  client.Open(true);
  client.Frames();
  EXPECT_TRUE(client.Feed(h2::Headers(1, Block(h2::GrpcResponse()), kEnd) + h2::Data(1, "", h2::kEndStream)));
  EXPECT_THAT(client.Said(), ElementsAre("RST_STREAM[1] 5"));  // RFC 9113 6.1
}

// What gRPC C++ 1.51 sends for a call that is cancelled before its HEADERS were written (docs/http2.md).
TEST(ResetOfAnIdleStream, IsAConnectionErrorAfterTheStreamsInProgress) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  Stream& open = server.Request(1);
  EXPECT_TRUE(server.Feed(h2::RstStream(3, 8)));
  EXPECT_THAT(server.Said(), ElementsAre("GOAWAY last=1 code=1"));  // RFC 9113 6.4
  EXPECT_THAT(server.log.back(), "goaway PROTOCOL_ERROR last=1 RST_STREAM on an idle stream");
  EXPECT_TRUE(server.session->closing());
  // RFC 9113 6.8: what is above the last id is ignored, what is below ends as it would.
  server.log.clear();
  EXPECT_TRUE(server.Feed(h2::RstStream(7, 8) + h2::Headers(5, Block(h2::GrpcRequest())) + h2::Data(5, "x") +
                          h2::RstStream(5, 8) + h2::Data(1, "y", h2::kEndStream)));
  EXPECT_THAT(server.log, ElementsAre("1: data 1 END"));
  open.SendHeaders(h2::List(server.interns, h2::GrpcResponse()), true);
  EXPECT_THAT(server.Said(), ElementsAre(HasSubstr("HEADERS[1] flags=5")));
  EXPECT_EQ(server.session->open_streams(), 0u);
}

TEST(ResetOfAnIdleStream, EndsAConnectionWithoutStreamsAtOnce) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  EXPECT_FALSE(server.Feed(h2::RstStream(3, 8)));
  EXPECT_THAT(server.Said(), ElementsAre("GOAWAY last=0 code=1"));
  EXPECT_THAT(server.error, HasSubstr("RST_STREAM on an idle stream"));
}

TEST(Refused, StreamsAboveTheLimitLeaveHpackInStep) {
  SessionOptions options;
  options.concurrent_streams_max = 1;
  SessionHarness server(Role::kServer, options);
  server.Handshake();
  server.Request(1);
  // Stream 3 adds to the table (literal with incremental indexing), stream 5 uses the entry.
  std::string add = Block(h2::GrpcRequest()) + std::string("\x40\x01k\x01v", 5);
  server.Feed(h2::Headers(3, add));
  EXPECT_THAT(server.Said(), ElementsAre("RST_STREAM[3] 7"));
  EXPECT_EQ(server.session->stats().streams_refused, 1u);
  server.Release(1);
  server.Feed(h2::Headers(5, Block(h2::GrpcRequest()) + std::string("\xbe", 1)));
  EXPECT_THAT(server.log.back(), HasSubstr("te=trailers, k=v"));
}

TEST(Refused, ByThePeerTellsThatNothingWasProcessed) {
  SessionHarness client(Role::kClient);
  client.Handshake();
  client.Open();
  client.Feed(h2::RstStream(1, 7));
  EXPECT_THAT(client.log, ElementsAre("1: reset REFUSED_STREAM refused"));
}

TEST(TooLarge, RequestHeadersAreAnsweredWithAGrpcStatus) {
  SessionOptions options;
  options.header_list_bytes_max = 1024;
  SessionHarness server(Role::kServer, options);
  server.Handshake();
  std::string request = Block(With(h2::GrpcRequest(), {{"large", std::string(1024, 'x')}}));
  server.Feed(h2::Headers(1, request));
  EXPECT_THAT(server.log, IsEmpty());
  std::vector<h2::Frame> frames = server.Frames();
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].flags, kEnd);
  EXPECT_THAT(frames[0].payload, HasSubstr("too_large"));
  EXPECT_EQ(Describe(frames[1]), "RST_STREAM[1] 0");
  server.Feed(h2::Headers(3, request, kEnd));
  EXPECT_THAT(server.Said(), ElementsAre(HasSubstr("HEADERS[3] flags=5")));
  EXPECT_EQ(server.session->open_streams(), 0u);
}

TEST(TooLarge, ResponseHeadersAndTrailersResetTheStream) {
  SessionOptions options;
  options.header_list_bytes_max = 1024;
  SessionHarness client(Role::kClient, options);
  client.Handshake();
  client.Open();
  client.Open();
  client.Frames();
  std::string large = Block({{"large", std::string(1024, 'x')}});
  client.Feed(h2::Headers(1, Block(h2::GrpcResponse()) + large) + h2::Headers(3, Block(h2::GrpcResponse())) +
              h2::Headers(3, large, kEnd));
  EXPECT_THAT(client.Said(), ElementsAre("RST_STREAM[1] 8", "RST_STREAM[3] 8"));
  EXPECT_TRUE(client.Heard(1).reset);
  EXPECT_TRUE(client.Heard(3).reset);
}

TEST(Continuation, PartsAreJoined) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  std::string block = Block(h2::GrpcRequest());
  server.Feed(h2::Headers(1, block.substr(0, 5), h2::kEndStream) + h2::Continuation(1, "", 0) +
              h2::Continuation(1, block.substr(5, 7), 0) + h2::Continuation(1, block.substr(12)));
  EXPECT_EQ(server.log.size(), 1u);
  EXPECT_TRUE(server.streams.count(1));
}

TEST(Continuation, LargeBlockEndsTheConnection) {
  SessionOptions options;
  options.header_block_bytes_max = 40000;
  SessionHarness server(Role::kServer, options);
  server.Handshake();
  std::string part(16384, '\0');
  EXPECT_TRUE(server.Feed(h2::Headers(1, part, 0) + h2::Continuation(1, part, 0)));
  EXPECT_FALSE(server.Feed(h2::Continuation(1, part, 0)));
  EXPECT_THAT(server.Said(), ElementsAre("GOAWAY last=0 code=11"));
}

TEST(Continuation, EndlessEmptyPartsEndTheConnection) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  server.Feed(h2::Headers(1, "", 0));
  bool ok = true;
  for (int i = 0; i < 5000 && ok; ++i) ok = server.Feed(h2::Continuation(1, "", 0));
  EXPECT_FALSE(ok);
  EXPECT_THAT(server.Said(), ElementsAre("GOAWAY last=0 code=11"));
}

TEST(Flood, OfPingsThatAreNotReadEndsTheConnection) {
  SessionOptions options;
  options.control_frames_max = 100;
  SessionHarness server(Role::kServer, options);
  server.Handshake();
  std::string hundred;
  for (int i = 0; i < 100; ++i) hundred += h2::Ping(1);
  for (int i = 0; i < 5; ++i) {  // written in between: no flood
    EXPECT_TRUE(server.Feed(hundred));
    server.Frames();
  }
  EXPECT_TRUE(server.Feed(hundred));
  EXPECT_FALSE(server.Feed(h2::Ping(1)));
  EXPECT_THAT(server.Said().back(), "GOAWAY last=0 code=11");
}

TEST(Flood, OfResetsThatAreNotReadEndsTheConnection) {
  SessionOptions options;
  options.control_frames_max = 100;
  SessionHarness server(Role::kServer, options);
  server.Handshake();
  bool ok = true;
  for (uint32_t id = 1; id < 1000 && ok; id += 2) ok = server.Feed(h2::Headers(id, Block({{"a", "b"}})));
  EXPECT_FALSE(ok);
}

TEST(Unknown, FramesAndSettingsAreIgnored) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  EXPECT_TRUE(server.Feed(h2::RawFrame(0xaa, 0xff, 7, "anything") + h2::Settings({{0x99, 5}})));
  EXPECT_THAT(server.Said(), ElementsAre("SETTINGS ack"));
}

TEST(Priority, FieldsAndFramesAreIgnored) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  EXPECT_TRUE(server.Feed(h2::RawFrame(h2::kPriority, 0, 1, h2::Big(3, 4) + "w")));
  server.Feed(h2::RawFrame(h2::kHeaders, h2::kEndHeaders | h2::kPriorityFlag | h2::kPadded, 1,
                           h2::Big(3, 1) + h2::Big(3, 4) + "w" + Block(h2::GrpcRequest()) + "pad"));
  EXPECT_TRUE(server.streams.count(1));
  EXPECT_THAT(server.Said(), IsEmpty());
}

// RFC 7540 5.3.1 resets the stream; its block still belongs to the connection's HPACK table (RFC 9113 4.3).
TEST(Priority, ARequestThatDependsOnItselfIsNotShownAndLeavesHpackInStep) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  const std::string indexed = "\x40\x03x-a\x03one";  // RFC 7541 6.2.1: enters the table as entry 62
  server.Feed(h2::RawFrame(h2::kHeaders, h2::kEndHeaders | h2::kPriorityFlag, 1,
                           h2::Big(1, 4) + "w" + Block(h2::GrpcRequest()) + indexed));
  EXPECT_THAT(server.Said(), ElementsAre("RST_STREAM[1] 1"));
  EXPECT_THAT(server.log, IsEmpty());
  EXPECT_EQ(server.session->open_streams(), 0u);
  EXPECT_TRUE(server.Feed(h2::Data(1, "x") + h2::Headers(1, Block({{"a", "b"}}), 5)));  // crossed the reset
  server.Feed(h2::Headers(3, Block(h2::GrpcRequest()) + "\xbe"));
  EXPECT_THAT(server.log, ElementsAre(::testing::EndsWith("te=trailers, x-a=one")));
}

// What has ended cannot be reset, and what we refuse is refused as any other.
TEST(Priority, OfAStreamOnItselfChangesNothingWhereTheStreamIsOver) {
  const std::string itself = h2::RawFrame(h2::kPriority, 0, 1, h2::Big(1, 4) + "w");
  for (bool by_peer : {true, false}) {
    SessionHarness server(Role::kServer);
    server.Handshake();
    Stream& stream = server.Request(1);
    if (by_peer) {
      server.Feed(h2::RstStream(1, 8));
    } else {
      stream.Reset(ErrorCode::kCancel);
    }
    server.Frames();
    EXPECT_TRUE(server.Feed(itself));
    EXPECT_THAT(server.Said(), IsEmpty());
  }
  SessionHarness server(Role::kServer);
  server.Handshake();
  server.session->GoawayNow(ErrorCode::kNoError, "");
  server.Frames();
  EXPECT_TRUE(server.Feed(h2::RawFrame(h2::kHeaders, h2::kEndHeaders | h2::kPriorityFlag, 1,
                                       h2::Big(1, 4) + "w" + Block(h2::GrpcRequest()))));
  EXPECT_THAT(server.Said(), IsEmpty());  // RFC 9113 6.8: above our last stream
}

TEST(Release, TellsAServersClientWhy) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  server.Request(1);
  server.Release(1);
  server.Request(3).SendHeaders(h2::List(server.interns, h2::GrpcResponse()), true);
  server.Release(3);  // answered before the request has ended: RFC 9113 8.1
  EXPECT_THAT(server.Said(), ElementsAre("RST_STREAM[1] 8", HasSubstr("HEADERS[3]"), "RST_STREAM[3] 0"));
}

}  // namespace
}  // namespace sluice::http2
