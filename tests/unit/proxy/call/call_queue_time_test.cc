// How long calls wait at limits: up to queue_time, and never beyond what their deadline leaves for the service; what
// the client is told; and that a call which waits holds nothing that calls elsewhere wait for.
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

constexpr milliseconds kNoBound{0};

class CallQueueTimeTest : public test::ProxyFixture {
 public:
  void Call(FramePeer& client, uint32_t id, const Fields& more = {}, const std::string& path = "/pkg.Service/Method") {
    client.Send(Headers(id, Block(With(GrpcRequest(path), more)), kLast));
    Run();
  }
  size_t Upstream(const std::string& address = "10.0.0.1:1") {
    size_t n = 0;
    if (!Connected(address)) return 0;
    for (const auto& [id, stream] : Up(address).streams) n += !stream.headers.empty();
    return n;
  }
  void End(uint32_t id, const std::string& address = "10.0.0.1:1") {
    Respond(Up(address), id, "");
    Run();
  }
  void ExpectRefused(FramePeer& client, uint32_t id, const std::string& reason, const std::string& bound,
                     const std::string& words) {
    EXPECT_EQ(client.streams[id].Value("grpc-status"), "8") << id;
    EXPECT_EQ(client.streams[id].Value("sluice-reason"), reason) << id;
    EXPECT_EQ(client.streams[id].Value("sluice-limit"), bound) << id;
    EXPECT_THAT(client.streams[id].Value("grpc-message"), HasSubstr(words)) << id;
    EXPECT_GE(std::atoi(client.streams[id].Value("grpc-retry-pushback-ms").c_str()), 1) << id;
    EXPECT_TRUE(client.streams[id].end) << id;
  }
  // The worker learns that calls take `time`; the cluster lets one at a time go. Streams 1, 3, ... of `client`.
  uint32_t Teach(FramePeer& client, milliseconds time, const std::string& path = "/pkg.Service/Method") {
    uint32_t id = 1;
    for (int i = 0; i < 80; ++i, id += 2) {  // one in eight is a sample
      Call(client, id, {}, path);
      Advance(time);
      Respond(Up(), Newest(), "");
      Run();
      EXPECT_EQ(client.streams[id].Value("grpc-status"), "0");
    }
    return id;
  }
  uint32_t Newest() {
    uint32_t newest = 0;
    for (const auto& [id, stream] : Up().streams) newest = stream.headers.empty() ? newest : std::max(newest, id);
    return newest;
  }
};

TEST_F(CallQueueTimeTest, ACallThatHasWaitedQueueTimeIsRefused) {
  cluster.concurrency = {.max = 1};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1);
  Call(client, 3);
  Advance(milliseconds(100));
  Call(client, 5);
  Advance(milliseconds(99));
  EXPECT_FALSE(client.streams[3].end);
  Advance(milliseconds(2));
  ExpectRefused(client, 3, "queue_time", "cluster/c/concurrency", "has waited 201 ms, queue_time is 200 ms");
  EXPECT_FALSE(client.streams[5].end);
  End(1);
  EXPECT_EQ(Upstream(), 2u);  // the one behind has the unit
  End(3);
  EXPECT_EQ(client.streams[5].Value("grpc-status"), "0");
  EXPECT_EQ(state().limits->concurrency->in_use(), 0u);
  EXPECT_EQ(state().limits->concurrency_bound.refused_time->Value(), 1u);
}

TEST_F(CallQueueTimeTest, QueueTimeZeroMeansUpToTheDeadline) {
  cluster.concurrency = {.max = 1, .queue_time = kNoBound};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1);
  Call(client, 3);
  Call(client, 5, {{"grpc-timeout", "10S"}});
  Advance(std::chrono::seconds(10));
  EXPECT_FALSE(client.streams[3].end);
  EXPECT_EQ(client.streams[5].Value("grpc-status"), "4");
  EXPECT_EQ(client.streams[5].Value("sluice-limit"), "cluster/c/concurrency");
}

