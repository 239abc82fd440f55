// What a pass of ClusterHealth wants done: how soon the next one comes, and which endpoints get new connections.
#include "keyed_cluster.h"

namespace sluice::upstream {
namespace {

using Pace = ClusterHealth::Pace;

class ClusterPaceTest : public testing::Test {
 public:
  Pace Pass() {
    cluster.now += Judge::kPeriod;
    return cluster.state->health->Pass(*cluster.options, cluster.state->endpoints, *cluster.state->spill, cluster.now)
        .pace;
  }
  Endpoint& At(size_t i) { return *cluster.state->endpoints[i].endpoint; }

  KeyedCluster cluster{{"a", "b", "c"}};
};

TEST_F(ClusterPaceTest, WithoutCallsItIsIdle) {
  EXPECT_EQ(Pass(), Pace::kIdle);
  cluster.Count(At(0), 1, 0);
  EXPECT_EQ(Pass(), Pace::kUsual);
  EXPECT_EQ(Pass(), Pace::kIdle);
}

TEST_F(ClusterPaceTest, WithCallsOneAfterTheOtherItIsBusy) {
  Pass();
  cluster.Count(At(0), 2, 0);
  EXPECT_EQ(Pass(), Pace::kBusy);
  EXPECT_EQ(Pass(), Pace::kIdle);
}

TEST_F(ClusterPaceTest, FailuresWantACloserLook) {
  Pass();
  cluster.Count(At(0), 0, 1);
  EXPECT_EQ(Pass(), Pace::kCloser);
}

TEST_F(ClusterPaceTest, ADoubtIsCountedAndShown) {
  const auto counted = [&](int n) {
    const std::string line = "sluice_doubts_total{cluster=\"c\"} " + std::to_string(n) + "\n";
    return cluster.registry.RenderPrometheus(metrics::Show::kAlways).find(line) != std::string::npos;
  };
  const auto why = [&] { return cluster.state->health->Describe(At(0), cluster.now).why; };
  Pass();
  EXPECT_TRUE(counted(0));
  cluster.Count(At(0), 0, 5);
  for (const size_t i : {1, 2}) cluster.Count(At(i), 5, 0);
  Pass();
  EXPECT_EQ(cluster.State("a"), HealthState::kSuspect);
  EXPECT_TRUE(counted(1));
  EXPECT_NE(why().find("; calls that may not be repeated pass it over"), std::string::npos) << why();
  cluster.Count(At(0), 5, 0);
  Pass();
  EXPECT_TRUE(counted(1));
  EXPECT_EQ(why().find("pass it over"), std::string::npos) << why();
}

// A call that is not answered may be the first one of a stall.
TEST_F(ClusterPaceTest, WhileACallIsOutItIsNotIdle) {
  Pass();
  At(0).metrics().in_flight->Add(0, 2);
  EXPECT_EQ(Pass(), Pace::kUsual);
  EXPECT_EQ(Pass(), Pace::kUsual) << "streams that are silent are nothing to look at";
  At(0).metrics().in_flight->Add(0, -2);
  EXPECT_EQ(Pass(), Pace::kIdle);
}

TEST_F(ClusterPaceTest, WhileAnEndpointIsOutOrOnItsWayBackItIsNotIdle) {
  using Order = ClusterHealth::Order;
  ASSERT_TRUE(cluster.Order("a", Order::kEject).ok());
  EXPECT_NE(Pass(), Pace::kIdle);
  ASSERT_TRUE(cluster.Order("a", Order::kRestore).ok());
  EXPECT_NE(Pass(), Pace::kIdle);
}

TEST_F(ClusterPaceTest, AnEndpointThatIsDrainedChangesNothing) {
  cluster.Change(EndpointChange::Kind::kDrain, "a");
  Pass();
  EXPECT_EQ(Pass(), Pace::kIdle);
}

// The connections of an endpoint that gives no answers may be dead: all workers leave them. One that answers with
// failures has connections that work.
TEST_F(ClusterPaceTest, AnEndpointThatIsEjectedForItsSilenceIsNamedOnce) {
  for (const Cause cause : {Cause::kDeadline, Cause::kUnavailable}) {
    SCOPED_TRACE(ToString(cause));
    KeyedCluster calls{{"a", "b", "c"}};
    Endpoint& sick = calls.Get("a");
    size_t named = 0;
    for (int i = 0; i < 60; ++i) {
      calls.now += Judge::kPeriod;
      for (const char* name : {"b", "c"}) calls.Count(calls.Get(name), 10, 0);
      if (!sick.record().ejected()) {
        for (int failure = 0; failure < 5; ++failure) {
          sick.MakeCell(0).Sent(true);
          sick.MakeCell(0).Bad(cause);
        }
      }
      const auto work =
          calls.state->health->Pass(*calls.options, calls.state->endpoints, *calls.state->spill, calls.now);
      for (const auto& probe : work.probes) probe.result->Set("refused", true);  // which changes nothing
      for (const auto& endpoint : work.silent) {
        EXPECT_EQ(endpoint->name(), "a");
        ++named;
      }
    }
    EXPECT_TRUE(sick.record().ejected());
    EXPECT_EQ(named, cause == Cause::kDeadline ? 1u : 0u);
  }
}

}  // namespace
}  // namespace sluice::upstream
