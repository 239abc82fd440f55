// Calls and the response cache: what is answered without the upstream, what is shared, and what is not.
#include <gmock/gmock.h>

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
using h2::Message;
using h2::With;
using std::chrono::milliseconds;
using test::FramePeer;
using test::kLast;

class CallCacheTest : public test::ProxyFixture {
 public:
  CallCacheTest() { routes[0].cache.methods = {{"/pkg.Service/Method", milliseconds(10'000)}}; }

  void Call(FramePeer& client, uint32_t id, std::string_view message, const Fields& more = {}) {
    client.Send(Headers(id, Block(With(GrpcRequest(), more))) + Data(id, Message(message), h2::kEndStream));
    Run();
  }
  void Answer(uint32_t id, std::string_view message, const Fields& more = {}, const std::string& status = "0") {
    Up().Send(Headers(id, Block(With(GrpcResponse(), more))) + Data(id, Message(message)) +
              Headers(id, Block(With(GrpcTrailers(status), {{"x-end", "e"}})), kLast));
    Run();
  }
  size_t Upstream() {
    size_t n = 0;
    if (!Connected("10.0.0.1:1")) return 0;
    for (const auto& [id, stream] : Up().streams) n += !stream.headers.empty();
    return n;
  }
  uint64_t NotCachedFor(NotCached reason) { return response_cache->stats().not_cached[static_cast<size_t>(reason)]; }
};

TEST_F(CallCacheTest, TheSecondEqualCallIsAnsweredByteForByteWithItsAge) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1, "q");
  Answer(1, "answer", {{"x-meta", "m"}, {"x-bin-bin", "AAE"}});
  EXPECT_EQ(client.streams[1].headers[0], With(GrpcResponse(), {{"x-meta", "m"}, {"x-bin-bin", "AAE"}}));
  Advance(milliseconds(3100));
  Call(client, 3, "q");
  EXPECT_EQ(Upstream(), 1u);
  const auto& heard = client.streams[3];
  ASSERT_EQ(heard.headers.size(), 2u);
  EXPECT_EQ(heard.headers[0],
            With(GrpcResponse(), {{"x-meta", "m"}, {"x-bin-bin", "AAE"}, {"sluice-cache", "hit"}, {"age", "3"}}));
  EXPECT_EQ(heard.data, Message("answer"));
  EXPECT_EQ(heard.headers[1], With(GrpcTrailers(), {{"x-end", "e"}}));
  EXPECT_TRUE(heard.end);
  Call(client, 5, "other");
  EXPECT_EQ(Upstream(), 2u);
}

TEST_F(CallCacheTest, AnEntryEndsWithItsTtl) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1, "q");
  Answer(1, "a");
  Advance(milliseconds(9'999));
  Call(client, 3, "q");
  EXPECT_EQ(Upstream(), 1u);
  Advance(milliseconds(1));
  Call(client, 5, "q");
  EXPECT_EQ(Upstream(), 2u);
}

TEST_F(CallCacheTest, EqualCallsInFlightShareOneUpstreamCall) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  FramePeer& other = Client();
  for (uint32_t id : {1, 3, 5}) Call(client, id, "q");
  for (uint32_t id : {1, 3}) Call(other, id, "q");
  EXPECT_EQ(Upstream(), 1u);
  Answer(1, "a");
  for (uint32_t id : {1, 3, 5}) EXPECT_EQ(client.streams[id].data, Message("a")) << id;
  for (uint32_t id : {1, 3}) EXPECT_EQ(other.streams[id].Value("grpc-status"), "0") << id;
  EXPECT_EQ(client.streams[1].headers[0], GrpcResponse());  // the first came first
  EXPECT_EQ(client.streams[3].headers[0], With(GrpcResponse(), {{"sluice-cache", "coalesced"}, {"age", "0"}}));
  EXPECT_EQ(response_cache->stats().coalesced, 4u);
}

TEST_F(CallCacheTest, TheLeadersEndIsNotTheOthers) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1, "q", {{"grpc-timeout", "5S"}});
  Call(client, 3, "q", {{"grpc-timeout", "100m"}});
  Call(client, 5, "q", {{"grpc-timeout", "5S"}});
  client.Send(h2::RstStream(1, 8));
  Run();
  Advance(milliseconds(100));
  EXPECT_EQ(client.streams[3].Value("grpc-status"), "4");
  EXPECT_EQ(Upstream(), 1u);
  EXPECT_FALSE(Up().streams[1].reset);
  Answer(1, "a");
  EXPECT_EQ(client.streams[5].data, Message("a"));
}

