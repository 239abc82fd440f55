// Gates: each call meets its route's gates before the cache, and nothing that is stored or under way passes one by.
#include "proxy/call/gate.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/waker.h"
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

base::Error Refusal() { return base::MakeError(base::ErrorKind::kConcurrencyLimited, "the gate is shut"); }

// A gate of a test: it refuses calls with the metadata "x-gate: shut", lets "x-gate: wait" wait until Open(), and lets
// all others go.
class TestGate final : public Gate {
 public:
  explicit TestGate(bool allows_fast_path = false) : allows_fast_path_(allows_fast_path) {}

  std::string_view name() const override { return "test/gate"; }
  bool AllowsFastPath() const override { return allows_fast_path_; }
  GateVerdict Ask(const GateRequest& request, std::unique_ptr<GateCheck>& check) const override {
    ++state_->asked;
    if (state_->when_asked) state_->when_asked();
    state_->paths.emplace_back(request.headers.Find(http2::Token::kPath)->value());
    state_->peers.push_back(request.client.peer_name);
    const http2::Field* field = request.headers.Find("x-gate");
    if (field == nullptr) return GateVerdict::Go();
    if (field->value() == "shut") return GateVerdict::Refuse(Refusal());
    check = std::make_unique<Check>(state_);
    return GateVerdict::Wait(state_->check_at);
  }

  struct State {
    int asked = 0, polled = 0, alive = 0;
    std::vector<std::string> paths, peers;
    base::TimePoint check_at = base::kNever;
    GateVerdict::Kind then = GateVerdict::Kind::kWait;  // the answer to a poll
    std::vector<runtime::Waker> wakers;
    std::function<void()> when_asked;
  };
  State& state() const { return *state_; }

 private:
  class Check final : public GateCheck {
   public:
    explicit Check(std::shared_ptr<State> state) : state_(std::move(state)) {
      ++state_->alive;
      state_->wakers.push_back(runtime::Waker::ForRunningTask());
    }
    ~Check() override { --state_->alive; }
    GateVerdict Poll(base::TimePoint) override {
      ++state_->polled;
      if (state_->then == GateVerdict::Kind::kGo) return GateVerdict::Go();
      if (state_->then == GateVerdict::Kind::kRefused) return GateVerdict::Refuse(Refusal());
      return GateVerdict::Wait(state_->check_at);
    }

   private:
    const std::shared_ptr<State> state_;
  };

  const bool allows_fast_path_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

class GateTest : public test::ProxyFixture {
 public:
  static std::vector<std::pair<std::string, std::string>> WithGate(const std::string& what) {
    auto fields = GrpcRequest();
    if (!what.empty()) fields.emplace_back("x-gate", what);
    return fields;
  }
  // A whole request in one piece; `what`: for the gate.
  static std::string Request(uint32_t id, const std::string& what) {
    return Headers(id, Block(WithGate(what))) + Data(id, Message("question"), h2::kEndStream);
  }
  void ExpectRefused(FramePeer& client, uint32_t id) {
    EXPECT_EQ(client.streams[id].Value("grpc-status"), "8") << id;
    EXPECT_EQ(client.streams[id].Value("sluice-reason"), "concurrency_limited") << id;
    EXPECT_EQ(client.streams[id].data, "") << id;
  }
  // The gate's word about what waits is now `then`, and they are woken.
  void Decide(GateVerdict::Kind then) {
    gate->state().then = then;
    for (runtime::Waker& waker : gate->state().wakers) waker.Wake();
    gate->state().wakers.clear();
    Run();
  }
  void StartWith(std::shared_ptr<TestGate> one) {
    gate = std::move(one);
    gates = {gate};
    Start({"10.0.0.1:1"});
  }
  std::shared_ptr<TestGate> gate;
};

// Between the call's look at the list and its choice of an endpoint.
TEST_F(GateTest, AListThatIsReplacedWholeUnderACallFailsItNot) {
  StartWith(std::make_shared<TestGate>());
  FramePeer& client = Client();
  gate->state().when_asked = [this] {
    gate->state().when_asked = nullptr;
    SetEndpoints({"10.0.0.2:1"});
  };
  client.Send(Request(1, ""));
  Run();
  ASSERT_TRUE(Connected("10.0.0.2:1")) << client.streams[1].Value("grpc-message");
  Respond(Up("10.0.0.2:1"), 1, "answer");
  Run();
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "0");
  EXPECT_EQ(gate->state().asked, 1) << "its route has the same gates";
}