TEST_F(CallQueueTimeTest, ACallWhoseTokenComesTooLateIsRefusedAtOnce) {
  cluster.rate_limit = {.rate = 10, .burst = 1};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  for (uint32_t id : {1, 3, 5, 7}) Call(client, id);
  EXPECT_FALSE(client.streams[5].end);  // in 200 ms
  ExpectRefused(client, 7, "queue_time", "cluster/c/rate", "would wait 300 ms, queue_time is 200 ms");
  EXPECT_EQ(client.streams[7].Value("grpc-retry-pushback-ms"), "300");
  EXPECT_EQ(state().limits->rate_bound.refused_time->Value(), 1u);
  Advance(milliseconds(100));
  Advance(milliseconds(100));
  EXPECT_EQ(Upstream(), 3u);
}

// Time alone lets no call go while calls hold the tokens.
TEST_F(CallQueueTimeTest, ACallThatWaitsForACappedTokenIsRefusedAfterQueueTime) {
  cluster.rate_limit = {.rate = 1000, .burst = 2, .capped = true};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  for (uint32_t id : {1, 3, 5}) Call(client, id);
  Advance(milliseconds(201));
  ExpectRefused(client, 5, "queue_time", "cluster/c/rate", "has waited 201 ms");
  End(1);
  End(3);
  EXPECT_EQ(state().limits->rate->outstanding(), 0u);
}

TEST_F(CallQueueTimeTest, EachLimitHasItsOwn) {
  process = {.max = 2, .queue_time = milliseconds(50)};
  routes[0].rate_limit = {.rate = 10, .burst = 4, .queue_time = milliseconds(1)};
  routes[0].client_rate_limit.rate = {.rate = 10, .burst = 1, .queue_time = milliseconds(30)};
  routes[0].client_rate_limit.metadata = "x-user";
  cluster.endpoint_concurrency = {.max = 1, .queue_time = milliseconds(20)};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1, {{"x-user", "a"}});
  Call(client, 3, {{"x-user", "a"}});
  ExpectRefused(client, 3, "queue_time", "route/r/client_rate", "queue_time is 30 ms");
  Call(client, 5, {{"x-user", "b"}});
  Advance(milliseconds(21));
  ExpectRefused(client, 5, "queue_time", "cluster/c/endpoint_concurrency", "queue_time is 20 ms");
  EXPECT_EQ(process_limits->concurrency->in_use(), 1u);
  EXPECT_EQ(Upstream(), 1u);
}

TEST_F(CallQueueTimeTest, TheProcessesQueueIsBoundedInTime) {
  process = {.max = 1, .queue_time = milliseconds(50)};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1);
  Call(client, 3);
  Advance(milliseconds(51));
  ExpectRefused(client, 3, "queue_time", "process/concurrency", "queue_time is 50 ms");
}

TEST_F(CallQueueTimeTest, WhatRatesLetGoForACallRefusedByTimeIsForTheNext) {
  routes[0].rate_limit = {.rate = 0.001, .burst = 3, .queue_max = 0};
  cluster.concurrency = {.max = 1};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1);
  Call(client, 3);
  Call(client, 5);
  Advance(milliseconds(201));
  ExpectRefused(client, 5, "queue_time", "cluster/c/concurrency", "");
  End(1);
  Call(client, 7);
  End(3);
  Call(client, 9);
  EXPECT_EQ(Upstream(), 3u);
}

// --- The deadline and the service ---

TEST_F(CallQueueTimeTest, ACallWithLessTimeThanTheServiceTakesIsRefusedInsteadOfQueued) {
  cluster.concurrency = {.max = 1, .queue_time = kNoBound};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  uint32_t id = Teach(client, milliseconds(40));
  Call(client, id);  // has the unit
  Call(client, id + 2, {{"grpc-timeout", "60m"}});
  ExpectRefused(client, id + 2, "deadline_too_near", "cluster/c/concurrency",
                "of its deadline 60 ms are left, and calls of its method lately took 40 ms");
  Call(client, id + 4, {{"grpc-timeout", "500m"}});
  EXPECT_FALSE(client.streams[id + 4].end);
  // A method of which nothing is known is not judged by another.
  Call(client, id + 6, {{"grpc-timeout", "60m"}}, "/pkg.Service/Other");
  EXPECT_FALSE(client.streams[id + 6].end);
  // A wait ends while there is time for the service.
  Advance(milliseconds(419));
  EXPECT_FALSE(client.streams[id + 4].end);
  Advance(milliseconds(2));
  ExpectRefused(client, id + 4, "deadline_too_near", "cluster/c/concurrency", "it has waited 421 ms");
  EXPECT_EQ(state().limits->concurrency_bound.refused_late->Value(), 2u);
}

