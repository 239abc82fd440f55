// Bad input from clients: every mistake is answered as RFC 9113 and gRPC say, nothing of it stays, and others
// are served on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/slice.h"
#include "support/backends.h"
#include "support/echo_call.h"
#include "support/proxy.h"
#include "support/raw_peer.h"

namespace sluice::integration {
namespace {

using raw::Frame;
using testing::AnyOf;
using testing::Eq;

constexpr uint32_t kForEver = 3'600'000;

class BadInput : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    backends_ = new Backends(1);
    ProxyConfig config;
    config.endpoints = backends_->endpoints();
    proxy_ = new Proxy(config);
  }
  static void TearDownTestSuite() {
    delete proxy_;
    delete backends_;
  }

  static RawPeer Connected() {
    RawPeer peer = RawPeer::Connect(proxy_->port());
    peer.Handshake();
    return peer;
  }
  static void ExpectServedOn(RawPeer& peer, uint32_t stream) {
    ASSERT_TRUE(peer.Send(raw::EchoCall(stream)));
    const RawPeer::Answer answer = peer.AnswerOf(stream);
    EXPECT_TRUE(answer.ended);
    EXPECT_EQ(answer.grpc_status(), "0");
  }

  // After every test: alive, serving, and with nothing left of what came in.
  void TearDown() override {
    EXPECT_TRUE(WaitUntil([] { return proxy_->Metric("sluice_downstream_connections") == 0; }));
    EXPECT_TRUE(WaitUntil([] { return proxy_->Metric("sluice_calls_in_flight") == 0; }));
    EXPECT_TRUE(WaitUntil([] { return backends_->in_flight() == 0; }));
    EXPECT_TRUE(WaitUntil([] { return base::Block::LiveBytes() < (2u << 20); })) << base::Block::LiveBytes();
    RawPeer peer = Connected();
    ExpectServedOn(peer, 1);
  }

  static Backends* backends_;
  static Proxy* proxy_;
};
Backends* BadInput::backends_ = nullptr;
Proxy* BadInput::proxy_ = nullptr;

// HEADERS and as many CONTINUATIONs as the block needs.
std::string LongHeaders(uint32_t stream, const std::string& block) {
  constexpr size_t kPart = 16384;
  std::string frames;
  for (size_t at = 0; at == 0 || at < block.size(); at += kPart) {
    const bool last = at + kPart >= block.size();
    frames += Frame(at == 0 ? raw::kHeaders : raw::kContinuation, last ? raw::kEndHeaders : 0, stream,
                    block.substr(at, kPart));
  }
  return frames;
}

TEST_F(BadInput, GarbageInsteadOfThePrefaceEndsTheConnection) {
  for (const std::string& garbage : std::vector<std::string>{
           std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), std::string(100, '\0'), std::string(100'000, '\xff'),
           std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\rX"), raw::EchoCall(1)}) {
    RawPeer peer = RawPeer::Connect(proxy_->port());
    peer.Send(garbage);  // the proxy may have closed before all is sent
    const auto code = peer.GoawayThenEnd();
    if (code) {
      EXPECT_EQ(*code, raw::kProtocolError);  // RFC 9113 3.4: a GOAWAY may be left out
    }
  }
}

TEST_F(BadInput, APrefaceWithoutSettingsEndsTheConnection) {
  RawPeer peer = RawPeer::Connect(proxy_->port());
  ASSERT_TRUE(peer.Send(raw::kPreface + Frame(raw::kPing, 0, 0, "12345678")));
  EXPECT_EQ(peer.GoawayThenEnd(), raw::kProtocolError);
}

TEST_F(BadInput, AConnectionCutAtAnyByteLeavesNothing) {
  const std::string whole = raw::kPreface + raw::Settings({{4, 70000}}) + raw::EchoCall(1) +
                            Frame(raw::kWindowUpdate, 0, 0, raw::U32(1000)) + raw::EchoCall(3);
  for (size_t cut = 0; cut <= whole.size(); ++cut) {
    RawPeer peer = RawPeer::Connect(proxy_->port());
    ASSERT_TRUE(peer.Send(whole.substr(0, cut)));
    peer.HalfClose();
    peer.Rest();  // ends: the proxy closes what can go on no more
  }
}

TEST_F(BadInput, AnUnreadResponseIsDroppedWithItsConnection) {
  echo::v1::EchoRequest request;
  request.set_reply_bytes(50 << 20);
  for (int i = 0; i < 5; ++i) {
    RawPeer peer = Connected();
    ASSERT_TRUE(peer.Send(raw::Headers(1, raw::EchoHeaders()) +
                          Frame(raw::kData, raw::kEndStream, 1, raw::Message(request.SerializeAsString()))));
    ASSERT_TRUE(peer.Until([](const RawPeer::Frame& frame) { return frame.type == raw::kData; }));
    EXPECT_LT(base::Block::LiveBytes(), 16u << 20);
  }
}

// One mistake that ends the connection, with the error code that RFC 9113 assigns to it.
struct Mistake {
  std::string name;
  std::string bytes;
  std::vector<uint32_t> codes;  // any of them
};
void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }

class ConnectionError : public BadInput, public testing::WithParamInterface<Mistake> {};

TEST_P(ConnectionError, EndsTheConnectionWithItsCode) {
  RawPeer peer = Connected();
  peer.Send(GetParam().bytes);
  const auto code = peer.GoawayThenEnd();
  ASSERT_TRUE(code.has_value()) << "no GOAWAY";
  EXPECT_THAT(GetParam().codes, testing::Contains(*code));
}

std::string OpenStream(uint32_t stream) {
  echo::v1::EchoRequest request;
  request.set_delay_ms(kForEver);
  return raw::Headers(stream, raw::EchoHeaders()) +
         Frame(raw::kData, 0, stream, raw::Message(request.SerializeAsString()));
}
std::string HeaderBlock(const std::string& block) {
  return Frame(raw::kHeaders, raw::kEndHeaders | raw::kEndStream, 1, block);
}

const Mistake kMistakes[] = {
    // Sizes: RFC 9113 4.2 and the sections of the frames.
    {"HeadersAboveTheFrameLimit",
     Frame(raw::kHeaders, raw::kEndHeaders, 1, std::string(16385, '\0')),
     {raw::kFrameSizeError}},
    {"SettingsOfFiveBytes", Frame(raw::kSettings, 0, 0, "12345"), {raw::kFrameSizeError}},
    {"SettingsAckWithPayload", Frame(raw::kSettings, raw::kAck, 0, "123456"), {raw::kFrameSizeError}},
    {"PingOfSevenBytes", Frame(raw::kPing, 0, 0, "1234567"), {raw::kFrameSizeError}},
    {"WindowUpdateOfThreeBytes", Frame(raw::kWindowUpdate, 0, 0, "123"), {raw::kFrameSizeError}},
    {"ResetOfThreeBytes", OpenStream(1) + Frame(raw::kRstStream, 0, 1, "123"), {raw::kFrameSizeError}},
    {"GoawayOfSevenBytes", Frame(raw::kGoaway, 0, 0, "1234567"), {raw::kFrameSizeError}},
    // Stream identifiers: 5.1.1 and the sections of the frames.
    {"HeadersOnStreamZero", Frame(raw::kHeaders, raw::kEndHeaders, 0, ""), {raw::kProtocolError}},
    {"HeadersOnAnEvenStream", raw::EchoCall(2), {raw::kProtocolError}},
    {"HeadersOnALowerStream", raw::EchoCall(5) + raw::EchoCall(3), {raw::kProtocolError, raw::kStreamClosed}},
    {"DataOnStreamZero", Frame(raw::kData, 0, 0, "x"), {raw::kProtocolError}},
    {"DataOnAnIdleStream", Frame(raw::kData, 0, 7, "x"), {raw::kProtocolError}},
    {"ResetOfAnIdleStream", Frame(raw::kRstStream, 0, 7, raw::U32(8)), {raw::kProtocolError}},
    {"ResetOnStreamZero", Frame(raw::kRstStream, 0, 0, raw::U32(8)), {raw::kProtocolError}},
    {"WindowUpdateOnAnIdleStream", Frame(raw::kWindowUpdate, 0, 7, raw::U32(8)), {raw::kProtocolError}},
    {"SettingsOnAStream", Frame(raw::kSettings, 0, 1, ""), {raw::kProtocolError}},
    {"PingOnAStream", Frame(raw::kPing, 0, 1, "12345678"), {raw::kProtocolError}},
    {"GoawayOnAStream", Frame(raw::kGoaway, 0, 1, "12345678"), {raw::kProtocolError}},
    // Order: 6.10, 8.4.
    {"ContinuationWithoutHeaders", Frame(raw::kContinuation, raw::kEndHeaders, 1, ""), {raw::kProtocolError}},
    {"PingInsideAHeaderBlock",
     Frame(raw::kHeaders, 0, 1, raw::Block(raw::EchoHeaders())) + Frame(raw::kPing, 0, 0, "12345678"),
     {raw::kProtocolError}},
    {"ContinuationOfAnotherStream",
     Frame(raw::kHeaders, 0, 1, raw::Block(raw::EchoHeaders())) + Frame(raw::kContinuation, raw::kEndHeaders, 3, ""),
     {raw::kProtocolError}},
    {"PushPromiseFromAClient", Frame(raw::kPushPromise, raw::kEndHeaders, 1, raw::U32(2)), {raw::kProtocolError}},
    // Values: 6.1, 6.5.2, 6.9.
    {"PaddingLongerThanTheFrame",
     OpenStream(1) + Frame(raw::kData, raw::kPadded, 1,
                           "\x09"
                           "12345678"),
     {raw::kProtocolError}},
    {"EnablePushOfTwo", raw::Settings({{2, 2}}), {raw::kProtocolError}},
    {"InitialWindowAboveTheMaximum", raw::Settings({{4, 0x80000000}}), {raw::kFlowControlError}},
    {"MaxFrameSizeBelowTheMinimum", raw::Settings({{5, 16383}}), {raw::kProtocolError}},
    {"WindowUpdateOfZeroOnTheConnection", Frame(raw::kWindowUpdate, 0, 0, raw::U32(0)), {raw::kProtocolError}},
    {"ConnectionWindowOverflow", Frame(raw::kWindowUpdate, 0, 0, raw::U32(0x7fffffff)), {raw::kFlowControlError}},
    {"InitialWindowOverflowsAnOpenStream",
     OpenStream(1) + Frame(raw::kWindowUpdate, 0, 1, raw::U32(0x7ffffff0 - 65535)) + raw::Settings({{4, 0x7fffffff}}),
     {raw::kFlowControlError}},
    // HPACK: RFC 7541 2.3.3, 4.2, 5.1, 5.2, 6.1.
    {"IndexZero", HeaderBlock("\x80"), {raw::kCompressionError}},
    {"IndexBeyondTheTable", HeaderBlock("\xff\x20"), {raw::kCompressionError}},
    {"IntegerThatNeverEnds", HeaderBlock("\xff" + std::string(20, '\xff')), {raw::kCompressionError}},
    {"StringLongerThanTheBlock", HeaderBlock(std::string("\x00\x7f\xff\xff\xff\x07", 6)), {raw::kCompressionError}},
    {"HuffmanEndOfStringInside", HeaderBlock(std::string("\x00\x84\xff\xff\xff\xff\x00", 7)), {raw::kCompressionError}},
    {"TableSizeAboveTheSetting", HeaderBlock("\x3f\xff\xff\x7f"), {raw::kCompressionError}},
    {"TableSizeUpdateAfterAField", HeaderBlock(raw::Block(raw::EchoHeaders()) + "\x20"), {raw::kCompressionError}},
    // Our own bounds.
    {"HeaderBlockWithoutEnd",
     [] {
       std::string frames = Frame(raw::kHeaders, 0, 1, raw::Block(raw::EchoHeaders()));
       const std::string part = raw::Block({{"x-filler", std::string(16000, 'f')}});
       for (int i = 0; i < 20; ++i) frames += Frame(raw::kContinuation, 0, 1, part);
       return frames;
     }(),
     {raw::kEnhanceYourCalm}},
    {"EmptyContinuationsWithoutEnd",
     [] {
       std::string frames = Frame(raw::kHeaders, 0, 1, raw::Block(raw::EchoHeaders()));
       for (int i = 0; i < 100'000; ++i) frames += Frame(raw::kContinuation, 0, 1, "");
       return frames;
     }(),
     {raw::kEnhanceYourCalm}},
};
INSTANTIATE_TEST_SUITE_P(BadInput, ConnectionError, testing::ValuesIn(kMistakes),
                         [](const auto& info) { return info.param.name; });

// Requests that break a rule of RFC 9113 8.2 and 8.3: the stream fails with PROTOCOL_ERROR or a 400, the
// connection goes on.
struct BadRequest {
  std::string name;
  raw::Fields fields;
};
void PrintTo(const BadRequest& request, std::ostream* out) { *out << request.name; }

raw::Fields With(raw::Fields fields, const std::string& name, const std::string& value) {
  fields.emplace_back(name, value);
  return fields;
}
raw::Fields Without(const std::string& name) {
  raw::Fields fields = raw::EchoHeaders();
  std::erase_if(fields, [&](const auto& field) { return field.first == name; });
  return fields;
}

class MalformedRequest : public BadInput, public testing::WithParamInterface<BadRequest> {};

TEST_P(MalformedRequest, FailsItsStreamAndNoOther) {
  RawPeer peer = Connected();
  ASSERT_TRUE(peer.Send(raw::Headers(1, GetParam().fields, true)));
  const RawPeer::Answer answer = peer.AnswerOf(1);
  if (answer.reset) {
    EXPECT_EQ(*answer.reset, raw::kProtocolError);
  } else {
    EXPECT_TRUE(answer.ended);
    EXPECT_NE(answer.grpc_status(), "0");
  }
  ExpectServedOn(peer, 3);
}

const BadRequest kBadRequests[] = {
    {"UpperCaseName", With(raw::EchoHeaders(), "X-Upper", "1")},
    {"EmptyName", With(raw::EchoHeaders(), "", "1")},
    {"LineBreakInAValue", With(raw::EchoHeaders(), "x-a", "1\r\nx-b: 2")},
    {"NulInAValue", With(raw::EchoHeaders(), "x-a", std::string("1\0002", 3))},
    {"ConnectionField", With(raw::EchoHeaders(), "connection", "close")},
    {"TransferEncoding", With(raw::EchoHeaders(), "transfer-encoding", "chunked")},
    {"TeOtherThanTrailers", With(Without("te"), "te", "gzip")},
    {"NoMethod", Without(":method")},
    {"NoPath", Without(":path")},
    {"NoScheme", Without(":scheme")},
    {"EmptyPath", With(Without(":path"), ":path", "")},
    {"PseudoFieldAfterAnother", With(raw::EchoHeaders(), ":path", "/a/b")},
    {"UnknownPseudoField", {{":method", "POST"}, {":path", "/a/b"}, {":scheme", "http"}, {":what", "1"}}},
    {"ResponsePseudoField", {{":method", "POST"}, {":path", "/a/b"}, {":scheme", "http"}, {":status", "200"}}},
    {"ContentLengthThatDoesNotFit", With(raw::EchoHeaders(), "content-length", "5")},
};
INSTANTIATE_TEST_SUITE_P(BadInput, MalformedRequest, testing::ValuesIn(kBadRequests),
                         [](const auto& info) { return info.param.name; });

TEST_F(BadInput, AHeaderListAboveTheLimitFailsItsStreamOnly) {
  raw::Fields fields = raw::EchoHeaders();
  for (int i = 0; i < 70; ++i) fields.emplace_back("x-field-" + std::to_string(i), std::string(1000, 'v'));
  RawPeer peer = Connected();
  ASSERT_TRUE(peer.Send(LongHeaders(1, raw::Block(fields)) + Frame(raw::kData, raw::kEndStream, 1, "")));
  const RawPeer::Answer answer = peer.AnswerOf(1);
  EXPECT_TRUE(answer.reset || answer.grpc_status() == "8") << answer.grpc_status();
  ExpectServedOn(peer, 3);
}

TEST_F(BadInput, AnHpackBombFailsItsStreamOnly) {
  // One field of 3900 bytes enters the table; then 16000 references of one byte each stand for 62 MB.
  std::string block = raw::Block(raw::EchoHeaders());
  block += "\x40" + raw::Block({{"x-bomb", std::string(3900, 'b')}}).substr(1);
  const size_t before = base::Block::LiveBytes();
  RawPeer peer = Connected();
  ASSERT_TRUE(
      peer.Send(LongHeaders(1, block + std::string(16000, '\xbe')) + Frame(raw::kData, raw::kEndStream, 1, "")));
  const RawPeer::Answer answer = peer.AnswerOf(1);
  EXPECT_TRUE(answer.reset || answer.grpc_status() == "8") << answer.grpc_status();
  EXPECT_LT(base::Block::LiveBytes(), before + (2u << 20));
  ExpectServedOn(peer, 3);
}

TEST_F(BadInput, DataAboveTheStreamWindowIsAFlowControlError) {
  RawPeer peer = Connected();
  std::string frames = OpenStream(1);
  for (int i = 0; i < 1000; ++i) frames += Frame(raw::kData, 0, 1, std::string(16384, 'd'));
  peer.Send(frames);
  const auto end = peer.Until([](const RawPeer::Frame& frame) {
    return frame.type == raw::kGoaway || (frame.type == raw::kRstStream && frame.stream == 1);
  });
  ASSERT_TRUE(end.has_value());
  const uint32_t code = end->Number(end->type == raw::kGoaway ? 4 : 0);
  // A unary call's second message may be refused by the backend first; what may not happen is that all of it is taken.
  EXPECT_THAT(code, AnyOf(Eq(raw::kFlowControlError), Eq(raw::kStreamClosed), Eq(raw::kCancel), Eq(raw::kNoError)));
  EXPECT_LT(base::Block::LiveBytes(), 8u << 20);
}

// RFC 9113 6.4 has the connection end, and a gRPC client makes this mistake (docs/http2.md): its other calls end first.
TEST_F(BadInput, AResetOfAnIdleStreamLetsTheOpenCallsEnd) {
  RawPeer peer = Connected();
  ASSERT_TRUE(peer.Send(raw::Headers(1, raw::EchoHeaders()) + Frame(raw::kRstStream, 0, 7, raw::U32(raw::kCancel))));
  const auto goaway = peer.Until([](const RawPeer::Frame& frame) { return frame.type == raw::kGoaway; });
  ASSERT_TRUE(goaway.has_value());
  EXPECT_EQ(goaway->Number(0), 1u);
  EXPECT_EQ(goaway->Number(4), raw::kProtocolError);
  ASSERT_TRUE(peer.Send(Frame(raw::kData, raw::kEndStream, 1, raw::Message(""))));
  EXPECT_EQ(peer.AnswerOf(1).grpc_status(), "0");
  EXPECT_EQ(peer.Rest(), "");  // nothing more, and the end
}

TEST_F(BadInput, AStreamWindowThatOverflowsFailsItsStreamOnly) {
  RawPeer peer = Connected();
  ASSERT_TRUE(peer.Send(OpenStream(1) + Frame(raw::kWindowUpdate, 0, 1, raw::U32(0x7fffffff))));
  EXPECT_EQ(peer.AnswerOf(1).reset, raw::kFlowControlError);  // RFC 9113 6.9.1
  ExpectServedOn(peer, 3);
}

TEST_F(BadInput, AWindowUpdateOfZeroFailsItsStreamOnly) {
  RawPeer peer = Connected();
  ASSERT_TRUE(peer.Send(OpenStream(1) + Frame(raw::kWindowUpdate, 0, 1, raw::U32(0))));
  EXPECT_EQ(peer.AnswerOf(1).reset, raw::kProtocolError);  // RFC 9113 6.9
  ExpectServedOn(peer, 3);
}

TEST_F(BadInput, DataAfterTheEndOfARequestIsStreamClosed) {
  RawPeer peer = Connected();
  echo::v1::EchoRequest request;
  request.set_delay_ms(kForEver);
  ASSERT_TRUE(peer.Send(raw::Headers(1, raw::EchoHeaders()) +
                        Frame(raw::kData, raw::kEndStream, 1, raw::Message(request.SerializeAsString())) +
                        Frame(raw::kData, 0, 1, "more")));
  const auto end = peer.Until([](const RawPeer::Frame& frame) {
    return frame.type == raw::kGoaway || (frame.type == raw::kRstStream && frame.stream == 1);
  });
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->Number(end->type == raw::kGoaway ? 4 : 0), raw::kStreamClosed);  // RFC 9113 5.1
}

