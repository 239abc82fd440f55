// Two attempts of a call at once: when the second begins, which of the two is taken, and what becomes of the other.
#include <algorithm>
#include <set>

#include "proxy/call/call.h"
#include "support/proxy_fixture.h"

namespace sluice::proxy {
namespace {

using h2::Block;
using h2::Data;
using h2::Headers;
using std::chrono::milliseconds;
using test::FramePeer;
using test::kLast;
using Hedge = ProxyMetrics::Hedge;

constexpr uint32_t kInternalError = 2, kRefusedStream = 7, kCancel = 8;
const std::vector<std::string> kTwo = {"10.0.0.1:1", "10.0.0.2:1"};
const std::vector<std::string> kThree = {"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"};

class Tries final : public CallObserver {
 public:
  void OnCallEnd(const CallRecord& record, uint32_t) override {
    told.emplace_back(record.tries);
    attempts.push_back(record.attempts);
  }
  std::vector<std::string> told;
  std::vector<uint32_t> attempts;
};

class CallHedgeTest : public test::ProxyFixture {
 public:
  CallHedgeTest() {
    observers = {tries};
    routes[0].retry.methods = RetryOptions::Methods::kListed;
    routes[0].retry.paths = {"/pkg.Service/Get"};
    routes[0].hedge = {milliseconds(20), 1};
  }
  struct Sent {
    std::string host;
    uint32_t id;
    FramePeer* peer;
    test::Heard* heard;
  };
  std::optional<Sent> Next() {
    for (const std::string& host : kThree) {
      for (auto& connection : net.host(host).connections) {
        for (auto& [id, heard] : connection->streams) {
          if (id % 2 == 0 || heard.headers.empty() || !seen_.insert({connection.get(), id}).second) continue;
          return Sent{host, id, connection.get(), &heard};
        }
      }
    }
    return std::nullopt;
  }
  void Ask(FramePeer& client, uint32_t id, const std::string& path = "/pkg.Service/Get", const h2::Fields& more = {}) {
    client.Send(Headers(id, Block(h2::With(h2::GrpcRequest(path), more))) + Data(id, "ask", h2::kEndStream));
    Run();
  }
  // A call whose two attempts are under way.
  std::pair<Sent, Sent> Both(FramePeer& client, uint32_t id, const h2::Fields& more = {}) {
    Ask(client, id, "/pkg.Service/Get", more);
    auto first = Next();
    Advance(milliseconds(21));
    auto second = Next();
    EXPECT_TRUE(first && second);
    EXPECT_NE(first->host, second->host);
    return {*first, *second};
  }
  void Status(const Sent& to, const std::string& status, const h2::Fields& more = {}) {
    to.peer->Send(Headers(to.id, Block(h2::With(h2::With(h2::GrpcResponse(), h2::GrpcTrailers(status)), more)), kLast));
    Run();
  }
  // A call whose first attempt is under way, while a second one waits for a connection to the host in `waits`.
  Sent OneWaits(FramePeer& client, uint32_t id, std::string& waits) {
    Ask(client, id);
    const auto first = Next();
    EXPECT_TRUE(first);
    waits = first->host == kTwo[0] ? kTwo[1] : kTwo[0];
    net.host(waits).mode = test::FakeHost::Mode::kHang;
    Advance(milliseconds(21));
    EXPECT_EQ(net.host(waits).dials, 1);
    EXPECT_FALSE(Next());
    return *first;
  }
  void LetIn(const std::string& host) {
    net.host(host).mode = test::FakeHost::Mode::kAccept;
    net.Answer(host);
    Run();
  }
  void Answer(const Sent& to, const std::string& body = "ok") {
    Respond(*to.peer, to.id, body);
    Run();
  }
  uint64_t Count(Hedge result) { return metrics.hedges[static_cast<size_t>(result)]->Value(); }

  std::shared_ptr<Tries> tries = std::make_shared<Tries>();