TEST_F(GateTest, IsAskedOnceOnHeadersAndNeverOnData) {
  StartWith(std::make_shared<TestGate>());
  FramePeer& client = Client();
  client.Send(Headers(1, Block(GrpcRequest())));
  Run();
  EXPECT_EQ(gate->state().asked, 1);
  for (int i = 0; i < 3; ++i) {
    client.Send(Data(1, "part"));
    Run();
  }
  client.Send(Data(1, "last", h2::kEndStream));
  Run();
  Respond(Up(), 1, "answer");
  Run();
  EXPECT_EQ(client.streams[1].data, "answer");
  EXPECT_EQ(gate->state().asked, 1);
  EXPECT_EQ(gate->state().paths, std::vector<std::string>{"/pkg.Service/Method"});
  EXPECT_EQ(gate->state().peers, std::vector<std::string>{"192.0.2.7:40000"});
}

TEST_F(GateTest, ARefusalIsTheCallsStatusAndReasonAndReachesNoBackend) {
  StartWith(std::make_shared<TestGate>());
  FramePeer& client = Client();
  client.Send(Request(1, "shut"));
  Run();
  ExpectRefused(client, 1);
  EXPECT_FALSE(Connected("10.0.0.1:1"));
  EXPECT_EQ(metrics.errors[static_cast<size_t>(base::ErrorKind::kConcurrencyLimited)]->Value(), 1u);
}

TEST_F(GateTest, ARetryIsNotAskedAgain) {
  routes[0].retry.attempts_max = 2;
  StartWith(std::make_shared<TestGate>());
  SetEndpoints({"10.0.0.1:1", "10.0.0.2:1"});
  net.host("10.0.0.1:1").mode = test::FakeHost::Mode::kRefuse;
  FramePeer& client = Client();
  for (uint32_t id = 1; id < 8; id += 2) client.Send(Request(id, ""));
  Run();
  EXPECT_GT(metrics.retries[static_cast<size_t>(base::ErrorKind::kConnectFailed)]->Value(), 0u);
  EXPECT_EQ(gate->state().asked, 4);
}

TEST_F(GateTest, ACallWaitsUntilItsCheckLetsItGo) {
  StartWith(std::make_shared<TestGate>());
  FramePeer& client = Client();
  client.Send(Request(1, "wait"));
  Run();
  EXPECT_FALSE(Connected("10.0.0.1:1"));
  EXPECT_EQ(gate->state().alive, 1);
  Decide(GateVerdict::Kind::kWait);  // woken without need
  EXPECT_FALSE(Connected("10.0.0.1:1"));
  client.Send(Request(3, ""));  // others pass
  Run();
  Respond(Up(), 1, "other");
  Run();
  EXPECT_EQ(client.streams[3].data, "other");
  const int polled = gate->state().polled;
  gate->state().then = GateVerdict::Kind::kGo;
  client.Send(Headers(5, Block(WithGate("wait"))));  // its check takes a waker, for Decide
  Run();
  EXPECT_EQ(gate->state().polled, polled);
  Decide(GateVerdict::Kind::kGo);
  EXPECT_EQ(gate->state().asked, 3);
}

TEST_F(GateTest, ACallThatWaitedHasItsWholeRequest) {
  StartWith(std::make_shared<TestGate>());
  FramePeer& client = Client();
  client.Send(Headers(1, Block(WithGate("wait"))) + Data(1, "one "));
  Run();
  client.Send(Data(1, "two", h2::kEndStream));
  Run();
  Decide(GateVerdict::Kind::kGo);
  EXPECT_EQ(Up().streams[1].data, "one two");
  Respond(Up(), 1, "answer");
  Run();
  EXPECT_EQ(client.streams[1].data, "answer");
  EXPECT_EQ(gate->state().alive, 0);
}

