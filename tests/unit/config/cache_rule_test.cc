// The cache in a configuration: methods become full paths; a rule that no route could apply is an error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config.h"
#include "unit/config/one_route.h"

namespace sluice::config {
namespace {

using proxy::CachedMethod;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

std::vector<CachedMethod> MethodsOf(const std::string& yaml) {
  const ParseResult result = Parse(yaml, "f");
  for (const ConfigError& error : result.errors) ADD_FAILURE() << error.ToString();
  return result.ok() ? result.config.routes.at(0).cache.methods : std::vector<CachedMethod>();
}

TEST(Cache, EveryKeyReachesItsField) {
  const ParseResult result =
      Parse(OneRoute(R"(service: p.S, cache: {ttl: 10s, methods: [Get], vary: [x-b, authorization], shared: true,
    errors: [NOT_FOUND, CANCELLED], error_ttl: 2s, stale_while_revalidate: 3s, stale_if_unavailable: 4s, fetch_timeout: 5s})") +
                R"(cache: {capacity: 1024GiB, entry_max: 64MiB, request_max: 0, entry_expected: 256, strict: true,
  doorkeeper: true, fetches_max: 1})",
            "f");
  ASSERT_TRUE(result.ok()) << result.errors[0].ToString();
  const proxy::CacheRule& rule = result.config.routes.at(0).cache;
  EXPECT_THAT(rule.methods, ElementsAre(CachedMethod{"/p.S/Get", 10s}));
  EXPECT_THAT(rule.vary, ElementsAre("authorization", "x-b"));
  EXPECT_TRUE(rule.shared);
  EXPECT_THAT(rule.errors, ElementsAre(1, 5));
  EXPECT_EQ(rule.error_ttl, 2s);
  EXPECT_EQ(rule.stale_while_revalidate, 3s);
  EXPECT_EQ(rule.stale_if_unavailable, 4s);
  EXPECT_EQ(rule.fetch_timeout, 5s);
  EXPECT_EQ(result.config.cache, (proxy::CacheOptions{size_t{1} << 40, 64 << 20, 0, 256, true, true, 1}));
}

// One caller must not get the answer of another.
TEST(Cache, WhatTellsCallersApartElsewhereMustBeInVary) {
  const std::string by = "service: p.S, client_rate_limit: {by: {metadata: x-api-key}, rate: 1}, ";
  EXPECT_THAT(ErrorsOf(OneRoute(by + "cache: {ttl: 1s, methods: [Get], vary: [x-a]}")),
              ElementsAre(HasSubstr("routes[0].cache.vary: lacks \"x-api-key\", by which client_rate_limit tells")));
  EXPECT_THAT(ErrorsOf(OneRoute(by + "hash_by: {metadata: x-user}, cache: {ttl: 1s, methods: [Get]}")),
              ElementsAre(HasSubstr("lacks \"x-user\", by which hash_by"), HasSubstr("lacks \"x-api-key\"")));
  EXPECT_THAT(ErrorsOf(OneRoute(by + "hash_by: {metadata: x-api-key}, cache: {ttl: 1s, methods: [Get]}")),
              ElementsAre(HasSubstr("x-api-key")));
  EXPECT_THAT(ErrorsOf(OneRoute(by + "cache: {ttl: 1s, methods: [Get], vary: [x-api-key]}")), ElementsAre());
  EXPECT_THAT(ErrorsOf(OneRoute(by + "cache: {ttl: 1s, methods: [Get], shared: true}")), ElementsAre());
  EXPECT_THAT(ErrorsOf(OneRoute(by + "hash_by: {metadata: x-user}")), ElementsAre()) << "nothing is cached";
  const std::string routed = "service: p.S, metadata: [{name: x-tenant, exact: eu}], ";
  EXPECT_THAT(ErrorsOf(OneRoute(routed + "cache: {ttl: 1s, methods: [Get]}")),
              ElementsAre(HasSubstr("lacks \"x-tenant\", by which metadata tells")))
      << "another route answers others";
  EXPECT_THAT(ErrorsOf(OneRoute(routed + "cache: {ttl: 1s, methods: [Get], vary: [x-tenant]}")), ElementsAre());
}

