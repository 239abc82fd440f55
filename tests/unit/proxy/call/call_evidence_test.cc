// What is evidence against an endpoint, and what a call or a bound of the proxy's brings with it.
#include "proxy/call/call.h"
#include "support/proxy_fixture.h"

namespace sluice::proxy {
namespace {

using h2::Block;
using h2::Headers;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::FramePeer;
using test::kLast;
using upstream::Cause;

const std::string kOne = "10.0.0.1:1", kTwo = "10.0.0.2:1";

class CallEvidenceTest : public test::ProxyFixture {
 public:
  upstream::OutcomeCell& Cell(size_t i = 0) { return state().endpoints[i].endpoint->MakeCell(0); }
  void Ask(FramePeer& client, uint32_t id, const h2::Fields& more = {}) {
    client.Send(Headers(id, Block(h2::With(h2::GrpcRequest(), more)), kLast));
    Run();
  }
};

TEST_F(CallEvidenceTest, AnEndByAgeGraceIsNone) {
  cluster.life.age_max = seconds(10);
  cluster.life.age_grace = seconds(1);
  Start({kOne});
  FramePeer& client = Client();
  Ask(client, 1);
  Advance(seconds(12));
  Advance(seconds(2));
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "14");
  EXPECT_EQ(client.streams[1].Value("sluice-reason"), "connection_ended");
  EXPECT_NE(client.streams[1].Value("grpc-message").find("age_grace"), std::string::npos);
  EXPECT_EQ(client.streams[1].Value("sluice-processed"), "maybe");
  EXPECT_EQ(Cell().bad, 0u);
}

TEST_F(CallEvidenceTest, AnEndBehindAGoawayInGoodOrderIsNone) {
  Start({kOne});
  FramePeer& client = Client();
  Ask(client, 1);
  Up().Send(h2::Goaway(1, 0));
  Run();
  EXPECT_TRUE(client.streams[1].headers.empty()) << "it may still be answered";
  Up().wire().Close();
  Run();
  EXPECT_EQ(client.streams[1].Value("sluice-reason"), "connection_ended");
  EXPECT_NE(client.streams[1].Value("grpc-message").find("GOAWAY"), std::string::npos);
  EXPECT_EQ(Cell().bad, 0u);
}

TEST_F(CallEvidenceTest, AnEndBehindAGoawayWithAnErrorIsEvidence) {
  Start({kOne});
  FramePeer& client = Client();
  Ask(client, 1);
  Up().Send(h2::Goaway(1, 2, "out of memory"));
  Run();
  Up().wire().Close();
  Run();
  EXPECT_EQ(client.streams[1].Value("sluice-reason"), "connection_lost");
  EXPECT_EQ(Cell().bad, 1u);
}

// Its server has said that it ends, and then hangs: that a PING is not answered is another thing.
TEST_F(CallEvidenceTest, APeerThatIsDeadBehindItsGoawayIsEvidence) {
  cluster.keepalive.interval = seconds(1);
  cluster.keepalive.timeout = seconds(1);
  Start({kOne});
  FramePeer& client = Client();
  Ask(client, 1);
  Up().Send(h2::Goaway(1, 0));
  Run();
  Up().acknowledge = false;
  Advance(seconds(2));
  Advance(seconds(2));
  EXPECT_EQ(client.streams[1].Value("sluice-reason"), "connection_lost");
  EXPECT_EQ(Cell().bad, 1u);
}

TEST_F(CallEvidenceTest, AServerThatAllowsNoStreamsIsLeftForAnother) {
  routes[0].retry.attempts_max = 2;
  net.host(kOne).settings = {{3, 0}};
  net.host(kTwo).settings = {{3, 0}};
  Start({kOne, kTwo});
  FramePeer& client = Client();
  Ask(client, 1);
  const bool first = Connected(kOne);
  net.host(first ? kTwo : kOne).settings = {{3, 100}};
  Advance(seconds(2));
  EXPECT_EQ(Holders({first ? kTwo : kOne}).size(), 1u);
  EXPECT_EQ(Cell(first ? 0 : 1).bad, 1u);
  EXPECT_EQ(Cell(first ? 0 : 1).cause.load(), Cause::kNoStream);
}

TEST_F(CallEvidenceTest, WhereNoOtherIsLeftTheCallFailsAndSaysWhy) {
  net.host(kOne).settings = {{3, 0}};
  Start({kOne});
  FramePeer& client = Client();
  Ask(client, 1);
  Advance(seconds(2));
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "14");
  EXPECT_EQ(client.streams[1].Value("sluice-reason"), "pending_timeout");
  EXPECT_EQ(client.streams[1].Value("sluice-processed"), "no");
  EXPECT_NE(client.streams[1].Value("grpc-message").find("SETTINGS_MAX_CONCURRENT_STREAMS"), std::string::npos);
}