TEST_F(GateTest, ACallThatWaitedMayBeRefused) {
  StartWith(std::make_shared<TestGate>());
  FramePeer& client = Client();
  client.Send(Request(1, "wait"));
  Run();
  Decide(GateVerdict::Kind::kRefused);
  ExpectRefused(client, 1);
  EXPECT_EQ(gate->state().alive, 0);
}

TEST_F(GateTest, ACheckIsAskedAgainAtItsTime) {
  auto one = std::make_shared<TestGate>();
  one->state().check_at = time.clock.Now() + milliseconds(20);
  StartWith(one);
  FramePeer& client = Client();
  client.Send(Request(1, "wait"));
  Run();
  gate->state().then = GateVerdict::Kind::kGo;
  Advance(milliseconds(19));
  EXPECT_EQ(gate->state().alive, 1);
  EXPECT_FALSE(Connected("10.0.0.1:1"));
  Advance(milliseconds(2));
  ASSERT_TRUE(Connected("10.0.0.1:1"));
  EXPECT_EQ(Up().streams[1].data, Message("question"));
}

TEST_F(GateTest, ACancelledCallLeavesItsCheck) {
  StartWith(std::make_shared<TestGate>());
  FramePeer& client = Client();
  client.Send(Request(1, "wait"));
  Run();
  ASSERT_EQ(gate->state().alive, 1);
  client.Send(h2::RstStream(1, 8));
  Run();
  EXPECT_EQ(gate->state().alive, 0);
  Decide(GateVerdict::Kind::kGo);  // a late wake-up
  EXPECT_FALSE(Connected("10.0.0.1:1"));
  EXPECT_EQ(metrics.calls_in_flight->Value(), 0);
}

TEST_F(GateTest, ADeadlineEndsTheWaitAndNamesTheGate) {
  StartWith(std::make_shared<TestGate>());
  FramePeer& client = Client();
  auto fields = WithGate("wait");
  fields.emplace_back("grpc-timeout", "50m");
  client.Send(Headers(1, Block(fields)) + Data(1, Message("question"), h2::kEndStream));
  Run();
  Advance(milliseconds(49));
  EXPECT_FALSE(client.streams[1].end);
  Advance(milliseconds(2));
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "4");
  EXPECT_NE(client.streams[1].Value("grpc-message").find("while it waited for test/gate"), std::string::npos);
  EXPECT_EQ(gate->state().alive, 0);
  EXPECT_FALSE(Connected("10.0.0.1:1"));
}

TEST_F(GateTest, AStopEndsTheWait) {
  StartWith(std::make_shared<TestGate>());
  FramePeer& client = Client();
  client.Send(Request(1, "wait"));
  Run();
  worker->EndCalls();
  Run();
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "14");
  EXPECT_EQ(gate->state().alive, 0);
}