TEST(Cache, ARouteWithoutTheSectionCachesNothing) {
  const ParseResult result = Parse(OneRoute("service: p.S"), "f");
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result.config.routes[0].cache.enabled());
}

TEST(Cache, MethodsAreOfTheRoutesServiceOrFull) {
  EXPECT_THAT(MethodsOf(OneRoute("service: p.S, cache: {ttl: 10s, methods: [List, p.S/Get, {name: A, ttl: 1s}]}")),
              ElementsAre(CachedMethod{"/p.S/A", 1s}, CachedMethod{"/p.S/Get", 10s}, CachedMethod{"/p.S/List", 10s}));
  EXPECT_THAT(MethodsOf(OneRoute("prefix: /p., cache: {ttl: 1s, methods: [p.S/Get, p.T/Get]}")),
              ElementsAre(CachedMethod{"/p.S/Get", 1s}, CachedMethod{"/p.T/Get", 1s}));
  EXPECT_THAT(MethodsOf(OneRoute("cache: {ttl: 1s, methods: [p.S/Get]}")), ElementsAre(CachedMethod{"/p.S/Get", 1s}));
}

TEST(Cache, WithoutMethodsItIsTheRoutesOwn) {
  EXPECT_THAT(MethodsOf(OneRoute("service: p.S, method: Get, cache: {ttl: 1s}")),
              ElementsAre(CachedMethod{"/p.S/Get", 1s}));
}

TEST(Cache, NoSideEffectsIsWhatTheDescriptorSetDeclares) {
  const std::vector<CachedMethod> both = {{"/p.Users/Get", 1s}, {"/p.Users/List", 1s}};  // Watch is streaming
  EXPECT_EQ(MethodsOf(OneRoute("service: p.Users, cache: {ttl: 1s, methods: no_side_effects}", true)), both);
  EXPECT_EQ(MethodsOf(OneRoute("cache: {ttl: 1s, methods: no_side_effects}", true)), both);
  EXPECT_THAT(MethodsOf(OneRoute("prefix: /p.Users/L, cache: {ttl: 1s, methods: no_side_effects}", true)),
              ElementsAre(CachedMethod{"/p.Users/List", 1s}));
  EXPECT_THAT(MethodsOf(OneRoute("service: p.Users, method: Get, cache: {ttl: 1s, methods: no_side_effects}", true)),
              ElementsAre(CachedMethod{"/p.Users/Get", 1s}));
}

TEST(Cache, AServiceThatTheDescriptorSetLacksIsTakenAsWritten) {
  EXPECT_THAT(MethodsOf(OneRoute("service: q.S, cache: {ttl: 1s, methods: [Get]}", true)),
              ElementsAre(CachedMethod{"/q.S/Get", 1s}));
}