 private:
  std::set<std::pair<FramePeer*, uint32_t>> seen_;
};

TEST_F(CallHedgeTest, TheSecondAttemptBeginsAfterTheDelayAndMayAnswer) {
  Start(kTwo);
  FramePeer& client = Client();
  Ask(client, 1);
  const auto first = Next();
  ASSERT_TRUE(first);
  Advance(milliseconds(19));
  EXPECT_FALSE(Next());
  Advance(milliseconds(2));
  const auto second = Next();
  ASSERT_TRUE(second);
  EXPECT_NE(second->host, first->host);
  EXPECT_EQ(second->heard->Value("grpc-previous-rpc-attempts"), "1");
  EXPECT_EQ(second->heard->data, "ask");
  EXPECT_TRUE(second->heard->end);
  second->peer->Send(Headers(second->id, Block(h2::GrpcResponse())));
  Run();
  EXPECT_EQ(first->heard->reset, kCancel);
  first->peer->Send(Headers(first->id, Block(h2::GrpcResponse())) + Data(first->id, "late"));
  // DATA goes on from the one that was taken.
  second->peer->Send(Data(second->id, "o"));
  Run();
  second->peer->Send(Data(second->id, "k") + Headers(second->id, Block(h2::GrpcTrailers()), kLast));
  Run();
  EXPECT_EQ(client.streams[1].data, "ok");
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "0");
  EXPECT_EQ(client.streams[1].headers.size(), 2u);
  EXPECT_EQ(Count(Hedge::kWon), 1u);
  ASSERT_EQ(tries->told.size(), 1u);
  EXPECT_EQ(tries->attempts[0], 2u);
  EXPECT_NE(tries->told[0].find(first->host + ":cancelled:"), std::string::npos) << tries->told[0];
  EXPECT_NE(tries->told[0].find("," + second->host + ":OK:"), std::string::npos) << tries->told[0];
}

TEST_F(CallHedgeTest, TheFirstAttemptMayStillAnswer) {
  Start(kTwo);
  FramePeer& client = Client();
  const auto [first, second] = Both(client, 1);
  Answer(first);
  EXPECT_EQ(second.heard->reset, kCancel);
  EXPECT_EQ(client.streams[1].data, "ok");
  EXPECT_EQ(Count(Hedge::kLost), 1u);
  Advance(milliseconds(1000));
  EXPECT_FALSE(Next());
}

TEST_F(CallHedgeTest, ACallThatIsAnsweredInTimeHasOneAttempt) {
  Start(kTwo);
  FramePeer& client = Client();
  Ask(client, 1);
  Advance(milliseconds(10));
  Answer(*Next());
  Advance(milliseconds(100));
  EXPECT_FALSE(Next());
  EXPECT_EQ(client.streams[1].data, "ok");
  EXPECT_EQ(tries->told, std::vector<std::string>{""});
}

TEST_F(CallHedgeTest, WhereOneFailsTheOtherIsWaitedFor) {
  Start(kTwo);
  FramePeer& client = Client();
  {
    const auto [first, second] = Both(client, 1);
    Status(first, "14");
    EXPECT_TRUE(client.streams[1].headers.empty());
    Answer(second);
    EXPECT_EQ(client.streams[1].data, "ok");
    EXPECT_EQ(Count(Hedge::kTookOver), 1u);
  }
  const auto [first, second] = Both(client, 3);
  second.peer->Send(h2::RstStream(second.id, kInternalError));
  Run();
  EXPECT_TRUE(client.streams[3].headers.empty());
  Answer(first);
  EXPECT_EQ(client.streams[3].data, "ok");
  EXPECT_EQ(Count(Hedge::kFailed), 1u);
}

TEST_F(CallHedgeTest, AStatusThatIsFinalIsAnAnswer) {
  Start(kTwo);
  FramePeer& client = Client();
  const auto [first, second] = Both(client, 1);
  Status(second, "5");
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "5");
  EXPECT_EQ(first.heard->reset, kCancel);
  EXPECT_EQ(Count(Hedge::kWon), 1u);
}

