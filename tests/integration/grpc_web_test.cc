// gRPC-Web against real gRPC servers: calls and streams in both modes, errors, deadlines, gates, the cache, a reload.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "sluice/echo/v1/echo.pb.h"
#include "support/backends.h"
#include "support/jwt_maker.h"
#include "support/proxy.h"
#include "support/raw_peer.h"
#include "support/web_frames.h"

namespace sluice::integration {
namespace {

using test::FromText;
using test::ToText;
using ::testing::HasSubstr;

constexpr const char* kPage = "https://app.example.com";

// What a client of gRPC-Web makes of an answer.
struct WebReply {
  std::vector<echo::v1::EchoReply> messages;
  std::map<std::string, std::string> headers, trailers;  // trailers: of the body, else the headers
  std::optional<uint32_t> reset;
  bool ended = false;
};

class GrpcWeb : public testing::TestWithParam<bool> {
 protected:
  GrpcWeb() {
    config_.endpoints = backends_.endpoints();
    config_.hash_by = "random";
    config_.listener = {"grpc_web: {cors: {origins: [\"" + std::string(kPage) +
                        "\"], headers: [authorization], expose: [sluice-reason]}}"};
  }
  void Start() { proxy_ = std::make_unique<Proxy>(config_); }
  RawPeer Connected() {
    RawPeer peer = RawPeer::Connect(proxy_->port());
    peer.Handshake();
    return peer;
  }

  static bool text() { return GetParam(); }
  static std::string Ask(uint32_t stream, const std::string& method, const echo::v1::EchoRequest& request,
                         const raw::Fields& more = {}) {
    raw::Fields fields = {{":method", "POST"},
                          {":scheme", "http"},
                          {":path", "/sluice.echo.v1.Echo/" + method},
                          {":authority", "test"},
                          {"origin", kPage},
                          {"x-grpc-web", "1"},
                          {"content-type", text() ? "application/grpc-web-text" : "application/grpc-web+proto"}};
    fields.insert(fields.end(), more.begin(), more.end());
    const std::string message = raw::Message(request.SerializeAsString());
    return raw::Headers(stream, fields) +
           raw::Frame(raw::kData, raw::kEndStream, stream, text() ? ToText(message) : message);
  }
  static WebReply Read(RawPeer& peer, uint32_t stream) {
    RawPeer::Answer answer = peer.AnswerOf(stream);
    WebReply reply;
    reply.headers = answer.fields;
    reply.trailers = answer.fields;
    reply.reset = answer.reset;
    reply.ended = answer.ended;
    std::string body = text() ? FromText(answer.data) : answer.data;
    while (body.size() >= 5) {
      const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(body[i])); };
      const size_t size = byte(1) << 24 | byte(2) << 16 | byte(3) << 8 | byte(4);
      EXPECT_LE(size + 5, body.size());
      const std::string frame = body.substr(5, size);
      if (byte(0) == 0x80) {
        EXPECT_EQ(body.size(), size + 5) << "something is behind the trailers";
        reply.trailers = Lines(frame);
      } else {
        EXPECT_TRUE(reply.messages.emplace_back().ParseFromString(frame));
      }
      body.erase(0, size + 5);
    }
    EXPECT_EQ(body, "");
    return reply;
  }
  WebReply Call(const std::string& method, const echo::v1::EchoRequest& request, const raw::Fields& more = {}) {
    RawPeer peer = Connected();
    EXPECT_TRUE(peer.Send(Ask(1, method, request, more)));
    return Read(peer, 1);
  }
  static std::map<std::string, std::string> Lines(std::string_view text) {
    std::map<std::string, std::string> out;
    while (!text.empty()) {
      const size_t end = text.find("\r\n"), colon = text.find(": ");
      EXPECT_NE(end, text.npos);
      out[std::string(text.substr(0, colon))] = text.substr(colon + 2, end - colon - 2);
      text.remove_prefix(end + 2);
    }
    return out;
  }
  static echo::v1::EchoRequest Payload(const std::string& payload) {
    echo::v1::EchoRequest request;
    request.set_payload(payload);
    return request;
  }
  static std::string Status(WebReply& reply) { return reply.trailers["grpc-status"]; }

  Backends backends_{2};
  ProxyConfig config_;
  std::unique_ptr<Proxy> proxy_;
};

INSTANTIATE_TEST_SUITE_P(Modes, GrpcWeb, testing::Bool(),
                         [](const auto& mode) { return mode.param ? "Text" : "Binary"; });

