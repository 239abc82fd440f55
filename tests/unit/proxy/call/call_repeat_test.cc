// Calls whose method may be repeated: which statuses and losses are tried again, where, when, and at whose cost; and
// that no other call is sent twice.
#include <algorithm>
#include <map>
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

constexpr uint32_t kInternalError = 2, kRefusedStream = 7, kCancel = 8, kEnhanceYourCalm = 11;
const std::vector<std::string> kThree = {"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"};
constexpr const char* kPrevious = "grpc-previous-rpc-attempts";

class CallRepeatTest : public test::ProxyFixture {
 public:
  CallRepeatTest() {
    routes[0].retry.methods = RetryOptions::Methods::kListed;
    routes[0].retry.paths = {"/pkg.Service/Get"};
  }
  struct Sent {
    std::string host;
    uint32_t id;
    FramePeer* peer;
    test::Heard* heard;
  };
  // The next request that a backend has heard of and this has not returned yet.
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
  // A response of one header block.
  void Status(const Sent& to, const std::string& status, const h2::Fields& more = {}) {
    to.peer->Send(Headers(to.id, Block(h2::With(h2::With(h2::GrpcResponse(), h2::GrpcTrailers(status)), more)), kLast));
    Run();
  }
  void Ok(const Sent& to) {
    Respond(*to.peer, to.id, "ok");
    Run();
  }
  uint64_t Refusals() { return metrics.retry_budget_refused[0]->Value(); }

 private:
  std::set<std::pair<FramePeer*, uint32_t>> seen_;
};

TEST_F(CallRepeatTest, AStatusInOneHeaderBlockIsTriedAtTheNextEndpointAtOnce) {
  Start(kThree);
  FramePeer& client = Client();
  Ask(client, 1);
  const auto first = Next();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->heard->Value(kPrevious), "<none>");
  Status(*first, "14");
  const auto second = Next();
  ASSERT_TRUE(second);
  EXPECT_NE(second->host, first->host);
  EXPECT_EQ(second->heard->Value(kPrevious), "1");
  EXPECT_EQ(second->heard->data, "ask");
  EXPECT_TRUE(second->heard->end);
  Status(*second, "14");
  const auto third = Next();
  ASSERT_TRUE(third);
  EXPECT_NE(third->host, first->host);
  EXPECT_NE(third->host, second->host);
  EXPECT_EQ(third->heard->Value(kPrevious), "2");
  Ok(*third);
  EXPECT_EQ(client.streams[1].data, "ok");
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "0");
  EXPECT_EQ(client.streams[1].headers.size(), 2u);  // nothing of the failed ones
  EXPECT_EQ(metrics.status_retries[14]->Value(), 2u);
}

TEST_F(CallRepeatTest, TheLastAttemptsResponseIsTheCalls) {
  Start(kThree);
  FramePeer& client = Client();
  Ask(client, 1);
  for (const char* message : {"one", "two", "three"}) {
    const auto sent = Next();
    ASSERT_TRUE(sent);
    Status(*sent, "14", {{"grpc-message", message}});
  }
  EXPECT_FALSE(Next());
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "14");
  EXPECT_EQ(client.streams[1].Value("grpc-message"), "three");
  EXPECT_EQ(client.streams[1].Value("sluice-reason"), "<none>");
  EXPECT_TRUE(client.streams[1].end);
}

TEST_F(CallRepeatTest, WhereNoEndpointIsLeftForAnotherTheLastStatusIsTheCalls) {
  routes[0].retry.backoff_base = routes[0].retry.backoff_max = milliseconds(100);
  Start({kThree[0]});
  FramePeer& client = Client();
  Ask(client, 1);
  const auto sent = Next();
  ASSERT_TRUE(sent);
  Status(*sent, "14", {{"grpc-message", "one"}});
  SetEndpoints({});
  Advance(milliseconds(121));
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "14");
  EXPECT_EQ(client.streams[1].Value("grpc-message"), "one");
  EXPECT_EQ(client.streams[1].Value("sluice-reason"), "<none>");
  EXPECT_TRUE(client.streams[1].end);
}

