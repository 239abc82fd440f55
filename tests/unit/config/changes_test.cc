// What a configuration has otherwise than the one before it.
#include "config/changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::config {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Config Parsed(const std::string& routes, const std::string& rest = "") {
  const ParseResult parsed = Parse(
      "listeners: [{name: in, address: 127.0.0.1:7070}]\n"
      "clusters:\n"
      "  - {name: users, endpoints: [127.0.0.1:1]}\n"
      "  - {name: other, endpoints: [127.0.0.1:2]}\n"
      "routes:\n" +
          routes + rest,
      "a.yaml");
  for (const ConfigError& error : parsed.errors) ADD_FAILURE() << error.ToString();
  return parsed.config;
}

constexpr char kRoutes[] = "  - {name: a, service: a.A, cluster: users}\n  - {name: b, cluster: other}\n";

TEST(ChangesTest, WhatIsTheSameIsNoChange) { EXPECT_THAT(Changes(Parsed(kRoutes), Parsed(kRoutes)), IsEmpty()); }

TEST(ChangesTest, ThingsWithNamesAreAddedRemovedOrChanged) {
  Config after = Parsed("  - {name: c, service: c.C, cluster: users}\n  - {name: b, cluster: other, timeout: 3s}\n");
  after.clusters[0].endpoints.clear();
  after.listeners[0].name = "out";
  EXPECT_THAT(Changes(Parsed(kRoutes), after),
              ElementsAre("listener in: removed", "listener out: added", "cluster users: changed", "route a: removed",
                          "route c: added", "route b: changed"));
}

// The first route that fits takes the call.
TEST(ChangesTest, AnotherOrderOfRoutesIsAChange) {
  Config after = Parsed(kRoutes);
  std::swap(after.routes[0], after.routes[1]);
  EXPECT_THAT(Changes(Parsed(kRoutes), after), ElementsAre("routes: in another order"));
}

TEST(ChangesTest, OptionsOfTheProcessAreNamed) {
  EXPECT_THAT(Changes(Parsed(kRoutes), Parsed(kRoutes, "drain_timeout: 5s\nconnections_max: 7\n")),
              ElementsAre("connections_max: changed", "drain_timeout: changed"));
}

}  // namespace
}  // namespace sluice::config