TEST_P(GrpcWeb, ACallIsAnswered) {
  Start();
  echo::v1::EchoRequest request = Payload("hello");
  request.set_return_metadata(true);
  WebReply reply = Call("Unary", request);
  EXPECT_EQ(Status(reply), "0");
  EXPECT_TRUE(reply.ended);
  ASSERT_EQ(reply.messages.size(), 1u);
  EXPECT_EQ(reply.messages[0].payload(), "hello");
  EXPECT_EQ(reply.headers["content-type"], text() ? "application/grpc-web-text+proto" : "application/grpc-web+proto");
  EXPECT_EQ(reply.headers["access-control-allow-origin"], kPage);
}

TEST_P(GrpcWeb, MessagesOfEachSizeComeThroughInBothDirections) {
  Start();
  RawPeer peer = Connected();
  uint32_t stream = 1;
  for (size_t size : {0u, 1u, 2u, 3u, 4u, 100u, 5'000u, 11'000u}) {
    ASSERT_TRUE(peer.Send(Ask(stream, "Unary", Payload(std::string(size, 'p')))));
    WebReply reply = Read(peer, stream);
    ASSERT_EQ(reply.messages.size(), 1u) << size;
    EXPECT_EQ(reply.messages[0].payload().size(), size);
    EXPECT_EQ(Status(reply), "0");
    stream += 2;
  }
}

TEST_P(GrpcWeb, AStreamIsAsManyMessages) {
  Start();
  echo::v1::EchoRequest request = Payload("one of many");
  request.set_reply_count(500);
  WebReply reply = Call("ServerStream", request);
  ASSERT_EQ(reply.messages.size(), 500u);
  for (uint64_t i = 0; i < 500; ++i) EXPECT_EQ(reply.messages[i].index(), i);
  EXPECT_EQ(Status(reply), "0");
}

TEST_P(GrpcWeb, ErrorsHaveTheirDetails) {
  Start();
  for (const bool alone : {true, false}) {
    echo::v1::EchoRequest request = Payload("x");
    request.set_reply_count(2);
    request.set_trailers_only(alone);
    request.mutable_failure()->set_code(5);
    request.mutable_failure()->set_message("gone: 100%");
    request.mutable_failure()->set_details("abc");
    request.mutable_failure()->set_after(alone ? 0 : 1);
    WebReply reply = Call("ServerStream", request);
    EXPECT_EQ(reply.messages.size(), alone ? 0u : 1u);
    EXPECT_EQ(Status(reply), "5");
    EXPECT_EQ(reply.trailers["grpc-message"], "gone: 100%25");
    EXPECT_THAT(reply.trailers["grpc-status-details-bin"], HasSubstr("YWJj"));
    EXPECT_THAT(reply.headers["access-control-expose-headers"], HasSubstr("grpc-status-details-bin"));
  }
}

