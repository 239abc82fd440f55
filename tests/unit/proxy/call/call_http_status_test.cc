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

}  // namespace
}  // namespace sluice::proxy
