// Calls and the response cache where something else happens meanwhile: a new endpoint list, a route's time limit, a
// client that dribbles its message; and what is counted then.
#include <gmock/gmock.h>

#include "base/slice.h"
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
using ::testing::HasSubstr;

class CallCacheEdgeTest : public test::ProxyFixture {
 public:
  CallCacheEdgeTest() { routes[0].cache.methods = {{"/pkg.Service/Method", milliseconds(10'000)}}; }

  void Call(FramePeer& client, uint32_t id, std::string_view message, const Fields& more = {}) {
    client.Send(Headers(id, Block(With(GrpcRequest(), more))) + Data(id, Message(message), h2::kEndStream));
    Run();
  }
  void Answer(const std::string& address, uint32_t id, std::string_view message) {
    Up(address).Send(Headers(id, Block(GrpcResponse())) + Data(id, Message(message)) +
                     Headers(id, Block(GrpcTrailers()), kLast));
    Run();
  }
  // 16 KiB that need no answer.
  static std::string Other() { return h2::RawFrame(0xee, 0, 0, std::string(16'000, 'x')); }
  int64_t Errors(base::ErrorKind kind) {
    return static_cast<int64_t>(metrics.errors[static_cast<size_t>(kind)]->Value());
  }
};

// The route's limit is on a call's life. The call that joined later asks anew when the fetch has ended with the limit
// of the call that began it, which the backend was told.
TEST_F(CallCacheEdgeTest, ARoutesTimeoutOfTheFirstIsNotTheOthers) {
  routes[0].timeout = milliseconds(10'000);
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1, "q");
  Advance(milliseconds(9'000));
  Call(client, 3, "q");
  Advance(milliseconds(1'000));
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "4");
  EXPECT_THAT(client.streams[1].Value("grpc-message"), HasSubstr("while it waited for a fetch"));
  ASSERT_FALSE(client.streams[3].end) << client.streams[3].Value("grpc-message");
  EXPECT_EQ(Up("10.0.0.1:1").streams[3].Value("grpc-timeout"), "9000000u");
  Answer("10.0.0.1:1", 3, "a");
  EXPECT_EQ(client.streams[3].data, Message("a"));
}

TEST_F(CallCacheEdgeTest, ACallThatWaitedForItsMessageGoesByThePresentList) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(GrpcRequest())) + Data(1, Message("q").substr(0, 3)));
  Run();
  SetEndpoints({"10.0.0.2:1"});
  Run();
  client.Send(Data(1, Message("q").substr(3), h2::kEndStream));
  Run();
  ASSERT_FALSE(client.streams[1].end) << client.streams[1].Value("grpc-message");
  Answer("10.0.0.2:1", 1, "a");
  EXPECT_EQ(client.streams[1].data, Message("a"));
}

TEST_F(CallCacheEdgeTest, ACallThatWaitedForTheRingsKeyGoesByThePresentList) {
  routes[0].cache.methods.clear();
  cluster.policy = upstream::Policy::kRingHash;
  routes[0].hash_by = {.kind = HashBy::Kind::kField, .fields = {{"", {1}}}};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(GrpcRequest())) + Data(1, Message("\x0a\x01z").substr(0, 3)));
  Run();
  SetEndpoints({"10.0.0.2:1"});
  Run();
  client.Send(Data(1, Message("\x0a\x01z").substr(3), h2::kEndStream));
  Run();
  EXPECT_FALSE(client.streams[1].end) << client.streams[1].Value("grpc-message");
}

TEST_F(CallCacheEdgeTest, ACallThatWaitedForAFetchGoesByThePresentList) {
  cache.entry_bytes_max = 1024;
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1, "q");
  Call(client, 3, "q");
  SetEndpoints({"10.0.0.2:1"});
  Run();
  Up().Send(Headers(1, Block(GrpcResponse())) + Data(1, std::string(10'000, 'x')));  // too large to share
  Run();
  ASSERT_FALSE(client.streams[3].end) << client.streams[3].Value("grpc-message");
  Answer("10.0.0.2:1", 1, "a");
  EXPECT_EQ(client.streams[3].data, Message("a"));
}

TEST_F(CallCacheEdgeTest, ARouteThatCachesNoMoreWhenTheMessageIsThere) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(GrpcRequest())) + Data(1, Message("q").substr(0, 3)));
  Run();
  routes[0].cache.methods.clear();
  SetEndpoints({"10.0.0.1:1"});
  client.Send(Data(1, Message("q").substr(3), h2::kEndStream));
  Run();
  Answer("10.0.0.1:1", 1, "a");
  EXPECT_EQ(client.streams[1].data, Message("a"));
  EXPECT_EQ(response_cache->stats().entries, 0u);
}

// An error is of the calls that end with it: not of the fetch that they shared, nor of one that all of them have left.
TEST_F(CallCacheEdgeTest, ErrorsAreCountedOnceForEachCallThatEndsWithOne) {
  routes[0].retry.attempts_max = 1;
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1, "q");
  client.Send(h2::RstStream(1, 8));
  Run();
  EXPECT_EQ(Errors(base::ErrorKind::kCancelled), 1);
  for (uint32_t id : {3, 5, 7}) Call(client, id, "q");
  Up().Send(h2::RstStream(3, 7));
  Run();
  for (uint32_t id : {3, 5, 7}) EXPECT_EQ(client.streams[id].Value("grpc-status"), "14") << id;
  EXPECT_EQ(Errors(base::ErrorKind::kUpstreamRefused), 3);
}

TEST_F(CallCacheEdgeTest, AnErrorInARelayIsCountedOnce) {
  cache.entry_bytes_max = 1024;
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1, "q");
  Up().Send(Headers(1, Block(GrpcResponse())) + Data(1, std::string(10'000, 'x')));
  Run();
  Up().wire().Close();
  Run();
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "14");
  EXPECT_EQ(Errors(base::ErrorKind::kConnectionLost), 1);
  Call(client, 3, "q");
  Up().Send(Headers(1, Block(GrpcResponse())) + Data(1, std::string(10'000, 'x')));
  Run();
  client.Send(h2::RstStream(3, 8));
  Run();
  EXPECT_EQ(Errors(base::ErrorKind::kCancelled), 1);
}

TEST_F(CallCacheEdgeTest, ARelayedResponseSaysWhatTheFetchWaitedFor) {
  cache.entry_bytes_max = 1024;
  cluster.rate_limit = {.rate = 10, .burst = 1};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1, "one");
  Call(client, 3, "two");
  Advance(milliseconds(101));
  Up().Send(Headers(3, Block(GrpcResponse())) + Data(3, std::string(10'000, 'x')) +
            Headers(3, Block(GrpcTrailers()), kLast));
  Run();
  EXPECT_EQ(client.streams[3].data.size(), 10'000u);
  EXPECT_THAT(client.streams[3].Value("sluice-waited"), HasSubstr("cluster/c/rate="));
}

// Between any two bytes of the message, other frames fill read blocks.
TEST_F(CallCacheEdgeTest, AMessageThatDribblesInPinsNoReadBlocks) {
  routes[0].retry.attempts_max = 1;  // nothing is kept for another attempt
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  const std::string message = Message(std::string(100, 'x'));
  client.Send(Headers(1, Block(GrpcRequest())));
  Run();
  const size_t before = base::Block::LiveBytes();
  for (size_t i = 0; i + 1 < message.size(); ++i) {
    client.Send(Data(1, message.substr(i, 1)) + Other());
    Run();
  }
  EXPECT_LT(base::Block::LiveBytes() - before, 600'000u);
  client.Send(Data(1, message.substr(message.size() - 1), h2::kEndStream));
  Run();
  EXPECT_EQ(Up().streams[1].data, message);
}

TEST_F(CallCacheEdgeTest, AResponseThatDribblesInPinsNoReadBlocks) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1, "q");
  const std::string message = Message(std::string(100, 'x'));
  Up().Send(Headers(1, Block(GrpcResponse())));
  Run();
  const size_t before = base::Block::LiveBytes();
  for (size_t i = 0; i < message.size(); ++i) {
    Up().Send(Data(1, message.substr(i, 1)) + Other());
    Run();
  }
  EXPECT_LT(base::Block::LiveBytes() - before, 600'000u);
  Up().Send(Headers(1, Block(GrpcTrailers()), kLast));
  Run();
  EXPECT_EQ(client.streams[1].data, message);
}

// Else the answer would be found by the key of a cluster that it is not from.
TEST_F(CallCacheEdgeTest, AFetchWhoseRouteTurnsToAnotherClusterIsGivenUp) {
  cluster.rate_limit = {.rate = 10, .burst = 1};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1, "one");
  Answer("10.0.0.1:1", 1, "a");
  Call(client, 3, "q");
  Call(client, 5, "q");
  routes[0].cluster = "d";
  SetEndpoints({"10.0.0.1:1"});
  for (int i = 0; i < 5; ++i) Advance(milliseconds(101));
  Answer("10.0.0.1:1", 3, "of d");
  Answer("10.0.0.1:1", 5, "of d");
  for (uint32_t id : {3, 5}) EXPECT_EQ(client.streams[id].data, Message("of d")) << id;
  EXPECT_EQ(response_cache->stats().entries, 1u);  // the first call's
}

TEST_F(CallCacheEdgeTest, OnlyPostIsLookedUp) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Fields get = GrpcRequest();
  get[0].second = "GET";
  client.Send(Headers(1, Block(get)) + Data(1, Message("q"), h2::kEndStream));
  Run();
  Answer("10.0.0.1:1", 1, "to get");
  Call(client, 3, "q");
  EXPECT_FALSE(client.streams[3].end);
}

// A call that goes alone has a stale response to fall back on, too.
TEST_F(CallCacheEdgeTest, AStaleResponseStandsInForACallThatGoesAlone) {
  routes[0].cache.stale_if_unavailable = milliseconds(600'000);
  cache.fetches_max = 1;
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1, "q");
  Answer("10.0.0.1:1", 1, "old");
  Advance(milliseconds(20'000));
  Call(client, 3, "other");
  Call(client, 5, "q");  // no room for its fetch
  Up().Send(Headers(5, Block(With(GrpcResponse(), {{"grpc-status", "14"}})), kLast));
  Run();
  EXPECT_EQ(client.streams[5].Value("grpc-status"), "0");
  EXPECT_EQ(client.streams[5].data, Message("old"));
  Up().Send(h2::RstStream(3, 8));
  Run();
}

}  // namespace
}  // namespace sluice::proxy
