// Providers of JWTs and what routes ask of them, as the configuration says it.
#include <gtest/gtest.h>

#include <string>

#include "config/config.h"
#include "config/dump.h"

namespace sluice::config {
namespace {

constexpr char kProvider[] = "name: p, jwks_file: keys.json, issuer: me";

ParseResult With(const std::string& provider, const std::string& route = "jwt: {provider: p}") {
  return Parse(
      "listeners: [{address: \"127.0.0.1:1\"}]\nclusters: [{name: c, endpoints: [\"127.0.0.1:2\"]}]\n"
      "jwt: [{" +
          provider + "}]\nroutes: [{cluster: c, " + route + "}]\n",
      "dir/a.yaml");
}

std::string ErrorOf(const ParseResult& result) { return result.ok() ? "none" : result.errors[0].ToString(); }
std::string Wrong(const std::string& more) { return ErrorOf(With(std::string(kProvider) + ", " + more)); }

TEST(JwtConfig, HasDefaults) {
  const ParseResult result = With(kProvider);
  ASSERT_TRUE(result.ok()) << ErrorOf(result);
  proxy::JwtProviderOptions wanted;
  wanted.name = "p";
  wanted.jwks_file = "dir/keys.json";
  wanted.issuer = "me";
  EXPECT_EQ(result.config.jwt, std::vector<proxy::JwtProviderOptions>{wanted});
  EXPECT_EQ(wanted.algorithms, proxy::JwtProviderOptions::kAll);
  EXPECT_EQ(result.config.routes[0].jwt.provider, "p");
  EXPECT_TRUE(result.config.routes[0].jwt.required);
  ASSERT_EQ(result.named.size(), 1u);
  EXPECT_EQ(result.named[0].file, "dir/keys.json");
}

TEST(JwtConfig, IsReadWhole) {
  const ParseResult result =
      With(std::string(kProvider) +
               ", audiences: [a, b], algorithms: [EdDSA, ES256], leeway: 5m, forward_token: false, "
               "forward_claims: [{claim: sub, metadata: x-user}, {claim: \"urn:t\", metadata: x-t}], "
               "tokens_max: 7, token_bytes_max: 4KiB",
           "jwt: {provider: p, required: false}");
  ASSERT_TRUE(result.ok()) << ErrorOf(result);
  const proxy::JwtProviderOptions& provider = result.config.jwt[0];
  EXPECT_EQ(provider.audiences, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(provider.algorithms, proxy::JwtProviderOptions::kEs256 | proxy::JwtProviderOptions::kEdDsa);
  EXPECT_EQ(provider.leeway, std::chrono::minutes(5));
  EXPECT_FALSE(provider.forward_token);
  EXPECT_EQ(provider.forward_claims, (std::vector<proxy::JwtClaim>{{"sub", "x-user"}, {"urn:t", "x-t"}}));
  EXPECT_EQ(provider.tokens_max, 7u);
  EXPECT_EQ(provider.token_bytes_max, 4096u);
  EXPECT_FALSE(result.config.routes[0].jwt.required);
  const ParseResult again = Parse(Dump(result.config, {}), "dumped.yaml");
  ASSERT_TRUE(again.ok()) << ErrorOf(again);
  EXPECT_EQ(again.config.jwt[0].algorithms, provider.algorithms);
  EXPECT_EQ(again.config.jwt[0].forward_claims, provider.forward_claims);
  EXPECT_EQ(again.config.routes[0].jwt, result.config.routes[0].jwt);
}

TEST(JwtConfig, MistakesAreNamed) {
  const auto has = [](const std::string& error, const std::string& part) {
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  has(ErrorOf(With("name: p, issuer: me")), "jwt[0].jwks_file");
  has(ErrorOf(With("name: p, jwks_file: a")), "jwt[0].issuer");
  has(ErrorOf(With("jwks_file: a, issuer: me")), "jwt[0].name");
  has(ErrorOf(With("name: p, jwks_file: a, issuer: \"\"")), "jwt[0].issuer: is empty");
  has(Wrong("algorithms: [HS256]"), "\"HS256\" is not allowed; allowed: RS256, ES256, EdDSA");
  has(Wrong("algorithms: [none]"), "\"none\" is not allowed");
  has(Wrong("algorithms: []"), "is empty");
  has(Wrong("algorithms: [RS256, RS256]"), "stands twice");
  has(Wrong("audiences: []"), "is empty");
  has(Wrong("leeway: 6m"), "is not a time in [0, 5m]");
  has(Wrong("forward_claims: [{claim: a, metadata: X-User}]"), "is not a metadata name");
  has(Wrong("forward_claims: [{claim: a, metadata: x-u}, {claim: b, metadata: x-u}]"), "is that of another claim");
  has(Wrong("forward_claims: [{claim: \"\", metadata: x-u}]"), "is empty");
  for (const char* name : {"authorization", "host", "te", "cookie", "user-agent", "via", "content-type", "grpc-timeout",
                           "grpc-x", "sluice-reason", "x-request-id", "x-forwarded-for", "x-forwarded-client-cert",
                           "traceparent", "cache-control", "x-user-bin"})
    has(Wrong("forward_claims: [{claim: a, metadata: " + std::string(name) + "}]"), "has a meaning of its own");
  has(ErrorOf(With(kProvider, "jwt: {provider: q}")), "routes[0].jwt.provider: no provider of jwt is named \"q\"");
  has(ErrorOf(With(kProvider, "jwt: {required: true}")), "routes[0].jwt.provider");
  has(ErrorOf(With(std::string(kProvider) + "}, {" + kProvider)), "is also that of jwt[0]");
}

// It would be removed as often as a route is chosen: also after the gate has set it.
TEST(JwtConfig, AClaimIsNotRemovedByForwarding) {
  const std::string more = "forwarding: {remove: [x-user]}\n";
  const auto with = [&](const std::string& claims) {
    return Parse(
        "listeners: [{address: \"127.0.0.1:1\"}]\nclusters: [{name: c, endpoints: [\"127.0.0.1:2\"]}]\n"
        "jwt: [{name: p, jwks_file: keys.json, issuer: me, forward_claims: [" +
            claims + "]}]\n" + more,
        "a.yaml");
  };
  EXPECT_TRUE(with("{claim: sub, metadata: x-sub}").ok());
  EXPECT_NE(ErrorOf(with("{claim: sub, metadata: x-user}")).find("\"x-user\" is metadata of a claim of \"p\""),
            std::string::npos);
}

// The route is chosen by what the client says, before the gate removes that.
TEST(JwtConfig, ARouteIsNotChosenByAClaim) {
  const std::string route = "jwt: {provider: p}, metadata: [{name: x-role, exact: admin}]";
  EXPECT_TRUE(With(kProvider, route).ok());
  const std::string error =
      ErrorOf(With(std::string(kProvider) + ", forward_claims: [{claim: role, metadata: x-role}]", route));
  EXPECT_NE(error.find("\"x-role\" is metadata of a claim of"), std::string::npos) << error;
  // Nor one without the gate, which a call with the claim would come to when it has waited.
  const std::string other = ErrorOf(With(std::string(kProvider) + ", forward_claims: [{claim: role, metadata: x-role}]",
                                         "metadata: [{name: x-role, exact: admin}]"));
  EXPECT_NE(other.find("routes[0].metadata: \"x-role\" is metadata of a claim of"), std::string::npos) << other;
  const std::string token = "jwt: {provider: p}, metadata: [{name: authorization, present: true}]";
  EXPECT_TRUE(With(kProvider, token).ok());
  EXPECT_NE(ErrorOf(With(std::string(kProvider) + ", forward_token: false", token)).find("takes authorization away"),
            std::string::npos);
}

}  // namespace
}  // namespace sluice::config