TEST_F(CallCacheTest, TheLastToLeaveCancelsTheUpstreamCall) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1, "q");
  Call(client, 3, "q");
  client.Send(h2::RstStream(1, 8));
  Run();
  EXPECT_FALSE(Up().streams[1].reset);
  client.Send(h2::RstStream(3, 8));
  Run();
  EXPECT_EQ(Up().streams[1].reset, 8u);
  Call(client, 5, "q");
  EXPECT_EQ(Upstream(), 2u);
  Answer(3, "a");
  EXPECT_EQ(client.streams[5].data, Message("a"));
}

// The backend is told the time of the call that began it, as without a cache. The others begin another fetch, together.
TEST_F(CallCacheTest, CallsWithMoreTimeThanTheFetchAskAgain) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1, "q", {{"grpc-timeout", "100m"}});
  Call(client, 3, "q", {{"grpc-timeout", "5S"}});
  Call(client, 5, "q", {{"grpc-timeout", "3S"}});
  Call(client, 7, "q", {{"grpc-timeout", "4S"}});
  EXPECT_EQ(Upstream(), 1u);
  EXPECT_EQ(Up().streams[1].Value("grpc-timeout"), "100000u");
  Advance(milliseconds(100));
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "4");
  EXPECT_EQ(Up().streams[1].reset, 8u);
  EXPECT_EQ(Upstream(), 2u);
  EXPECT_EQ(Up().streams[3].Value("grpc-timeout"), "4900000u");
  for (uint32_t id : {3, 5, 7}) EXPECT_FALSE(client.streams[id].end) << id;
  Answer(3, "a");
  for (uint32_t id : {3, 5, 7}) EXPECT_EQ(client.streams[id].data, Message("a")) << id;
}

// Until the request has been sent, the time of a call that joins counts.
TEST_F(CallCacheTest, AFetchThatWaitsTakesOverTheTimeOfACallThatJoins) {
  cluster.concurrency = {.max = 1, .queue_max = 10, .queue_time = milliseconds(0)};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1, "other");  // has the permit
  Call(client, 3, "q", {{"grpc-timeout", "100m"}});
  Call(client, 5, "q", {{"grpc-timeout", "5S"}});
  EXPECT_EQ(Upstream(), 1u);
  Advance(milliseconds(200));
  EXPECT_EQ(client.streams[3].Value("grpc-status"), "4");
  EXPECT_FALSE(client.streams[5].end) << "its place in the queue is kept";
  Answer(1, "a");
  EXPECT_EQ(Upstream(), 2u);
  EXPECT_EQ(Up().streams[3].Value("grpc-timeout"), "4800000u");
  Call(client, 7, "endless", {{"grpc-timeout", "100m"}});
  Call(client, 9, "endless");
  Answer(3, "b");
  EXPECT_EQ(client.streams[5].data, Message("b"));
  EXPECT_EQ(Up().streams[5].Value("grpc-timeout"), "<none>") << "one of them has all the time of the world";
  Answer(5, "c");
  EXPECT_EQ(client.streams[9].data, Message("c"));
}

// The time of an attempt is still kept where the deadline has moved.
TEST_F(CallCacheTest, AnAttemptOfAFetchThatTookOverMoreTimeIsGivenUpInTime) {
  routes[0].retry.per_try_timeout = milliseconds(200);
  routes[0].retry.methods = RetryOptions::Methods::kAll;
  Start({"10.0.0.1:1", "10.0.0.2:1"});
  for (const char* host : {"10.0.0.1:1", "10.0.0.2:1"}) net.host(host).mode = test::FakeHost::Mode::kHang;
  FramePeer& client = Client();
  Call(client, 1, "q", {{"grpc-timeout", "100m"}});
  Call(client, 3, "q", {{"grpc-timeout", "5S"}});
  Advance(milliseconds(100));
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "4");
  const std::string first = net.host("10.0.0.1:1").dials > 0 ? "10.0.0.1:1" : "10.0.0.2:1";
  const std::string second = first == "10.0.0.1:1" ? "10.0.0.2:1" : "10.0.0.1:1";
  ASSERT_EQ(net.host(second).dials, 0);
  net.host(first).mode = test::FakeHost::Mode::kAccept;  // and does not answer
  net.Answer(first);
  Run();
  ASSERT_EQ(Holders({first}).size(), 1u);
  net.host(second).mode = test::FakeHost::Mode::kAccept;
  Advance(milliseconds(200));
  ASSERT_EQ(Holders({second}).size(), 1u);
  test::ProxyFixture::Respond(Up(second), 1, Message("a"));
  Run();
  EXPECT_EQ(client.streams[3].data, Message("a"));
}