TEST_F(BadInput, UnknownFramesAndSettingsAreIgnored) {
  RawPeer peer = Connected();
  ASSERT_TRUE(peer.Send(Frame(0xfa, 0xff, 0, "whatever") + Frame(0xfb, 0xff, 9, "whatever") +
                        raw::Settings({{0xf0f0, 7}}) + Frame(raw::kPriority, 0, 1, raw::U32(0) + "\x10")));
  ExpectServedOn(peer, 1);
}

TEST_F(BadInput, RequestsThatAreNotGrpcAreRefusedWithAStatus) {
  RawPeer peer = Connected();
  uint32_t stream = 1;
  for (const raw::Fields& fields :
       {With(Without("content-type"), "content-type", "text/html"), Without("content-type"),
        raw::Fields{{":method", "GET"}, {":scheme", "http"}, {":path", "/index.html"}, {":authority", "a"}}}) {
    ASSERT_TRUE(peer.Send(raw::Headers(stream, fields, true)));
    const RawPeer::Answer answer = peer.AnswerOf(stream);
    EXPECT_TRUE(answer.ended);
    EXPECT_FALSE(answer.fields.at(":status") == "200" && answer.grpc_status() == "0");
    stream += 2;
  }
  ExpectServedOn(peer, stream);
}

TEST_F(BadInput, ATimeoutThatIsNoTimeoutDoesNotHang) {
  RawPeer peer = Connected();
  uint32_t stream = 1;
  for (const std::string& timeout :
       std::vector<std::string>{"", "S", "5", "5x", "-1S", "123456789S", "1 S", "99999999H", "0n"}) {
    ASSERT_TRUE(peer.Send(raw::Headers(stream, With(raw::EchoHeaders(), "grpc-timeout", timeout)) +
                          Frame(raw::kData, raw::kEndStream, stream, raw::Message(""))));
    const RawPeer::Answer answer = peer.AnswerOf(stream);
    EXPECT_TRUE(answer.ended || answer.reset) << timeout;
    if (timeout == "99999999H") {
      EXPECT_EQ(answer.grpc_status(), "0");
    }
    if (timeout == "0n") {
      EXPECT_EQ(answer.grpc_status(), "4");
    }
    stream += 2;
  }
}

