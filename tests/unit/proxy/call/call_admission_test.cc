// What limits do to calls: which go, wait or are refused, what is given back, and what the client and the log are told.
#include <gmock/gmock.h>

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
using ::testing::HasSubstr;

class CallAdmissionTest : public test::ProxyFixture {
 public:
  // A call without message; streams are numbered by the caller.
  void Call(FramePeer& client, uint32_t id, const Fields& more = {}) {
    client.Send(Headers(id, Block(With(GrpcRequest(), more)), kLast));
    Run();
  }
  size_t Upstream(const std::string& address = "10.0.0.1:1") {
    size_t n = 0;
    if (!Connected(address)) return 0;
    for (const auto& [id, stream] : Up(address).streams) n += !stream.headers.empty();
    return n;
  }
  void ExpectRefused(FramePeer& client, uint32_t id, const std::string& reason, const std::string& bound) {
    EXPECT_EQ(client.streams[id].Value("grpc-status"), "8") << id;
    EXPECT_EQ(client.streams[id].Value("sluice-reason"), reason) << id;
    EXPECT_EQ(client.streams[id].Value("sluice-limit"), bound) << id;
    EXPECT_GE(std::atoi(client.streams[id].Value("grpc-retry-pushback-ms").c_str()), 1) << id;
    EXPECT_TRUE(client.streams[id].end) << id;
  }
};

TEST_F(CallAdmissionTest, WithoutLimitsNothingIsSaid) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1);
  Respond(Up(), 1, "");
  Run();
  EXPECT_EQ(client.streams[1].headers.back(), h2::GrpcTrailers());
}

TEST_F(CallAdmissionTest, ACallAboveTheClustersRateWaitsAndSaysSo) {
  cluster.rate_limit = {.rate = 10, .burst = 1};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1);
  Call(client, 3);
  EXPECT_EQ(Upstream(), 1u);
  Advance(milliseconds(99));
  EXPECT_EQ(Upstream(), 1u);
  Advance(milliseconds(2));
  EXPECT_EQ(Upstream(), 2u);
  Respond(Up(), 1, "");
  Respond(Up(), 3, "");
  Run();
  EXPECT_EQ(client.streams[1].Value("sluice-waited"), "<none>");
  EXPECT_THAT(client.streams[3].Value("sluice-waited"), HasSubstr("cluster/c/rate=10"));
  EXPECT_EQ(client.streams[3].Value("grpc-status"), "0");
}

TEST_F(CallAdmissionTest, WaitersForARateGoInOrderOfArrival) {
  cluster.rate_limit = {.rate = 100, .burst = 1};
  Start({"10.0.0.1:1"});
  FramePeer& first = Client();
  FramePeer& second = Client();
  Call(first, 1, {{"n", "0"}});
  for (int i = 1; i <= 20; ++i)
    Call(i % 3 == 0 ? second : first, static_cast<uint32_t>(2 * i + 1), {{"n", std::to_string(i)}});
  for (int i = 0; i < 25; ++i) Advance(milliseconds(10));
  ASSERT_EQ(Upstream(), 21u);
  int n = 0;
  for (auto& [id, stream] : Up().streams) {
    if (stream.headers.empty()) continue;
    bool found = false;
    for (const auto& [name, value] : stream.headers[0]) found |= name == "n" && value == std::to_string(n);
    EXPECT_TRUE(found) << n;
    ++n;
  }
}

TEST_F(CallAdmissionTest, AFullQueueForTheRateRefusesAtOnceWithPushback) {
  cluster.rate_limit = {.rate = 1, .burst = 1, .queue_max = 1, .queue_time = milliseconds(0)};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  for (uint32_t id : {1, 3, 5}) Call(client, id);
  ExpectRefused(client, 5, "rate_limited", "cluster/c/rate");
  EXPECT_EQ(Upstream(), 1u);
}

TEST_F(CallAdmissionTest, AWaitThatWouldPassTheDeadlineIsRefusedAtOnce) {
  cluster.rate_limit = {.rate = 1, .burst = 1, .queue_time = milliseconds(0)};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1);
  Call(client, 3, {{"grpc-timeout", "500m"}});
  ExpectRefused(client, 3, "deadline_too_near", "cluster/c/rate");
  Call(client, 5, {{"grpc-timeout", "1500m"}});
  EXPECT_FALSE(client.streams[5].end);
  Advance(milliseconds(1001));
  EXPECT_EQ(Upstream(), 2u);
}

