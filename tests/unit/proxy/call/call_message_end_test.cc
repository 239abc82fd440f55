// The frame that ends a message, how its status is read, and which fields of a backend go on.
#include <gmock/gmock.h>

#include "support/conformance/script.h"
#include "support/proxy_fixture.h"

namespace sluice::proxy {
namespace {

using h2::Block;
using h2::Data;
using h2::Fields;
using h2::GrpcRequest;
using h2::GrpcResponse;
using h2::GrpcTrailers;
using h2::Headers;
using h2::Instead;
using h2::With;
using std::chrono::seconds;
using test::FramePeer;
using test::kLast;
using ::testing::HasSubstr;

class CallMessageEndTest : public test::ProxyFixture {
 public:
  void Ask(FramePeer& client, uint32_t id, const Fields& request = GrpcRequest()) {
    client.Send(Headers(id, Block(request)) + Data(id, h2::Message("q"), h2::kEndStream));
    Run();
  }
  static Fields Of(const char* content_type) { return Instead(GrpcRequest(), "content-type", content_type); }
  static bool Has(const Fields& fields, const std::string& name) {
    return std::any_of(fields.begin(), fields.end(), [&](const auto& field) { return field.first == name; });
  }
};

// gRPC over HTTP/2, "Responses": Trailers-Only is END_STREAM on the first block. gRPC's clients read no status in
// others.
TEST_F(CallMessageEndTest, AStatusInHeadersThatDoNotEndTheResponseIsNone) {
  routes[0].cache.methods = {{"/pkg.Service/Method", seconds(10)}};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  for (uint32_t id : {1, 3}) {
    Ask(client, id);
    ASSERT_FALSE(Up().streams[id].headers.empty()) << "answered from the cache";
    const std::string data = id == 1 ? Data(1, "", h2::kEndStream) : Data(3, h2::Message("a"), h2::kEndStream);
    Up().Send(Headers(id, Block(With(GrpcResponse(), {{"grpc-status", "0"}}))) + data);
    Run();
    EXPECT_FALSE(Has(client.streams[id].headers.at(0), "grpc-status"));
    EXPECT_EQ(client.streams[id].Value("grpc-status"), "2");
    EXPECT_EQ(client.streams[id].Value("sluice-reason"), "upstream_no_status");
  }
  EXPECT_EQ(metrics.calls_in_flight->Value(), 0);
}

TEST_F(CallMessageEndTest, TrailersWithoutAStatusDoNotBorrowThatOfTheHeaders) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Ask(client, 1);
  Up().Send(Headers(1, Block(With(GrpcResponse(), {{"grpc-status", "0"}}))) + Headers(1, Block({{"x", "y"}}), kLast));
  Run();
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "2");
}

// Cut by a reset, it ends with trailers of ours, which a length would contradict.
TEST_F(CallMessageEndTest, ALengthOfAGrpcResponseDoesNotGoOn) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Ask(client, 1);
  Up().Send(Headers(1, Block(With(GrpcResponse(), {{"content-length", "105"}}))) + Data(1, std::string(40, 'a')) +
            h2::RstStream(1, 2));
  Run();
  EXPECT_FALSE(Has(client.streams[1].headers.at(0), "content-length"));
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "13");
  const Fields get = {{":method", "GET"}, {":scheme", "http"}, {":path", "/page"}, {":authority", "test"}};
  client.Send(Headers(3, Block(get), kLast));
  Run();
  Up().Send(Headers(3, Block({{":status", "200"}, {"content-length", "4"}})) + Data(3, "page", h2::kEndStream));
  Run();
  EXPECT_EQ(client.streams[3].Value("content-length"), "4") << "of plain HTTP it does";
}