// Callers with short deadlines meet it, too.
TEST_F(CallEvidenceTest, ADeadlineThatPassesInTheWaitForAStreamThatIsNotAllowedIsEvidence) {
  net.host(kOne).settings = {{3, 0}};
  Start({kOne});
  FramePeer& client = Client();
  Ask(client, 1, {{"grpc-timeout", "50m"}});
  Advance(milliseconds(51));
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "4");
  EXPECT_EQ(Cell().bad, 1u);
  EXPECT_EQ(Cell().cause.load(), Cause::kNoStream);
}

TEST_F(CallEvidenceTest, ADeadlineBelowWhatAnswersTakeIsTheCallsOwn) {
  Start({kOne});
  FramePeer& client = Client();
  uint32_t id = 1;
  for (int i = 0; i < 30; ++i, id += 2) {
    Ask(client, id);
    Advance(milliseconds(20));
    Respond(Up(), id, "ok");
    Run();
  }
  Ask(client, id, {{"grpc-timeout", "10m"}});
  Advance(milliseconds(11));
  EXPECT_EQ(client.streams[id].Value("grpc-status"), "4");
  EXPECT_EQ(Cell().bad, 0u);
  Ask(client, id + 2, {{"grpc-timeout", "100m"}});
  Advance(milliseconds(101));
  EXPECT_EQ(client.streams[id + 2].Value("grpc-status"), "4");
  EXPECT_EQ(Cell().bad, 1u);
}

TEST_F(CallEvidenceTest, ACallThatItsClientTakesBackIsWithdrawn) {
  Start({kOne});
  FramePeer& client = Client();
  Ask(client, 1);
  client.Send(h2::RstStream(1, 8));
  Run();
  EXPECT_EQ(Cell().withdrawn, 1u);
  Ask(client, 3);
  Up().Send(Headers(3, Block(h2::GrpcResponse())));
  Run();
  client.Send(h2::RstStream(3, 8));
  Run();
  EXPECT_EQ(Cell().withdrawn, 1u) << "it was answered";
}

TEST_F(CallEvidenceTest, ACallWhoseRequestHasNotEndedIsOwedNoAnswer) {
  Start({kOne});
  upstream::Endpoint& endpoint = *state().endpoints[0].endpoint;
  const auto owed = [&] { return endpoint.Look(false, worker->context.worker().now()).counts.asked(); };
  FramePeer& client = Client();
  for (const uint32_t id : {1u, 3u, 5u}) client.Send(Headers(id, Block(h2::GrpcRequest())));
  Run();
  EXPECT_EQ(endpoint.calls(), 3u);
  EXPECT_EQ(owed(), 0u);
  client.Send(h2::Data(1, h2::Message("all"), kLast));
  Run();
  EXPECT_EQ(owed(), 1u);
  Up().Send(Headers(3, Block(h2::GrpcResponse())));  // answered before it has ended
  Run();
  EXPECT_EQ(owed(), 2u);
  client.Send(h2::Data(3, h2::Message("all"), kLast) + h2::RstStream(5, 8));
  Run();
  EXPECT_EQ(owed(), 2u) << "counted once, and what was never owed is not withdrawn";
  EXPECT_EQ(Cell().withdrawn, 0u);
  client.Send(h2::RstStream(1, 8));
  Run();
  EXPECT_EQ(owed(), 1u);
  EXPECT_EQ(endpoint.calls(), 3u);
}