TEST_P(GrpcWeb, TheDeadlineEndsACallAndAStream) {
  Start();
  echo::v1::EchoRequest late = Payload("x");
  late.set_delay_ms(60'000);
  WebReply reply = Call("Unary", late, {{"grpc-timeout", "200m"}});
  EXPECT_EQ(Status(reply), "4");
  echo::v1::EchoRequest slow = Payload("x");
  slow.set_reply_count(2);
  slow.set_reply_interval_ms(60'000);
  reply = Call("ServerStream", slow, {{"grpc-timeout", "500m"}});
  EXPECT_EQ(reply.messages.size(), 1u);
  EXPECT_EQ(Status(reply), "4");
  EXPECT_TRUE(reply.ended);
  EXPECT_TRUE(WaitUntil([&] { return backends_.in_flight() == 0; }));
}

TEST_P(GrpcWeb, ACancelledStreamEndsAtTheServer) {
  Start();
  echo::v1::EchoRequest slow = Payload("x");
  slow.set_reply_count(2);
  slow.set_reply_interval_ms(60'000);
  RawPeer peer = Connected();
  ASSERT_TRUE(peer.Send(Ask(1, "ServerStream", slow)));
  ASSERT_TRUE(peer.Until([](const RawPeer::Frame& frame) { return frame.type == raw::kData; }));
  ASSERT_TRUE(peer.Send(raw::Frame(raw::kRstStream, 0, 1, raw::U32(raw::kCancel))));
  EXPECT_TRUE(WaitUntil([&] { return backends_.cancelled() == 1; }));
}

TEST_P(GrpcWeb, AGateAsksForTheToken) {
  const test::JwtMaker maker(test::JwtMaker::Kind::kEc, "k");
  TempDir dir;
  std::ofstream(dir.path() + "/jwks.json") << "{\"keys\":[" << maker.Jwk() << "]}";
  config_.top.push_back("jwt: [{name: corp, jwks_file: " + dir.path() + "/jwks.json, issuer: us}]");
  config_.route.push_back("jwt: {provider: corp}");
  Start();
  WebReply refused = Call("Unary", Payload("x"));
  EXPECT_EQ(Status(refused), "16");
  EXPECT_EQ(refused.headers["sluice-reason"], "jwt_missing");
  EXPECT_EQ(refused.headers["access-control-allow-origin"], kPage);
  const std::string claims = "{\"iss\":\"us\",\"exp\":" + std::to_string(std::time(nullptr) + 600) + "}";
  WebReply let = Call("Unary", Payload("x"), {{"authorization", "Bearer " + maker.Token(claims)}});
  EXPECT_EQ(Status(let), "0");
  EXPECT_EQ(backends_.calls(), 1u);
}

TEST_P(GrpcWeb, AStoredResponseIsAnsweredInItsProtocol) {
  config_.route.push_back("cache: {ttl: 1h, methods: [sluice.echo.v1.Echo/Unary]}");
  Start();
  WebReply first = Call("Unary", Payload("cached"));
  WebReply second = Call("Unary", Payload("cached"));
  EXPECT_EQ(second.headers["sluice-cache"], "hit");
  ASSERT_EQ(second.messages.size(), 1u);
  EXPECT_EQ(second.messages[0].payload(), "cached");
  EXPECT_EQ(Status(second), "0");
  EXPECT_EQ(second.headers["access-control-allow-origin"], kPage);
  EXPECT_EQ(backends_.calls(), 1u);
}

// More than a worker likes to have alone: some of them move (docs/call-movement.md).
TEST_P(GrpcWeb, ManyCallsOfOneConnectionAreEachAnswered) {
  config_.top.push_back("workers: 2");
  Start();
  RawPeer peer = Connected();
  for (int round = 0; round < 20; ++round) {
    std::string all;
    const auto first = static_cast<uint32_t>(round * 400 + 1);
    for (uint32_t i = 0; i < 200; ++i) all += Ask(first + 2 * i, "Unary", Payload("call " + std::to_string(i)));
    ASSERT_TRUE(peer.Send(all));
    // The last one's answer need not be the last: each is looked for among what came.
    std::map<uint32_t, std::string> data;
    size_t ended = 0;
    while (ended < 200) {
      const auto frame = peer.Next();
      ASSERT_TRUE(frame);
      if (frame->type != raw::kData) continue;
      data[frame->stream] += frame->payload;
      ended += (frame->flags & raw::kEndStream) != 0;
    }
    for (uint32_t i = 0; i < 200; ++i) {
      const std::string& got = data[first + 2 * i];
      EXPECT_THAT(text() ? FromText(got) : got, HasSubstr("call " + std::to_string(i)));
      EXPECT_THAT(text() ? FromText(got) : got, HasSubstr("grpc-status: 0\r\n"));
    }
    ASSERT_TRUE(peer.Send(raw::Frame(raw::kWindowUpdate, 0, 0, raw::U32(60'000))));
  }
}

TEST_P(GrpcWeb, AReloadHoldsForNewConnections) {
  Start();
  RawPeer old = Connected();
  config_.listener = {"grpc_web: {cors: {origins: [\"https://other.example.com\"]}}"};
  proxy_->Rewrite(config_);
  const admin::ReloadResult result = proxy_->server().Reload();
  EXPECT_TRUE(result.errors.empty()) << result.errors[0];
  ASSERT_TRUE(old.Send(Ask(1, "Unary", Payload("x"))));
  EXPECT_EQ(Read(old, 1).headers["access-control-allow-origin"], kPage);
  WebReply reply = Call("Unary", Payload("x"));
  EXPECT_EQ(Status(reply), "0");
  EXPECT_EQ(reply.headers.count("access-control-allow-origin"), 0u);
}

TEST_P(GrpcWeb, APreflightNeedsNoEndpoint) {
  config_.endpoints.clear();
  Start();
  RawPeer peer = Connected();
  ASSERT_TRUE(peer.Send(raw::Headers(1, test::Preflight(kPage), true)));
  RawPeer::Answer answer = peer.AnswerOf(1);
  EXPECT_EQ(answer.fields[":status"], "204");
  EXPECT_EQ(answer.fields["access-control-allow-methods"], "POST");
  EXPECT_EQ(proxy_->Metric("sluice_cors_preflights_total"), 1);
  EXPECT_EQ(proxy_->Metric("sluice_grpc_web_requests_total"), 0);
}

}  // namespace
}  // namespace sluice::integration