// A host has all addresses of its /64 (RFC 6177), and an IPv4 client of a listener on [::] comes with a mapped one.
TEST_F(CallAdmissionTest, AClientIsNotAnotherByAnotherAddressOfItsNetwork) {
  routes[0].client_rate_limit.rate = {.rate = 1, .burst = 1, .queue_max = 0};
  Start({"10.0.0.1:1"});
  const auto goes = [this](const std::string& peer) {
    FramePeer& client = ClientOf(front(), peer);
    const size_t before = Upstream();
    Call(client, 1);
    return Upstream() == before + 1;
  };
  EXPECT_TRUE(goes("[2001:db8:1:2::1]:40000"));
  EXPECT_FALSE(goes("[2001:db8:1:2::1]:40001"));
  EXPECT_FALSE(goes("[2001:db8:1:2:aaaa::7]:40000"));
  EXPECT_TRUE(goes("[2001:db8:1:3::1]:40000"));
  EXPECT_TRUE(goes("192.0.2.7:40000"));
  EXPECT_FALSE(goes("[::ffff:192.0.2.7]:40000"));
}

TEST_F(CallAdmissionTest, ADeadlineThatPassesInTheQueueNamesTheBound) {
  cluster.concurrency = {.max = 1};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1);
  Call(client, 3, {{"grpc-timeout", "100m"}});
  Advance(milliseconds(100));
  EXPECT_EQ(client.streams[3].Value("grpc-status"), "4");
  EXPECT_EQ(client.streams[3].Value("sluice-limit"), "cluster/c/concurrency");
  EXPECT_EQ(state().limits->concurrency->waiting(), 0u);
  Respond(Up(), 1, "");
  Run();
  EXPECT_EQ(state().limits->concurrency->in_use(), 0u);
  EXPECT_EQ(Upstream(), 1u);  // it did not start after its deadline
}

TEST_F(CallAdmissionTest, APermitGoesToTheNextWhenACallEndsHoweverItEnds) {
  cluster.concurrency = {.max = 1, .queue_time = milliseconds(0)};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  for (uint32_t id : {1, 3, 5, 7, 9, 11}) Call(client, id, {{"grpc-timeout", id == 7 ? "300m" : "1000m"}});
  EXPECT_EQ(Upstream(), 1u);
  Respond(Up(), 1, "");  // ends well
  Run();
  EXPECT_EQ(Upstream(), 2u);
  Up().Send(h2::RstStream(3, 2));  // is reset by the upstream
  Run();
  EXPECT_EQ(Upstream(), 3u);
  client.Send(h2::RstStream(5, 8));  // is cancelled by the client
  Run();
  EXPECT_EQ(Upstream(), 4u);
  Advance(milliseconds(301));  // passes its deadline
  EXPECT_EQ(client.streams[7].Value("grpc-status"), "4");
  EXPECT_EQ(Upstream(), 5u);
  Up().wire().Close();  // loses its connection
  Run();
  EXPECT_EQ(client.streams[9].Value("grpc-status"), "14");
  Run();
  Respond(Up(), 1, "");
  Run();
  EXPECT_EQ(client.streams[11].Value("grpc-status"), "0");
  EXPECT_EQ(state().limits->concurrency->in_use(), 0u);
}

TEST_F(CallAdmissionTest, AClientThatGoesAwayLeavesTheQueue) {
  cluster.concurrency = {.max = 1};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  FramePeer& other = Client();
  Call(client, 1);
  for (uint32_t id : {1, 3, 5}) Call(other, id);
  Call(client, 3);
  EXPECT_EQ(state().limits->concurrency->waiting(), 4u);
  other.wire().Close();
  Run();
  EXPECT_EQ(state().limits->concurrency->waiting(), 1u);
  Respond(Up(), 1, "");
  Run();
  EXPECT_EQ(Upstream(), 2u);
}

TEST_F(CallAdmissionTest, CappedTokensComeBackWithTheEndOfTheCall) {
  cluster.rate_limit = {.rate = 1000, .burst = 2, .capped = true, .queue_time = milliseconds(0)};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  for (uint32_t id : {1, 3, 5}) Call(client, id);
  Advance(milliseconds(500));
  EXPECT_EQ(Upstream(), 2u);  // time alone lets no call go
  client.Send(h2::RstStream(1, 8));
  Run();
  Advance(milliseconds(2));
  EXPECT_EQ(Upstream(), 3u);
  Respond(Up(), 3, "");
  Respond(Up(), 5, "");
  Run();
  EXPECT_EQ(state().limits->rate->outstanding(), 0u);
}