// Where no call waits none is refused, whatever lately was: so news of the service always comes.
TEST_F(CallQueueTimeTest, ACallThatNeedNotWaitIsNotJudged) {
  cluster.concurrency = {.max = 1};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  const uint32_t id = Teach(client, milliseconds(40));
  const size_t before = Upstream();
  Call(client, id, {{"grpc-timeout", "10m"}});
  EXPECT_EQ(Upstream(), before + 1);
  EXPECT_FALSE(client.streams[id].end);
}

TEST_F(CallQueueTimeTest, AnswersThatFailAtOnceSayNothingOfTheService) {
  cluster.concurrency = {.max = 1};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  uint32_t id = 1;
  for (int i = 0; i < 200; ++i, id += 2) {
    Call(client, id);
    Up().Send(Headers(Newest(), Block(With(h2::GrpcResponse(), {{"grpc-status", "9"}})), kLast));
    Run();
  }
  EXPECT_TRUE(worker->context.service_times == nullptr);
}

// The client's own time is none of the service's: others would be refused for it.
TEST_F(CallQueueTimeTest, UploadsThatTakeLongSayNothingOfTheService) {
  cluster.concurrency = {.max = 1, .queue_time = kNoBound};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  uint32_t id = 1;
  for (int i = 0; i < 80; ++i, id += 2) {
    client.Send(Headers(id, Block(GrpcRequest("/pkg.Service/Method"))));
    Run();
    Advance(milliseconds(40));
    client.Send(h2::Data(id, h2::Message("late"), h2::kEndStream));
    Run();
    End(Newest());
  }
  Call(client, id);  // has the unit
  Call(client, id + 2, {{"grpc-timeout", "60m"}});
  EXPECT_FALSE(client.streams[id + 2].end);
}

TEST_F(CallQueueTimeTest, AUnitGrantedTooLateGoesToTheNext) {
  cluster.concurrency = {.max = 1, .queue_time = kNoBound};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  uint32_t id = Teach(client, milliseconds(40));
  const size_t before = Upstream();
  Call(client, id);
  Call(client, id + 2, {{"grpc-timeout", "200m"}});
  Call(client, id + 4);
  // The worker stands still: the unit comes back in the turn in which the time is up.
  Respond(Up(), Newest(), "");
  time.clock.Advance(milliseconds(150));
  Run();
  ExpectRefused(client, id + 2, "deadline_too_near", "cluster/c/concurrency", "it has waited 150 ms");
  EXPECT_EQ(Upstream(), before + 2);
  EXPECT_EQ(state().limits->concurrency->in_use(), 1u);
}

// --- What a waiting call holds ---

TEST_F(CallQueueTimeTest, ACallThatWaitsAtARateHoldsNoUnitOfTheProcess) {
  process = {.max = 1};
  routes.resize(2);
  routes[0].prefix = "/slow.";
  routes[0].rate_limit = {.rate = 10, .burst = 1};
  routes[1].name = "other";
  routes[1].cluster = "c";
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1, {}, "/slow.S/M");
  End(1);
  Call(client, 3, {}, "/slow.S/M");  // waits for a token
  EXPECT_EQ(process_limits->concurrency->in_use(), 0u);
  Call(client, 5);
  EXPECT_EQ(Upstream(), 2u);
  Advance(milliseconds(101));  // it has its token, and waits for the process
  EXPECT_EQ(Upstream(), 2u);
  EXPECT_EQ(process_limits->concurrency->waiting(), 1u);
  End(3);
  EXPECT_EQ(Upstream(), 3u);
  End(5);
  EXPECT_THAT(client.streams[3].Value("sluice-waited"), HasSubstr("route/r/rate=10"));
  EXPECT_THAT(client.streams[3].Value("sluice-waited"), HasSubstr("process/concurrency="));
  EXPECT_EQ(process_limits->concurrency->in_use(), 0u);
}

