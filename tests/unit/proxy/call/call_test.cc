// A call through the whole proxy: the request that goes up, the response that comes back.
#include "proxy/call/call.h"

#include <algorithm>

#include "support/proxy_fixture.h"

namespace sluice::proxy {
namespace {

using h2::Block;
using h2::Data;
using h2::Fields;
using h2::Headers;
using h2::With;
using std::chrono::milliseconds;
using test::FramePeer;
using test::Heard;
using test::kLast;

class CallTest : public test::ProxyFixture {};

TEST_F(CallTest, AUnaryCallGoesThroughByteForByte) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  const Fields request =
      With(h2::GrpcRequest(), {{"x-b", "1"}, {"x-a", ""}, {"x-b", "2"}, {"key-bin", "AAEC"}, {"x-b", "1"}});
  client.Send(Headers(1, Block(request)) + Data(1, "request", h2::kEndStream));
  Run();
  Heard& up = Up().streams[1];
  ASSERT_EQ(up.headers.size(), 1u);
  EXPECT_EQ(up.headers[0], request);
  EXPECT_EQ(up.data, "request");
  EXPECT_TRUE(up.end);

  const Fields head = With(h2::GrpcResponse(), {{"z", "1"}, {"a", "2"}, {"z", "3"}});
  const Fields tail = With(h2::GrpcTrailers(), {{"grpc-message", "a%20b"}, {"y", "2"}, {"x-bin", "/w"}, {"y", "1"}});
  Up().Send(Headers(1, Block(head)) + Data(1, "response") + Headers(1, Block(tail), kLast));
  Run();
  Heard& down = client.streams[1];
  EXPECT_EQ(down.headers, (std::vector<Fields>{head, tail}));
  EXPECT_EQ(down.data, "response");
  EXPECT_TRUE(down.end);
  EXPECT_FALSE(down.reset);
  EXPECT_FALSE(up.reset);
}

// Labels without bound: a client that makes up names makes no series.
TEST_F(CallTest, AuthoritiesOfClientsAreNoLabels) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  const auto series = [&] {
    const std::string text = registry.RenderPrometheus();
    return std::count(text.begin(), text.end(), '\n');
  };
  const auto call = [&](uint32_t id, const std::string& name) {
    Fields request = h2::GrpcRequest();
    for (auto& [key, value] : request) {
      if (key == ":authority") value = name + ".example.com";
    }
    client.Send(Headers(id, Block(h2::With(request, {{"x-" + name, name}, {"user-agent", name}})), kLast));
    Run();
    Up().Send(Headers(id, Block(h2::With(h2::GrpcResponse(), {{"grpc-status", "0"}})), kLast));
    Run();
    EXPECT_TRUE(client.streams[id].end);
  };
  call(1, "first");
  const auto before = series();
  for (uint32_t i = 0; i < 200; ++i) call(3 + 2 * i, "name" + std::to_string(i));
  EXPECT_EQ(series(), before);
}

TEST_F(CallTest, ATrailersOnlyResponseStaysOneHeaderBlock) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(h2::GrpcRequest()), kLast));
  Run();
  const Fields only = With(h2::GrpcResponse(), {{"grpc-status", "5"}, {"grpc-message", "no"}});
  Up().Send(Headers(1, Block(only), kLast));
  Run();
  EXPECT_EQ(client.streams[1].headers, (std::vector<Fields>{only}));
  EXPECT_TRUE(client.streams[1].end);
}

TEST_F(CallTest, AResponseWithoutGrpcStatusGetsOurs) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(h2::GrpcRequest()), kLast) + Headers(3, Block(h2::GrpcRequest()), kLast) +
              Headers(5, Block(h2::GrpcRequest()), kLast));
  Run();
  // The end comes with DATA, in trailers without the field, in the only header block.
  Up().Send(Headers(1, Block(h2::GrpcResponse())) + Data(1, "part", h2::kEndStream));
  Up().Send(Headers(3, Block(h2::GrpcResponse())) + Headers(3, Block({{"other", "1"}}), kLast));
  Up().Send(Headers(5, Block(h2::GrpcResponse()), kLast));
  Run();
  for (uint32_t id : {1, 3, 5}) {
    Heard& down = client.streams[id];
    ASSERT_EQ(down.headers.size(), 2u) << id;
    EXPECT_EQ(down.headers[0], h2::GrpcResponse());
    EXPECT_EQ(down.Value("grpc-status"), "2");
    EXPECT_EQ(down.Value("sluice-reason"), "upstream_no_status");
    EXPECT_TRUE(down.end);
  }
  EXPECT_EQ(client.streams[1].data, "part");
}

TEST_F(CallTest, AResponseToACallThatIsNotGrpcIsLeftAsItIs) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  const Fields get = {{":method", "GET"}, {":scheme", "http"}, {":path", "/x"}, {":authority", "a"}};
  client.Send(Headers(1, Block(get), kLast) + Headers(3, Block(get), kLast));
  Run();
  Up().Send(Headers(1, Block({{":status", "200"}, {"content-type", "text/plain"}})) + Data(1, "page", h2::kEndStream));
  Up().Send(Headers(3, Block({{":status", "404"}}), kLast));
  Run();
  EXPECT_EQ(client.streams[1].headers.size(), 1u);
  EXPECT_EQ(client.streams[1].data, "page");
  EXPECT_EQ(client.streams[3].headers, (std::vector<Fields>{{{":status", "404"}}}));
  EXPECT_TRUE(client.streams[1].end && client.streams[3].end);
}