TEST_F(CallAdmissionTest, ARouteAndAClientHaveRatesOfTheirOwn) {
  routes[0].rate_limit = {.rate = 1, .burst = 3, .queue_max = 0};
  routes[0].client_rate_limit.rate = {.rate = 1, .burst = 1, .queue_max = 0};
  routes[0].client_rate_limit.metadata = "x-user";
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1, {{"x-user", "a"}});
  Call(client, 3, {{"x-user", "a"}});
  ExpectRefused(client, 3, "rate_limited", "route/r/client_rate");
  Call(client, 5, {{"x-user", "b"}});
  Call(client, 7, {{"x-user", "c"}});
  EXPECT_EQ(Upstream(), 3u);  // the refused one took nothing from the route
  Call(client, 9, {{"x-user", "d"}});
  ExpectRefused(client, 9, "rate_limited", "route/r/rate");
}

TEST_F(CallAdmissionTest, WhatARateLetGoForNothingIsForTheNextCall) {
  routes[0].rate_limit = {.rate = 0.001, .burst = 2, .queue_max = 0};
  cluster.rate_limit = {.rate = 0.001, .burst = 2, .capped = true, .queue_max = 0};
  cluster.concurrency = {.max = 1, .queue_max = 0};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1);
  for (uint32_t id : {3, 5, 7}) {
    Call(client, id);
    ExpectRefused(client, id, "concurrency_limited", "cluster/c/concurrency");
  }
  Respond(Up(), 1, "");
  Run();
  Call(client, 9);
  EXPECT_EQ(Upstream(), 2u);
}

TEST_F(CallAdmissionTest, TheProcessHasABound) {
  process = {.max = 2, .queue_max = 0};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  for (uint32_t id : {1, 3, 5}) Call(client, id);
  ExpectRefused(client, 5, "concurrency_limited", "process/concurrency");
}

TEST_F(CallAdmissionTest, AFullEndpointIsPassedOver) {
  cluster.endpoint_concurrency = {.max = 1};
  cluster.policy = upstream::Policy::kRingHash;
  routes[0].hash_by.kind = HashBy::Kind::kMethod;  // all calls have one key
  Start({"10.0.0.1:1", "10.0.0.2:1"});
  FramePeer& client = Client();
  Call(client, 1);
  const bool first = Upstream("10.0.0.1:1") == 1;
  const std::string home = first ? "10.0.0.1:1" : "10.0.0.2:1", next = first ? "10.0.0.2:1" : "10.0.0.1:1";
  Call(client, 3);
  EXPECT_EQ(Upstream(next), 1u);
  Call(client, 5);  // waits for the endpoint of its key
  Respond(Up(next), 1, "");
  Run();
  EXPECT_EQ(Upstream(home) + Upstream(next), 2u);
  Respond(Up(home), 1, "");
  Run();
  EXPECT_EQ(Upstream(home), 2u);
  Respond(Up(home), 3, "");
  Run();
  EXPECT_THAT(client.streams[5].Value("sluice-waited"), HasSubstr("cluster/c/endpoint_concurrency="));
}

TEST_F(CallAdmissionTest, AWaiterOfAnEndpointThatLeavesTheListGoesElsewhere) {
  cluster.endpoint_concurrency = {.max = 1};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1);
  Call(client, 3);
  EXPECT_EQ(Upstream(), 1u);
  SetEndpoints({"10.0.0.2:1"});
  Run();
  Respond(Up(), 1, "");
  Run();
  EXPECT_EQ(Upstream(), 1u);
  EXPECT_EQ(Upstream("10.0.0.2:1"), 1u);
}

TEST_F(CallAdmissionTest, AnotherAttemptNeedsAPermitOfItsOwnEndpointOnly) {
  cluster.endpoint_concurrency = {.max = 1};
  cluster.concurrency = {.max = 1};
  Start({"10.0.0.1:1", "10.0.0.2:1"});
  FramePeer& client = Client();
  Call(client, 1);
  const bool first = Connected("10.0.0.1:1");
  const std::string home = first ? "10.0.0.1:1" : "10.0.0.2:1", next = first ? "10.0.0.2:1" : "10.0.0.1:1";
  Up(home).Send(h2::RstStream(1, 7));
  Run();
  EXPECT_EQ(Upstream(next), 1u);
  for (const auto& entry : state().endpoints) {
    EXPECT_EQ(entry.endpoint->concurrency()->in_use(), entry.endpoint->name() == next ? 1u : 0u);
  }
  Respond(Up(next), 1, "");
  Run();
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "0");
  EXPECT_EQ(state().limits->concurrency->in_use(), 0u);
}