// An answer that is no gRPC goes to a gRPC client with a status of ours behind it, whether it is cut or whole.
TEST_F(CallMessageEndTest, APageForAGrpcCallKeepsNeitherItsLengthNorAStatusInItsHeaders) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  const Fields page = {{":status", "200"},
                       {"content-type", "text/html"},
                       {"content-length", "5"},
                       {"grpc-status", "0,0"},
                       {"grpc-message", "fine"}};
  Ask(client, 1);
  Up().Send(Headers(1, Block(page)) + Data(1, "much more than five bytes", h2::kEndStream));
  Run();
  Ask(client, 3);
  Up().Send(Headers(3, Block(page)) + Data(3, "1234\n", h2::kEndStream));
  Run();
  const std::map<uint32_t, std::string> reasons = {{1, "upstream_protocol"}, {3, "upstream_no_status"}};
  for (const auto& [id, reason] : reasons) {
    const Fields& headers = client.streams[id].headers.at(0);
    EXPECT_FALSE(Has(headers, "content-length")) << id;
    EXPECT_FALSE(Has(headers, "grpc-status")) << id;
    EXPECT_FALSE(Has(headers, "grpc-message")) << id;
    EXPECT_EQ(client.streams[id].Value("sluice-reason"), reason);
  }
}

TEST_F(CallMessageEndTest, AnswersOfOursHaveTheRequestsFormat) {
  routes[0].service = "none";
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  uint32_t id = 1;
  for (auto [asked, answered] : std::map<const char*, const char*>{
           {"application/grpc", "application/grpc"},
           {"application/grpc+json", "application/grpc+json"},
           {"Application/gRPC+proto; a=b", "application/grpc+proto"},
       }) {
    Ask(client, id, Of(asked));
    EXPECT_EQ(client.streams[id].Value("content-type"), answered);
    EXPECT_EQ(client.streams[id].Value("grpc-status"), "12");
    client.Send(
        Headers(id + 2, Block(With(Of(asked), {{"x", std::string(70000, 'x')}})).substr(0, 16384), h2::kEndStream));
    const std::string block = Block(With(Of(asked), {{"x", std::string(70000, 'x')}}));
    for (size_t at = 16384; at < block.size(); at += 16384)
      client.Send(h2::Continuation(id + 2, block.substr(at, 16384), at + 16384 < block.size() ? 0 : h2::kEndHeaders));
    Run();
    EXPECT_EQ(client.streams[id + 2].Value("content-type"), answered) << "refused by the session";
    EXPECT_EQ(client.streams[id + 2].Value("grpc-status"), "8");
    id += 4;
  }
  Ask(client, id, Of("application/grpcish"));
  EXPECT_EQ(client.streams[id].Value(":status"), "404");
  Ask(client, id + 2, With(Of("text/plain"), {{"x-bin", "%"}}));
  EXPECT_EQ(client.streams[id + 2].Value(":status"), "400");
}

TEST_F(CallMessageEndTest, APageInPlaceOfAnAnswerBecomesAStatusInTheRequestsFormat) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Ask(client, 1, Of("application/grpc+json"));
  Up().Send(Headers(1, Block({{":status", "503"}, {"content-type", "text/html"}})));
  Run();
  EXPECT_EQ(client.streams[1].Value("content-type"), "application/grpc+json");
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "14");
}

// A browser's page reads an answer only where CORS allows it.
TEST_F(CallMessageEndTest, AnswersOfTheSessionToGrpcWebAreOfGrpcWeb) {
  listener.grpc_web.enabled = true;
  listener.grpc_web.cors.origins = {"https://a.test"};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Ask(client, 1, With(Of("application/grpc-web+json"), {{"origin", "https://a.test"}, {"x-bin", "%"}}));
  EXPECT_EQ(client.streams[1].Value("content-type"), "application/grpc-web+json");
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "3");
  EXPECT_EQ(client.streams[1].Value("access-control-allow-origin"), "https://a.test");
}

TEST_F(CallMessageEndTest, InterimResponsesReachPlainHttpClients) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  const Fields get = {{":method", "GET"}, {":scheme", "http"}, {":path", "/page"}, {":authority", "test"}};
  client.Send(Headers(1, Block(get), kLast));
  Ask(client, 3);
  for (uint32_t id : {1, 3}) {
    Up().Send(Headers(id, Block({{":status", "103"}, {"link", "</a.css>"}, {"sluice-reason", "x"}})));
    Run();
  }
  EXPECT_EQ(client.streams[1].headers, (std::vector<Fields>{{{":status", "103"}, {"link", "</a.css>"}}}));
  EXPECT_TRUE(client.streams[3].headers.empty()) << "to gRPC they say nothing";
  Up().Send(Headers(1, Block({{":status", "200"}})) + Data(1, "page", h2::kEndStream));
  Run();
  EXPECT_EQ(client.streams[1].Value(":status"), "200");
  EXPECT_EQ(client.streams[1].data, "page");
}