// What the client said of its own transport is in x-forwarded-proto, where that is wanted.
TEST_F(CallTest, TheSchemeIsThatOfTheConnectionToTheBackend) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Fields request = h2::GrpcRequest();
  request[1].second = "https";
  for (uint32_t id : {1, 3, 5}) {
    client.Send(Headers(id, Block(request), kLast));
    Run();
    EXPECT_EQ(Up().streams[id].Value(":scheme"), "http");
    EXPECT_EQ(Up().streams[id].Value(":path"), "/pkg.Service/Method");
  }
}

TEST_F(CallTest, RequestTrailersAreForwarded) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(h2::GrpcRequest())) + Data(1, "x") + Headers(1, Block({{"checksum", "7"}}), kLast));
  client.Send(Headers(3, Block(h2::GrpcRequest())));
  Run();
  client.Send(Headers(3, Block({{"late", "1"}}), kLast));
  Run();
  EXPECT_EQ(Up().streams[1].headers.back(), (Fields{{"checksum", "7"}}));
  EXPECT_EQ(Up().streams[3].headers.back(), (Fields{{"late", "1"}}));
  EXPECT_TRUE(Up().streams[1].end && Up().streams[3].end);
}

TEST_F(CallTest, InformationalResponsesAreNotForwarded) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(h2::GrpcRequest()), kLast));
  Run();
  Up().Send(Headers(1, Block({{":status", "103"}, {"link", "x"}})) + Headers(1, Block({{":status", "100"}})));
  Respond(Up(), 1, "ok");
  Run();
  EXPECT_EQ(client.streams[1].headers, (std::vector<Fields>{h2::GrpcResponse(), h2::GrpcTrailers()}));
}

TEST_F(CallTest, AnEarlyResponseEndsTheCallAndTheRestOfTheRequestIsNotWanted) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(h2::GrpcRequest())) + Data(1, "first"));
  Run();
  Respond(Up(), 1, "early");
  Run();
  EXPECT_EQ(client.streams[1].data, "early");
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "0");
  EXPECT_TRUE(client.streams[1].end);
  EXPECT_EQ(client.streams[1].reset, 0u);  // NO_ERROR, RFC 9113 8.1
  EXPECT_EQ(Up().streams[1].reset, 8u);    // CANCEL
}

TEST_F(CallTest, EveryRequestByteIsCreditedOnceAlsoWhereItWasNotTaken) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  const uint64_t before = client.Credited(0);
  // 40 calls of 128 KiB are more than the connection's window of 4 MiB: it must come back.
  const std::string chunk(16384, 'x');
  for (uint32_t id = 1; id < 80; id += 2) {
    client.Send(Headers(id, Block(h2::GrpcRequest())));
    for (int i = 0; i < 8; ++i) client.Send(Data(id, chunk));
    Run();
    Up().Send(Headers(id, Block(With(h2::GrpcResponse(), {{"grpc-status", "8"}})), kLast));
    Run();
    ASSERT_EQ(client.streams[id].Value("grpc-status"), "8") << id;
  }
  const uint64_t sent = 40u * 8 * chunk.size();
  EXPECT_LE(client.Credited(0) - before, sent);
  EXPECT_GE(client.Credited(0) - before + 4 * 1024 * 1024 / 2,
            sent);  // credit is given in batches of half a window
}

TEST_F(CallTest, AClientThatDoesNotReadStopsTheUpstream) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client({{4, 0}});  // SETTINGS_INITIAL_WINDOW_SIZE 0
  client.credit = false;
  client.Send(Headers(1, Block(h2::GrpcRequest()), kLast));
  Run();
  // The upstream sends as much as its windows allow.
  Up().Send(Headers(1, Block(h2::GrpcResponse())));
  uint64_t window = 65535 + Up().Credited(1), sent = 0;
  const uint64_t stream_window = cluster.http2.stream_window_bytes;
  while (sent + 16384 <= stream_window) {
    Up().Send(Data(1, std::string(16384, 'd')));
    sent += 16384;
    Run();
  }
  EXPECT_EQ(65535 + Up().Credited(1), window);  // nothing was given back
  EXPECT_EQ(client.streams[1].data.size(), 0u);
  EXPECT_EQ(client.streams[1].headers.size(), 1u);
  // The client reads on.
  client.credit = true;
  client.Send(h2::WindowUpdate(1, 1 << 20) + h2::WindowUpdate(0, 1 << 20));
  Run();
  EXPECT_EQ(client.streams[1].data.size(), sent);
  EXPECT_GE(Up().Credited(1), stream_window / 2);
  Up().Send(Headers(1, Block(h2::GrpcTrailers()), kLast));
  Run();
  EXPECT_TRUE(client.streams[1].end);
}

