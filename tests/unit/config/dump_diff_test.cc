// The difference of two dumps: which lines it has, and that equal ones have none.
#include "config/dump_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config.h"
#include "config/dump.h"

namespace sluice::config {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kBefore[] = R"(
listeners: [{address: 127.0.0.1:1}]
clusters:
  - {name: a, endpoints: [10.0.0.1:1, {address: 10.0.0.2:1, name: "x,y"}, 10.0.0.3:1]}
  - {name: b, endpoints: [10.0.0.1:1]}
  - {name: gone, endpoints: [10.0.0.1:1]}
routes:
  - {name: r1, service: a, cluster: a}
  - {name: r2, service: b, cluster: b, cache: {ttl: 1s, methods: [Get]}}
)";

std::vector<std::string> Diff(const std::string& before, const std::string& after) {
  const ParseResult one = Parse(before, "before"), other = Parse(after, "after");
  EXPECT_TRUE(one.ok() && other.ok()) << (one.ok() ? other : one).errors[0].ToString();
  auto lines = DiffDumps(Dump(one.config), Dump(other.config));
  return lines.ok() ? *lines : std::vector<std::string>{lines.error().detail};
}

TEST(DumpDiff, TheSameHasNoLines) {
  EXPECT_THAT(Diff(kBefore, kBefore), IsEmpty());
  EXPECT_THAT(Diff(kBefore, std::string(kBefore) + "workers: 0\nlog: {level: info}\n"), IsEmpty());
}

TEST(DumpDiff, LinesNameWhatIsGoneThereAndOtherwise) {
  EXPECT_THAT(
      Diff(kBefore, R"(
listeners: [{address: 127.0.0.1:1, keepalive: {interval: 5s}}, {address: 127.0.0.1:2}]
clusters:
  - {name: a, endpoints: [10.0.0.1:1, {address: 10.0.0.9:1, name: "x,y"}, 10.0.0.4:1], connect_timeout: 3s}
  - {name: b, endpoints: [10.0.0.1:1]}
  - {name: new, endpoints: [10.0.0.1:1]}
routes:
  - {name: r2, service: b, cluster: b, cache: {ttl: 1s, methods: [Get], vary: [k, l]}}
  - {name: r1, service: a, cluster: a, hedge: {delay: auto}}
)"),
      ElementsAre("- listeners[127.0.0.1:1].keepalive.interval: 0", "+ listeners[127.0.0.1:1].keepalive.interval: 5s",
                  "+ listeners[127.0.0.1:2]: 127.0.0.1:2", "- clusters[a].endpoints[\"x,y\"].address: 10.0.0.2:1",
                  "+ clusters[a].endpoints[\"x,y\"].address: 10.0.0.9:1",
                  "- clusters[a].endpoints[10.0.0.3:1]: 10.0.0.3:1", "+ clusters[a].endpoints[10.0.0.4:1]: 10.0.0.4:1",
                  "- clusters[a].connect_timeout: 2s", "+ clusters[a].connect_timeout: 3s", "- clusters[gone]",
                  "+ clusters[new]", "+ routes[r1].hedge.delay: auto", "+ routes[r1].hedge.max: 1",
                  "- routes[r2].cache.vary: []", "+ routes[r2].cache.vary: [k, l]", "- routes in the order: r1, r2",
                  "+ routes in the order: r2, r1"));
}

TEST(DumpDiff, WhatIsNoMapIsAnError) {
  EXPECT_FALSE(DiffDumps("- a\n", "a: 1\n").ok());
  EXPECT_FALSE(DiffDumps("a: 1\n", "a: [\n").ok());
}

}  // namespace
}  // namespace sluice::config
