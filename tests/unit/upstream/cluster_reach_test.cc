// That an endpoint was lost and is back stands in the log, ejected or not.
#include <gmock/gmock.h>

#include "keyed_cluster.h"
#include "support/captured_log.h"

namespace sluice::upstream {
namespace {

using ::testing::HasSubstr;

class ClusterReachTest : public testing::Test {
 public:
  // What the next pass logs while the endpoints' connections are so.
  std::string Pass(EndpointLink a, EndpointLink b) {
    cluster.Get("a").set_link(0, a);
    cluster.Get("b").set_link(0, b);
    cluster.now += std::chrono::seconds(1);
    test::CapturedLog log;
    cluster.state->health->Pass(*cluster.options, cluster.state->endpoints, *cluster.state->spill, cluster.now);
    return log.Take();
  }
  KeyedCluster cluster{{"a", "b"}};
};

constexpr EndpointLink kUp = EndpointLink::kConnected, kDown = EndpointLink::kBackoff;

TEST_F(ClusterReachTest, EachLossAndEachReturnIsOneLine) {
  EXPECT_EQ(Pass(kUp, kUp), "");
  const std::string lost = Pass(kDown, kUp);
  EXPECT_THAT(lost, HasSubstr("warning cluster " + cluster.state->name() + " endpoint a: no connection can be made"));
  EXPECT_EQ(lost.find("endpoint b"), lost.npos);
  EXPECT_EQ(Pass(kDown, kUp), "");
  EXPECT_EQ(Pass(EndpointLink::kConnecting, kUp), "") << "a try is no return";
  EXPECT_EQ(Pass(EndpointLink::kIdle, kUp), "");
  EXPECT_EQ(Pass(kDown, kUp), "");
  EXPECT_THAT(Pass(kUp, kUp), HasSubstr("info cluster " + cluster.state->name() + " endpoint a: connected again"));
  EXPECT_EQ(Pass(kUp, kUp), "");
}

TEST_F(ClusterReachTest, AlsoWhereAllAreLostAndWithoutEjection) {
  cluster.options->ejection.enabled = false;
  Pass(kUp, kUp);
  const std::string lost = Pass(kDown, kDown);
  EXPECT_THAT(lost, HasSubstr("endpoint a: no connection can be made"));
  EXPECT_THAT(lost, HasSubstr("endpoint b: no connection can be made"));
  const std::string back = Pass(kUp, kUp);
  EXPECT_THAT(back, HasSubstr("endpoint a: connected again"));
  EXPECT_THAT(back, HasSubstr("endpoint b: connected again"));
}

// The first time, too: no probe has told it yet.
TEST_F(ClusterReachTest, TheLineHasItsCause) {
  Pass(kUp, kUp);
  cluster.Get("a").connect_error().Note("connect to 10.0.0.1:1: Connection refused", cluster.now);
  const std::string lost = Pass(kDown, kDown);
  EXPECT_THAT(lost, HasSubstr("endpoint a: no connection can be made: connect to 10.0.0.1:1: Connection refused"));
  EXPECT_THAT(lost, HasSubstr("endpoint b: no connection can be made: the first one is still being tried"));
}

TEST_F(ClusterReachTest, TheLastErrorIsTheNewestAndHasAnAge) {
  Endpoint& a = cluster.Get("a");
  const auto shown = [&] { return cluster.state->health->Describe(a, cluster.now); };
  EXPECT_EQ(shown().last_error, "");
  EXPECT_FALSE(shown().last_error_ago);
  a.connect_error().Note("refused", cluster.now);
  cluster.now += std::chrono::seconds(12);
  EXPECT_EQ(shown().last_error, "refused");
  EXPECT_EQ(shown().last_error_ago, std::chrono::seconds(12));
  a.record().set_last_error("the probe was given up", cluster.now);
  cluster.now += std::chrono::seconds(3);
  EXPECT_EQ(shown().last_error, "the probe was given up");
  EXPECT_EQ(shown().last_error_ago, std::chrono::seconds(3));
  a.connect_error().Note("refused again", cluster.now);
  EXPECT_EQ(shown().last_error, "refused again");
  EXPECT_EQ(shown().last_error_ago, std::chrono::seconds(0));
}

}  // namespace
}  // namespace sluice::upstream
