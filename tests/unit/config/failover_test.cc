// The cluster that steps in for a route's own: what may stand in `failover`.
#include <gtest/gtest.h>

#include <string>

#include "config/config.h"

namespace sluice::config {
namespace {

ParseResult Of(const std::string& route) {
  return Parse(
      "listeners: [{address: 127.0.0.1:1}]\n"
      "clusters: [{name: near, endpoints: [a:1]}, {name: far, endpoints: [b:1]}]\n"
      "routes: [{" +
          route + "}]\n",
      "f");
}

std::string ErrorOf(const std::string& route) {
  const ParseResult result = Of(route);
  return result.errors.size() == 1 ? result.errors[0].message : std::to_string(result.errors.size()) + " errors";
}

TEST(Failover, IsAnotherClusterOfTheFile) {
  const ParseResult result = Of("cluster: near, failover: far");
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.config.routes[0].failover, "far");
  EXPECT_EQ(Of("cluster: near").config.routes[0].failover, "");
}

TEST(Failover, AnUnknownNameAndTheRoutesOwnClusterAreErrors) {
  EXPECT_EQ(ErrorOf("cluster: near, failover: fra"), "no cluster is named \"fra\"; did you mean \"far\"?");
  EXPECT_EQ(ErrorOf("cluster: near, failover: near"), "\"near\" is the route's own cluster; another one is needed");
  EXPECT_EQ(ErrorOf("cluster: near, failover: ''"), "no cluster is named \"\"; there are: near, far");
}

}  // namespace
}  // namespace sluice::config
