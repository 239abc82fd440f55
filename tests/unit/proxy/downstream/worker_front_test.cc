// A worker's connections as a whole: draining, closing, changes of the list under calls.
#include "proxy/downstream/worker_front.h"

#include "support/proxy_fixture.h"

namespace sluice::proxy {
namespace {

using h2::Block;
using h2::Data;
using h2::GrpcRequest;
using h2::Headers;
using std::chrono::milliseconds;
using test::FramePeer;
using test::kLast;

class WorkerFrontTest : public test::ProxyFixture {
 public:
  void Drain() {
    front().on_drained = [this] { ++drained; };
    front().DrainDownstream();
    Run();
  }
  int drained = 0;
};

TEST_F(WorkerFrontTest, WithoutConnectionsADrainIsOverAtOnce) {
  Start({"10.0.0.1:1"});
  Drain();
  EXPECT_EQ(drained, 1);
}

TEST_F(WorkerFrontTest, ADrainEndsWithTheLastCallAndClosesIdleClientsBefore) {
  Start({"10.0.0.1:1"});
  FramePeer& idle = Client();
  FramePeer& busy = Client();
  busy.Send(Headers(1, Block(GrpcRequest()), kLast));
  Run();
  Drain();
  EXPECT_TRUE(idle.end);
  EXPECT_FALSE(busy.end);
  EXPECT_EQ(busy.Count(h2::kGoaway), 2u);
  idle.wire().Close();
  Run();
  EXPECT_EQ(drained, 0);
  Respond(Up(), 1, "ok");
  Run();
  EXPECT_EQ(busy.streams[1].data, "ok");
  EXPECT_TRUE(busy.end);
  busy.wire().Close();
  Run();
  EXPECT_EQ(drained, 1);
}

TEST_F(WorkerFrontTest, AConnectionThatComesDuringADrainIsToldToGo) {
  Start({"10.0.0.1:1"});
  FramePeer& first = Client();
  first.Send(Headers(1, Block(GrpcRequest()), kLast));
  Run();
  Drain();
  FramePeer& late = Client();
  EXPECT_EQ(late.Count(h2::kGoaway), 2u);
  EXPECT_TRUE(late.end);
}

// Another process accepts by now: clients are told to go one after the other, the one that came first first.
TEST_F(WorkerFrontTest, ConnectionsLeaveOneAfterTheOther) {
  Start({"10.0.0.1:1"});
  std::vector<FramePeer*> clients;
  for (int i = 0; i < 4; ++i) clients.push_back(&Client());
  const auto told = [&] {
    std::string out;
    for (const FramePeer* client : clients) out += client->Count(h2::kGoaway) > 0 ? 'x' : '.';
    return out;
  };
  front().on_drained = [this] { ++drained; };
  front().LeaveDownstream(milliseconds(100));
  Run();
  EXPECT_EQ(told(), "x...");
  EXPECT_EQ(front().MayBegin(), 3u);
  Advance(milliseconds(26));
  EXPECT_EQ(told(), "xx..");
  clients[2]->wire().Close();
  FramePeer& late = Client();
  EXPECT_EQ(late.Count(h2::kGoaway), 2u);
  Advance(milliseconds(26));
  EXPECT_EQ(told(), "xx.x");
  EXPECT_EQ(drained, 0);
  Advance(milliseconds(26));
  EXPECT_EQ(front().MayBegin(), 0u);
  clients.push_back(&late);
  for (FramePeer* client : clients) client->wire().Close();
  Run();
  EXPECT_EQ(drained, 1);
}

TEST_F(WorkerFrontTest, WithoutATimeConnectionsLeaveAtOnce) {
  Start({"10.0.0.1:1"});
  FramePeer &one = Client(), &other = Client();
  front().LeaveDownstream(milliseconds(0));
  Run();
  EXPECT_EQ(one.Count(h2::kGoaway), 2u);
  EXPECT_EQ(other.Count(h2::kGoaway), 2u);
}

TEST_F(WorkerFrontTest, AStopDoesNotWaitForConnectionsThatWereNotToldYet) {
  Start({"10.0.0.1:1"});
  FramePeer &one = Client(), &other = Client();
  front().LeaveDownstream(std::chrono::seconds(100));
  Run();
  EXPECT_EQ(one.Count(h2::kGoaway), 2u);
  EXPECT_EQ(other.Count(h2::kGoaway), 0u);
  if (home) home->CloseAll();
  worker->CloseAll();
  Run();
  EXPECT_TRUE(other.end);
}

TEST_F(WorkerFrontTest, CloseAllEndsCallsInEveryState) {
  Start({"10.0.0.1:1", "10.0.0.2:1"});
  net.host("10.0.0.2:1").mode = test::FakeHost::Mode::kHang;
  FramePeer& client = Client();
  for (uint32_t id = 1; id < 20; id += 2) client.Send(Headers(id, Block(GrpcRequest())) + Data(id, "part"));
  Run();
  for (auto& [id, heard] : Up().streams) {
    if (!heard.headers.empty() && id % 4 == 1) Up().Send(Headers(id, Block(h2::GrpcResponse())));
  }
  Run();
  EXPECT_GT(metrics.calls_in_flight->Value(), 0);
  if (home) home->CloseAll();
  worker->CloseAll();
  Run();
  EXPECT_EQ(metrics.calls_in_flight->Value(), 0);
  EXPECT_TRUE(client.end);
}

TEST_F(WorkerFrontTest, CallsInFlightSurviveTheRemovalOfTheirEndpoint) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(GrpcRequest())));
  Run();
  SetEndpoints({"10.0.0.2:1"});
  Run();
  client.Send(Data(1, "rest", h2::kEndStream) + Headers(3, Block(GrpcRequest()), kLast));
  Run();
  EXPECT_EQ(Up("10.0.0.1:1").streams[1].data, "rest");
  EXPECT_EQ(Up("10.0.0.2:1").streams[1].headers.size(), 1u);
  Respond(Up("10.0.0.1:1"), 1, "old");
  Respond(Up("10.0.0.2:1"), 1, "new");
  Run();
  EXPECT_EQ(client.streams[1].data, "old");
  EXPECT_EQ(client.streams[3].data, "new");
  Advance(milliseconds(1001));  // the old connection's linger
  EXPECT_EQ(worker->context.pools.size(), 1u);
}

