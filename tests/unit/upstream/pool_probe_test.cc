// What the judge asks of a pool and gets from it: probes, the end of a back-off, and counts of outcomes.
#include <vector>

#include "base/hash.h"
#include "pool_fixture.h"
#include "upstream/health/probe_result.h"

namespace sluice::upstream {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class PoolProbeTest : public EndpointPoolTest {
 public:
  std::shared_ptr<ProbeResult> Probe() {
    Pool();
    auto result = std::make_shared<ProbeResult>();
    set->Probe(endpoint, endpoint->options(), feedback, result);
    Run();
    return result;
  }
  OutcomeCell& Cell() { return endpoint->MakeCell(0); }
};

TEST_F(PoolProbeTest, AConnectionThatWorksPassesAndStaysForCalls) {
  const auto result = Probe();
  ASSERT_TRUE(result->done());
  EXPECT_EQ(result->error(), "");
  NewCall("a");
  EXPECT_EQ(Log(), (Strings{"a connection"}));
  EXPECT_EQ(host.connections.size(), 1u);
}

TEST_F(PoolProbeTest, ARefusalSaysSo) {
  host.mode = FakeHost::Mode::kRefuse;
  const auto result = Probe();
  ASSERT_TRUE(result->done());
  EXPECT_NE(result->error(), "");
  EXPECT_TRUE(result->refused());
  EXPECT_EQ(Cell().bad.load(), 1u);
  EXPECT_EQ(Cell().cause.load(), Cause::kConnect);
}

// What listens behind a refusal is another process, and the judge is told so once.
TEST_F(PoolProbeTest, AConnectionBehindARefusalIsARestart) {
  EXPECT_EQ(Probe()->error(), "");
  const auto port = [&] { return endpoint->Look(false, time.worker.now()).port; };
  EXPECT_EQ(port(), EndpointPort::kSame);
  host.mode = FakeHost::Mode::kRefuse;
  EXPECT_TRUE(Probe()->refused());
  EXPECT_EQ(port(), EndpointPort::kRefused);
  EXPECT_EQ(port(), EndpointPort::kRefused);
  host.mode = FakeHost::Mode::kAccept;
  EXPECT_EQ(Probe()->error(), "");
  EXPECT_EQ(port(), EndpointPort::kRestarted);
  EXPECT_EQ(port(), EndpointPort::kSame);
}

// A back-off of the pool's own does not hold a probe up, and ends with the judge's word.
TEST_F(PoolProbeTest, InBackOffAProbeIsMadeAndEndBackoffLetsCallsIn) {
  host.mode = FakeHost::Mode::kRefuse;
  NewCall("a");
  Run();
  EXPECT_EQ(Log(), (Strings{"a connect_failed"}));
  EXPECT_FALSE(Pool().Usable());
  EXPECT_TRUE(Probe()->refused());
  host.mode = FakeHost::Mode::kAccept;
  set->EndBackoff(*endpoint);
  EXPECT_TRUE(Pool().Usable());
  EXPECT_EQ(endpoint->health(), EndpointHealth::kHealthy);
  EXPECT_EQ(Probe()->error(), "");
}

TEST_F(PoolProbeTest, AHostThatSaysNothingFailsItInConnectTimeout) {
  options.connect_timeout = milliseconds(300);
  Pool();
  host.speaks = false;
  const auto result = Probe();
  EXPECT_FALSE(result->done());
  Advance(milliseconds(301));
  ASSERT_TRUE(result->done());
  EXPECT_FALSE(result->refused());
  EXPECT_EQ(result->error(), "endpoint e accepts connections and says nothing");
}

// A second one, a removal and the end of the process: none is left without a result.
TEST_F(PoolProbeTest, EachProbeHasAResult) {
  host.speaks = false;
  const auto first = Probe();
  const auto second = Probe();
  EXPECT_TRUE(first->done());
  EXPECT_FALSE(second->done());
  endpoint->MarkRemoved();
  set->Drain(*endpoint);
  Run();
  EXPECT_TRUE(second->done());
  EXPECT_TRUE(Probe()->done());
  set->CloseAll();
  EXPECT_NE(Probe()->error(), "");
}

// A connection from before a fault of the network may be dead for longer than the fault.
TEST_F(PoolProbeTest, RenewedItLeavesItsConnectionsAndTheirCallsGoOn) {
  Caller& first = NewCall("a");
  Run();
  EXPECT_EQ(Log(), (Strings{"a connection"}));
  test::FramePeer& old = host.last();
  set->Renew(*endpoint);
  Run();
  EXPECT_FALSE(Pool().TakesCalls()) << "until there is a new connection, which this begins";
  Run();
  ASSERT_EQ(host.connections.size(), 2u);
  EXPECT_TRUE(Pool().TakesCalls());
  NewCall("b");
  Run();
  EXPECT_EQ(host.last().streams.count(1), 1u);
  EXPECT_FALSE(old.end);
  old.Send(h2::Headers(1, h2::Block(h2::GrpcResponse())) + h2::Data(1, h2::Message("late")) +
           h2::Headers(1, h2::Block({{"grpc-status", "0"}}), h2::kEndHeaders | h2::kEndStream));
  Run();
  EXPECT_TRUE(first.recorder.end);
  EXPECT_EQ(first.recorder.data, h2::Message("late"));
  first.stream->Release();
  first.stream = nullptr;
  Run();
  EXPECT_TRUE(old.end);
}

TEST_F(PoolProbeTest, RenewedItBeginsAConnectionForTheCallsThatWait) {
  host.settings = {{3, 1}};
  options.connections_max = 1;
  NewCall("a");
  Run();
  NewCall("b");
  EXPECT_EQ(Log(), (Strings{"a connection"}));
  set->Renew(*endpoint);
  Run();
  EXPECT_EQ(Log(), (Strings{"b connection"}));
}

TEST_F(PoolProbeTest, OutcomesAreCountedByTheirCause) {
  NewCall("a");
  Run();
  uint64_t key = 0;
  auto end = [&](Outcome outcome, Cause cause = Cause::kNone) {
    Pool().BeginCall();
    Pool().EndCall(outcome, 0, cause, ++key);
  };
  end(Outcome::kFailed, Cause::kLost);
  end(Outcome::kAnswered, Cause::kUnavailable);
  EXPECT_EQ(Cell().row.load(), 2u);
  end(Outcome::kAnswered, Cause::kInternal);
  end(Outcome::kAbandoned);
  end(Outcome::kFailed);
  EXPECT_EQ(Cell().row.load(), 2u) << "neither INTERNAL nor the client's cancellation nor a full queue ends a row";
  end(Outcome::kAnswered);
  EXPECT_EQ(Cell().row.load(), 0u);
  EXPECT_EQ(Cell().good.load(), 1u);
  EXPECT_EQ(Cell().bad.load(), 2u);
  EXPECT_EQ(Cell().soft.load(), 1u);
  Pool().Answered(milliseconds(5));
  EXPECT_EQ(Cell().answered.load(), 1u);
}

// All calls on it hear of it in one turn.
TEST_F(PoolProbeTest, AConnectionThatEndsIsOneFailure) {
  NewCall("a");
  Run();
  for (uint64_t key = 1; key <= 10; ++key) {
    Pool().BeginCall();
    Pool().EndCall(Outcome::kFailed, 14, Cause::kLost, key);
  }
  EXPECT_EQ(Cell().bad.load(), 1u);
  Advance(milliseconds(1));
  Pool().BeginCall();
  Pool().EndCall(Outcome::kFailed, 14, Cause::kLost, 11);
  EXPECT_EQ(Cell().bad.load(), 2u);
}

TEST_F(PoolProbeTest, SwitchedOffNothingIsCountedForTheJudge) {
  options.ejection.enabled = false;
  Pool().BeginCall();
  Pool().EndCall(Outcome::kFailed, 14, Cause::kLost);
  Pool().Answered(milliseconds(1));
  EXPECT_EQ(Cell().bad.load(), 0u);
  EXPECT_EQ(Cell().answered.load(), 0u);
  EXPECT_EQ(endpoint->calls(), 1u);
  const EndpointSeries::Sums sums = endpoint->series().Read();
  EXPECT_EQ(sums.statuses[14], 1u);
  EXPECT_EQ(sums.nanos, 1'000'000u);
}

TEST_F(PoolProbeTest, AdmissionByShareKeepsTheKeysOfEverySmallerShare) {
  using Choosiness = Endpoint::Choosiness;
  Pool();
  auto admitted = [&](Choosiness choosiness) {
    std::vector<bool> out;
    for (uint64_t key = 0; key < 10'000; ++key) out.push_back(endpoint->Admits(choosiness, base::Hash64(key, 1)));
    return out;
  };
  std::vector<bool> before(10'000, false);
  for (const double share : {0.05, 0.2, 0.5, 0.9, 1.0}) {
    endpoint->SetAdmission({false, share});
    const std::vector<bool> now = admitted(Choosiness::kShare);
    int count = 0;
    for (size_t i = 0; i < now.size(); ++i) {
      count += now[i] ? 1 : 0;
      EXPECT_TRUE(now[i] || !before[i]) << "a key that came home stays";
    }
    EXPECT_NEAR(count, share * 10'000, 200);
    EXPECT_EQ(admitted(Choosiness::kOut), std::vector<bool>(10'000, true)) << "the share is a wish, no more";
    before = now;
  }
  endpoint->SetAdmission({true, 0});
  EXPECT_FALSE(endpoint->Admits(Choosiness::kShare, 1));
  EXPECT_FALSE(endpoint->Admits(Choosiness::kOut, 1));
  EXPECT_TRUE(endpoint->Admits(Choosiness::kNone, 1));
  endpoint->MarkRemoved();
  EXPECT_FALSE(endpoint->Admits(Choosiness::kNone, 1));
}

}  // namespace
}  // namespace sluice::upstream
