// What may stand in `rewrite` of a route.
#include <gmock/gmock.h>

#include <string>

#include "config/config.h"
#include "config/dump.h"
#include "unit/config/one_route.h"

namespace sluice::config {
namespace {

using proxy::FieldRewrite;
using testing::HasSubstr;
using testing::Not;

std::string ErrorOf(const std::string& rewrite) {
  const ParseResult result = Parse(OneRoute("rewrite: " + rewrite), "f");
  return result.errors.size() == 1 ? result.errors[0].path + ": " + result.errors[0].message
                                   : std::to_string(result.errors.size()) + " errors";
}

TEST(Rewrite, SaysWhatIsRemovedSetAndAdded) {
  const ParseResult result = Parse(
      OneRoute(
          "rewrite: {authority: \"users.internal:50051\", request: {remove: [x-debug], "
          "set: [{name: x-tenant, value: gold}, {name: k-bin, value: AAE}], add: [{name: x-a, value: \"1\"}, {name: "
          "x-a, value: \"2\"}]}, response: {remove: [server], set: [{name: cache-control, value: no-store}]}}"),
      "f");
  ASSERT_TRUE(result.ok()) << result.errors[0].ToString();
  const proxy::RewriteOptions& rewrite = result.config.routes[0].rewrite;
  EXPECT_EQ(rewrite.authority, "users.internal:50051");
  EXPECT_EQ(rewrite.request,
            (FieldRewrite{{"x-debug"}, {{"x-tenant", "gold"}, {"k-bin", "AAE"}}, {{"x-a", "1"}, {"x-a", "2"}}}));
  EXPECT_EQ(rewrite.response, (FieldRewrite{{"server"}, {{"cache-control", "no-store"}}, {}}));
  EXPECT_EQ(Parse(Dump(result.config), "dump").config, result.config);
  EXPECT_FALSE(Parse(OneRoute("rewrite: {}"), "f").config.routes[0].rewrite.enabled());
}

TEST(Rewrite, NamesThatMeanSomethingAreNotRewritten) {
  for (const char* name :
       {"grpc-timeout", "grpc-status", "te", "host", "content-type", "connection", "transfer-encoding", "sluice-reason",
        "x-forwarded-for", "via", "traceparent", "x-request-id"}) {
    for (const char* of : {"request", "response"}) {
      const std::string said = std::string("\"") + name +
                               "\" is a part of HTTP/2 or gRPC, or only the proxy says it, and "
                               "cannot be rewritten";
      const std::string at = std::string("routes[0].rewrite.") + of;
      EXPECT_EQ(ErrorOf(std::string("{") + of + ": {remove: [" + name + "]}}"), at + ".remove[0]: " + said);
      EXPECT_EQ(ErrorOf(std::string("{") + of + ": {set: [{name: " + name + ", value: a}]}}"),
                at + ".set[0].name: " + said);
      EXPECT_EQ(ErrorOf(std::string("{") + of + ": {add: [{name: " + name + ", value: a}]}}"),
                at + ".add[0].name: " + said);
    }
  }
  EXPECT_THAT(ErrorOf("{request: {remove: [\":path\"]}}"), HasSubstr("is not a metadata name"));
  EXPECT_THAT(ErrorOf("{request: {remove: [X-A]}}"), HasSubstr("is not a metadata name"));
}

TEST(Rewrite, ValuesAreLegal) {
  const auto value = [](const std::string& name, const std::string& text) {
    return ErrorOf("{request: {set: [{name: " + name + ", value: \"" + text + "\"}]}}");
  };
  for (const char* bad : {"", " a", "a ", "\\x01", "\\u00e4"})
    EXPECT_THAT(value("x-a", bad), HasSubstr("is not printable ASCII without blanks at its ends")) << bad;
  for (const char* bad : {"", "A", "AAA-", "A B=", "AAAA="})
    EXPECT_THAT(value("a-bin", bad), HasSubstr("is not Base64")) << bad;
  for (const char* good : {"AA", "AA==", "AAE", "AAE=", "AAEB"}) EXPECT_EQ(value("a-bin", good), "0 errors") << good;
  EXPECT_EQ(ErrorOf("{request: {set: [{name: a, value: x}, {name: a, value: y}]}}"),
            "routes[0].rewrite.request.set[1].name: \"a\" is there twice; `add` is for more than one value");
  EXPECT_EQ(ErrorOf("{authority: a/b}"),
            "routes[0].rewrite.authority: \"a/b\" is not an authority like users.internal or 10.0.0.1:50051");
  EXPECT_THAT(ErrorOf("{authority: user@b}"), HasSubstr("is not an authority"));
}

TEST(Rewrite, WhatATokenClaimsIsNotSaidByTheConfiguration) {
  const std::string jwt =
      "jwt: [{name: p, jwks_file: k, issuer: i, forward_claims: [{claim: sub, metadata: x-user}]}]\n";
  for (const char* rewrite : {"{request: {set: [{name: x-user, value: root}]}}", "{request: {remove: [x-user]}}"}) {
    const auto errors = ErrorsOf(jwt + OneRoute(std::string("rewrite: ") + rewrite));
    ASSERT_EQ(errors.size(), 1u);
    EXPECT_THAT(errors[0], HasSubstr("\"x-user\" is metadata of a claim of \"p\", which only its gate may say"));
  }
}

TEST(Rewrite, CredentialsAreHiddenWhereSecretsAre) {
  const Config config =
      Parse(OneRoute(
                "rewrite: {request: {set: [{name: authorization, value: Bearer s3cret}, {name: x-a, value: shown}]}}"),
            "f")
          .config;
  EXPECT_THAT(Dump(config), HasSubstr("Bearer s3cret"));
  const std::string hidden = Dump(config, {"", true});
  EXPECT_THAT(hidden, Not(HasSubstr("s3cret")));
  EXPECT_THAT(hidden, HasSubstr("shown"));
}

}  // namespace
}  // namespace sluice::config