TEST_F(CallHedgeTest, WhereBothFailARetryFollowsAtTheThird) {
  Start(kThree);
  FramePeer& client = Client();
  const auto [first, second] = Both(client, 1);
  Status(first, "14");
  Status(second, "14");
  const auto third = Next();
  ASSERT_TRUE(third);
  EXPECT_NE(third->host, first.host);
  EXPECT_NE(third->host, second.host);
  EXPECT_EQ(third->heard->Value("grpc-previous-rpc-attempts"), "2");
  Status(*third, "14");
  EXPECT_FALSE(Next());  // three in all
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "14");
  EXPECT_EQ(tries->attempts, std::vector<uint32_t>{3});
}

TEST_F(CallHedgeTest, OthersAreNotHedged) {
  Start({kTwo[0]});
  FramePeer& client = Client();
  Ask(client, 1);  // there is one endpoint
  SetEndpoints(kTwo);
  Ask(client, 3, "/pkg.Service/Add");
  ASSERT_TRUE(Next());
  ASSERT_TRUE(Next());
  Advance(milliseconds(100));
  SetEndpoints(kTwo);
  EXPECT_FALSE(Next());
}

TEST_F(CallHedgeTest, BelowHalfOfTheBudgetThereIsNone) {
  cluster.retry_budget = {0, 1};  // ten credits
  Start(kTwo);
  FramePeer& client = Client();
  uint32_t id = 1;
  for (int i = 0; i < 6; ++i, id += 2) {
    const auto [first, second] = Both(client, id);
    Answer(first);
  }
  Ask(client, id);
  ASSERT_TRUE(Next());
  Advance(milliseconds(100));
  EXPECT_FALSE(Next());
  EXPECT_EQ(metrics.retry_budget_refused[2]->Value(), 1u);
}

TEST_F(CallHedgeTest, WhileCallsWaitAtALimitThereIsNone) {
  cluster.concurrency.max = 1;
  Start(kTwo);
  FramePeer& client = Client();
  Ask(client, 1);
  const auto first = Next();
  ASSERT_TRUE(first);
  Ask(client, 3);
  EXPECT_FALSE(Next());
  Advance(milliseconds(100));
  EXPECT_FALSE(Next());
  Answer(*first);
  EXPECT_TRUE(Next());  // the one that waited
}

TEST_F(CallHedgeTest, TheBodyGoesToBothAndWhenItIsTooLongToTheFirstAlone) {
  routes[0].retry.buffer_bytes_max = 1000;
  Start(kTwo);
  FramePeer& client = Client();
  client.Send(Headers(1, Block(h2::GrpcRequest("/pkg.Service/Get"))) + Data(1, "one"));
  Run();
  const auto first = Next();
  ASSERT_TRUE(first);
  Advance(milliseconds(21));
  const auto second = Next();
  ASSERT_TRUE(second);
  client.Send(Data(1, "two"));
  Run();
  EXPECT_EQ(first->heard->data, "onetwo");
  EXPECT_EQ(second->heard->data, "onetwo");
  client.Send(Data(1, std::string(2000, 'x'), h2::kEndStream));
  Run();
  EXPECT_EQ(second->heard->reset, kCancel);
  EXPECT_EQ(first->heard->data, "onetwo" + std::string(2000, 'x'));
  Answer(*first);
  EXPECT_EQ(client.streams[1].data, "ok");
  EXPECT_EQ(Count(Hedge::kAbandoned), 1u);
}

TEST_F(CallHedgeTest, TheEndOfTheCallEndsBoth) {
  Start(kTwo);
  FramePeer& client = Client();
  {
    const auto [first, second] = Both(client, 1, {{"grpc-timeout", "1S"}});
    Advance(milliseconds(1000));
    EXPECT_EQ(client.streams[1].Value("grpc-status"), "4");
    EXPECT_EQ(client.streams[1].Value("sluice-processed"), "maybe");
    EXPECT_EQ(first.heard->reset, kCancel);
    EXPECT_EQ(second.heard->reset, kCancel);
  }
  const auto [first, second] = Both(client, 3);
  client.Send(h2::RstStream(3, kCancel));
  Run();
  EXPECT_EQ(first.heard->reset, kCancel);
  EXPECT_EQ(second.heard->reset, kCancel);
  EXPECT_EQ(Count(Hedge::kAbandoned), 2u);
  // And a stop: TearDown sees that nothing stays.
  Both(client, 5);
}