TEST_F(CallMessageEndTest, AStatusThatIsNoNumberIsUnknown) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  struct Row {
    const char *value, *status, *message;
  };
  uint32_t id = 1;
  for (const Row& row :
       {Row{"0x0", "2", "grpc-status \"0x0\" of the endpoint is no number: why"},
        Row{"-1", "2", "grpc-status \"-1\" of the endpoint is no number: why"},
        Row{"", "2", "grpc-status \"\" of the endpoint is no number: why"},
        Row{"99999999999", "2", "grpc-status \"99999999999\" of the endpoint is no number: why"}, Row{"00", "0", "why"},
        Row{"005", "5", "why"}, Row{"16", "16", "why"}, Row{"17", "17", "why"}, Row{"100", "100", "why"}}) {
    Ask(client, id);
    Up().Send(Headers(id, Block(GrpcResponse())) +
              Headers(id, Block({{"grpc-status", row.value}, {"grpc-message", "why"}}), kLast));
    Run();
    EXPECT_EQ(client.streams[id].Value("grpc-status"), row.status) << row.value;
    EXPECT_EQ(client.streams[id].Value("grpc-message"), row.message);
    id += 2;
  }
}

TEST_F(CallMessageEndTest, WhatOnlyTheProxySaysIsNotABackends) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Ask(client, 1);
  const Fields ours = {{"sluice-reason", "x"}, {"sluice-processed", "no"}, {"sluice-call-id", "1"}};
  Up().Send(Headers(1, Block(With(GrpcResponse(), ours))) + Headers(1, Block(With(GrpcTrailers(), ours)), kLast));
  Run();
  ASSERT_EQ(client.streams[1].headers.size(), 2u);
  EXPECT_EQ(client.streams[1].headers[0], GrpcResponse());
  EXPECT_EQ(client.streams[1].headers[1], GrpcTrailers());
}

// RFC 9111 4.1, and a cookie is one caller's.
TEST_F(CallMessageEndTest, ResponsesForOneCallerAreNotGivenToOthers) {
  routes[0].cache.methods = {{"/pkg.Service/Method", seconds(10)}};
  routes[0].cache.vary = {"x-known"};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  uint32_t id = 1, up = 1;
  for (const Fields& own :
       {Fields{{"vary", "*"}}, Fields{{"vary", "x-known, X-Tenant"}}, Fields{{"set-cookie", "a=b"}}}) {
    Ask(client, id);
    Ask(client, id + 2);  // joins the fetch
    Up().Send(Headers(up, Block(With(GrpcResponse(), own))) + Data(up, h2::Message("a")) +
              Headers(up, Block(GrpcTrailers()), kLast));
    Run();
    EXPECT_EQ(client.streams[id].Value("grpc-status"), "0");
    EXPECT_TRUE(client.streams[id + 2].headers.empty()) << "it was given another caller's";
    ASSERT_FALSE(Up().streams[up + 2].headers.empty());
    Respond(Up(), up + 2, h2::Message("b"));
    Run();
    EXPECT_EQ(client.streams[id + 2].data, h2::Message("b"));
    response_cache->Purge({});
    id += 4;
    up += 4;
  }
  Ask(client, id);
  Up().Send(Headers(up, Block(With(GrpcResponse(), {{"vary", "X-Known, grpc-accept-encoding"}}))) +
            Data(up, h2::Message("a")) + Headers(up, Block(GrpcTrailers()), kLast));
  Run();
  Ask(client, id + 2);
  EXPECT_EQ(client.streams[id + 2].data, h2::Message("a"));
}

}  // namespace
}  // namespace sluice::proxy