// Each way to a stored or shared response, for two callers whose requests have the same key. The gate knows one of them
// only, so each way has to ask it.
class GateBeforeCacheTest : public GateTest {
 public:
  GateBeforeCacheTest() { routes[0].cache.methods = {{"/pkg.Service/Method", milliseconds(10'000)}}; }
  void Answer(uint32_t id) {
    Up().Send(Headers(id, Block(h2::GrpcResponse())) + Data(id, Message("answer")) +
              Headers(id, Block(h2::GrpcTrailers()), kLast));
    Run();
  }
  // "sluice-cache" in the response's headers.
  static std::string CacheOf(FramePeer& client, uint32_t id) {
    if (client.streams[id].headers.empty()) return "no response";
    for (const auto& [name, value] : client.streams[id].headers.front()) {
      if (name == "sluice-cache") return value;
    }
    return "";
  }
  FramePeer& WithEntry() {
    FramePeer& client = Client();
    client.Send(Request(1, ""));
    Run();
    Answer(1);
    EXPECT_EQ(client.streams[1].data, Message("answer"));
    EXPECT_EQ(response_cache->stats().entries, 1u);
    return client;
  }
};

// Whole in one read, where the fast path answers if it may; with SLUICE_TEST_MOVED on another worker.
TEST_F(GateBeforeCacheTest, AHitInOneReadIsRefused) {
  StartWith(std::make_shared<TestGate>());
  FramePeer& client = WithEntry();
  client.Send(Request(3, "shut") + Request(5, ""));
  Run();
  ExpectRefused(client, 3);
  EXPECT_EQ(client.streams[5].data, Message("answer"));
  EXPECT_EQ(CacheOf(client, 5), "hit");
  EXPECT_EQ(gate->state().asked, 3);
  EXPECT_EQ(response_cache->stats().hits, 1u);
}

TEST_F(GateBeforeCacheTest, AHitWhoseMessageComesLaterIsRefused) {
  StartWith(std::make_shared<TestGate>());
  FramePeer& client = WithEntry();
  client.Send(Headers(3, Block(WithGate("shut"))));
  Run();
  ExpectRefused(client, 3);
  EXPECT_EQ(response_cache->stats().hits, 0u);
}

// The hand-over buffers requests itself, and those that stay look in the cache.
TEST_F(GateBeforeCacheTest, AHitThatWasHeldForAnotherWorkerIsRefused) {
  if (workers != 2) GTEST_SKIP() << "of two workers";
  StartWith(std::make_shared<TestGate>());
  FramePeer& client = WithEntry();
  home->handoff->SetModeForTest(Handoff::Mode::kNever);
  client.Send(Request(3, "shut"));
  Run();
  ExpectRefused(client, 3);
  home->handoff->SetModeForTest(Handoff::Mode::kAlways);
  client.Send(Request(5, "shut"));
  Run();
  ExpectRefused(client, 5);
  EXPECT_EQ(response_cache->stats().hits, 0u);
}

TEST_F(GateBeforeCacheTest, AFetchIsNotJoinedByARefusedCall) {
  StartWith(std::make_shared<TestGate>());
  FramePeer& client = Client();
  client.Send(Request(1, "") + Request(3, "shut") + Request(5, ""));
  Run();
  ExpectRefused(client, 3);
  EXPECT_EQ(gate->state().asked, 3);  // the fetch is not asked
  Answer(1);
  EXPECT_EQ(client.streams[1].data, Message("answer"));
  EXPECT_EQ(client.streams[5].data, Message("answer"));
  EXPECT_EQ(CacheOf(client, 5), "coalesced");
}

TEST_F(GateBeforeCacheTest, AHitWaitsForTheGateAndIsThenAHit) {
  StartWith(std::make_shared<TestGate>());
  FramePeer& client = WithEntry();
  client.Send(Request(3, "wait"));
  Run();
  EXPECT_FALSE(client.streams[3].end);
  EXPECT_EQ(response_cache->stats().hits, 0u);
  Decide(GateVerdict::Kind::kGo);
  EXPECT_EQ(client.streams[3].data, Message("answer"));
  EXPECT_EQ(CacheOf(client, 3), "hit");
}

TEST_F(GateBeforeCacheTest, AGateThatComesWithAReloadIsAskedForWhatIsStored) {
  Start({"10.0.0.1:1"});
  FramePeer& client = WithEntry();
  client.Send(Request(3, "shut"));
  Run();
  EXPECT_EQ(CacheOf(client, 3), "hit");
  gate = std::make_shared<TestGate>();
  gates = {gate};
  SetEndpoints({"10.0.0.1:1"});
  client.Send(Request(5, "shut"));
  Run();
  ExpectRefused(client, 5);
}

// The request came under a configuration without the gate, and its message under one with it.
TEST_F(GateBeforeCacheTest, AGateThatComesWhileACallWaitsForItsMessageIsAskedBeforeTheUpstream) {
  Start({"10.0.0.1:1"});
  FramePeer& client = WithEntry();
  client.Send(Headers(3, Block(WithGate("shut"))));
  client.Send(Headers(5, Block(WithGate(""))));
  Run();
  gate = std::make_shared<TestGate>();
  gates = {gate};
  SetEndpoints({"10.0.0.1:1"});
  Run();
  client.Send(Data(3, Message("question"), h2::kEndStream));
  client.Send(Data(5, Message("question"), h2::kEndStream));
  Run();
  ExpectRefused(client, 3);
  EXPECT_EQ(gate->state().asked, 2);
  EXPECT_FALSE(client.streams[5].end);  // let go, to the upstream: what is stored is not looked at
  Respond(Up(), 3, "new answer");
  Run();
  EXPECT_EQ(client.streams[5].data, "new answer");
}

// The same gates again are no other gates.
TEST_F(GateBeforeCacheTest, AReloadWithTheSameGatesAsksACallThatWaitsNoSecondTime) {
  StartWith(std::make_shared<TestGate>());
  FramePeer& client = WithEntry();
  client.Send(Headers(3, Block(WithGate(""))));
  Run();
  const int asked = gate->state().asked;
  SetEndpoints({"10.0.0.1:1"});
  client.Send(Data(3, Message("question"), h2::kEndStream));
  Run();
  EXPECT_EQ(CacheOf(client, 3), "hit");
  EXPECT_EQ(gate->state().asked, asked);
}

TEST_F(GateTest, AGateThatComesBetweenTwoAttemptsIsAskedBeforeTheSecond) {
  routes[0].retry.attempts_max = 2;
  Start({"10.0.0.1:1", "10.0.0.2:1"});
  net.host("10.0.0.1:1").mode = test::FakeHost::Mode::kHang;
  net.host("10.0.0.2:1").mode = test::FakeHost::Mode::kHang;
  FramePeer& client = Client();
  client.Send(Request(1, "shut"));
  Run();
  gate = std::make_shared<TestGate>();
  gates = {gate};
  SetEndpoints({"10.0.0.1:1", "10.0.0.2:1"});
  Advance(std::chrono::seconds(30));
  ExpectRefused(client, 1);
  EXPECT_EQ(gate->state().asked, 1);
}

TEST_F(GateTest, AGateThatComesWhileACallWaitsForAnotherIsAskedToo) {
  cluster.concurrency.max = 1;
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Request(1, "") + Request(3, "wait"));
  Run();
  const auto one = gate = std::make_shared<TestGate>();
  gates = {one};
  SetEndpoints({"10.0.0.1:1"});
  Respond(Up(), 1, "first");  // the second is past the limit, and meets the gate
  Run();
  EXPECT_EQ(one->state().asked, 1);
  const auto other = std::make_shared<TestGate>();
  gates = {other};
  SetEndpoints({"10.0.0.1:1"});
  Decide(GateVerdict::Kind::kGo);
  EXPECT_EQ(other->state().asked, 1);
  EXPECT_TRUE(Up().streams[3].headers.empty());
  gate = other;
  Decide(GateVerdict::Kind::kGo);
  EXPECT_FALSE(Up().streams[3].headers.empty());
}

TEST_F(GateBeforeCacheTest, AHitPassesAGateThatAllowsTheFastPath) {
  StartWith(std::make_shared<TestGate>(/*allows_fast_path=*/true));
  FramePeer& client = WithEntry();
  EXPECT_EQ(gate->state().asked, 1);  // the fetch travelled
  client.Send(Request(3, "shut"));
  Run();
  EXPECT_EQ(client.streams[3].data, Message("answer"));
  client.Send(Headers(5, Block(WithGate("shut"))));
  Run();
  client.Send(Data(5, Message("question"), h2::kEndStream));
  Run();
  EXPECT_EQ(client.streams[5].data, Message("answer"));
  EXPECT_EQ(gate->state().asked, 1);
  client.Send(Headers(7, Block(WithGate("shut"))) + Data(7, Message("another"), h2::kEndStream));
  Run();
  ExpectRefused(client, 7);
  EXPECT_EQ(gate->state().asked, 2);
}

// One gate of several is enough to close the fast path, wherever it stands.
TEST_F(GateBeforeCacheTest, AllOfTheGatesHaveToAllowTheFastPath) {
  auto open = std::make_shared<TestGate>(/*allows_fast_path=*/true);
  gate = std::make_shared<TestGate>();
  for (const bool first : {false, true}) {
    GateList list = first ? GateList{gate, open} : GateList{open, gate};
    EXPECT_FALSE(AllowFastPath(&list));
  }
  GateList list = {open, open};
  EXPECT_TRUE(AllowFastPath(&list));
  EXPECT_TRUE(AllowFastPath(nullptr));
}

}  // namespace
}  // namespace sluice::proxy
