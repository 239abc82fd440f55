// When calls are tried again, in a configuration: methods become full paths, statuses bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config.h"
#include "unit/config/one_route.h"

namespace sluice::config {
namespace {

using proxy::RetryOptions;
using Methods = proxy::RetryOptions::Methods;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

RetryOptions RetryOf(const std::string& yaml) {
  const ParseResult result = Parse(yaml, "f");
  for (const ConfigError& error : result.errors) ADD_FAILURE() << error.ToString();
  return result.ok() ? result.config.routes.at(0).retry : RetryOptions();
}

TEST(Retry, EveryKeyReachesItsField) {
  const ParseResult result = Parse(
      "listeners: [{address: 127.0.0.1:1}]\n"
      "clusters: [{name: users, endpoints: [a:1], retry_budget: {ratio: 0.5, min_per_second: 7}}]\n"
      "routes: [{cluster: users, service: p.S, retry: {attempts: 5, buffer: 1KiB, methods: [Get, p.S/Find],\n"
      "  on: [UNAVAILABLE, ABORTED], backoff: {base: 2ms, max: 3s}, per_try_timeout: 4s}}]\n",
      "f");
  ASSERT_TRUE(result.ok()) << result.errors[0].ToString();
  RetryOptions expected;
  expected.attempts_max = 5;
  expected.buffer_bytes_max = 1024;
  expected.methods = Methods::kListed;
  expected.paths = {"/p.S/Find", "/p.S/Get"};
  expected.on = 1u << 14 | 1u << 10;
  expected.backoff_base = 2ms;
  expected.backoff_max = 3s;
  expected.per_try_timeout = 4s;
  EXPECT_EQ(result.config.routes.at(0).retry, expected);
  EXPECT_EQ(result.config.clusters.at(0).retry_budget, (upstream::RetryBudgetOptions{0.5, 7}));
}

TEST(Retry, WithoutADescriptorSetNoMethodIsDeclared) {
  const RetryOptions retry = RetryOf(OneRoute("service: p.Users"));
  EXPECT_EQ(retry, RetryOptions());
  EXPECT_EQ(retry.methods, Methods::kDeclared);
  EXPECT_THAT(retry.paths, IsEmpty());
  EXPECT_EQ(retry.on, 1u << 14);
}

TEST(Retry, DeclaredMethodsAreThoseOfTheDescriptorSetThatTheRouteTakes) {
  const std::vector<std::string> users = RetryOf(OneRoute("service: p.Users", true)).paths;
  const std::vector<std::string> all = RetryOf(OneRoute("prefix: /", true)).paths;
  EXPECT_FALSE(users.empty());
  EXPECT_LT(users.size(), all.size());
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  for (const std::string& path : users) EXPECT_TRUE(path.starts_with("/p.Users/")) << path;
  // A list that is a key's, or a word, is all there is.
  EXPECT_THAT(RetryOf(OneRoute("service: p.Users, retry: {methods: [Get]}", true)).paths, ElementsAre("/p.Users/Get"));
  EXPECT_THAT(RetryOf(OneRoute("service: p.Users, retry: {methods: []}", true)).paths, IsEmpty());
  EXPECT_THAT(RetryOf(OneRoute("service: p.Users, retry: {methods: all}", true)).paths, IsEmpty());
  EXPECT_EQ(RetryOf(OneRoute("service: p.Users, retry: {methods: none}", true)).methods, Methods::kNone);
  EXPECT_EQ(RetryOf(OneRoute("service: p.Users, retry: {methods: declared}", true)).paths, users);
}

TEST(Retry, TheRouteThatIsThereWithoutAnyHasThemToo) {
  const RetryOptions retry =
      RetryOf("listeners: [{address: 127.0.0.1:1}]\nclusters: [{name: users, endpoints: [a:1]}]\ndescriptor_set: " +
              DescriptorFile() + "\n");
  EXPECT_EQ(retry.paths, RetryOf(OneRoute("prefix: /", true)).paths);
}

TEST(Retry, NoStatusAtAllMayBeListed) { EXPECT_EQ(RetryOf(OneRoute("retry: {on: []}")).on, 0u); }

TEST(Hedge, HasADelayOrFindsIt) {
  const auto hedge = [](std::string_view route) {
    const ParseResult result = Parse(OneRoute(route), "f");
    EXPECT_TRUE(result.ok());
    return result.ok() ? result.config.routes.at(0).hedge : proxy::HedgeOptions();
  };
  EXPECT_EQ(hedge("service: p.S"), (proxy::HedgeOptions{0ms, 0}));
  EXPECT_EQ(hedge("hedge: {delay: 20ms}"), (proxy::HedgeOptions{20ms, 1}));
  EXPECT_EQ(hedge("hedge: {delay: auto, max: 1}"), (proxy::HedgeOptions{0ms, 1}));
  EXPECT_TRUE(hedge("hedge: {delay: auto}").automatic());
  EXPECT_FALSE(hedge("hedge: {delay: auto, max: 0}").automatic());
}

TEST(Retry, MistakesAreErrorsThatSayWhatIsAllowed) {
  struct Case {
    const char* route;
    bool descriptors;
    const char* error;
  };
  for (const auto& [route, descriptors, error] : {
           Case{"retry: {methods: declared}", false, "retry.methods: declared needs descriptor_set"},
           Case{"retry: {methods: some}", false, "is not one of: declared, all, none"},
           Case{"retry: {methods: [Get]}", false, "of which service? The route names none"},
           Case{"service: p.S, retry: {methods: [q.T/Get]}", false, "is not a method that the route takes"},
           Case{"service: p.S, retry: {methods: [Get, p.S/Get]}", false,
                "retry.methods[1]: \"/p.S/Get\" is there twice"},
           Case{"service: p.Users, retry: {methods: [Gett]}", true, "did you mean \"Get\"?"},
           Case{"retry: {on: [UNAVAILABEL]}", false, "did you mean \"UNAVAILABLE\"?"},
           Case{"retry: {on: [OK]}", false, "OK is no failure"},
           Case{"retry: {on: [ABORTED, ABORTED]}", false, "ABORTED is there twice"},
           Case{"retry: {backoff: {base: 2s}}", false, "retry.backoff.base: base 2s is above max 1s"},
           Case{"retry: {backoff: {base: 2s, max: 1500ms}}", false, "retry.backoff.max: base 2s is above max 1500ms"},
           Case{"retry: {backoff: {base: 0}}", false, "retry.backoff.base"},
           Case{"retry: {per_try_timeout: 25h}", false, "retry.per_try_timeout"},
           Case{"retry: {budget: 3}", false, "budget"},
           Case{"hedge: {max: 1}", false, "hedge.delay"},
           Case{"hedge: {delay: 0}", false, "hedge.delay"},
           Case{"hedge: {delay: soon}", false, "hedge.delay"},
           Case{"hedge: {delay: auto, max: 2}", false, "hedge.max"},
       }) {
    EXPECT_THAT(ErrorsOf(OneRoute(route, descriptors)), ElementsAre(HasSubstr(error))) << route;
  }
}

}  // namespace
}  // namespace sluice::config
