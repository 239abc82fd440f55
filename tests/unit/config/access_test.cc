// Access rules, listeners of routes and what is kept from clients: what may stand there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/config/one_route.h"

namespace sluice::config {
namespace {

using proxy::AccessRule;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kListeners = R"(
listeners:
  - {name: inside, address: 127.0.0.1:1, tls: {certificate: a.pem, key: a.key, client_ca: ca.pem}}
  - {name: outside, address: 127.0.0.1:2}
clusters: [{name: users, endpoints: [a:1]}]
)";

std::string Routes(const std::string& routes) { return std::string(kListeners) + "routes:\n" + routes; }

TEST(AccessConfig, RulesAreReadInOrder) {
  const ParseResult result = Parse(Routes(R"(
  - cluster: users
    listeners: [inside]
    access:
      - {action: deny, metadata: [{name: x-debug, present: true}], status: NOT_FOUND, message: "not here"}
      - {action: allow, clients: ["spiffe://corp/*", CN=old]}
      - {action: deny}
)"),
                                   "f");
  ASSERT_TRUE(result.ok()) << result.errors[0].ToString();
  const proxy::RouteOptions& route = result.config.routes[0];
  EXPECT_THAT(route.listeners, ElementsAre("inside"));
  ASSERT_EQ(route.access.size(), 3u);
  EXPECT_EQ(route.access[0].action, AccessRule::Action::kDeny);
  EXPECT_EQ(route.access[0].status, 5);
  EXPECT_EQ(route.access[0].message, "not here");
  EXPECT_EQ(route.access[0].metadata[0].name, "x-debug");
  EXPECT_EQ(route.access[1].action, AccessRule::Action::kAllow);
  EXPECT_THAT(route.access[1].clients, ElementsAre("spiffe://corp/*", "CN=old"));
  EXPECT_EQ(route.access[2].status, 7);
}

TEST(AccessConfig, MistakesHaveAPlaceAndSayWhatIsAllowed) {
  const auto errors = [](const std::string& keys) { return ErrorsOf(Routes("  - {cluster: users, " + keys + "}\n")); };
  EXPECT_THAT(errors("access: []"), ElementsAre(HasSubstr("routes[0].access: is empty")));
  EXPECT_THAT(errors("access: [{clients: [a.example.com]}]"),
              ElementsAre(HasSubstr("routes[0].access[0].action: is missing")));
  EXPECT_THAT(errors("access: [{action: maybe}]"), ElementsAre(HasSubstr("allow, deny")));
  EXPECT_THAT(errors("access: [{action: allow, status: ABORTED}]"),
              ElementsAre(HasSubstr("access[0].status: goes with action: deny only")));
  EXPECT_THAT(errors("access: [{action: deny, status: OK}]"),
              ElementsAre(HasSubstr("is not a gRPC code other than OK")));
  EXPECT_THAT(errors("access: [{action: allow, clients: ['a*']}]"), ElementsAre(HasSubstr("access[0].clients[0]")));
  EXPECT_THAT(errors("access: [{action: allow, clients: []}]"), ElementsAre(HasSubstr("access[0].clients: is empty")));
  EXPECT_THAT(errors("access: [{action: deny, message: " + std::string(257, 'x') + "}]"),
              ElementsAre(HasSubstr("at most 256")));
  EXPECT_THAT(errors("access: [{action: allow}, {action: deny}]"), ElementsAre(HasSubstr("access[1]: is never asked")));
  EXPECT_THAT(errors("listeners: [outside], access: [{action: allow, clients: [a.example.com]}]"),
              ElementsAre(HasSubstr("no listener of the route asks clients for certificates")));
  EXPECT_THAT(errors("listeners: [nowhere]"), ElementsAre(HasSubstr("there are: inside, outside")));
  EXPECT_THAT(errors("listeners: []"), ElementsAre(HasSubstr("routes[0].listeners: is empty")));
  EXPECT_THAT(errors("listeners: [inside, inside]"), ElementsAre(HasSubstr("is there twice")));
}

TEST(AccessConfig, RulesThatRefuseEveryCallAreAWarningUnlessTheySaySo) {
  const auto warnings = [](const std::string& rules) {
    std::vector<std::string> out;
    const ParseResult result = Parse(Routes("  - {cluster: users, access: " + rules + "}\n"), "f");
    EXPECT_TRUE(result.ok());
    for (const ConfigError& warning : result.warnings) {
      if (warning.path.find("access") != std::string::npos) out.push_back(warning.ToString());
    }
    return out;
  };
  EXPECT_THAT(warnings("[{action: deny, metadata: [{name: x, present: true}]}]"),
              ElementsAre(HasSubstr("has no rule that allows")));
  EXPECT_THAT(warnings("[{action: deny}]"), IsEmpty());
  EXPECT_THAT(warnings("[{action: deny, metadata: [{name: x, present: true}]}, {action: allow}]"), IsEmpty());
}

TEST(AccessConfig, ACatchAllBehindAGuardIsAWarningWhereAnyPathIsTaken) {
  const auto warnings = [](const std::string& paths, const std::string& routes) {
    std::vector<std::string> out;
    const ParseResult result = Parse("listeners: [{address: '127.0.0.1:1', name: l, paths: " + paths +
                                         "}]\nclusters: [{name: users, endpoints: ['a:1']}]\nroutes:\n" + routes,
                                     "f");
    EXPECT_TRUE(result.ok());
    for (const ConfigError& warning : result.warnings) {
      if (warning.path.find("routes") != std::string::npos) out.push_back(warning.ToString());
    }
    return out;
  };
  const std::string guard = "  - {service: a.B, method: C, name: g, cluster: users, access: [{action: deny}]}\n";
  EXPECT_THAT(warnings("any", guard + "  - {cluster: users}\n"),
              ElementsAre(HasSubstr("all that route g does not guard")));
  EXPECT_THAT(warnings("any", guard + "  - {service: a.B, cluster: users}\n"), ElementsAre(HasSubstr("routes[1]")));
  EXPECT_THAT(warnings("any", guard + "  - {service: a.C, cluster: users}\n"), IsEmpty());
  EXPECT_THAT(warnings("any", guard + "  - {cluster: users, access: [{action: deny}]}\n"), IsEmpty());
  EXPECT_THAT(warnings("grpc", guard + "  - {cluster: users}\n"), IsEmpty());
}

TEST(AccessConfig, TrustedProxiesAreNamed) {
  const auto errors = [](const std::string& more, const std::string& tls = "") {
    return ErrorsOf("listeners: [{address: '127.0.0.1:1', " + tls + "trusted_proxies: {" + more +
                    "}}]\nclusters: [{name: users, endpoints: ['a:1']}]\n");
  };
  EXPECT_THAT(errors("hops: 1, addresses: [10.0.0.0/8, 'fd00::/8', unix]"), IsEmpty());
  EXPECT_THAT(errors("hops: 1"), ElementsAre(HasSubstr("must say which peers are these proxies")));
  EXPECT_THAT(errors("addresses: [10.0.0.0/8]"), ElementsAre(HasSubstr("hops")));
  EXPECT_THAT(errors("hops: 0, addresses: [10.0.0.0/8]"), ElementsAre(HasSubstr("hops")));
  EXPECT_THAT(errors("hops: 1, addresses: [10.0.0.1/8]"),
              ElementsAre(HasSubstr("trusted_proxies.addresses[0]: 10.0.0.1/8 has bits behind its prefix")));
  EXPECT_THAT(errors("hops: 1, names: [p.example.com]"), ElementsAre(HasSubstr("tls.client_ca")));
  EXPECT_THAT(ErrorsOf("listeners: [{address: '127.0.0.1:1'}]\nclusters: [{name: users, endpoints: ['a:1']}]\n"
                       "forwarding: {x_forwarded: true, trusted_hops: 1}\n"),
              ElementsAre(HasSubstr("listeners[].trusted_proxies: {hops: 1, addresses: [10.0.0.0/8]}")));
}

TEST(AccessConfig, ARouteOfOneListenerHidesNoneOfAnother) {
  EXPECT_THAT(ErrorsOf(Routes("  - {cluster: users, listeners: [inside]}\n  - {cluster: users}\n")), IsEmpty());
  EXPECT_THAT(
      ErrorsOf(Routes("  - {cluster: users, listeners: [inside]}\n  - {cluster: users, listeners: [outside]}\n")),
      IsEmpty());
  EXPECT_THAT(ErrorsOf(Routes("  - {cluster: users, listeners: [outside, inside]}\n"
                              "  - {cluster: users, listeners: [inside], prefix: /a}\n")),
              ElementsAre(HasSubstr("never takes a call")));
}

TEST(AccessConfig, FieldsThatClientsMayNotSetAreMetadata) {
  const auto errors = [](const std::string& forwarding, const std::string& route = "") {
    return ErrorsOf(Routes("  - {cluster: users" + route + "}\n") + "forwarding: " + forwarding + "\n");
  };
  EXPECT_THAT(errors("{client_cert: true, remove: [x-user, x-role]}"), IsEmpty());
  EXPECT_THAT(errors("{remove: [X-User]}"), ElementsAre(HasSubstr("forwarding.remove[0]")));
  EXPECT_THAT(errors("{remove: [x-a, x-a]}"), ElementsAre(HasSubstr("is there twice")));
  EXPECT_THAT(errors("{remove: [grpc-timeout]}"), ElementsAre(HasSubstr("is a part of gRPC")));
  const std::string cached = ", service: p.S, method: M, cache: {ttl: 1s";
  EXPECT_THAT(errors("{client_cert: true}", cached + "}"),
              ElementsAre(HasSubstr("forwarding.client_cert: tells endpoints the client, and route routes[0] caches")));
  EXPECT_THAT(errors("{client_cert: true}", cached + ", vary: [x-forwarded-client-cert]}"), IsEmpty());
  EXPECT_THAT(errors("{client_cert: true}", cached + ", shared: true}"), IsEmpty());
}

}  // namespace
}  // namespace sluice::config