TEST_F(CallHedgeTest, AnAttemptWithoutAConnectionIsHelpedToo) {
  Start(kTwo);
  for (const std::string& host : kTwo) net.host(host).mode = test::FakeHost::Mode::kHang;
  FramePeer& client = Client();
  Ask(client, 1);
  const int dialled = net.host(kTwo[0]).dials > 0 ? 0 : 1;  // where the first attempt waits
  const std::string other = kTwo[1 - static_cast<size_t>(dialled)];
  net.host(other).mode = test::FakeHost::Mode::kAccept;
  Advance(milliseconds(21));
  const auto second = Next();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->host, other);
  EXPECT_EQ(second->heard->Value("grpc-previous-rpc-attempts"), "<none>");
  Answer(*second);
  EXPECT_EQ(client.streams[1].data, "ok");
}

TEST_F(CallHedgeTest, AFirstAttemptThatTakesTooLongIsGivenUpForTheOneThatWasSentBesideIt) {
  routes[0].retry.attempts_max = 2;
  routes[0].retry.per_try_timeout = milliseconds(100);
  Start(kTwo);
  FramePeer& client = Client();
  const auto [first, second] = Both(client, 1);
  Advance(milliseconds(80));
  EXPECT_EQ(first.heard->reset, kCancel);
  Advance(milliseconds(1000));
  EXPECT_FALSE(second.heard->reset);  // the last one
  Answer(second);
  EXPECT_EQ(client.streams[1].data, "ok");
}

TEST_F(CallHedgeTest, AFirstAttemptIsNotGivenUpForOneThatWaitsForAConnection) {
  routes[0].retry.attempts_max = 2;
  routes[0].retry.per_try_timeout = milliseconds(100);
  Start(kTwo);
  FramePeer& client = Client();
  std::string waits;
  const Sent first = OneWaits(client, 1, waits);
  Advance(milliseconds(1000));
  EXPECT_FALSE(first.heard->reset);
  Answer(first);
  EXPECT_EQ(client.streams[1].data, "ok");
}

TEST_F(CallHedgeTest, AnAttemptThatWasNeverSentLeavesItsPlaceAndCreditToTheNext) {
  routes[0].retry.attempts_max = 2;
  cluster.retry_budget = {0, 1};  // ten credits
  Start(kTwo);
  FramePeer& client = Client();
  std::string waits;
  const Sent first = OneWaits(client, 1, waits);
  Status(first, "14");
  EXPECT_TRUE(client.streams[1].headers.empty());
  LetIn(waits);
  const auto second = Next();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->host, waits);
  EXPECT_EQ(second->heard->Value("grpc-previous-rpc-attempts"), "1");
  Answer(*second);
  EXPECT_EQ(client.streams[1].data, "ok");
  EXPECT_EQ(Count(Hedge::kAbandoned), 1u);
  using Account = upstream::RetryBudget::Account;
  EXPECT_NEAR(state().load->retry_budget().Left({0, 1}, Account::kRepeated, time.clock.Now()), 0.9, 1e-9);
}

TEST_F(CallHedgeTest, AReloadEndsTheDelayOfAnAttemptThatWasRefused) {
  Start(kThree);
  FramePeer& client = Client();
  Ask(client, 1);
  const auto first = Next();
  ASSERT_TRUE(first);
  routes[0].hedge = {};
  routes[0].retry.methods = RetryOptions::Methods::kNone;
  SetEndpoints(kThree);
  first->peer->Send(h2::RstStream(first->id, kRefusedStream));
  Run();
  ASSERT_TRUE(Next());
  Advance(milliseconds(100));
  EXPECT_FALSE(Next());
}

TEST_F(CallHedgeTest, AfterAReloadNoneBeginsByTheOldList) {
  Start(kTwo);
  FramePeer& client = Client();
  Ask(client, 1);
  const auto first = Next();
  ASSERT_TRUE(first);
  SetEndpoints(kThree);
  Advance(milliseconds(100));
  EXPECT_FALSE(Next());
  Answer(*first);
  EXPECT_EQ(client.streams[1].data, "ok");
}