TEST_F(CallQueueTimeTest, ACallThatWaitsForItsClusterHoldsNoUnitOfTheProcess) {
  process = {.max = 2};
  cluster.concurrency = {.max = 1};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1);
  Call(client, 3);
  EXPECT_EQ(process_limits->concurrency->in_use(), 1u);
  End(1);
  EXPECT_EQ(process_limits->concurrency->in_use(), 1u);
  End(3);
  EXPECT_EQ(client.streams[3].Value("grpc-status"), "0");
  EXPECT_EQ(process_limits->concurrency->in_use(), 0u);
}

TEST_F(CallQueueTimeTest, ACallThatWaitsAtAnEndpointHoldsNoUnitOfClusterAndProcess) {
  process = {.max = 9};
  cluster.concurrency = {.max = 9};
  cluster.endpoint_concurrency = {.max = 1};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1);
  Call(client, 3);
  EXPECT_EQ(process_limits->concurrency->in_use(), 1u);
  EXPECT_EQ(state().limits->concurrency->in_use(), 1u);
  End(1);
  EXPECT_EQ(Upstream(), 2u);
  EXPECT_EQ(process_limits->concurrency->in_use(), 1u);
  EXPECT_EQ(state().limits->concurrency->in_use(), 1u);
  End(3);
  EXPECT_EQ(client.streams[3].Value("grpc-status"), "0");
  EXPECT_EQ(process_limits->concurrency->in_use(), 0u);
  EXPECT_EQ(state().limits->concurrency->in_use(), 0u);
  EXPECT_EQ(state().endpoints[0].endpoint->concurrency()->in_use(), 0u);
}

TEST_F(CallQueueTimeTest, ACallBetweenTwoAttemptsHoldsNoUnits) {
  process = {.max = 1};
  cluster.concurrency = {.max = 1};
  routes[0].retry.methods = RetryOptions::Methods::kAll;
  routes[0].retry.on = 1u << 14;
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1);
  Up().Send(
      Headers(1, Block(With(h2::GrpcResponse(), {{"grpc-status", "14"}, {"grpc-retry-pushback-ms", "500"}})), kLast));
  Run();
  EXPECT_FALSE(client.streams[1].end);
  EXPECT_EQ(process_limits->concurrency->in_use(), 0u);
  EXPECT_EQ(state().limits->concurrency->in_use(), 0u);
  Call(client, 3);  // goes meanwhile
  EXPECT_EQ(Upstream(), 2u);
  Advance(milliseconds(501));
  EXPECT_EQ(state().limits->concurrency->waiting(), 1u);  // the first, for its second attempt
  EXPECT_EQ(Upstream(), 2u);
  End(3);
  EXPECT_EQ(Upstream(), 3u);
  End(5);
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "0");
  EXPECT_EQ(process_limits->concurrency->in_use(), 0u);
  EXPECT_EQ(state().limits->concurrency->in_use(), 0u);
}

// It has the endpoint's permit, and its cluster has none left: the endpoint's comes back however the wait ends.
TEST_F(CallQueueTimeTest, UnitsTakenAgainAreWaitedForLikeTheFirstTime) {
  cluster.concurrency = {.max = 2};
  cluster.endpoint_concurrency = {.max = 1};
  Start({"10.0.0.1:1", "10.0.0.2:1"});
  FramePeer& client = Client();
  FramePeer& other = Client();
  Call(client, 1);
  Call(client, 3);  // both endpoints are full, and the cluster
  Call(client, 5);  // waits for the cluster
  EXPECT_EQ(state().limits->concurrency->waiting(), 1u);
  client.Send(h2::RstStream(1, 8));
  Run();
  EXPECT_EQ(state().limits->concurrency->in_use(), 2u);
  Call(other, 1);
  Call(other, 3);
  other.wire().Close();
  Run();
  Advance(milliseconds(300));
  EXPECT_EQ(state().limits->concurrency->waiting(), 0u);
  EXPECT_EQ(state().limits->concurrency->in_use(), 2u);
  client.wire().Close();
  Run();
  EXPECT_EQ(state().limits->concurrency->in_use(), 0u);
  for (const auto& entry : state().endpoints) EXPECT_EQ(entry.endpoint->concurrency()->in_use(), 0u);
}

