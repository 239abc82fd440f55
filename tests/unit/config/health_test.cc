// The endpoints' own word, in a configuration.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config.h"

namespace sluice::config {
namespace {

using ::testing::HasSubstr;
using upstream::HealthMode;
using upstream::HealthOptions;
using namespace std::chrono_literals;

ParseResult ParseWith(const std::string& health) {
  return Parse("listeners: [{address: 127.0.0.1:1}]\nclusters: [{name: users, endpoints: [a:1]" + health +
                   "}]\nroutes: [{cluster: users}]\n",
               "f");
}

TEST(HealthOptionsTest, OffByDefault) {
  const ParseResult result = ParseWith("");
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.config.clusters.at(0).health, HealthOptions());
  EXPECT_EQ(result.config.clusters.at(0).health.mode, HealthMode::kOff);
}

TEST(HealthOptionsTest, EveryKeyReachesItsField) {
  const ParseResult result =
      ParseWith(", health: {mode: check, service: p.S, interval: 2s, timeout: 300ms, fall: 5, rise: 4}");
  ASSERT_TRUE(result.ok()) << result.errors[0].ToString();
  EXPECT_EQ(result.config.clusters.at(0).health, (HealthOptions{HealthMode::kCheck, "p.S", 2s, 300ms, 5, 4}));
  EXPECT_EQ(ParseWith(", health: {mode: watch, service: \"\"}").config.clusters.at(0).health.mode, HealthMode::kWatch);
  EXPECT_EQ(ParseWith(", health: {mode: off}").config.clusters.at(0).health.mode, HealthMode::kOff);
}

TEST(HealthOptionsTest, WrongValuesAreNamed) {
  const std::pair<std::string, const char*> cases[] = {
      {"{mode: ask}", "clusters[0].health.mode"},
      {"{interval: 99ms}", "clusters[0].health.interval"},
      {"{timeout: 2m}", "clusters[0].health.timeout"},
      {"{fall: 0}", "clusters[0].health.fall"},
      {"{rise: 1001}", "clusters[0].health.rise"},
      {"{watch: true}", "clusters[0].health.watch"},
      {"{service: [a]}", "clusters[0].health.service"},
      {"{service: " + std::string(1025, 'x') + "}", "clusters[0].health.service: has 1025 bytes; at most 1024"}};
  for (const auto& [text, message] : cases) {
    const ParseResult result = ParseWith(", health: " + text);
    ASSERT_EQ(result.errors.size(), 1u) << text;
    EXPECT_THAT(result.errors[0].ToString(), HasSubstr(message));
  }
}

}  // namespace
}  // namespace sluice::config
