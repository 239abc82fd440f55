// Answers of the response cache without a Call: what they are for the client and the metrics, and when there must be a
// Call.
#include "proxy/downstream/cache_fast_path.h"

#include <gtest/gtest.h>

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
using h2::kEndStream;
using h2::Message;
using h2::With;
using std::chrono::milliseconds;
using test::FramePeer;
using test::kLast;

class CacheFastPathTest : public test::ProxyFixture {
 public:
  CacheFastPathTest() { routes[0].cache.methods = {{"/pkg.Service/Method", milliseconds(10'000)}}; }

  // With "q" -> "answer" stored, by stream 1.
  FramePeer& StartWithEntry(const Fields& more = {}) {
    Start({"10.0.0.1:1"});
    FramePeer& client = Client();
    client.Send(Request(1, "q", more));
    Run();
    Answer(1, "answer");
    EXPECT_EQ(client.streams[1].data, Message("answer"));
    return client;
  }
  static std::string Request(uint32_t id, std::string_view message, const Fields& more = {}) {
    return Headers(id, Block(With(GrpcRequest(), more))) + Data(id, Message(message), kEndStream);
  }
  void Answer(uint32_t up_id, std::string_view message) {
    Up().Send(Headers(up_id, Block(GrpcResponse())) + Data(up_id, Message(message)) +
              Headers(up_id, Block(GrpcTrailers()), kLast));
    Run();
  }
  size_t Upstream() {
    size_t n = 0;
    for (const auto& [id, stream] : Up().streams) n += !stream.headers.empty();
    return n;
  }
  void ExpectHit(FramePeer& client, uint32_t id, std::string_view message = "answer") {
    const auto& heard = client.streams[id];
    ASSERT_EQ(heard.headers.size(), 2u) << id;
    EXPECT_EQ(heard.headers[0], With(GrpcResponse(), {{"sluice-cache", "hit"}, {"age", "0"}})) << id;
    EXPECT_EQ(heard.data, Message(message)) << id;
    EXPECT_EQ(heard.headers[1], GrpcTrailers()) << id;
    EXPECT_TRUE(heard.end) << id;
    EXPECT_FALSE(heard.reset) << id;
  }
  // Tasks that are run for what `client` sends.
  uint64_t TasksFor(FramePeer& client, std::string_view bytes) {
    const uint64_t before = Tasks();
    client.Send(bytes);
    Run();
    return Tasks() - before;
  }
  uint64_t Tasks() { return worker->worker().stats().tasks_run + (home ? home->worker().stats().tasks_run : 0); }
  uint64_t Calls(GrpcCode code) {
    return registry
        .AddCounter("calls_total", "Calls.", {{"route", "r"}, {"code", std::to_string(static_cast<int>(code))}})
        ->Value();
  }
  uint64_t Errors(base::ErrorKind kind) { return metrics.errors[static_cast<size_t>(kind)]->Value(); }
  uint64_t NotCachedFor(NotCached reason) { return response_cache->stats().not_cached[static_cast<size_t>(reason)]; }
  // Where every call goes to another worker, none is answered at home.
  bool moved() const { return workers == 2; }
};

TEST_F(CacheFastPathTest, AHitNeedsNoCallAndCountsAsOne) {
  FramePeer& client = StartWithEntry();
  const uint64_t tasks = TasksFor(client, Request(3, "q"));
  ExpectHit(client, 3);
  EXPECT_EQ(tasks, moved() ? tasks : 0u);
  EXPECT_EQ(response_cache->stats().hits, 1u);
  EXPECT_EQ(response_cache->stats().misses, 1u);
  EXPECT_EQ(Calls(GrpcCode::kOk), 2u);
  EXPECT_EQ(metrics.calls_in_flight->Value(), 0);
  EXPECT_EQ(Upstream(), 1u);
}

TEST_F(CacheFastPathTest, HitsAndMissesOfOneReadKeepApart) {
  FramePeer& client = StartWithEntry();
  TasksFor(client, Request(3, "q") + Request(5, "other") + Request(7, "q") + Request(9, "other"));
  ExpectHit(client, 3);
  ExpectHit(client, 7);
  EXPECT_EQ(Upstream(), 2u);  // the two others share a fetch
  Answer(3, "for other");
  EXPECT_EQ(client.streams[5].data, Message("for other"));
  EXPECT_EQ(client.streams[9].Value("grpc-status"), "0");
  const CacheStats stats = response_cache->stats();
  EXPECT_EQ(stats.hits, 2u);
  EXPECT_EQ(stats.misses, 3u);
  EXPECT_EQ(stats.coalesced, 1u);
  EXPECT_EQ(Calls(GrpcCode::kOk), 5u);
}

TEST_F(CacheFastPathTest, AMessageInPiecesIsOneMessage) {
  FramePeer& client = StartWithEntry();
  const std::string message = Message("q");
  const uint64_t tasks = TasksFor(client, Headers(3, Block(GrpcRequest())) + Data(3, message.substr(0, 2)) +
                                              Data(3, message.substr(2)) + Data(3, "", kEndStream));
  ExpectHit(client, 3);
  EXPECT_EQ(tasks, moved() ? tasks : 0u);
}

TEST_F(CacheFastPathTest, AMessageThatComesLaterIsACalls) {
  FramePeer& client = StartWithEntry();
  EXPECT_GT(TasksFor(client, Headers(3, Block(GrpcRequest())) + Data(3, Message("q").substr(0, 3))), 0u);
  EXPECT_FALSE(client.streams[3].end);
  EXPECT_EQ(metrics.calls_in_flight->Value(), 1);
  client.Send(Data(3, Message("q").substr(3), kEndStream));
  Run();
  ExpectHit(client, 3);
  EXPECT_EQ(response_cache->stats().hits, 1u);
}

TEST_F(CacheFastPathTest, AMessageThatNeverComesEndsByTheDeadline) {
  FramePeer& client = StartWithEntry();
  client.Send(Headers(3, Block(With(GrpcRequest(), {{"grpc-timeout", "50m"}}))) + Data(3, Message("q").substr(0, 3)));
  Run();
  Advance(milliseconds(49));
  EXPECT_FALSE(client.streams[3].end);
  Advance(milliseconds(1));
  EXPECT_EQ(client.streams[3].Value("grpc-status"), "4");
  EXPECT_EQ(Errors(base::ErrorKind::kDeadlineExceeded), 1u);
}

TEST_F(CacheFastPathTest, AResetBeforeTheMessageIsACancelledCall) {
  FramePeer& client = StartWithEntry();
  client.Send(Headers(3, Block(GrpcRequest())) + h2::RstStream(3, 8));
  client.Send(Headers(5, Block(GrpcRequest())) + Data(5, Message("q").substr(0, 3)) + h2::RstStream(5, 8));
  Run();
  for (uint32_t id : {3, 5}) EXPECT_TRUE(client.streams[id].headers.empty()) << id;
  EXPECT_EQ(Errors(base::ErrorKind::kCancelled), 2u);
  EXPECT_EQ(metrics.calls_in_flight->Value(), 0);
  EXPECT_EQ(response_cache->stats().hits, 0u);
  EXPECT_EQ(Upstream(), 1u);
}

TEST_F(CacheFastPathTest, AConnectionThatGoesWithItsRequestHeldLeavesNothing) {
  FramePeer& client = StartWithEntry();
  client.Send(Headers(3, Block(GrpcRequest())) + h2::RawFrame(h2::kData, 0, 0, "DATA on stream 0 ends a connection"));
  Run();
  EXPECT_TRUE(client.end);
  EXPECT_EQ(Errors(base::ErrorKind::kCancelled), 1u);
  EXPECT_TRUE(front().cache_fast_path.empty());
}

TEST_F(CacheFastPathTest, RequestsOfNotOneMessageOrTooLargeAreCountedOnce) {
  cache.request_bytes_max = 100;
  FramePeer& client = StartWithEntry();
  TasksFor(client, Headers(3, Block(GrpcRequest())) + Data(3, Message("q") + Message("q"), kEndStream));
  EXPECT_EQ(NotCachedFor(NotCached::kNotUnary), 1u);
  TasksFor(client, Request(5, std::string(101, 'x')));
  EXPECT_EQ(NotCachedFor(NotCached::kRequestTooLarge), 1u);
  TasksFor(client, Headers(7, Block(GrpcRequest())) + Data(7, "", kEndStream));
  EXPECT_EQ(NotCachedFor(NotCached::kNotUnary), 2u);
  EXPECT_EQ(Upstream(), 4u);
  EXPECT_EQ(Up().streams[5].data, Message(std::string(101, 'x')));
  EXPECT_EQ(response_cache->stats().hits, 0u);
}

TEST_F(CacheFastPathTest, RequestTrailersAreACalls) {
  FramePeer& client = StartWithEntry();
  TasksFor(client, Headers(3, Block(GrpcRequest())) + Data(3, Message("q")) + Headers(3, Block({{"x", "y"}}), kLast));
  EXPECT_EQ(Upstream(), 2u);
  EXPECT_EQ(response_cache->stats().hits, 0u);
}

TEST_F(CacheFastPathTest, ADeadlineThatIsNoneOrHasPassedIsSaidByACall) {
  FramePeer& client = StartWithEntry();
  TasksFor(client, Request(3, "q", {{"grpc-timeout", "soon"}}) + Request(5, "q", {{"grpc-timeout", "0m"}}) +
                       Request(7, "q", {{"grpc-timeout", "1m"}}));
  EXPECT_EQ(client.streams[3].Value("sluice-reason"), std::string(base::Reason(base::ErrorKind::kMalformedRequest)));
  EXPECT_EQ(client.streams[5].Value("grpc-status"), "4");
  ExpectHit(client, 7);
}

TEST_F(CacheFastPathTest, RequestsForAFreshResponseGoUpstream) {
  FramePeer& client = StartWithEntry();
  TasksFor(client, Request(3, "q", {{"cache-control", "no-store"}}));
  TasksFor(client, Request(5, "q", {{"authorization", "a"}}));
  EXPECT_EQ(Upstream(), 3u);
  EXPECT_EQ(NotCachedFor(NotCached::kNoStore), 1u);
  EXPECT_EQ(NotCachedFor(NotCached::kAuthorization), 1u);
  EXPECT_EQ(response_cache->stats().hits, 0u);
  Advance(milliseconds(3000));
  TasksFor(client, Request(7, "q", {{"cache-control", "max-age=3"}}));
  EXPECT_EQ(client.streams[7].data, Message("answer"));
  TasksFor(client, Request(9, "q", {{"cache-control", "max-age=2"}}));
  EXPECT_EQ(Upstream(), 4u);
  TasksFor(client, Request(11, "q", {{"cache-control", "no-cache"}}));
  EXPECT_EQ(Upstream(), 5u);
  EXPECT_EQ(response_cache->stats().hits, 1u);
}

TEST_F(CacheFastPathTest, AfterItsTimeAResponseIsFetchedAnew) {
  routes[0].cache.stale_while_revalidate = milliseconds(5'000);
  FramePeer& client = StartWithEntry();
  Advance(milliseconds(10'000));
  TasksFor(client, Request(3, "q"));
  EXPECT_EQ(client.streams[3].headers[0], With(GrpcResponse(), {{"sluice-cache", "stale"}, {"age", "10"}}));
  EXPECT_EQ(Upstream(), 2u);
  EXPECT_EQ(response_cache->stats().hits, 0u);
  EXPECT_EQ(response_cache->stats().stale, 1u);
}

// Whatever the front of the header block was learned with, another field behind it counts.
TEST_F(CacheFastPathTest, FieldsThatDecideAreSeenWhereverTheyAre) {
  routes.insert(routes.begin(), routes[0]);
  routes[0].name = "never";
  routes[0].metadata = {{"x-test", MetadataMatch::Kind::kPresent, ""}};
  routes[0].cache.methods.clear();
  routes[1].cache.vary = {"x-tenant", "x-request-id"};
  FramePeer& client = StartWithEntry({{"x-tenant", "a"}, {"x-request-id", "1"}});
  uint32_t id = 3;
  size_t up = 1;
  const auto ask = [&](const Fields& more) {
    client.Send(Request(id, "q", more));
    Run();
    const bool answered = client.streams[id].end;
    if (!answered) {
      ++up;
      EXPECT_EQ(Upstream(), up);
      client.Send(h2::RstStream(id, 8));
      Run();
    }
    id += 2;
    return answered;
  };
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 5; ++i) {
      EXPECT_TRUE(ask({{"x-tenant", "a"}, {"x-request-id", "1"}}));
      EXPECT_TRUE(ask({{"x-tenant", "a"}, {"x-request-id", "1"}, {"x-more", std::to_string(id)}}));
    }
    EXPECT_FALSE(ask({{"x-tenant", "a"}, {"x-request-id", "1"}, {"x-test", std::to_string(id)}}));
    EXPECT_FALSE(ask({{"x-tenant", "a"}, {"x-request-id", "1"}, {"x-tenant", std::to_string(id)}}));
    EXPECT_FALSE(ask({{"x-tenant", "a"}, {"x-request-id", std::to_string(id)}}));
    EXPECT_FALSE(ask({{"x-tenant", std::to_string(id)}, {"x-request-id", "1"}}));
    EXPECT_FALSE(ask({{"x-tenant", "a"}, {"x-request-id", "1"}, {"authorization", std::to_string(id)}}));
    EXPECT_FALSE(ask({{"x-tenant", "a"}, {"x-request-id", "1"}, {"cache-control", "no-cache"}}));
    EXPECT_FALSE(ask({{"x-tenant", "a"}, {"x-request-id", "1"}, {"grpc-accept-encoding", std::to_string(id)}}));
  }
}

TEST_F(CacheFastPathTest, TheConfigurationInForceDecides) {
  FramePeer& client = StartWithEntry();
  for (uint32_t id = 3; id < 23; id += 2) TasksFor(client, Request(id, "q"));
  ExpectHit(client, 21);
  routes[0].cache.vary = {"x-tenant"};  // another key
  SetEndpoints({"10.0.0.1:1"});
  TasksFor(client, Request(23, "q"));
  EXPECT_EQ(Upstream(), 2u);
  Answer(3, "second");
  for (uint32_t id = 25; id < 45; id += 2) TasksFor(client, Request(id, "q"));
  ExpectHit(client, 43, "second");
  routes[0].cache.methods.clear();
  SetEndpoints({"10.0.0.1:1"});
  TasksFor(client, Request(45, "q"));
  EXPECT_EQ(Upstream(), 3u);
}

// The same between a request's headers and its message.
TEST_F(CacheFastPathTest, AConfigurationThatComesBetweenHeadersAndMessageCounts) {
  StartWithEntry();
  http2::HeaderList fields;
  for (const auto& [name, value] : GrpcRequest()) fields.Add(name, value);
  const CanonicalRequest request = Canonicalize(std::move(fields), PathRule::kGrpc);
  WorkerFront& there = *worker;
  struct : http2::StreamIo {
    void SendHeaders(const http2::HeaderList&, bool) override { ++sent; }
    void SendData(const base::Slice&, bool) override { ++sent; }
    void Consume(size_t) override {}
    void Reset(http2::ErrorCode) override {}
    void Release() override { ++released; }
    int sent = 0, released = 0;
  } stream;
  const std::vector<base::Slice> message = {base::Slice::Copy(Message("q"))};
  const proxy::Client client{};
  runtime::Worker::ScopedCurrentForTest current(there.worker());
  KnownPlan known = there.cache_fast_path.May(client, request);
  ASSERT_NE(known.plan, nullptr);
  EXPECT_TRUE(there.cache_fast_path.Answer(stream, client, request, message, there.worker().now(), known));
  EXPECT_EQ(stream.sent, 3);
  EXPECT_EQ(stream.released, 1);
  known = there.cache_fast_path.May(client, request);
  ASSERT_NE(known.plan, nullptr);
  routes[0].cache.methods.clear();
  SetEndpoints({"10.0.0.1:1"});
  EXPECT_FALSE(there.cache_fast_path.Answer(stream, client, request, message, there.worker().now(), known));
  EXPECT_EQ(stream.sent, 3);
  EXPECT_EQ(stream.released, 1);
}

TEST_F(CacheFastPathTest, WithAnAccessLogHitsTakeTheFastPathToo) {
  access_log = {.format = AccessLogOptions::Format::kText, .path = "/dev/null"};
  FramePeer& client = StartWithEntry();
  const uint64_t tasks = TasksFor(client, Request(3, "q"));
  ExpectHit(client, 3);
  if (!moved()) {
    EXPECT_EQ(tasks, 0u);
  }
}

TEST_F(CacheFastPathTest, ADrainingConnectionsRequestsAreAnswered) {
  FramePeer& client = StartWithEntry();
  front().DrainDownstream();
  TasksFor(client, Request(3, "q"));
  ExpectHit(client, 3);
  EXPECT_GE(client.Count(h2::kGoaway), 1u);
}

// In the turn in which its headers were read, before the end of the turn's I/O.
TEST_F(CacheFastPathTest, AStopEndsBufferedRequests) {
  FramePeer& client = StartWithEntry();
  bool held = false, told = false;
  client.Send(Headers(3, Block(GrpcRequest())));
  front().worker().Post([&] {
    held = !front().cache_fast_path.empty();
    front().EndCalls();
    told = front().cache_fast_path.empty() && front().HasCalls();
  });
  Run();
  if (moved()) return;
  EXPECT_TRUE(held && told);
  EXPECT_EQ(client.streams[3].Value("grpc-status"), "14");
}

TEST_F(CacheFastPathTest, AnEndWithoutAStopLeavesNothing) {
  FramePeer& client = StartWithEntry();
  client.Send(Headers(3, Block(GrpcRequest())));
  front().worker().Post([&] { front().CloseAll(); });
  Run();
  EXPECT_TRUE(front().cache_fast_path.empty());
  EXPECT_FALSE(front().HasCalls());
}

}  // namespace
}  // namespace sluice::proxy