TEST_F(WorkerFrontTest, AfterDrainTimeoutTheCallsOfARemovedEndpointAreCutOff) {
  cluster.drain_timeout = milliseconds(500);
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(GrpcRequest())));
  Run();
  SetEndpoints({"10.0.0.2:1"});
  Run();
  Advance(milliseconds(499));
  EXPECT_FALSE(client.streams[1].end);
  Advance(milliseconds(2));
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "14");
}

TEST_F(WorkerFrontTest, AnUpstreamThatDoesNotReadStopsTheClient) {
  Start({"10.0.0.1:1"});
  net.host("10.0.0.1:1").settings = {{4, 0}};  // SETTINGS_INITIAL_WINDOW_SIZE 0
  FramePeer& client = Client();
  client.Send(Headers(1, Block(GrpcRequest())));
  Run();
  Up().credit = false;
  const uint64_t stream_window = listener.http2.stream_window_bytes;
  uint64_t sent = 0;
  for (; sent + 16384 <= stream_window; sent += 16384) {
    client.Send(Data(1, std::string(16384, 'd')));
    Run();
  }
  EXPECT_EQ(client.Credited(1), 0u);
  EXPECT_EQ(Up().streams[1].data.size(), 0u);
  Up().credit = true;
  Up().Send(h2::WindowUpdate(1, 1 << 20) + h2::WindowUpdate(0, 1 << 20));
  Run();
  EXPECT_EQ(Up().streams[1].data.size(), sent);
  EXPECT_GE(client.Credited(1), stream_window / 2);
}

}  // namespace
}  // namespace sluice::proxy