TEST_F(CallTest, AClientResetReachesTheUpstream) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(h2::GrpcRequest())));
  Run();
  client.Send(h2::RstStream(1, 8));
  Run();
  EXPECT_EQ(Up().streams[1].reset, 8u);
  EXPECT_EQ(client.streams[1].headers.size(), 0u);
  EXPECT_EQ(metrics.calls_in_flight->Value(), 0);
}

TEST_F(CallTest, ALostClientConnectionResetsItsCalls) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(h2::GrpcRequest())) + Headers(3, Block(h2::GrpcRequest()), kLast));
  Run();
  client.wire().Break(ECONNRESET);
  Run();
  EXPECT_EQ(Up().streams[1].reset, 8u);
  EXPECT_EQ(Up().streams[3].reset, 8u);
  EXPECT_EQ(metrics.downstream_connections->Value(), 0);
}

TEST_F(CallTest, UpstreamResetCodesBecomeTheirGrpcStatus) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  // gRPC over HTTP/2, "Errors". REFUSED_STREAM (7) is tried again and has its own tests.
  const std::pair<uint32_t, const char*> cases[] = {{0, "13"}, {1, "13"}, {2, "13"}, {3, "13"},  {4, "13"}, {5, "13"},
                                                    {6, "13"}, {8, "1"},  {9, "13"}, {10, "13"}, {11, "8"}, {99, "13"}};
  uint32_t id = 1;
  for (auto [code, status] : cases) {
    client.Send(Headers(id, Block(h2::GrpcRequest()), kLast));
    Run();
    Up().Send(h2::RstStream(id, code));
    Run();
    EXPECT_EQ(client.streams[id].Value("grpc-status"), status) << code;
    EXPECT_EQ(client.streams[id].Value(":status"), "200") << code;
    EXPECT_TRUE(client.streams[id].end);
    id += 2;
  }
}

TEST_F(CallTest, AResetAfterTheResponseHasBegunBecomesTrailers) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(h2::GrpcRequest()), kLast));
  Run();
  Up().Send(Headers(1, Block(h2::GrpcResponse())) + Data(1, "part"));
  Run();
  Up().Send(h2::RstStream(1, 2));
  Run();
  ASSERT_EQ(client.streams[1].headers.size(), 2u);
  EXPECT_EQ(client.streams[1].Value(":status"), "<none>");
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "13");
  EXPECT_EQ(client.streams[1].Value("sluice-reason"), "upstream_reset");
  EXPECT_EQ(client.streams[1].data, "part");
}

TEST_F(CallTest, ALostUpstreamConnectionIsUnavailableAndNotTriedAgain) {
  Start({"10.0.0.1:1", "10.0.0.2:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(h2::GrpcRequest()), kLast));
  Run();
  auto holders = Holders({"10.0.0.1:1", "10.0.0.2:1"});
  ASSERT_EQ(holders.size(), 1u);
  Up(holders[0]).wire().Break(ECONNRESET);
  Run();
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "14");
  EXPECT_EQ(client.streams[1].Value("sluice-reason"), "connection_lost");
  EXPECT_EQ(net.host("10.0.0.1:1").dials + net.host("10.0.0.2:1").dials, 1);
}

TEST_F(CallTest, WithoutARouteTheMethodIsUnimplemented) {
  routes[0].service = "other.Service";
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(h2::GrpcRequest())));
  Run();
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "12");
  EXPECT_EQ(client.streams[1].Value("sluice-reason"), "no_route");
  EXPECT_EQ(client.streams[1].reset, 0u);
}

TEST_F(CallTest, AnEmptyClusterIsUnavailable) {
  Start({});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(h2::GrpcRequest()), kLast));
  Run();
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "14");
  EXPECT_EQ(client.streams[1].Value("sluice-reason"), "no_endpoint");
}

TEST_F(CallTest, WithAllEndpointsInBackOffCallsFailAtOnceAndRecoverAfterIt) {
  Start({"10.0.0.1:1"});
  net.host("10.0.0.1:1").mode = test::FakeHost::Mode::kRefuse;
  FramePeer& client = Client();
  client.Send(Headers(1, Block(h2::GrpcRequest()), kLast));
  Run();
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "14");
  const int dials = net.host("10.0.0.1:1").dials;
  client.Send(Headers(3, Block(h2::GrpcRequest()), kLast));
  Run();
  EXPECT_EQ(client.streams[3].Value("grpc-status"), "14");
  EXPECT_EQ(client.streams[3].Value("sluice-reason"), "no_endpoint");
  EXPECT_EQ(net.host("10.0.0.1:1").dials, dials);
  net.host("10.0.0.1:1").mode = test::FakeHost::Mode::kAccept;
  Advance(milliseconds(200));
  client.Send(Headers(5, Block(h2::GrpcRequest()), kLast));
  Run();
  Respond(Up(), 1, "back");
  Run();
  EXPECT_EQ(client.streams[5].data, "back");
}

}  // namespace
}  // namespace sluice::proxy