TEST_F(BadInput, StreamsResetAsSoonAsTheyAreOpenLeaveNothing) {
  RawPeer peer = Connected();
  for (uint32_t i = 0; i < 20'000; ++i) {
    const uint32_t stream = 2 * i + 1;
    if (!peer.Send(raw::EchoCall(stream) + Frame(raw::kRstStream, 0, stream, raw::U32(raw::kCancel)))) break;
  }
  EXPECT_LT(base::Block::LiveBytes(), 64u << 20);
}

TEST_F(BadInput, RandomFramesNeverTakeTheProcessDown) {
  const uint32_t seed = testing::UnitTest::GetInstance()->random_seed();
  RecordProperty("seed", static_cast<int>(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", round " + std::to_string(round));
    RawPeer peer = RawPeer::Connect(proxy_->port());
    std::string bytes = raw::kPreface + raw::Settings() + raw::EchoCall(1);
    for (int i = 0; i < 20; ++i) {
      std::string payload(random() % 64, '\0');
      for (char& c : payload) c = static_cast<char>(random());
      bytes += Frame(random() % 11, static_cast<uint8_t>(random()), random() % 8, payload);
    }
    peer.Send(bytes);
    peer.HalfClose();
    peer.Rest();
  }
}

}  // namespace
}  // namespace sluice::integration
