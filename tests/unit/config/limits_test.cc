// Limits in a configuration: every key reaches its field; a value out of range is an error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config.h"

namespace sluice::config {
namespace {

using limits::ConcurrencyOptions;
using limits::RateOptions;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Yaml(std::string_view cluster, std::string_view route, std::string_view top = "") {
  return "listeners: [{address: 127.0.0.1:1}]\nclusters:\n  - {name: users, endpoints: [a:1]" + std::string(cluster) +
         "}\nroutes:\n  - {cluster: users" + std::string(route) + "}\n" + std::string(top) + "\n";
}
std::vector<std::string> ErrorsOf(const std::string& yaml) {
  std::vector<std::string> out;
  for (const ConfigError& error : Parse(yaml, "f").errors) out.push_back(error.ToString());
  return out;
}

TEST(Limits, EveryKeyReachesItsField) {
  const ParseResult result = Parse(
      Yaml(
          R"(, rate_limit: {rate: 0.5, burst: 7, capped: true, queue: 0, queue_time: 1s}, concurrency: {max: 5, queue: 6, queue_time: 0},
    endpoint_concurrency: {max: 10000000, queue: 1000000}, bounded_load: 1.25)",
          R"(, rate_limit: {rate: 10000000},
    client_rate_limit: {by: {metadata: x-key, repeated: last}, rate: 2, burst: 3, capped: true, queue: 4, clients_max: 16})",
          "concurrency: {max: 8, queue: 9}"),
      "f");
  ASSERT_TRUE(result.ok()) << result.errors[0].ToString();
  const auto& cluster = result.config.clusters.at(0);
  EXPECT_EQ(cluster.rate_limit, (RateOptions{0.5, 7, true, 0, std::chrono::seconds(1)}));
  EXPECT_EQ(cluster.concurrency, (ConcurrencyOptions{5, 6, std::chrono::milliseconds(0)}));
  EXPECT_EQ(cluster.endpoint_concurrency, (ConcurrencyOptions{10'000'000, 1'000'000}));
  EXPECT_EQ(cluster.bounded_load, 1.25);
  const auto& route = result.config.routes.at(0);
  EXPECT_EQ(route.rate_limit, (RateOptions{1e7, 100, false, 1024}));
  EXPECT_EQ(route.client_rate_limit, (proxy::ClientRateOptions{{2, 3, true, 4}, "x-key", 16, proxy::Repeated::kLast}));
  EXPECT_EQ(result.config.concurrency, (ConcurrencyOptions{8, 9}));
}

TEST(Limits, AClientIsItsPeerUnlessSaidOtherwise) {
  for (const char* by : {"", ", by: peer"}) {
    const ParseResult result = Parse(Yaml("", std::string(", client_rate_limit: {rate: 1") + by + "}"), "f");
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result.config.routes[0].client_rate_limit.metadata.text(), "");
    EXPECT_EQ(result.config.routes[0].client_rate_limit.repeated, proxy::Repeated::kJoined);
  }
}

TEST(Limits, ARateOfZeroIsNone) {
  const ParseResult result =
      Parse(Yaml(", rate_limit: {rate: 0}, bounded_load: 0", ", client_rate_limit: {rate: 0}"), "f");
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result.config.clusters[0].rate_limit.enabled());
  EXPECT_FALSE(result.config.routes[0].client_rate_limit.rate.enabled());
}

TEST(Limits, ABurstOfOneIsFineWithoutCapped) {
  EXPECT_THAT(ErrorsOf(Yaml(", rate_limit: {rate: 1, burst: 1}", "")), ElementsAre());
  EXPECT_THAT(ErrorsOf(Yaml(", rate_limit: {rate: 1, burst: 2, capped: true}", "")), ElementsAre());
}

TEST(Limits, EachNonsensicalLimitIsOneErrorWithItsPlace) {
  const struct {
    std::string_view cluster, route, top;
    std::string error;
  } cases[] = {
      {", rate_limit: {rate: 0.0001}", "", "",
       "f:3:56: clusters[0].rate_limit.rate: \"0.0001\" is not 0 or a number in [0.001, 10000000]"},
      {", rate_limit: {rate: -1}", "", "", "is not 0 or a number"},
      {", rate_limit: {rate: inf}", "", "", "is not 0 or a number"},
      {", rate_limit: {rate: 10000001}", "", "", "is not 0 or a number"},
      {", rate_limit: {rate: 1, burst: 0}", "", "", "rate_limit.burst: \"0\" is not a whole number in [1, 10000000]"},
      {", rate_limit: {rate: 1, burst: 1, capped: true}", "", "",
       "clusters[0].rate_limit.burst: \"1\" with capped: a token comes"},
      {", rate_limit: {rate: 1, queue: 1000001}", "", "", "in [0, 1000000]"},
      {", rate_limit: {rat: 1}", "", "", "did you mean \"rate\"?"},
      {", rate_limit: 5", "", "", "a map (key: value) is allowed"},
      {", concurrency: {max: 10000001}", "", "",
       "clusters[0].concurrency.max: \"10000001\" is not a whole number in [0, 10000000]"},
      {", endpoint_concurrency: {maximum: 1}", "", "",
       "clusters[0].endpoint_concurrency.maximum: unknown key; allowed: max, queue, queue_time"},
      {", bounded_load: 1", "", "", "bounded_load: \"1\" is not 0 or a number in [1.01, 100]"},
      {", bounded_load: 2, policy: round_robin", "", "", "is only allowed with policy ring_hash"},
      {"", ", rate_limit: {rate: x}", "", "routes[0].rate_limit.rate"},
      {"", ", client_rate_limit: {burst: 5}", "", "routes[0].client_rate_limit.rate: is missing"},
      {"", ", client_rate_limit:", "", "routes[0].client_rate_limit.rate: is missing"},
      {"", ", client_rate_limit: {rate: 1, by: header}", "", "by: \"header\" is not one of: peer, {metadata: name}"},
      {"", ", client_rate_limit: {rate: 1, by: [a]}", "", "by: is not one of: peer, {metadata: name}"},
      {"", ", client_rate_limit: {rate: 1, by: {metadata: X}}", "", "by.metadata: \"X\" is not a metadata name"},
      {"", ", client_rate_limit: {rate: 1, by: {metadata: x, repeated: all}}", "",
       "by.repeated: \"all\" is not one of: joined, first, last"},
      {"", ", hash_by: {field: \"1\", repeated: last}", "", "hash_by.repeated: is only allowed together with metadata"},
      {"", ", client_rate_limit: {rate: 1, by: {}}", "", "by.metadata: is missing"},
      {"", ", client_rate_limit: {rate: 1, clients_max: 15}", "", "in [16, 1000000]"},
      {"", ", client_rate_limit: {rate: 1, capped: true, burst: 1}", "", "client_rate_limit.burst: \"1\" with capped"},
      {"", "", "concurrency: {queue: -1}", "f:6:22: concurrency.queue"},
      {"", "", "concurrency: {max: 1, queue_time: 2h}", "f:6:35: concurrency.queue_time"},
      {", rate_limit: {rate: 1, queue_time: 200}", "", "", "clusters[0].rate_limit.queue_time: \"200\""},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(ErrorsOf(Yaml(c.cluster, c.route, c.top)), ElementsAre(HasSubstr(c.error)));
  }
}

}  // namespace
}  // namespace sluice::config
