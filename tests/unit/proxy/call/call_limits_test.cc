// Calls at the limits: clients that reset as fast as they ask, responses at the deadline, and a proxy that stops.
#include <gmock/gmock.h>

#include "proxy/call/call.h"
#include "support/proxy_fixture.h"

namespace sluice::proxy {
namespace {

using h2::Block;
using h2::Fields;
using h2::GrpcRequest;
using h2::Headers;
using h2::With;
using std::chrono::milliseconds;
using test::FramePeer;
using test::kLast;

class CallLimitsTest : public test::ProxyFixture {};

TEST_F(CallLimitsTest, AClientThatResetsWhatItAsksForHoldsNoMoreCallsThanTwiceItsStreams) {
  listener.http2.concurrent_streams_max = 10;
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  std::string flood;
  for (uint32_t id = 1; id < 201; id += 2) flood += Headers(id, Block(GrpcRequest())) + h2::RstStream(id, 8);
  client.Send(flood);
  Run();
  size_t refused = 0;
  for (const auto& [id, stream] : client.streams) refused += stream.reset == 7u;
  EXPECT_EQ(refused, 80u);  // of 100, those beyond 2 x 10
  EXPECT_EQ(time.runtime.LiveTasks(), 0u);
  EXPECT_TRUE(worker->context.calls.empty());
  // The connection is as good as before.
  client.Send(Headers(301, Block(GrpcRequest()), kLast));
  Run();
  Respond(Up(), 1, "");
  Run();
  EXPECT_EQ(client.streams[301].Value("grpc-status"), "0");
}

TEST_F(CallLimitsTest, AResponseThatIsCompleteAtTheDeadlineIsNotLate) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(With(GrpcRequest(), {{"grpc-timeout", "1S"}})), kLast));
  Run();
  Respond(Up(), 1, "in time");
  Advance(milliseconds(1000));
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "0");
  EXPECT_EQ(client.streams[1].data, "in time");
}

TEST_F(CallLimitsTest, AStopAnswersTheCallsInFlight) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(GrpcRequest()), kLast) + Headers(3, Block(GrpcRequest())));
  Run();
  worker->EndCalls();
  Run();
  for (uint32_t id : {1u, 3u}) {
    EXPECT_EQ(client.streams[id].Value("grpc-status"), "14");
    EXPECT_EQ(client.streams[id].Value("sluice-reason"), "draining");
  }
  EXPECT_TRUE(worker->context.calls.empty());
}

}  // namespace
}  // namespace sluice::proxy
