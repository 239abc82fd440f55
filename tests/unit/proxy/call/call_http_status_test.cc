// Responses to gRPC calls that are no gRPC, as an intermediary's page: what they come to, and that they are tried
// again.
#include "proxy/call/call.h"
#include "support/proxy_fixture.h"

namespace sluice::proxy {
namespace {

using h2::Block;
using h2::Data;
using h2::Headers;
using test::FramePeer;
using test::kLast;

const h2::Fields kPage = {{":status", "503"}, {"content-type", "text/html"}};

class CallHttpStatusTest : public test::ProxyFixture {
 public:
  // The newest stream of the one endpoint.
  uint32_t Newest() { return Up().streams.rbegin()->first; }
  void Answer(const std::string& frames) {
    Up().Send(frames);
    Run();
  }
};

// In one header block, or with a page behind it.
TEST_F(CallHttpStatusTest, AnHttpStatusIsTriedAgainByWhatItComesTo) {
  routes[0].retry.methods = RetryOptions::Methods::kAll;
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(h2::GrpcRequest()), kLast));
  Run();
  const uint32_t first = Newest();
  Answer(Headers(first, Block(kPage)));
  EXPECT_FALSE(client.streams[1].end);
  Advance(std::chrono::milliseconds(100));
  const uint32_t second = Newest();
  ASSERT_NE(second, first);
  EXPECT_TRUE(Up().streams[first].reset) << "the page is let go";
  Answer(Headers(second, Block({{":status", "429"}}), kLast));
  Advance(std::chrono::milliseconds(100));
  const uint32_t third = Newest();
  ASSERT_NE(third, second);
  Answer(Headers(third, Block(kPage)) + Data(third, "<html>"));
  EXPECT_EQ(client.streams[1].Value(":status"), "200");
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "14");
  EXPECT_EQ(client.streams[1].Value("grpc-message"), "HTTP status 503");
  EXPECT_EQ(client.streams[1].data, "");
  EXPECT_TRUE(client.streams[1].end);
  EXPECT_EQ(metrics.status_retries[14]->Value(), 2u);
  EXPECT_EQ(state().endpoints[0].endpoint->MakeCell(0).cause.load(), upstream::Cause::kUnavailable);
}

// Errors of HTTP that say gRPC's content type go on as they are: their status is in the trailers.
TEST_F(CallHttpStatusTest, WhatSaysThatItIsGrpcIsReadToItsEnd) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(h2::GrpcRequest()), kLast));
  Run();
  Answer(Headers(Newest(), Block({{":status", "503"}, {"content-type", "application/grpc"}})) +
         Headers(Newest(), Block(h2::GrpcTrailers("5")), kLast));
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "5");
}

const h2::Fields kPlain = {{":method", "GET"}, {":scheme", "http"}, {":path", "/page"}, {":authority", "test"}};

// It looks at :status alone, so the proxy's own errors are that.
TEST_F(CallHttpStatusTest, ARequestThatIsNotGrpcIsRefusedInHttp) {
  routes[0].rate_limit = {.rate = 0.001, .burst = 1, .queue_max = 0};
  routes[0].timeout = std::chrono::milliseconds(100);
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(kPlain), kLast));
  Run();
  client.Send(Headers(3, Block(kPlain), kLast) + Headers(5, Block(h2::GrpcRequest()), kLast));
  Run();
  EXPECT_EQ(client.streams[3].headers[0][0], (std::pair<std::string, std::string>(":status", "429")));
  EXPECT_EQ(client.streams[3].Value("grpc-status"), "<none>");
  EXPECT_EQ(client.streams[3].Value("content-length"), "0");
  EXPECT_EQ(client.streams[3].Value("sluice-reason"), "rate_limited");
  EXPECT_EQ(client.streams[3].Value("sluice-limit"), "route/r/rate");
  EXPECT_NE(client.streams[3].Value("retry-after"), "<none>");
  EXPECT_TRUE(client.streams[3].end);
  EXPECT_EQ(client.streams[5].Value(":status"), "200") << "gRPC: as before";
  EXPECT_EQ(client.streams[5].Value("grpc-status"), "8");
  Advance(std::chrono::milliseconds(200));
  EXPECT_EQ(client.streams[1].Value(":status"), "504");
}

TEST_F(CallHttpStatusTest, WithoutABackendItIs503) {
  Start({});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(kPlain), kLast));
  Run();
  EXPECT_EQ(client.streams[1].Value(":status"), "503");
  EXPECT_EQ(client.streams[1].Value("sluice-reason"), "no_endpoint");
  EXPECT_EQ(client.streams[1].data, "");
}

// END_STREAM would say that the half of the body is all of it.
TEST_F(CallHttpStatusTest, ABodyThatBreaksOffIsReset) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(kPlain), kLast));
  Run();
  Answer(Headers(Newest(), Block({{":status", "200"}})) + Data(Newest(), "half"));
  Answer(h2::RstStream(Newest(), 2));
  EXPECT_EQ(client.streams[1].data, "half");
  EXPECT_FALSE(client.streams[1].end);
  EXPECT_TRUE(client.streams[1].reset);
}

}  // namespace
}  // namespace sluice::proxy