TEST_F(CallHedgeTest, TheOneThatTookOverHasABoundOfItsOwn) {
  routes[0].retry.per_try_timeout = milliseconds(100);
  Start(kThree);
  FramePeer& client = Client();
  const auto [first, second] = Both(client, 1);
  Status(first, "14");
  Advance(milliseconds(98));
  EXPECT_FALSE(second.heard->reset);
  Advance(milliseconds(3));
  EXPECT_EQ(second.heard->reset, kCancel);
  const auto third = Next();
  ASSERT_TRUE(third);
  Answer(*third);
  EXPECT_EQ(client.streams[1].data, "ok");
}

TEST_F(CallHedgeTest, WhenTheBodyIsTooLongTheAttemptThatHasAConnectionIsKept) {
  routes[0].retry.buffer_bytes_max = 1000;
  Start(kTwo);
  for (const std::string& host : kTwo) net.host(host).mode = test::FakeHost::Mode::kHang;
  FramePeer& client = Client();
  client.Send(Headers(1, Block(h2::GrpcRequest("/pkg.Service/Get"))) + Data(1, "one"));
  Run();
  for (const std::string& host : kTwo) net.host(host).mode = test::FakeHost::Mode::kAccept;
  Advance(milliseconds(21));
  const auto second = Next();
  ASSERT_TRUE(second);
  client.Send(Data(1, std::string(2000, 'x'), h2::kEndStream));
  Run();
  EXPECT_FALSE(second->heard->reset);
  EXPECT_EQ(second->heard->data, "one" + std::string(2000, 'x'));
  Answer(*second);
  EXPECT_EQ(client.streams[1].data, "ok");
  EXPECT_EQ(Count(Hedge::kTookOver), 1u);
}

TEST_F(CallHedgeTest, PushbackOfOneOfTheTwoHoldsForTheCall) {
  Start(kThree);
  FramePeer& client = Client();
  {
    const auto [first, second] = Both(client, 1);
    Status(second, "14", {{"grpc-retry-pushback-ms", "-1"}});
    EXPECT_TRUE(client.streams[1].headers.empty());
    Status(first, "14");
    EXPECT_EQ(client.streams[1].Value("grpc-status"), "14");
    EXPECT_FALSE(Next());
  }
  const auto [first, second] = Both(client, 3);
  Status(first, "14", {{"grpc-retry-pushback-ms", "3000"}});
  Advance(milliseconds(1000));
  Status(second, "14");
  Advance(milliseconds(1998));
  EXPECT_FALSE(Next());
  Advance(milliseconds(3));
  EXPECT_TRUE(Next());
}

TEST_F(CallHedgeTest, AfterAPushbackTheOneThatWaitsForAConnectionIsNotSent) {
  Start(kTwo);
  FramePeer& client = Client();
  std::string waits;
  const Sent first = OneWaits(client, 1, waits);
  Status(first, "14", {{"grpc-retry-pushback-ms", "-1"}});
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "14");
  LetIn(waits);
  EXPECT_FALSE(Next());
}

TEST_F(CallHedgeTest, TheDelayThatIsFoundByItselfFollowsTheRoutesCalls) {
  routes[0].hedge.delay = milliseconds(0);
  Start(kTwo);
  FramePeer& client = Client();
  uint32_t id = 1;
  for (int i = 0; i < 20; ++i, id += 2) {
    Ask(client, id);
    const auto sent = Next();
    ASSERT_TRUE(sent);
    Advance(milliseconds(40));
    EXPECT_FALSE(Next());  // too little is known
    Answer(*sent);
  }
  Advance(milliseconds(1000));
  Ask(client, id);
  ASSERT_TRUE(Next());
  Advance(milliseconds(39));
  EXPECT_FALSE(Next());
  Advance(milliseconds(12));  // the bucket's upper bound
  EXPECT_TRUE(Next());
}

}  // namespace
}  // namespace sluice::proxy