TEST_F(CallAdmissionTest, BoundedLoadSendsAHotKeyOnAlongTheRing) {
  cluster.policy = upstream::Policy::kRingHash;
  cluster.bounded_load = 1.25;
  routes[0].hash_by.kind = HashBy::Kind::kMethod;
  Start({"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1", "10.0.0.4:1"});
  FramePeer& client = Client();
  for (uint32_t i = 0; i < 40; ++i) Call(client, 2 * i + 1);
  size_t total = 0;
  for (const std::string host : {"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1", "10.0.0.4:1"}) {
    EXPECT_LE(Upstream(host), 13u) << host;  // ceil(1.25 x 40 / 4)
    total += Upstream(host);
  }
  EXPECT_EQ(total, 40u);
}

// A reload takes all limits and the endpoint away. One call has something of each, another waits for the first.
TEST_F(CallAdmissionTest, LimitsThatAreGoneLiveAsLongAsACallHasSomethingOfThem) {
  process = {.max = 5};
  cluster.rate_limit = {.rate = 1000, .burst = 5, .capped = true};
  cluster.concurrency = {.max = 1};
  cluster.endpoint_concurrency = {.max = 5};
  routes[0].client_rate_limit.rate = {.rate = 1000, .burst = 5, .capped = true};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1);
  Call(client, 3);
  const std::weak_ptr<const ProcessLimits> of_process = process_limits;
  const std::weak_ptr<const RouteLimits> of_route = route_limits.begin()->second;
  const std::weak_ptr<const upstream::ClusterLimits> of_cluster = state().limits;
  const std::weak_ptr<upstream::Endpoint> endpoint = state().endpoints[0].endpoint;
  EXPECT_EQ(of_cluster.lock()->concurrency->waiting(), 1u);
  process_limits.reset();
  route_limits.clear();
  auto renew = [this] {
    next_cluster_limits = std::make_shared<const upstream::ClusterLimits>(
        std::make_shared<limits::RateLimiter>(cluster.rate_limit, time.clock.Now()),
        std::make_shared<limits::ConcurrencyLimiter>(cluster.concurrency), "c", registry);
    SetEndpoints({"10.0.0.2:1"});
    worker->context.Refresh();
    if (home) home->context.Refresh();
    Run();
  };
  renew();
  renew();  // so that nothing old is in the other copy of what is published
  EXPECT_EQ(Upstream("10.0.0.2:1"), 0u);
  ASSERT_FALSE(of_process.expired() || of_route.expired() || of_cluster.expired() || endpoint.expired());
  Respond(Up(), 1, "");
  Run();
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "0");
  EXPECT_EQ(Upstream("10.0.0.2:1"), 1u);  // the other has its permit, and goes by the new list
  ASSERT_FALSE(of_process.expired() || of_route.expired() || of_cluster.expired());
  EXPECT_EQ(of_cluster.lock()->concurrency->in_use(), 1u);
  Respond(Up("10.0.0.2:1"), 1, "");
  Run();
  EXPECT_EQ(client.streams[3].Value("grpc-status"), "0");
  Advance(milliseconds(1));
  EXPECT_TRUE(of_process.expired());
  EXPECT_TRUE(of_route.expired());
  EXPECT_TRUE(of_cluster.expired());
}

// One client keeps a long queue, the other asks now and then: each gets its turn.
TEST_F(CallAdmissionTest, AQueueIsFairBetweenConnections) {
  cluster.concurrency = {.max = 1, .queue_max = 100};
  Start({"10.0.0.1:1"});
  FramePeer& greedy = Client();
  FramePeer& modest = Client();
  for (uint32_t i = 0; i < 50; ++i) Call(greedy, 2 * i + 1, {{"side", "greedy"}});
  for (uint32_t i = 0; i < 3; ++i) Call(modest, 2 * i + 1, {{"side", "modest"}});
  std::string order;
  for (uint32_t id = 1; id <= 13; id += 2) {
    for (const auto& [name, value] : Up().streams[id].headers[0]) {
      if (name == "side") order += value[0];
    }
    Respond(Up(), id, "");
    Run();
  }
  EXPECT_THAT(order, ::testing::AnyOf("ggmgmgm", "gmgmgmg"));
}

}  // namespace
}  // namespace sluice::proxy