// Calls with little time come again and again, and each time one of them is the first.
TEST_F(CallCacheTest, CallsWithLittleTimeDoNotHoldUpOneWithMore) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1, "q", {{"grpc-timeout", "100m"}});
  Call(client, 3, "q", {{"grpc-timeout", "5S"}});
  EXPECT_EQ(Upstream(), 1u);
  Advance(milliseconds(100));
  EXPECT_EQ(Upstream(), 2u);
  EXPECT_EQ(Up().streams[3].Value("grpc-timeout"), "4900000u");
  Call(client, 5, "q", {{"grpc-timeout", "100m"}});
  Advance(milliseconds(100));
  EXPECT_EQ(client.streams[5].Value("grpc-status"), "4");
  EXPECT_FALSE(Up().streams[3].reset);
  EXPECT_EQ(Upstream(), 2u);
  Answer(3, "a");
  EXPECT_EQ(client.streams[3].data, Message("a"));
}

// The upstream itself says that its time was up; a call with as little gets that, a call with more asks once more.
TEST_F(CallCacheTest, AnUpstreamsDeadlineExceededIsForThoseWithNoMoreTime) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1, "q", {{"grpc-timeout", "1S"}});
  Call(client, 3, "q", {{"grpc-timeout", "1S"}});
  Call(client, 5, "q");
  for (uint32_t id : {1, 3}) {
    Up().Send(Headers(id, Block(With(GrpcResponse(), {{"grpc-status", "4"}})), kLast));
    Run();
  }
  for (uint32_t id : {1, 3, 5}) EXPECT_EQ(client.streams[id].Value("grpc-status"), "4") << id;
  EXPECT_EQ(Upstream(), 2u);
}

TEST_F(CallCacheTest, AFailureOfTheServiceGoesToAllOnceAndIsNotKept) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  for (uint32_t id : {1, 3}) Call(client, id, "q");
  Up().Send(Headers(1, Block(With(GrpcResponse(), {{"grpc-status", "14"}, {"grpc-message", "no"}})), kLast));
  Run();
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "14");
  EXPECT_EQ(client.streams[3].Value("grpc-message"), "no");
  EXPECT_EQ(client.streams[3].Value("sluice-cache"), "coalesced");
  Call(client, 5, "q");
  EXPECT_EQ(Upstream(), 2u);
}

TEST_F(CallCacheTest, AnErrorOfTheProxyGoesToAll) {
  cluster.concurrency = {.max = 1, .queue_max = 0};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1, "one");
  Call(client, 3, "two");
  EXPECT_EQ(client.streams[3].Value("sluice-reason"), "concurrency_limited");
  EXPECT_EQ(client.streams[3].Value("sluice-limit"), "cluster/c/concurrency");
  Answer(1, "a");
  Call(client, 5, "one");  // a hit needs no permit
  EXPECT_EQ(client.streams[5].data, Message("a"));
}

