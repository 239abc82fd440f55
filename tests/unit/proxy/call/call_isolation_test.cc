// What one call's header fields may cost: its own call, and no other, no connection, and no endpoint's good name.
#include <gmock/gmock.h>

#include <set>

#include "support/proxy_fixture.h"
#include "upstream/cluster_health.h"

namespace sluice::proxy {
namespace {

using h2::Block;
using h2::Data;
using h2::Fields;
using h2::GrpcRequest;
using h2::GrpcResponse;
using h2::GrpcTrailers;
using h2::Headers;
using h2::With;
using std::chrono::seconds;
using test::FramePeer;
using test::kLast;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

constexpr const char* kEndpoint = "10.0.0.1:1";
constexpr uint16_t kMaxHeaderListSize = 6;

class CallIsolationTest : public test::ProxyFixture {
 public:
  void Ask(FramePeer& client, uint32_t id, const Fields& more = {}, uint8_t flags = kLast) {
    client.Send(Headers(id, Block(With(GrpcRequest(), more)), flags));
    Run();
  }
  static Fields TrailersOnly(const Fields& more) {
    return With({{":status", "200"}, {"content-type", "application/grpc"}}, more);
  }
  // An honest call on the same connections is answered.
  void ExpectHonest(FramePeer& client, uint32_t id) {
    Ask(client, id);
    ASSERT_EQ(Up().streams.rbegin()->second.Value(":path"), "/pkg.Service/Method");
    Respond(Up(), Up().streams.rbegin()->first, "ok");
    Run();
    EXPECT_EQ(client.streams[id].Value("grpc-status"), "0");
    EXPECT_FALSE(client.end);
    EXPECT_FALSE(Up().end);
    EXPECT_EQ(net.host(kEndpoint).connections.size(), 1u) << "the connection was lost";
  }
  // No call is held against the endpoint.
  void ExpectGoodName() {
    Advance(upstream::Judge::kPeriod);
    state().health->Pass(*state().options, state().endpoints, *state().spill, time.clock.Now());
    EXPECT_EQ(state().endpoints[0].endpoint->record().state(), upstream::HealthState::kUp);
  }
};

TEST_F(CallIsolationTest, MetadataThatDoesNotDecodeReachesNoEndpoint) {
  Start({kEndpoint});
  FramePeer& client = Client();
  ExpectHonest(client, 1);
  const size_t heard = Up().streams.size();
  uint32_t id = 3;
  for (const Fields& bad : {Fields{{"x-bin", "%%%"}}, Fields{{"x-bin", "_-8"}}, Fields{{"x-bin", "Y==="}},
                            Fields{{"x-bin", "\xff"}}, Fields{{"-bin", "YWJj"}}, Fields{{"x-bin", "YWJj,%"}}}) {
    Ask(client, id, bad);
    EXPECT_EQ(client.streams[id].Value("grpc-status"), "3") << bad[0].second;
    EXPECT_EQ(client.streams[id].Value("sluice-reason"), "malformed_request");
    EXPECT_EQ(client.streams[id].Value("sluice-processed"), "no");
    EXPECT_THAT(client.streams[id].Value("grpc-message"), HasSubstr(bad[0].first));
    id += 2;
  }
  EXPECT_EQ(Up().streams.size(), heard);
  ExpectHonest(client, id);
}

TEST_F(CallIsolationTest, ListsOfBytesGoOnAsFieldsOfTheirOwn) {
  Start({kEndpoint});
  FramePeer& client = Client();
  Ask(client, 1, {{"x-bin", "YWJj,ZGVm"}, {"y-bin", "YQ=="}});
  const Fields& request = Up().streams[1].headers.at(0);
  EXPECT_THAT(request, Contains(Pair("x-bin", "YWJj")));
  EXPECT_THAT(request, Contains(Pair("x-bin", "ZGVm")));
  EXPECT_THAT(request, Contains(Pair("y-bin", "YQ")));
  Up().Send(Headers(1, Block(With(GrpcResponse(), {{"z-bin", "YQ==,YWJj"}, {"bad-bin", "%"}}))) +
            Headers(1, Block(With(GrpcTrailers(), {{"grpc-status-details-bin", "CAU="}})), kLast));
  Run();
  const Fields& headers = client.streams[1].headers.at(0);
  EXPECT_THAT(headers, Contains(Pair("z-bin", "YQ")));
  EXPECT_THAT(headers, Contains(Pair("z-bin", "YWJj")));
  EXPECT_THAT(headers, Not(Contains(Pair("bad-bin", "%"))));
  EXPECT_EQ(client.streams[1].Value("grpc-status-details-bin"), "CAU");
}

TEST_F(CallIsolationTest, RequestTrailersThatDoNotDecodeEndTheirCallAlone) {
  Start({kEndpoint});
  FramePeer& client = Client();
  Ask(client, 1, {}, h2::kEndHeaders);
  ASSERT_EQ(Up().streams.size(), 2u);  // stream 0 is the connection
  client.Send(Headers(1, Block({{"x-bin", "%"}}), kLast));
  Run();
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "3");
  EXPECT_EQ(client.streams[1].Value("sluice-processed"), "maybe");
  EXPECT_EQ(Up().streams[1].reset, 8u);
  EXPECT_EQ(Up().streams[1].headers.size(), 1u) << "the trailers went on";
  ExpectHonest(client, 3);
}

TEST_F(CallIsolationTest, ARequestAboveTheEndpointsLimitIsNotSent) {
  net.host(kEndpoint).settings = {{kMaxHeaderListSize, 8192}};
  Start({kEndpoint});
  FramePeer& client = Client();
  ExpectHonest(client, 1);
  const size_t heard = Up().streams.size();
  Ask(client, 3, {{"x", std::string(9000, 'x')}});
  EXPECT_EQ(client.streams[3].Value("grpc-status"), "8");
  EXPECT_EQ(client.streams[3].Value("sluice-reason"), "too_large");
  EXPECT_EQ(client.streams[3].Value("sluice-processed"), "no");
  EXPECT_THAT(client.streams[3].Value("grpc-message"),
              HasSubstr("above the 8192 bytes that endpoint 10.0.0.1:1 takes"));
  EXPECT_EQ(Up().streams.size(), heard);
  ExpectHonest(client, 5);
  ExpectGoodName();
}

TEST_F(CallIsolationTest, ARequestAboveOneEndpointsLimitGoesToAnother) {
  const std::string other = "10.0.0.2:1";
  net.host(kEndpoint).settings = {{kMaxHeaderListSize, 8192}};
  Start({kEndpoint, other});
  FramePeer& client = Client();
  std::set<uint32_t> answered;
  for (uint32_t id = 1; id <= 7; id += 2) {
    Ask(client, id, {{"x", std::string(9000, 'x')}});
    ASSERT_FALSE(net.host(other).connections.empty());
    FramePeer& up = *net.host(other).connections.back();
    for (auto& [stream, heard] : up.streams) {
      if (!heard.headers.empty() && !heard.reset && answered.insert(stream).second) Respond(up, stream, "ok");
    }
    Run();
    EXPECT_EQ(client.streams[id].Value("grpc-status"), "0") << id;
  }
}

// RFC 9113 6.5.2 counts names, values and 32 bytes a field.
TEST_F(CallIsolationTest, TheEndpointsLimitIsExact) {
  net.host(kEndpoint).settings = {{kMaxHeaderListSize, 1000}};
  Start({kEndpoint});
  FramePeer& client = Client();
  size_t bytes = 0;
  for (const auto& [name, value] : GrpcRequest()) bytes += name.size() + value.size() + 32;
  const std::string fits(1000 - bytes - 33, 'x');
  Ask(client, 1, {{"x", fits}});
  EXPECT_EQ(Up().streams[1].Value("x"), fits);
  Ask(client, 3, {{"x", fits + "x"}});
  EXPECT_EQ(client.streams[3].Value("sluice-reason"), "too_large");
}

TEST_F(CallIsolationTest, RequestTrailersAboveTheEndpointsLimitEndTheirCallAlone) {
  net.host(kEndpoint).settings = {{kMaxHeaderListSize, 8192}};
  Start({kEndpoint});
  FramePeer& client = Client();
  Ask(client, 1, {}, h2::kEndHeaders);
  client.Send(Headers(1, Block({{"x", std::string(9000, 'x')}}), kLast));
  Run();
  EXPECT_EQ(client.streams[1].Value("sluice-reason"), "too_large");
  EXPECT_EQ(Up().streams[1].reset, 8u);
  ExpectHonest(client, 3);
  ExpectGoodName();
}

TEST_F(CallIsolationTest, AResponseAboveTheClientsLimitEndsItsCallAlone) {
  Start({kEndpoint});
  FramePeer& client = Client({{kMaxHeaderListSize, 1000}});
  const Fields large = {{"x", std::string(900, 'x')}};
  for (uint32_t id : {1, 3, 5}) Ask(client, id);
  Up().Send(Headers(1, Block(With(GrpcResponse(), large))) + Data(1, "a"));
  Up().Send(Headers(3, Block(GrpcResponse())) + Data(3, "a") +
            Headers(3, Block(With(GrpcTrailers("5"), {{"x", std::string(2000, 'x')}})), kLast));
  Up().Send(Headers(5, Block(TrailersOnly(With(GrpcTrailers("5"), large))), kLast));
  Run();
  for (uint32_t id : {1, 3, 5}) {
    EXPECT_EQ(client.streams[id].Value("grpc-status"), "8") << id;
    EXPECT_EQ(client.streams[id].Value("sluice-reason"), "too_large");
    EXPECT_EQ(client.streams[id].Value("sluice-processed"), "maybe");
    EXPECT_TRUE(client.streams[id].end);
    EXPECT_EQ(client.streams[id].headers.size(), id == 3 ? 2u : 1u);
  }
  EXPECT_THAT(client.streams[3].Value("grpc-message"),
              HasSubstr("above the 1000 bytes that the client takes, with status NOT_FOUND"));
  EXPECT_EQ(Up().streams[1].reset, 8u);
  ExpectHonest(client, 7);
  ExpectGoodName();
}

TEST_F(CallIsolationTest, AStoredResponseAboveTheClientsLimitEndsItsCallAlone) {
  routes[0].cache.methods = {{"/pkg.Service/Method", seconds(10)}};
  Start({kEndpoint});
  FramePeer& large = Client();
  FramePeer& small = Client({{kMaxHeaderListSize, 1000}});
  const auto ask = [&](FramePeer& client, uint32_t id) {
    client.Send(Headers(id, Block(GrpcRequest())) + Data(id, h2::Message("q"), h2::kEndStream));
    Run();
  };
  ask(large, 1);
  Up().Send(Headers(1, Block(GrpcResponse())) + Data(1, h2::Message("a")) +
            Headers(1, Block(With(GrpcTrailers(), {{"x", std::string(2000, 'x')}})), kLast));
  Run();
  ask(large, 3);
  EXPECT_EQ(large.streams[3].Value("grpc-status"), "0");
  ask(small, 1);
  EXPECT_EQ(small.streams[1].Value("grpc-status"), "8");
  EXPECT_EQ(small.streams[1].Value("sluice-reason"), "too_large");
  ask(large, 5);
  EXPECT_EQ(large.streams[5].Value("grpc-status"), "0");
}

TEST_F(CallIsolationTest, AResponseAboveOurOwnLimitEndsItsCallAlone) {
  cluster.http2.resets_per_second = 10;
  Start({kEndpoint});
  FramePeer& client = Client();
  const std::string trailers = Block(With(GrpcTrailers(), {{"x", std::string(70000, 'x')}}));
  for (uint32_t id = 1; id < 60; id += 2) {
    Ask(client, id);
    std::string frames = Headers(id, Block(GrpcResponse())) + Data(id, "a");
    frames += Headers(id, trailers.substr(0, 16384), h2::kEndStream);
    for (size_t at = 16384; at < trailers.size(); at += 16384)
      frames += h2::Continuation(id, trailers.substr(at, 16384), at + 16384 < trailers.size() ? 0 : h2::kEndHeaders);
    Up().Send(frames);
    Run();
    ASSERT_EQ(client.streams[id].Value("grpc-status"), "8");
    ASSERT_EQ(client.streams[id].Value("sluice-reason"), "too_large");
  }
  EXPECT_THAT(client.streams[1].Value("grpc-message"),
              HasSubstr("response trailers of endpoint 10.0.0.1:1 of 70077 bytes are above the limit of 65536 bytes"));
  ExpectHonest(client, 61);
  ExpectGoodName();
}

// Python's `raise ValueError()` makes such a message, and the endpoint that runs it is well.
TEST_F(CallIsolationTest, BlanksAtTheEndsAreNoFault) {
  cluster.http2.resets_per_second = 10;
  Start({kEndpoint});
  FramePeer& client = Client();
  for (uint32_t id = 1; id < 60; id += 2) {
    Ask(client, id, {{"x-note", " hello\t"}});
    ASSERT_EQ(Up().streams[id].Value("x-note"), "hello");
    Up().Send(Headers(id, Block(TrailersOnly({{"grpc-status", "5"}, {"grpc-message", "no such user: "}, {"y", " z"}})),
                      kLast));
    Run();
    ASSERT_EQ(client.streams[id].Value("grpc-status"), "5");
    ASSERT_EQ(client.streams[id].Value("grpc-message"), "no such user:%20");
    ASSERT_EQ(client.streams[id].Value("y"), "z");
  }
  ExpectHonest(client, 61);
  ExpectGoodName();
}

// Clients have limits of a few KiB for an answer.
TEST_F(CallIsolationTest, AnAnswerHasLittleOfTheCallersText) {
  routes[0].service = "pkg.Service";
  Start({kEndpoint});
  FramePeer& client = Client();
  std::string path = "/" + std::string(300, 'a');
  client.Send(Headers(1, Block(GrpcRequest(path)), kLast));
  Run();
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "12");
  EXPECT_LE(client.streams[1].Value("grpc-message").size(), 256u);
  EXPECT_THAT(client.streams[1].Value("grpc-message"), EndsWith("..."));
}

}  // namespace
}  // namespace sluice::proxy