TEST_F(CallRepeatTest, OtherMethodsAndOtherStatusesAreSentOnce) {
  Start(kThree);
  FramePeer& client = Client();
  struct Case {
    const char *path, *status;
  };
  uint32_t id = 1;
  for (const auto& [path, status] : {Case{"/pkg.Service/Add", "14"}, Case{"/pkg.Service/Get", "8"},
                                     Case{"/pkg.Service/Get", "13"}, Case{"/pkg.Service/Get", "5"}}) {
    Ask(client, id, path);
    const auto sent = Next();
    ASSERT_TRUE(sent);
    Status(*sent, status);
    EXPECT_EQ(client.streams[id].Value("grpc-status"), status);
    EXPECT_FALSE(Next()) << path;
    id += 2;
  }
}

TEST_F(CallRepeatTest, ResetsAndLossesAreTriedAgainWhereTheMethodMayBeRepeated) {
  Start(kThree);
  FramePeer& client = Client();
  uint32_t id = 1;
  for (uint32_t code : {kInternalError, kCancel, kEnhanceYourCalm, UINT32_MAX}) {
    for (const char* path : {"/pkg.Service/Get", "/pkg.Service/Add"}) {
      SCOPED_TRACE(std::to_string(code) + path);
      Ask(client, id, path);
      const auto sent = Next();
      ASSERT_TRUE(sent);
      if (code == UINT32_MAX) {
        sent->peer->wire().Close();
      } else {
        sent->peer->Send(h2::RstStream(sent->id, code));
      }
      Run();
      const auto again = Next();
      const bool may = std::string(path) == "/pkg.Service/Get";
      ASSERT_EQ(again.has_value(), may);
      if (may) {
        EXPECT_NE(again->host, sent->host);
        Ok(*again);
        EXPECT_EQ(client.streams[id].data, "ok");
      } else {
        EXPECT_EQ(client.streams[id].Value("sluice-processed"), "maybe");
      }
      id += 2;
    }
  }
}

TEST_F(CallRepeatTest, OnceTheResponseHasBegunNothingIsTriedAgain) {
  Start(kThree);
  FramePeer& client = Client();
  Ask(client, 1);
  auto sent = Next();
  ASSERT_TRUE(sent);
  // gRFC A6: headers that are not all of the response commit the call.
  sent->peer->Send(Headers(sent->id, Block(h2::GrpcResponse())) +
                   Headers(sent->id, Block(h2::GrpcTrailers("14")), kLast));
  Run();
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "14");
  Ask(client, 3);
  sent = Next();
  ASSERT_TRUE(sent);
  sent->peer->Send(Headers(sent->id, Block(h2::GrpcResponse())));
  Run();
  sent->peer->Send(h2::RstStream(sent->id, kInternalError));
  Run();
  EXPECT_EQ(client.streams[3].Value("sluice-reason"), "upstream_reset");
  EXPECT_EQ(client.streams[3].Value("sluice-processed"), "maybe");
  EXPECT_FALSE(Next());
}

TEST_F(CallRepeatTest, TheSameEndpointIsTriedAfterABackOff) {
  routes[0].retry.attempts_max = 4;
  routes[0].retry.backoff_base = milliseconds(100);
  routes[0].retry.backoff_max = milliseconds(150);
  Start({kThree[0]});
  FramePeer& client = Client();
  Ask(client, 1);
  for (int centre : {100, 150, 150}) {
    SCOPED_TRACE(centre);
    const auto sent = Next();
    ASSERT_TRUE(sent);
    Status(*sent, "14");
    Advance(milliseconds(centre * 8 / 10 - 2));
    EXPECT_FALSE(Next().has_value());
    EXPECT_TRUE(client.streams[1].headers.empty());
    Advance(milliseconds(centre * 4 / 10 + 4));
  }
  const auto last = Next();
  ASSERT_TRUE(last);
  Ok(*last);
  EXPECT_EQ(client.streams[1].data, "ok");
}

