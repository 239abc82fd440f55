// When ClusterHealth has the endpoints asked for their own word.
#include <map>

#include "keyed_cluster.h"

namespace sluice::upstream {
namespace {

using std::chrono::seconds;

class ClusterAskTest : public testing::Test {
 public:
  ClusterAskTest() {
    cluster.options->health.mode = HealthMode::kCheck;
    cluster.options->health.interval = seconds(60);
  }
  // A pass; each Check that it begins is answered with SERVING before the next one. How many went to each endpoint.
  std::map<std::string, int> Pass() {
    cluster.now += Judge::kPeriod;
    const auto work =
        cluster.state->health->Pass(*cluster.options, cluster.state->endpoints, *cluster.state->spill, cluster.now);
    std::map<std::string, int> asked;
    for (const ClusterHealth::Ask& ask : work.asks) {
      EXPECT_FALSE(ask.watch);
      ++asked[ask.endpoint->name()];
      ask.report->Opened();
      ask.report->Answered(ServingStatus::kServing);
      ask.report->Ended({HealthEnd::Kind::kStatus, 0, "OK"});
    }
    return asked;
  }
  int ChecksOf(const std::string& name, base::Nanos time) {
    int sum = 0;
    for (base::Nanos passed{}; passed < time; passed += Judge::kPeriod) sum += Pass()[name];
    return sum;
  }

  KeyedCluster cluster{{"a", "b", "c"}};
};

TEST_F(ClusterAskTest, EachIsAskedOnceAnInterval) {
  EXPECT_EQ(Pass(), (std::map<std::string, int>{{"a", 1}, {"b", 1}, {"c", 1}}));
  EXPECT_EQ(ChecksOf("a", seconds(47)), 0);  // 20% jitter
  EXPECT_EQ(ChecksOf("a", seconds(26)), 1);
}

// Its calls fail now: what it says of itself is worth more now than at the end of the interval.
TEST_F(ClusterAskTest, ASuspectIsAskedAtOnce) {
  ChecksOf("a", seconds(2));
  cluster.Count(cluster.Get("a"), 10, 0);
  cluster.Count(cluster.Get("b"), 10, 0);
  Pass();
  cluster.Count(cluster.Get("a"), 0, 5);
  cluster.Count(cluster.Get("b"), 10, 0);
  Pass();
  ASSERT_EQ(cluster.State("a"), HealthState::kSuspect);
  EXPECT_EQ(Pass(), (std::map<std::string, int>{{"a", 1}}));
}

TEST_F(ClusterAskTest, OneThatIsSuspectAgainAndAgainIsAskedOnceASecond) {
  ChecksOf("a", seconds(2));
  int checks = 0;
  for (int i = 0; i < 50; ++i) {
    // Failures, and good answers before it is ejected.
    cluster.Count(cluster.Get("a"), i % 4 == 0 ? 0 : 50, i % 4 == 0 ? 5 : 0);
    cluster.Count(cluster.Get("b"), 10, 0);
    checks += Pass()["a"];
  }
  EXPECT_GE(checks, 3);
  EXPECT_LE(checks, 6) << "in 5 s";
}

}  // namespace
}  // namespace sluice::upstream