TEST_F(CallCacheTest, AStaleResponseIsServedWhileOneCallFetchesANewOne) {
  routes[0].cache.stale_while_revalidate = milliseconds(5'000);
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1, "q");
  Answer(1, "old");
  Advance(milliseconds(12'000));
  Call(client, 3, "q");
  Call(client, 5, "q");
  EXPECT_EQ(client.streams[3].data, Message("old"));
  EXPECT_EQ(client.streams[3].headers[0], With(GrpcResponse(), {{"sluice-cache", "stale"}, {"age", "12"}}));
  EXPECT_EQ(client.streams[5].data, Message("old"));
  EXPECT_EQ(Upstream(), 2u);
  Answer(3, "new");
  Call(client, 7, "q");
  EXPECT_EQ(client.streams[7].data, Message("new"));
  EXPECT_EQ(Upstream(), 2u);
}

TEST_F(CallCacheTest, AStaleResponseStandsInForAnUpstreamThatIsUnavailable) {
  routes[0].cache.stale_if_unavailable = milliseconds(60'000);
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1, "q");
  Answer(1, "old");
  Advance(milliseconds(20'000));
  Call(client, 3, "q");
  EXPECT_FALSE(client.streams[3].end);
  Up().Send(Headers(3, Block(With(GrpcResponse(), {{"grpc-status", "14"}})), kLast));
  Run();
  EXPECT_EQ(client.streams[3].data, Message("old"));
  Call(client, 5, "q");
  Up().Send(Headers(5, Block(With(GrpcResponse(), {{"grpc-status", "13"}})), kLast));  // another error is not hidden
  Run();
  EXPECT_EQ(client.streams[5].Value("grpc-status"), "13");
}

TEST_F(CallCacheTest, TooLargeAResponseGoesOnToTheFirstAndTheOthersAskThemselves) {
  cache.entry_bytes_max = 1024;
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1, "q");
  Call(client, 3, "q");
  const std::string large = Message(std::string(100'000, 'x'));
  Up().Send(Headers(1, Block(GrpcResponse())));
  for (size_t at = 0; at < large.size(); at += 10'000) Up().Send(Data(1, large.substr(at, 10'000)));
  Run();
  EXPECT_EQ(client.streams[1].data, large);
  EXPECT_FALSE(client.streams[1].end);
  EXPECT_EQ(Upstream(), 2u);  // the second's own
  Up().Send(Headers(1, Block(GrpcTrailers()), kLast));
  Run();
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "0");
  EXPECT_TRUE(client.streams[1].end);
  Answer(3, "small");
  EXPECT_EQ(client.streams[3].data, Message("small"));
  EXPECT_EQ(NotCachedFor(NotCached::kResponseTooLarge), 1u);
}

// The relay is under the flow control of the leader's client: what it does not take, the upstream may not send.
TEST_F(CallCacheTest, ASlowClientHoldsUpARelay) {
  cache.entry_bytes_max = 1024;
  Start({"10.0.0.1:1"});
  FramePeer& client = Client({{4, 0}});  // a stream window of nothing
  Call(client, 1, "q");
  Up().Send(Headers(1, Block(GrpcResponse())));
  for (int i = 0; i < 10; ++i) Up().Send(Data(1, std::string(10'000, 'x')));
  Run();
  EXPECT_EQ(client.streams[1].data, "");
  EXPECT_LT(Up().Credited(1), 20'000u);  // but for what was collected before
  client.Send(h2::WindowUpdate(1, 100'000));
  Run();
  EXPECT_EQ(client.streams[1].data.size(), 100'000u);
  client.Send(h2::RstStream(1, 8));
  Run();
  EXPECT_EQ(Up().streams[1].reset, 8u);
}

TEST_F(CallCacheTest, TheLeadersDeadlineEndsARelay) {
  cache.entry_bytes_max = 1024;
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1, "q", {{"grpc-timeout", "100m"}});
  Up().Send(Headers(1, Block(GrpcResponse())) + Data(1, std::string(10'000, 'x')));
  Run();
  Advance(milliseconds(100));
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "4");
  EXPECT_EQ(client.streams[1].headers.size(), 2u);
  EXPECT_EQ(Up().streams[1].reset, 8u);
}

TEST_F(CallCacheTest, AClientThatReadsSlowlyKeepsNothingFromTheOthers) {
  Start({"10.0.0.1:1"});
  FramePeer& slow = Client({{4, 0}});
  FramePeer& client = Client();
  Call(slow, 1, "q");
  Answer(1, "answer");
  EXPECT_EQ(slow.streams[1].data, "");
  Call(client, 1, "q");
  EXPECT_EQ(client.streams[1].data, Message("answer"));
  EXPECT_EQ(response_cache->Purge({}), 1u);
  slow.Send(h2::WindowUpdate(1, 100));
  Run();
  EXPECT_EQ(slow.streams[1].data, Message("answer"));
  EXPECT_TRUE(slow.streams[1].end);
}

TEST_F(CallCacheTest, AfterAPurgeNoCallGetsAResponseFetchedBefore) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1, "q");
  response_cache->Purge({"pkg.Service", "", {}});
  Call(client, 3, "q");
  EXPECT_EQ(Upstream(), 2u);
  Answer(1, "old");
  EXPECT_EQ(client.streams[1].data, Message("old"));  // it asked before
  EXPECT_FALSE(client.streams[3].end);
  Answer(3, "new");
  EXPECT_EQ(client.streams[3].data, Message("new"));
  Call(client, 5, "q");
  EXPECT_EQ(client.streams[5].data, Message("new"));
}

TEST_F(CallCacheTest, ACallWithCredentialsIsNotShared) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1, "q", {{"authorization", "a"}});
  Answer(1, "for a");
  Call(client, 3, "q", {{"authorization", "b"}});
  EXPECT_EQ(Upstream(), 2u);
  EXPECT_EQ(NotCachedFor(NotCached::kAuthorization), 2u);
}

TEST_F(CallCacheTest, VaryKeepsCallersApart) {
  routes[0].cache.vary = {"authorization"};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1, "q", {{"authorization", "a"}});
  Answer(1, "for a");
  Call(client, 3, "q", {{"authorization", "b"}});
  EXPECT_EQ(Upstream(), 2u);
  Answer(3, "for b");
  Call(client, 5, "q", {{"authorization", "a"}});
  EXPECT_EQ(client.streams[5].data, Message("for a"));
}

TEST_F(CallCacheTest, ARequestOfMoreThanOneMessageIsPassedOn) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(GrpcRequest())) + Data(1, Message("one")));
  Run();
  EXPECT_EQ(Upstream(), 0u);
  client.Send(Data(1, Message("two")));
  Run();
  EXPECT_EQ(Upstream(), 1u);
  client.Send(Data(1, Message("three"), h2::kEndStream));
  Run();
  EXPECT_EQ(Up().streams[1].data, Message("one") + Message("two") + Message("three"));
  EXPECT_TRUE(Up().streams[1].end);
  EXPECT_EQ(NotCachedFor(NotCached::kNotUnary), 1u);
}

TEST_F(CallCacheTest, ALargeRequestIsPassedOnAsSoonAsItsSizeIsKnown) {
  cache.request_bytes_max = 100;
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(GrpcRequest())) + Data(1, Message(std::string(1000, 'x')).substr(0, 20)));
  Run();
  EXPECT_EQ(Upstream(), 1u);
  EXPECT_EQ(NotCachedFor(NotCached::kRequestTooLarge), 1u);
}