TEST_F(CallRepeatTest, TheDeadlinePassesInABackOff) {
  routes[0].retry.backoff_base = routes[0].retry.backoff_max = milliseconds(10'000);
  Start({kThree[0]});
  FramePeer& client = Client();
  Ask(client, 1, "/pkg.Service/Get", {{"grpc-timeout", "5S"}});
  auto sent = Next();
  ASSERT_TRUE(sent);
  Status(*sent, "14");
  // The back-off would end behind it: the response is passed on at once.
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "14");
  Ask(client, 3, "/pkg.Service/Get", {{"grpc-timeout", "13S"}});
  sent = Next();
  ASSERT_TRUE(sent);
  Status(*sent, "14");
  EXPECT_TRUE(client.streams[3].headers.empty());
  client.Send(h2::RstStream(3, kCancel));  // a client that leaves meanwhile
  Run();
  Advance(milliseconds(20'000));
  EXPECT_FALSE(Next());
  // A turn that comes so late that both are over.
  Ask(client, 5, "/pkg.Service/Get", {{"grpc-timeout", "13S"}});
  sent = Next();
  ASSERT_TRUE(sent);
  Status(*sent, "14");
  EXPECT_TRUE(client.streams[5].headers.empty());
  Advance(milliseconds(13'001));
  EXPECT_EQ(client.streams[5].Value("grpc-status"), "4");
  EXPECT_EQ(client.streams[5].Value("sluice-reason"), "deadline");
  EXPECT_FALSE(Next());
}

TEST_F(CallRepeatTest, TheTimeThatIsLeftGoesWithEachAttempt) {
  routes[0].retry.backoff_base = routes[0].retry.backoff_max = milliseconds(1000);
  Start({kThree[0]});
  FramePeer& client = Client();
  Ask(client, 1, "/pkg.Service/Get", {{"grpc-timeout", "5S"}});
  const auto first = Next();
  ASSERT_TRUE(first);
  Status(*first, "14");
  Advance(milliseconds(1250));
  const auto second = Next();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->heard->Value("grpc-timeout"), "3750000u");
  Advance(milliseconds(3750));
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "4");
  EXPECT_EQ(client.streams[1].Value("sluice-processed"), "maybe");
}

TEST_F(CallRepeatTest, PushbackIsTheWaitOrTheEnd) {
  Start(kThree);
  FramePeer& client = Client();
  Ask(client, 1);
  auto sent = Next();
  ASSERT_TRUE(sent);
  Status(*sent, "14", {{"grpc-retry-pushback-ms", "3000"}});
  Advance(milliseconds(2999));
  EXPECT_FALSE(Next());
  Advance(milliseconds(2));
  sent = Next();
  ASSERT_TRUE(sent);
  Status(*sent, "14", {{"grpc-retry-pushback-ms", "-1"}});
  EXPECT_FALSE(Next());
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "14");
  EXPECT_EQ(client.streams[1].Value("grpc-retry-pushback-ms"), "-1");
}

TEST_F(CallRepeatTest, AnAttemptThatTakesTooLongIsGivenUpForAnotherButNotTheLast) {
  routes[0].retry.attempts_max = 2;
  routes[0].retry.per_try_timeout = milliseconds(200);
  Start(kThree);
  FramePeer& client = Client();
  Ask(client, 1);
  const auto first = Next();
  ASSERT_TRUE(first);
  Advance(milliseconds(199));
  EXPECT_FALSE(first->heard->reset);
  Advance(milliseconds(2));
  EXPECT_EQ(first->heard->reset, kCancel);
  const auto second = Next();
  ASSERT_TRUE(second);
  EXPECT_NE(second->host, first->host);
  Advance(milliseconds(60'000));
  EXPECT_FALSE(second->heard->reset);
  Ok(*second);
  EXPECT_EQ(client.streams[1].data, "ok");
  EXPECT_EQ(metrics.retries[static_cast<size_t>(base::ErrorKind::kTryTimeout)]->Value(), 1u);
}

// To end the only attempt that there can be is to fail the call.
TEST_F(CallRepeatTest, AnAttemptThatNoneCanFollowIsNotGivenUp) {
  routes[0].retry.per_try_timeout = milliseconds(200);
  routes[0].retry.buffer_bytes_max = 1000;
  cluster.retry_budget = {0, 0};
  Start(kThree);
  FramePeer& client = Client();
  Ask(client, 1);
  const auto sent = Next();
  ASSERT_TRUE(sent);
  Advance(milliseconds(1000));
  EXPECT_FALSE(sent->heard->reset);
  Ok(*sent);
  EXPECT_EQ(client.streams[1].data, "ok");
  EXPECT_EQ(Refusals(), 1u);
}

TEST_F(CallRepeatTest, AnAttemptWhoseBodyWasLetGoIsNotGivenUp) {
  routes[0].retry.per_try_timeout = milliseconds(200);
  routes[0].retry.buffer_bytes_max = 1000;
  Start(kThree);
  FramePeer& client = Client();
  client.Send(Headers(1, Block(h2::GrpcRequest("/pkg.Service/Get"))) + Data(1, "one"));
  Run();
  const auto too_long = Next();
  ASSERT_TRUE(too_long);
  client.Send(Data(1, std::string(2000, 'x'), h2::kEndStream));
  Ask(client, 3);
  const auto dropped = Next();
  ASSERT_TRUE(dropped);
  Call::ForEach(worker->context, [](Call& call) { call.DropKept(); });
  Advance(milliseconds(1000));
  for (const auto& sent : {too_long, dropped}) {
    EXPECT_FALSE(sent->heard->reset);
    Ok(*sent);
  }
  EXPECT_EQ(client.streams[1].data, "ok");
  EXPECT_EQ(client.streams[3].data, "ok");
}

TEST_F(CallRepeatTest, AnAttemptIsNotGivenUpForABackOffBehindTheDeadline) {
  routes[0].retry.per_try_timeout = milliseconds(200);
  routes[0].retry.backoff_base = routes[0].retry.backoff_max = milliseconds(10'000);
  Start({kThree[0]});
  FramePeer& client = Client();
  Ask(client, 1, "/pkg.Service/Get", {{"grpc-timeout", "5S"}});
  const auto sent = Next();
  ASSERT_TRUE(sent);
  Advance(milliseconds(1000));
  EXPECT_FALSE(sent->heard->reset);
  Ok(*sent);
  EXPECT_EQ(client.streams[1].data, "ok");
}

TEST_F(CallRepeatTest, AnAttemptThatIsGivenUpBeforeItWasSentNeedsNoCredit) {
  routes[0].retry.per_try_timeout = milliseconds(200);
  cluster.retry_budget = {0, 0};
  Start(kThree);
  for (const std::string& host : kThree) net.host(host).mode = test::FakeHost::Mode::kHang;
  FramePeer& client = Client();
  Ask(client, 1);
  for (const std::string& host : kThree) net.host(host).mode = test::FakeHost::Mode::kAccept;
  EXPECT_FALSE(Next());
  Advance(milliseconds(201));
  const auto sent = Next();
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->heard->Value(kPrevious), "<none>");
  Ok(*sent);
  EXPECT_EQ(client.streams[1].data, "ok");
  EXPECT_EQ(Refusals(), 0u);
}

TEST_F(CallRepeatTest, TheBoundOfAnAttemptEndsWithItAcrossAReload) {
  routes[0].retry.per_try_timeout = milliseconds(200);
  Start(kThree);
  FramePeer& client = Client();
  Ask(client, 1);
  const auto first = Next();
  ASSERT_TRUE(first);
  routes[0].retry.per_try_timeout = milliseconds(0);
  SetEndpoints(kThree);
  first->peer->Send(h2::RstStream(first->id, kRefusedStream));
  Run();
  const auto second = Next();
  ASSERT_TRUE(second);
  Advance(milliseconds(1000));
  EXPECT_FALSE(second->heard->reset);
  EXPECT_FALSE(Next());
}

TEST_F(CallRepeatTest, BehindAPushbackTheBackOffStartsAnew) {
  routes[0].retry.attempts_max = 4;
  routes[0].retry.backoff_base = milliseconds(100);
  routes[0].retry.backoff_max = milliseconds(10'000);
  Start({kThree[0]});
  FramePeer& client = Client();
  Ask(client, 1);
  Status(*Next(), "14");
  Advance(milliseconds(121));
  auto sent = Next();
  ASSERT_TRUE(sent);
  Status(*sent, "14", {{"grpc-retry-pushback-ms", "10"}});
  Advance(milliseconds(11));
  sent = Next();
  ASSERT_TRUE(sent);
  Status(*sent, "14");
  Advance(milliseconds(79));
  EXPECT_FALSE(Next());
  Advance(milliseconds(42));
  EXPECT_TRUE(Next());
}

TEST_F(CallRepeatTest, TheBoundOfAnAttemptIsNoneOfItsResponseNorOfOtherMethods) {
  routes[0].retry.per_try_timeout = milliseconds(200);
  Start(kThree);
  FramePeer& client = Client();
  Ask(client, 1);
  const auto sent = Next();
  ASSERT_TRUE(sent);
  sent->peer->Send(Headers(sent->id, Block(h2::GrpcResponse())));
  Run();
  Ask(client, 3, "/pkg.Service/Add", {{"grpc-timeout", "2S"}});
  const auto other = Next();
  ASSERT_TRUE(other);
  Advance(milliseconds(1000));
  EXPECT_FALSE(sent->heard->reset);
  EXPECT_FALSE(other->heard->reset);
  sent->peer->Send(Data(sent->id, "late") + Headers(sent->id, Block(h2::GrpcTrailers()), kLast));
  Run();
  EXPECT_EQ(client.streams[1].data, "late");
  Advance(milliseconds(1001));  // the deadline still holds
  EXPECT_EQ(client.streams[3].Value("grpc-status"), "4");
}

TEST_F(CallRepeatTest, PreviousAttemptsOfTheClientAddUpAndCostDouble) {
  cluster.retry_budget = {0, 1};  // 10 credits
  routes[0].retry.attempts_max = 2;
  Start(kThree);
  FramePeer& client = Client();
  uint32_t id = 1;
  for (int i = 0; i < 5; ++i, id += 2) {
    Ask(client, id, "/pkg.Service/Get", {{kPrevious, "3"}});
    const auto first = Next();
    ASSERT_TRUE(first);
    EXPECT_EQ(first->heard->Value(kPrevious), "3");
    Status(*first, "14");
    const auto second = Next();
    ASSERT_TRUE(second) << i;
    EXPECT_EQ(second->heard->Value(kPrevious), "4");
    Status(*second, "14");
    EXPECT_EQ(client.streams[id].Value("grpc-status"), "14");
  }
  EXPECT_EQ(Refusals(), 0u);
  Ask(client, id);
  const auto sent = Next();
  ASSERT_TRUE(sent);
  Status(*sent, "14");
  EXPECT_FALSE(Next());
  EXPECT_EQ(Refusals(), 1u);
  EXPECT_EQ(client.streams[id].Value("grpc-status"), "14");
}

// Each call fails everywhere: what the backends get above the calls is what the budget lets.
TEST_F(CallRepeatTest, WhereAllBackendsFailTheLoadStaysBounded) {
  Start(kThree);
  FramePeer& client = Client();
  uint32_t id = 1;
  uint64_t attempts = 0;
  for (int i = 0; i < 500; ++i, id += 2) {
    Ask(client, id);
    while (const auto sent = Next()) {
      ++attempts;
      Status(*sent, "14");
    }
    EXPECT_EQ(client.streams[id].Value("grpc-status"), "14");
  }
  EXPECT_EQ(attempts, 500u + 30u);
}

TEST_F(CallRepeatTest, ACallThatFailedSaysWhetherItMayHaveBeenProcessed) {
  routes[0].retry.attempts_max = 2;
  Start(kThree);
  for (const std::string& host : kThree) net.host(host).mode = test::FakeHost::Mode::kRefuse;
  FramePeer& client = Client();
  Ask(client, 1, "/pkg.Service/Add");
  EXPECT_EQ(client.streams[1].Value("sluice-reason"), "connect_failed");
  EXPECT_EQ(client.streams[1].Value("sluice-processed"), "no");
  EXPECT_EQ(metrics.failed_calls[0]->Value(), 1u);
  for (const std::string& host : kThree) net.host(host).mode = test::FakeHost::Mode::kAccept;
  Advance(milliseconds(60'000));
  // Refused twice: certainly not.
  Ask(client, 3, "/pkg.Service/Add");
  for (int i = 0; i < 2; ++i) {
    const auto sent = Next();
    ASSERT_TRUE(sent);
    sent->peer->Send(h2::RstStream(sent->id, kRefusedStream));
    Run();
  }
  EXPECT_EQ(client.streams[3].Value("sluice-reason"), "upstream_refused");
  EXPECT_EQ(client.streams[3].Value("sluice-processed"), "no");
  // In doubt, then refused: the first one may have done it.
  Ask(client, 5);
  auto sent = Next();
  ASSERT_TRUE(sent);
  sent->peer->Send(h2::RstStream(sent->id, kInternalError));
  Run();
  sent = Next();
  ASSERT_TRUE(sent);
  sent->peer->Send(h2::RstStream(sent->id, kRefusedStream));
  Run();
  EXPECT_EQ(client.streams[5].Value("sluice-reason"), "upstream_refused");
  EXPECT_EQ(client.streams[5].Value("sluice-processed"), "maybe");
  // The deadline, while a backend has it.
  Ask(client, 7, "/pkg.Service/Add", {{"grpc-timeout", "1S"}});
  ASSERT_TRUE(Next());
  Advance(milliseconds(1000));
  EXPECT_EQ(client.streams[7].Value("sluice-reason"), "deadline");
  EXPECT_EQ(client.streams[7].Value("sluice-processed"), "maybe");
  EXPECT_EQ(metrics.failed_calls[0]->Value(), 2u);
  EXPECT_EQ(metrics.failed_calls[1]->Value(), 2u);
}

class Tries final : public CallObserver {
 public:
  void OnCallEnd(const CallRecord& record, uint32_t) override {
    told.emplace_back(record.tries);
    processed.emplace_back(record.processed);
  }
  std::vector<std::string> told, processed;
};

TEST_F(CallRepeatTest, TheRecordHasEachAttemptOfACallWithSeveral) {
  const auto tries = std::make_shared<Tries>();
  observers = {tries};
  Start({kThree[0]});
  FramePeer& client = Client();
  Ask(client, 1);
  Ok(*Next());
  Ask(client, 3);
  Advance(milliseconds(2));
  Status(*Next(), "14");
  Advance(milliseconds(40));
  auto sent = Next();
  ASSERT_TRUE(sent);
  sent->peer->Send(h2::RstStream(sent->id, kInternalError));
  Run();
  Advance(milliseconds(100));
  sent = Next();
  ASSERT_TRUE(sent);
  Advance(milliseconds(3));
  Ok(*sent);
  ASSERT_EQ(tries->told.size(), 2u);
  EXPECT_EQ(tries->told[0], "");
  EXPECT_EQ(tries->told[1].substr(0, 30), "10.0.0.1:1:UNAVAILABLE:2.000ms");
  EXPECT_NE(tries->told[1].find(",10.0.0.1:1:upstream_reset:"), std::string::npos) << tries->told[1];
  EXPECT_NE(tries->told[1].find(",10.0.0.1:1:OK:"), std::string::npos) << tries->told[1];
  EXPECT_EQ(std::count(tries->told[1].begin(), tries->told[1].end(), ','), 2);
  EXPECT_EQ(tries->processed[1], "");
}

TEST_F(CallRepeatTest, AStopEndsCallsInBackOffAndStartsNoAttempt) {
  Start({kThree[0]});
  FramePeer& client = Client();
  Ask(client, 1);
  const auto first = Next();
  ASSERT_TRUE(first);
  Status(*first, "14");  // in back-off
  Ask(client, 3);
  const auto second = Next();
  ASSERT_TRUE(second);
  second->peer->Send(Headers(second->id, Block(h2::With(h2::GrpcResponse(), h2::GrpcTrailers("14"))), kLast));
  // Behind the bytes' arrival, before the call's task runs: the stop finds a response that is there.
  time.worker.Post([this] { worker->EndCalls(); });
  Run();
  EXPECT_EQ(client.streams[3].Value("grpc-status"), "14");
  EXPECT_EQ(client.streams[3].Value("sluice-reason"), "<none>");
  if (home) home->EndCalls();
  Run();
  EXPECT_EQ(client.streams[1].Value("sluice-reason"), "draining");
  EXPECT_EQ(client.streams[1].Value("sluice-processed"), "maybe");
  Advance(milliseconds(1000));
  EXPECT_FALSE(Next());
}

}  // namespace
}  // namespace sluice::proxy