// An endpoint is ejected because it gives no answers.
class CallSilenceTest : public CallEvidenceTest {
 public:
  // The endpoint that has the call; it is found silent.
  std::string LeaveHolder(uint32_t id = 1) {
    const std::string at = Holders({kOne, kTwo}, id).at(0);
    Call::LeaveSilent(worker->context, *state().endpoints[at == kOne ? 0 : 1].endpoint);
    Run();
    return at;
  }
  uint64_t Retries() { return metrics.retries[static_cast<size_t>(base::ErrorKind::kUpstreamStalled)]->Value(); }
};

TEST_F(CallSilenceTest, ItsCallsThatMayBeRepeatedGetAnotherAttemptAtOnce) {
  routes[0].retry.methods = RetryOptions::Methods::kAll;
  Start({kOne, kTwo});
  FramePeer& client = Client();
  Ask(client, 1);
  const std::string first = LeaveHolder();
  EXPECT_EQ(Up(first).streams[1].reset, 8u);
  const std::string second = first == kOne ? kTwo : kOne;
  ASSERT_EQ(Holders({second}).size(), 1u);
  EXPECT_EQ(Up(second).streams[1].Value("grpc-previous-rpc-attempts"), "1");
  Respond(Up(second), 1, "hello");
  Run();
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "0");
  EXPECT_EQ(Retries(), 1u);
}

TEST_F(CallSilenceTest, OthersGoOn) {
  Start({kOne, kTwo});
  FramePeer& client = Client();
  Ask(client, 1);
  const std::string first = LeaveHolder();
  EXPECT_FALSE(Up(first).streams[1].reset);
  EXPECT_FALSE(Connected(first == kOne ? kTwo : kOne));
  Respond(Up(first), 1, "late");
  Run();
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "0");
}

TEST_F(CallSilenceTest, NothingIsGivenUpWhereNoOtherEndpointIsLeft) {
  routes[0].retry.methods = RetryOptions::Methods::kAll;
  Start({kOne});
  FramePeer& client = Client();
  Ask(client, 1);
  Call::LeaveSilent(worker->context, *state().endpoints[0].endpoint);
  Run();
  EXPECT_FALSE(Up().streams[1].reset);
}

TEST_F(CallSilenceTest, TheBudgetBoundsThem) {
  routes[0].retry.methods = RetryOptions::Methods::kAll;
  cluster.retry_budget.ratio = 0;
  cluster.retry_budget.min_per_second = 0;
  Start({kOne, kTwo});
  FramePeer& client = Client();
  Ask(client, 1);
  const std::string first = LeaveHolder();
  EXPECT_FALSE(Up(first).streams[1].reset) << "it may still be answered";
  EXPECT_EQ(Retries(), 0u);
}

TEST_F(CallSilenceTest, AResponseThatHasBegunIsLeftAlone) {
  routes[0].retry.methods = RetryOptions::Methods::kAll;
  Start({kOne, kTwo});
  FramePeer& client = Client();
  Ask(client, 1);
  Up(Holders({kOne, kTwo}).at(0)).Send(Headers(1, Block(h2::GrpcResponse())));
  Run();
  const std::string first = LeaveHolder();
  EXPECT_FALSE(Up(first).streams[1].reset);
}

// It was certainly not processed, whatever its method does.
TEST_F(CallSilenceTest, ACallThatWaitsForAConnectionGoesElsewhere) {
  net.host(kOne).settings = net.host(kTwo).settings = {{3, 0}};
  Start({kOne, kTwo});
  FramePeer& client = Client();
  Ask(client, 1);
  const bool first = Connected(kOne);
  net.host(first ? kTwo : kOne).settings = {{3, 100}};
  Call::LeaveSilent(worker->context, *state().endpoints[first ? 0 : 1].endpoint);
  Run();
  EXPECT_EQ(Holders({first ? kTwo : kOne}).size(), 1u);
}

}  // namespace
}  // namespace sluice::proxy