TEST(Cache, EachNonsensicalRuleIsOneErrorWithItsPlace) {
  const struct {
    std::string_view route;
    std::string error;
    bool descriptors = false;
  } cases[] = {
      {"service: p.S, method: Get, cache: {}", "f:4:56: routes[0].cache.ttl: is missing"},
      {"service: p.S, method: Get, cache: {ttl: 0}", "is not a time in [1ms, 8760h]"},
      {"service: p.S, cache: {ttl: 1s}", "routes[0].cache.methods: is missing: the route names no method"},
      {"cache: {ttl: 1s}", "cache.methods: is missing: the route names no method"},
      {"service: p.S, cache: {ttl: 1s, methods: []}", "cache.methods: is empty"},
      {"service: p.S, cache: {ttl: 1s, methods:}", "cache.methods: is empty"},
      {"service: p.S, cache: {ttl: 1s, methods: all}", "\"all\" is not a list of methods or the word no_side_effects"},
      {"service: p.S, cache: {ttl: 1s, methods: {a: 1}}", "a map; a list is allowed"},
      {"service: p.S, cache: {ttl: 1s, methods: [Get, p.S/Get]}",
       "routes[0].cache.methods[1]: \"/p.S/Get\" is also routes[0].cache.methods[0]"},
      {"service: p.S, cache: {ttl: 1s, methods: [p.T/Get]}",
       "methods[0]: \"/p.T/Get\" is not a method that the route takes"},
      {"service: p.S, method: Get, cache: {ttl: 1s, methods: [List]}",
       "\"/p.S/List\" is not a method that the route takes"},
      {"prefix: /p.S/, cache: {ttl: 1s, methods: [p.T/Get]}", "\"/p.T/Get\" is not a method that the route takes"},
      {"prefix: /p.S/, cache: {ttl: 1s, methods: [Get]}", "\"Get\": of which service?"},
      {"service: p.S, cache: {ttl: 1s, methods: [/p.S/Get]}", "is not a method; allowed: Get, or pkg.Service/Get"},
      {"service: p.S, cache: {ttl: 1s, methods: [p.S/]}", "is not a method"},
      {"service: p.S, cache: {ttl: 1s, methods: [a/b/c]}", "is not a method"},
      {"service: p.S, cache: {ttl: 1s, methods: ['']}", "is not a method"},
      {"service: p.S, cache: {ttl: 1s, methods: [{ttl: 1s}]}", "cache.methods[0].name: is missing"},
      {"service: p.S, cache: {ttl: 1s, methods: [{name: a b}]}", "cache.methods[0].name: \"a b\" is not a method"},
      {"service: p.S, cache: {ttl: 1s, methods: [{name: A, ttl: 0}]}", "methods[0].ttl: \"0\" is not a time in [1ms"},
      {"service: p.S, cache: {ttl: 1s, methods: no_side_effects}", "no_side_effects needs descriptor_set"},
      {"service: p.Orders, cache: {ttl: 1s, methods: no_side_effects}", "no unary method that the route takes has",
       true},
      {"service: p.Users, cache: {ttl: 1s, methods: [Watch]}", "\"/p.Users/Watch\" is a streaming method; only unary",
       true},
      {"service: p.Users, method: Upload, cache: {ttl: 1s}",
       "routes[0].cache: \"/p.Users/Upload\" is a streaming method", true},
      {"service: p.Users, cache: {ttl: 1s, methods: [Gett]}", "no method \"Gett\" of p.Users; did you mean \"Get\"?",
       true},
      {"service: p.S, method: G, cache: {ttl: 1s, vary: [A]}", "cache.vary[0]: \"A\" is not a metadata name"},
      {"service: p.S, method: G, cache: {ttl: 1s, vary: [a, a]}", "cache.vary[1]: \"a\" is there twice"},
      {"service: p.S, method: G, cache: {ttl: 1s, errors: [OK]}", "cache.errors[0]: OK is no error"},
      {"service: p.S, method: G, cache: {ttl: 1s, errors: [NOTFOUND]}", "did you mean \"NOT_FOUND\"?"},
      {"service: p.S, method: G, cache: {ttl: 1s, errors: [5]}", "is not a gRPC code; allowed: CANCELLED, UNKNOWN"},
      {"service: p.S, method: G, cache: {ttl: 1s, errors: [ABORTED, ABORTED]}", "ABORTED is there twice"},
      {"service: p.S, method: G, cache: {ttl: 1s, fetch_timeout: 0}", "is not a time in [1ms, 24h]"},
      {"service: p.S, method: G, cache: {ttl: 1s, stale: 1s}", "cache.stale: unknown key"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(ErrorsOf(OneRoute(c.route, c.descriptors)), ElementsAre(HasSubstr(c.error))) << c.route;
  }
}

TEST(Cache, ItsSizesFitEachOther) {
  const auto with = [](std::string_view cache) {
    return ErrorsOf(OneRoute("service: p.S") + "cache: " + std::string(cache) + "\n");
  };
  EXPECT_THAT(with("{capacity: 1048575}"), ElementsAre(HasSubstr("is not a size in [1MiB, 1024GiB]")));
  EXPECT_THAT(with("{capacity: 1MiB, entry_max: 2MiB}"),
              ElementsAre(HasSubstr("cache.entry_max: 2MiB is above capacity 1MiB")));
  EXPECT_THAT(with("{entry_max: 2KiB}"), ElementsAre(HasSubstr("cache.entry_expected: 4KiB is above entry_max 2KiB")));
  EXPECT_THAT(with("{fetches_max: 0}"), ElementsAre(HasSubstr("in [1, 1000000]")));
}

}  // namespace
}  // namespace sluice::config