// --- Single flight ---

TEST_F(CallQueueTimeTest, CallsThatWaitForAFetchAreRefusedWithIt) {
  routes[0].cache.methods = {{"/pkg.Service/Method", milliseconds(10'000)}};
  cluster.concurrency = {.max = 1};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1, {}, "/pkg.Service/Other");
  const auto ask = [&](uint32_t id) {
    client.Send(Headers(id, Block(GrpcRequest())) + h2::Data(id, h2::Message("q"), h2::kEndStream));
    Run();
  };
  ask(3);
  Advance(milliseconds(150));
  ask(5);  // joins
  Advance(milliseconds(51));
  for (uint32_t id : {3, 5}) ExpectRefused(client, id, "queue_time", "cluster/c/concurrency", "queue_time is 200 ms");
  EXPECT_EQ(Upstream(), 1u);
}

// The time of the call that joins counts for the fetch, also where the first one's would be too short.
TEST_F(CallQueueTimeTest, AFetchIsJudgedByTheCallWithTheMostTime) {
  routes[0].cache.methods = {{"/pkg.Service/Method", milliseconds(10'000)}};
  cluster.concurrency = {.max = 1, .queue_time = kNoBound};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  uint32_t id = 1;
  const auto ask = [&](const std::string& message, const Fields& more) {
    client.Send(Headers(id, Block(With(GrpcRequest(), more))) + h2::Data(id, h2::Message(message), h2::kEndStream));
    Run();
    id += 2;
  };
  for (int i = 0; i < 80; ++i) {
    ask("teach" + std::to_string(i), {});
    Advance(milliseconds(40));
    Respond(Up(), Newest(), h2::Message("a"));
    Run();
  }
  const size_t before = Upstream();
  ask("holds the unit", {});
  ask("q", {{"grpc-timeout", "100m"}});
  ask("q", {{"grpc-timeout", "5S"}});
  Advance(milliseconds(50));  // the first would be refused
  EXPECT_FALSE(client.streams[id - 2].end);
  Advance(milliseconds(100));
  EXPECT_FALSE(client.streams[id - 2].end);
  End(Newest());
  EXPECT_EQ(Upstream(), before + 2);
}

// --- Clients ---

TEST_F(CallQueueTimeTest, ARefusalThatIsDueToTooManyClientsSaysSo) {
  routes[0].client_rate_limit.rate = {.rate = 1, .burst = 2, .queue_max = 0};
  routes[0].client_rate_limit.metadata = "x-user";
  routes[0].client_rate_limit.clients_max = 1;
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  for (uint32_t id : {1, 3}) Call(client, id, {{"x-user", "a"}});
  Call(client, 5, {{"x-user", "b"}});
  ExpectRefused(client, 5, "too_many_clients", "route/r/client_rate", "as many clients as clients_max have calls now");
  End(1);
  End(3);
  Call(client, 7, {{"x-user", "b"}});
  ExpectRefused(client, 7, "too_many_clients", "route/r/client_rate", "began with the debt");
  EXPECT_EQ(route_limits["r"]->client_rate_bound.refused_clients->Value(), 2u);
  EXPECT_EQ(route_limits["r"]->client_rate_bound.refused_full->Value(), 0u);
  Advance(std::chrono::seconds(2));
  for (uint32_t id : {9, 11, 13}) Call(client, id, {{"x-user", "b"}});
  ExpectRefused(client, 13, "rate_limited", "route/r/client_rate", "the queue is full");
}

}  // namespace
}  // namespace sluice::proxy
