// Single flight between callers: what one of them brings with it (its limits, its place in a queue, its metadata, its
// hops) decides its own call, and no other's that waits for the same key.
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

const Fields kNoCache = {{"cache-control", "no-cache"}};

class CallCacheSharingTest : public test::ProxyFixture {
 public:
  CallCacheSharingTest() { routes[0].cache.methods = {{"/pkg.Service/Method", milliseconds(10'000)}}; }

  FramePeer& Caller(int n) { return ClientOf(front(), "192.0.2." + std::to_string(n) + ":40000"); }
  void Call(FramePeer& client, uint32_t id, std::string_view message, const Fields& more = {}) {
    client.Send(Headers(id, Block(With(GrpcRequest(), more))) + Data(id, Message(message), h2::kEndStream));
    Run();
  }
  void Answer(uint32_t id, std::string_view message) {
    Up().Send(Headers(id, Block(GrpcResponse())) + Data(id, Message(message)) +
              Headers(id, Block(GrpcTrailers()), kLast));
    Run();
  }
  void Refuse(uint32_t id, const std::string& status) {
    Up().Send(Headers(id, Block(With(GrpcResponse(), {{"grpc-status", status}})), kLast));
    Run();
  }
  // Calls that any connection to the endpoint has heard of.
  size_t Upstream() {
    size_t n = 0;
    for (const auto& connection : net.host("10.0.0.1:1").connections) {
      for (const auto& [id, stream] : connection->streams) n += !stream.headers.empty();
    }
    return n;
  }
};

TEST_F(CallCacheSharingTest, AFetchThatWaitsForItsClientsTokensHoldsUpNoOtherClient) {
  routes[0].client_rate_limit.rate = {.rate = 1, .burst = 1, .queue_time = milliseconds(5000)};
  Start({"10.0.0.1:1"});
  FramePeer &spent = Caller(7), &other = Caller(8), &third = Caller(9);
  Call(spent, 1, "x");
  Answer(1, "x");
  Call(spent, 3, "q", kNoCache);  // waits for a second
  Call(spent, 5, "q");            // shares the wait: it would meet the same limit
  ASSERT_EQ(Upstream(), 1u);
  Call(other, 1, "q");
  ASSERT_EQ(Upstream(), 2u);
  Call(third, 1, "q");
  ASSERT_EQ(Upstream(), 2u) << "the other's fetch may be joined";
  Answer(3, "a");
  EXPECT_EQ(other.streams[1].data, Message("a"));
  EXPECT_EQ(other.streams[1].Value("sluice-waited"), "<none>");
  EXPECT_EQ(third.streams[1].data, Message("a"));
  Advance(milliseconds(1001));
  ASSERT_EQ(Upstream(), 3u);
  Answer(5, "b");
  EXPECT_EQ(spent.streams[3].data, Message("b"));
  EXPECT_EQ(spent.streams[5].data, Message("b"));
  Call(third, 3, "q");
  EXPECT_EQ(third.streams[3].data, Message("a")) << "of the fetch that began last";
}

// They had joined before the fetch had to wait: its tokens went to another call of its client meanwhile.
TEST_F(CallCacheSharingTest, CallsThatWaitForAnotherClientsTokensAlreadyGoByThemselves) {
  routes[0].rate_limit = {.rate = 1, .burst = 2, .queue_time = milliseconds(5000)};
  routes[0].client_rate_limit.rate = {.rate = 0.1, .burst = 1, .queue_time = milliseconds(20'000)};
  Start({"10.0.0.1:1"});
  FramePeer &spent = Caller(7), &other = Caller(8);
  Call(spent, 1, "x");
  Call(spent, 3, "y");  // waits for its client's tokens, and has taken the route's last one
  Call(spent, 5, "q");  // waits for the route's, then for its client's
  Call(other, 1, "q");
  ASSERT_EQ(Upstream(), 1u);
  Advance(milliseconds(1001));
  Advance(milliseconds(1001));
  ASSERT_EQ(Upstream(), 2u);
  Answer(3, "a");
  EXPECT_EQ(other.streams[1].data, Message("a"));
  EXPECT_FALSE(spent.streams[5].end);
}

// The leader has more waiters than others, so the newest of its calls makes room for theirs: the call that leads a
// fetch.
TEST_F(CallCacheSharingTest, ALimitsRefusalIsTheLeadersAlone) {
  cluster.concurrency = {.max = 1, .queue_max = 3, .queue_time = milliseconds(0)};
  Start({"10.0.0.1:1"});
  FramePeer &leader = Caller(7), &other = Caller(8), &third = Caller(9);
  Call(leader, 1, "x");
  Call(leader, 3, "y");
  Call(leader, 5, "w");
  Call(leader, 7, "q");
  Call(other, 1, "q");
  Call(third, 1, "z");
  EXPECT_EQ(leader.streams[7].Value("sluice-reason"), "concurrency_limited");
  EXPECT_FALSE(other.streams[1].end) << "it has a place of its own in the queue, from now on";
  EXPECT_FALSE(third.streams[1].end);
}

TEST_F(CallCacheSharingTest, AnEndpointsLimitOfHeadersIsMetByTheLeaderAlone) {
  net.host("10.0.0.1:1").mode = test::FakeHost::Mode::kHang;
  net.host("10.0.0.1:1").settings = {{6, 8192}};
  Start({"10.0.0.1:1"});
  FramePeer &leader = Caller(7), &other = Caller(8);
  Call(leader, 1, "q", {{"x-large", std::string(9000, 'x')}});
  Call(other, 1, "q");
  net.host("10.0.0.1:1").mode = test::FakeHost::Mode::kAccept;
  net.Answer("10.0.0.1:1");
  Run();
  EXPECT_EQ(leader.streams[1].Value("sluice-reason"), "too_large");
  ASSERT_EQ(Upstream(), 1u);
  Answer(1, "a");
  EXPECT_EQ(other.streams[1].data, Message("a"));
}

TEST_F(CallCacheSharingTest, ACallThatHasPassedManyProxiesSharesNoFetch) {
  Start({"10.0.0.1:1"});
  FramePeer &far = Caller(7), &near = Caller(8), &other = Caller(9);
  Call(far, 1, "q", {{"sluice-hops", "15"}});
  Call(near, 1, "q", {{"sluice-hops", "1"}});  // behind a proxy of its client's machine
  Call(other, 1, "q");
  ASSERT_EQ(Upstream(), 2u);
  Answer(3, "a");
  EXPECT_EQ(near.streams[1].data, Message("a"));
  EXPECT_EQ(other.streams[1].data, Message("a"));
  EXPECT_FALSE(far.streams[1].end);
}

// The message is in the key, and the metadata is not: an answer to it is not the others'.
TEST_F(CallCacheSharingTest, AFailureThatIsNotCachedIsTheLeadersAlone) {
  for (const std::string status : {"3", "7", "8", "13", "16"}) {
    SCOPED_TRACE(status);
    if (!worker) Start({"10.0.0.1:1"});
    FramePeer &leader = Caller(7), &other = Caller(8);
    const size_t before = Upstream();
    const auto id = static_cast<uint32_t>(2 * before + 1);
    Call(leader, 1, "q" + status, {{"x-broken", "1"}});
    Call(other, 1, "q" + status);
    Refuse(id, status);
    EXPECT_EQ(leader.streams[1].Value("grpc-status"), status);
    ASSERT_EQ(Upstream(), before + 2);
    Answer(id + 2, "a");
    EXPECT_EQ(other.streams[1].data, Message("a"));
  }
}

// Each of a thousand calls would meet the same: one is enough.
TEST_F(CallCacheSharingTest, TheStateOfTheServiceIsForAll) {
  Start({"10.0.0.1:1"});
  FramePeer &leader = Caller(7), &other = Caller(8);
  Call(leader, 1, "q");
  Call(other, 1, "q");
  Refuse(1, "14");
  EXPECT_EQ(leader.streams[1].Value("grpc-status"), "14");
  EXPECT_EQ(other.streams[1].Value("grpc-status"), "14");
  EXPECT_EQ(Upstream(), 1u);
  SetEndpoints({});
  Call(leader, 3, "q");
  EXPECT_EQ(leader.streams[3].Value("sluice-reason"), "no_endpoint");
}

// Its metadata may have ended the connection: the others do not depend on it, and share no connection meanwhile.
TEST_F(CallCacheSharingTest, AfterALostConnectionEachParticipantGoesAlone) {
  Start({"10.0.0.1:1"});
  FramePeer &leader = Caller(7), &other = Caller(8), &third = Caller(9);
  Call(leader, 1, "q", {{"x-poison", "1"}});
  Call(other, 1, "q");
  Call(third, 1, "q");
  Up().wire().Break(ECONNRESET);
  Run();
  EXPECT_EQ(leader.streams[1].Value("grpc-status"), "14");
  EXPECT_EQ(Upstream(), 3u);
  for (const auto& connection : net.host("10.0.0.1:1").connections) {
    size_t calls = 0;
    for (const auto& [id, stream] : connection->streams) calls += !stream.headers.empty();
    EXPECT_LE(calls, 1u);
    if (calls == 1 && !connection->end) Respond(*connection, 1, Message("a"));
  }
  Run();
  EXPECT_EQ(other.streams[1].data, Message("a"));
  EXPECT_EQ(third.streams[1].data, Message("a"));
}

TEST_F(CallCacheSharingTest, ANoCacheFetchTakesNothingFromOneUnderWay) {
  Start({"10.0.0.1:1"});
  FramePeer &first = Caller(7), &strict = Caller(8), &third = Caller(9);
  Call(first, 1, "q");
  Call(strict, 1, "q", With(kNoCache, {{"x-broken", "1"}}));
  Call(third, 1, "q");
  ASSERT_EQ(Upstream(), 2u);
  Refuse(3, "3");
  EXPECT_EQ(strict.streams[1].Value("grpc-status"), "3");
  EXPECT_FALSE(third.streams[1].end);
  Answer(1, "a");
  EXPECT_EQ(first.streams[1].data, Message("a"));
  EXPECT_EQ(third.streams[1].data, Message("a"));
  Call(third, 3, "q");
  EXPECT_EQ(third.streams[3].data, Message("a"));
  EXPECT_EQ(Upstream(), 2u);
}

TEST_F(CallCacheSharingTest, ANoCacheFetchThatMayNotBeStoredLeavesWhatIsStored) {
  Start({"10.0.0.1:1"});
  FramePeer &strict = Caller(7), &other = Caller(8);
  Call(other, 1, "q");
  Answer(1, "a");
  Call(strict, 1, "q", With(kNoCache, {{"x-broken", "1"}}));
  Refuse(3, "3");
  Call(strict, 3, "q", With(kNoCache, {{"x-private", "1"}}));
  Up().Send(Headers(5, Block(With(GrpcResponse(), {{"cache-control", "no-store"}}))) + Data(5, Message("b")) +
            Headers(5, Block(GrpcTrailers()), kLast));
  Run();
  EXPECT_EQ(strict.streams[3].data, Message("b"));
  Call(other, 3, "q");
  EXPECT_EQ(other.streams[3].data, Message("a"));
}

}  // namespace
}  // namespace sluice::proxy
