// CallObserver: each finished call is told of once, however it was answered, and a hit of the fast path as any other.
#include "proxy/call/observer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/proxy_fixture.h"

namespace sluice::proxy {
namespace {

using h2::Block;
using h2::Data;
using h2::GrpcRequest;
using h2::Headers;
using h2::Message;
using std::chrono::milliseconds;
using test::FramePeer;
using test::kLast;

// Keeps the records, with strings of its own.
class Recorder final : public CallObserver {
 public:
  struct Told {
    std::string peer, path, route, cluster, endpoint, cause, cache, waits;
    GrpcCode status;
    bool fetch;
    uint32_t attempts;
    uint64_t request_bytes, response_bytes;
    base::Nanos to_upstream, to_response, total;
    uint32_t worker;
  };
  void OnCallEnd(const CallRecord& r, uint32_t worker) override {
    told.push_back({std::string(r.peer), std::string(r.path), std::string(r.route), std::string(r.cluster),
                    std::string(r.endpoint), std::string(r.cause), std::string(r.cache), std::string(r.waits), r.status,
                    r.fetch, r.attempts, r.request_bytes, r.response_bytes, r.to_upstream, r.to_response, r.total,
                    worker});
  }
  std::vector<Told> told;
};

class CallObserverTest : public test::ProxyFixture {
 public:
  CallObserverTest() { observers = {recorder}; }
  std::string Request(uint32_t id, const std::string& text) {
    return Headers(id, Block(GrpcRequest())) + Data(id, Message(text), h2::kEndStream);
  }
  const std::vector<Recorder::Told>& told() const { return recorder->told; }
  std::shared_ptr<Recorder> recorder = std::make_shared<Recorder>();
};

TEST_F(CallObserverTest, ACallIsToldOfOnceWithWhatBecameOfIt) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Request(1, "question"));
  Run();
  EXPECT_TRUE(told().empty());
  Advance(milliseconds(7));
  Respond(Up(), 1, "answer");
  Run();
  ASSERT_EQ(told().size(), 1u);
  const Recorder::Told& call = told()[0];
  EXPECT_EQ(call.peer, "192.0.2.7:40000");
  EXPECT_EQ(call.path, "/pkg.Service/Method");
  EXPECT_EQ(call.route, "r");
  EXPECT_EQ(call.cluster, "c");
  EXPECT_EQ(call.endpoint, "10.0.0.1:1");
  EXPECT_EQ(call.status, GrpcCode::kOk);
  EXPECT_EQ(call.cause, "");
  EXPECT_FALSE(call.fetch);
  EXPECT_EQ(call.attempts, 1u);
  EXPECT_EQ(call.request_bytes, Message("question").size());
  EXPECT_EQ(call.response_bytes, 6u);
  EXPECT_EQ(call.to_upstream, base::Nanos(0));
  EXPECT_EQ(call.to_response, milliseconds(7));
  EXPECT_EQ(call.total, milliseconds(7));
  EXPECT_EQ(call.worker, 0u);
}

TEST_F(CallObserverTest, AnErrorOfTheProxyHasItsReason) {
  routes[0].service = "other.Service";
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Request(1, "question"));
  Run();
  ASSERT_EQ(told().size(), 1u);
  EXPECT_EQ(told()[0].status, GrpcCode::kUnimplemented);
  EXPECT_EQ(told()[0].cause, "no_route");
  EXPECT_EQ(told()[0].route, "");
  EXPECT_EQ(told()[0].to_upstream, base::Nanos(-1));
}

TEST_F(CallObserverTest, ACancelledCallIsToldOf) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Request(1, "question"));
  Run();
  client.Send(h2::RstStream(1, 8));
  Run();
  ASSERT_EQ(told().size(), 1u);
  EXPECT_EQ(told()[0].status, GrpcCode::kCancelled);
}

class CachedCallObserverTest : public CallObserverTest {
 public:
  CachedCallObserverTest() { routes[0].cache.methods = {{"/pkg.Service/Method", milliseconds(10'000)}}; }
  // As the upstream of a fetch answers.
  void Answer(uint32_t id) {
    Up().Send(Headers(id, Block(h2::GrpcResponse())) + Data(id, Message("answer")) +
              Headers(id, Block(h2::GrpcTrailers()), kLast));
    Run();
  }
};

TEST_F(CachedCallObserverTest, AMissIsTwoCallsOneOfThemAFetch) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Request(1, "question"));
  Run();
  Answer(1);
  ASSERT_EQ(told().size(), 2u);
  EXPECT_TRUE(told()[0].fetch);
  EXPECT_EQ(told()[0].endpoint, "10.0.0.1:1");
  EXPECT_EQ(told()[0].attempts, 1u);
  EXPECT_FALSE(told()[1].fetch);
  EXPECT_EQ(told()[1].cache, "miss");
  EXPECT_EQ(told()[1].endpoint, "10.0.0.1:1");
  EXPECT_EQ(told()[1].attempts, 1u);
}

// Answered without a Call, where it does not move; the record is the same.
TEST_F(CachedCallObserverTest, AHitOfTheFastPathIsToldOfAsAnyOther) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Request(1, "question"));
  Run();
  Answer(1);
  recorder->told.clear();
  const std::string whole = Request(3, "question");
  client.Send(whole);
  Run();
  // Its message comes a turn later, so that a Call looks.
  client.Send(Headers(5, Block(GrpcRequest())));
  Run();
  client.Send(Data(5, Message("question"), h2::kEndStream));
  Run();
  ASSERT_EQ(told().size(), 2u);
  for (const Recorder::Told& hit : told()) {
    EXPECT_EQ(hit.peer, "192.0.2.7:40000");
    EXPECT_EQ(hit.path, "/pkg.Service/Method");
    EXPECT_EQ(hit.route, "r");
    EXPECT_EQ(hit.cluster, "c");
    EXPECT_EQ(hit.endpoint, "");
    EXPECT_EQ(hit.cache, "hit");
    EXPECT_EQ(hit.status, GrpcCode::kOk);
    EXPECT_FALSE(hit.fetch);
    EXPECT_EQ(hit.attempts, 0u);
    EXPECT_EQ(hit.request_bytes, Message("question").size());
    EXPECT_EQ(hit.response_bytes, Message("answer").size());
    EXPECT_EQ(hit.to_upstream, base::Nanos(-1));
    EXPECT_EQ(hit.to_response, base::Nanos(0));
    EXPECT_EQ(hit.total, base::Nanos(0));
  }
}

TEST_F(CachedCallObserverTest, EachOfThoseThatShareAFetchIsToldOf) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Request(1, "question") + Request(3, "question"));
  Run();
  Answer(1);
  ASSERT_EQ(told().size(), 3u);
  EXPECT_EQ(std::count_if(told().begin(), told().end(), [](const auto& call) { return call.fetch; }), 1);
  EXPECT_EQ(std::count_if(told().begin(), told().end(), [](const auto& call) { return call.cache == "coalesced"; }), 1);
}

}  // namespace
}  // namespace sluice::proxy
