// Feedback: a balancer that goes by outcomes hears each of them once.
#include "upstream/feedback.h"

#include "pool_fixture.h"

namespace sluice::upstream {
namespace {

using std::chrono::milliseconds;

// What a balancer would hear.
struct Heard final : Feedback {
  void OnOutcome(const Endpoint& endpoint, uint32_t worker, Outcome outcome) override {
    EXPECT_EQ(endpoint.name(), "e");
    EXPECT_EQ(worker, 0u);
    outcomes.push_back(outcome);
  }
  std::vector<Outcome> Take() { return std::exchange(outcomes, {}); }
  std::vector<Outcome> outcomes;
};

TEST_F(EndpointPoolTest, ABalancersFeedbackHearsEachOutcome) {
  auto heard = std::make_shared<Heard>();
  feedback = heard;
  using Outcomes = std::vector<Outcome>;
  host.mode = FakeHost::Mode::kRefuse;
  NewCall("a");
  Run();
  EXPECT_EQ(heard->Take(), Outcomes{Outcome::kConnectFailed});
  EXPECT_EQ(endpoint->metrics().connect_failures->Value(), 1u);
  EXPECT_EQ(endpoint->health(), EndpointHealth::kBackoff);
  host.mode = FakeHost::Mode::kAccept;
  Advance(milliseconds(121));
  NewCall("b");
  Run();
  EXPECT_EQ(heard->Take(), Outcomes{Outcome::kConnected});
  EXPECT_EQ(endpoint->health(), EndpointHealth::kHealthy);
  for (const Outcome outcome : {Outcome::kAnswered, Outcome::kFailed, Outcome::kAbandoned}) {
    Pool().BeginCall();
    Pool().EndCall(outcome, 0, outcome == Outcome::kFailed ? Cause::kReset : Cause::kNone);
    EXPECT_EQ(heard->Take(), Outcomes{outcome});
  }
  EXPECT_EQ(endpoint->metrics().failures->Value(), 2u) << "the connection that was refused, and the reset";
  EXPECT_EQ(endpoint->calls(), 3u);
}

// An endpoint that is ejected for a status has as many failures as there were answers with it.
TEST_F(EndpointPoolTest, AFailureIsWhatTheJudgeCounts) {
  NewCall("a");
  Run();
  const uint64_t before = endpoint->metrics().failures->Value();
  for (const Cause cause : {Cause::kUnavailable, Cause::kInternal, Cause::kLost}) {
    Pool().BeginCall();
    Pool().EndCall(cause == Cause::kLost ? Outcome::kFailed : Outcome::kAnswered, 14, cause);
  }
  Pool().BeginCall();
  Pool().EndCall(Outcome::kFailed, 13);  // for a cause that is the call's own
  EXPECT_EQ(endpoint->metrics().failures->Value() - before, 3u);
}

}  // namespace
}  // namespace sluice::upstream
