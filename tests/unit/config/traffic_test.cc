// Where the calls of a route go: what may stand in `clusters`.
#include <gtest/gtest.h>

#include <string>

#include "config/config.h"
#include "config/dump.h"

namespace sluice::config {
namespace {

ParseResult Of(const std::string& route) {
  return Parse(
      "listeners: [{address: 127.0.0.1:1}]\n"
      "clusters: [{name: users, endpoints: [a:1]}, {name: canary, endpoints: [b:1]}]\n"
      "routes: [{" +
          route + "}]\n",
      "f");
}

std::string ErrorOf(const std::string& route) {
  const ParseResult result = Of(route);
  return result.errors.size() == 1 ? result.errors[0].path + ": " + result.errors[0].message
                                   : std::to_string(result.errors.size()) + " errors";
}

TEST(Clusters, ShareTheCallsByWeight) {
  const ParseResult result = Of("clusters: [{name: users, weight: 95}, {name: canary, weight: 5}], failover: users");
  ASSERT_TRUE(result.ok()) << result.errors[0].ToString();
  const proxy::RouteOptions& route = result.config.routes[0];
  EXPECT_EQ(route.clusters, (std::vector<proxy::WeightedCluster>{{"users", 95}, {"canary", 5}}));
  EXPECT_EQ(route.cluster, "users");
  EXPECT_EQ(route.failover, "users");
  EXPECT_EQ(Parse(Dump(result.config), "dump").config, result.config);
  EXPECT_TRUE(Of("cluster: users").config.routes[0].clusters.empty());
  EXPECT_TRUE(result.warnings.empty());
}

TEST(Clusters, AWeightIsAWholeNumberAndOneIsAboveZero) {
  EXPECT_TRUE(Of("clusters: [{name: users, weight: 1000000}, {name: canary, weight: 0}]").ok());
  EXPECT_EQ(ErrorOf("clusters: [{name: users, weight: 1000001}]"),
            "routes[0].clusters[0].weight: \"1000001\" is not a whole number in [0, 1000000]");
  EXPECT_EQ(ErrorOf("clusters: [{name: users, weight: 0}, {name: canary, weight: 0}]"),
            "routes[0].clusters: has no weight above 0, so that no cluster takes a call; at least one is needed");
  EXPECT_EQ(ErrorOf("clusters: [{name: users}]"), "routes[0].clusters[0].weight: is missing");
}

TEST(Clusters, AreNamedOnceAndAreThere) {
  EXPECT_EQ(ErrorOf("clusters: [{name: users, weight: 1}, {name: users, weight: 2}]"),
            "routes[0].clusters[1].name: \"users\" is there twice");
  EXPECT_EQ(ErrorOf("clusters: [{name: user, weight: 1}]"),
            "routes[0].clusters[0].name: no cluster is named \"user\"; did you mean \"users\"?");
  EXPECT_EQ(ErrorOf("clusters: []"), "routes[0].clusters: is empty; at least one is needed, or `cluster`");
  EXPECT_EQ(ErrorOf("cluster: users, clusters: [{name: canary, weight: 1}]"),
            "routes[0].cluster: is not allowed together with clusters");
  EXPECT_EQ(ErrorOf("clusters: [{name: users, weight: 1}], failover: users"),
            "routes[0].failover: \"users\" is the route's own cluster; another one is needed");
}

TEST(Clusters, TheirKeyNeedsNoRing) {
  const ParseResult result = Parse(
      "listeners: [{address: 127.0.0.1:1}]\n"
      "clusters: [{name: users, policy: round_robin, endpoints: [a:1]}, {name: canary, endpoints: [b:1]}]\n"
      "routes: [{clusters: [{name: users, weight: 1}, {name: canary, weight: 1}], hash_by: method}]\n",
      "f");
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result.warnings.empty()) << result.warnings[0].ToString();
}

}  // namespace
}  // namespace sluice::config