TEST_F(CallCacheTest, AStoppingProxyAnswersTheParticipants) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  for (uint32_t id : {1, 3}) Call(client, id, "q");
  worker->EndCalls();
  Run();
  for (uint32_t id : {1, 3}) EXPECT_EQ(client.streams[id].Value("grpc-status"), "14") << id;
}

TEST_F(CallCacheTest, TheKeyOfTheRingMayLieInTheMessage) {
  routes[0].cache.methods.clear();
  cluster.policy = upstream::Policy::kRingHash;
  routes[0].hash_by = {.kind = HashBy::Kind::kField, .fields = {{"", {1}}}};
  const std::vector<std::string> hosts = {"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"};
  Start(hosts);
  FramePeer& client = Client();
  auto host_of = [&](uint32_t id, const std::string& user) {
    const std::string message = Message("\x12\x01z\x0a" + std::string(1, static_cast<char>(user.size())) + user);
    client.Send(Headers(id, Block(With(GrpcRequest(), {{"id", std::to_string(id)}}))) + Data(id, message.substr(0, 7)));
    Run();
    client.Send(Data(id, message.substr(7), h2::kEndStream));
    Run();
    for (const std::string& host : hosts) {
      if (!Connected(host)) continue;
      for (auto& [stream, heard] : Up(host).streams) {
        if (heard.Value("id") == std::to_string(id)) {
          EXPECT_EQ(heard.data, message);
          return host;
        }
      }
    }
    return std::string("nowhere");
  };
  std::set<std::string> used;
  uint32_t id = 1;
  for (int user = 0; user < 20; ++user) {
    const std::string name = "user" + std::to_string(user);
    const std::string host = host_of(id, name);
    EXPECT_EQ(host_of(id + 2, name), host);
    used.insert(host);
    id += 4;
  }
  EXPECT_EQ(used.size(), 3u);
}

}  // namespace
}  // namespace sluice::proxy
