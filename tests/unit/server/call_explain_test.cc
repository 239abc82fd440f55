// ExplainCall: what is told of a call is what RouteTable::Match, the gates and the rings decide, and why.
#include "server/call_explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "base/hash.h"
#include "proxy/call/access_gate.h"
#include "proxy/call/hash_key.h"
#include "server/clusters.h"
#include "server/insight_view.h"
#include "server/route_view.h"
#include "support/manual_worker.h"

namespace sluice::server {
namespace {

using admin::CallExplanation;
using admin::CallQuestion;
using proxy::HashBy;
using proxy::MetadataMatch;
using testing::HasSubstr;

class CallExplainTest : public ::testing::Test {
 public:
  CallExplainTest() {
    config.listeners.resize(2);
    config.listeners[0].name = "main";
    config.listeners[1].name = "side";
    config.clusters.resize(2);
    config.clusters[0].name = "users";
    config.clusters[1].name = "other";
    for (const char* name : {"a", "b", "c"})
      config.clusters[0].endpoints.push_back({name, *net::Address::Parse("10.0.0.1:1"), 1});
  }
  ~CallExplainTest() override { time.runtime.Shutdown(); }

  proxy::RouteOptions& AddRoute(const std::string& name, const std::string& cluster = "users") {
    proxy::RouteOptions& route = config.routes.emplace_back();
    route.name = name;
    route.cluster = cluster;
    return route;
  }
  void Init() {
    clusters.emplace(registry, 1);
    inputs.gates = &gates;
    for (const proxy::RouteOptions& route : config.routes) {
      if (auto list = proxy::GatesOf(route, nullptr)) gates.lists[route.name] = list;
    }
    auto status = clusters->Init(config, inputs);
    ASSERT_TRUE(status.ok()) << status.error().detail;
  }
  base::Result<CallExplanation> Ask(const CallQuestion& question) {
    return ExplainCall(question, config.listeners, *clusters->snapshot(), base::TimePoint{});
  }
  CallExplanation Told(const CallQuestion& question) {
    auto told = Ask(question);
    EXPECT_TRUE(told.ok()) << told.error().detail;
    return told.ok() ? *told : CallExplanation{};
  }
  std::string Error(const CallQuestion& question) {
    const auto told = Ask(question);
    return told.ok() ? "none" : told.error().detail;
  }

  config::Config config;
  test::ManualWorker time;
  metrics::Registry registry{1};
  GateTable gates;
  SnapshotInputs inputs;
  std::optional<Clusters> clusters;
};

TEST_F(CallExplainTest, SaysWhichConditionOfEachRouteBeforeFails) {
  proxy::RouteOptions& get = AddRoute("get");
  get.service = "pkg.Users";
  get.method = "Get";
  AddRoute("prefix").prefix = "/pkg.Admin";
  AddRoute("side").listeners = {"side"};
  AddRoute("host").authority = "*.example.com";
  AddRoute("tenant").metadata = {{"x-tenant", MetadataMatch::Kind::kExact, "blue"}};
  AddRoute("any", "other");
  Init();
  const CallExplanation told = Told({.path = "/pkg.Users/Put", .metadata = {{"x-tenant", "red"}}, .authority = "h:1"});
  EXPECT_EQ(told.listener, "main");
  ASSERT_TRUE(told.route);
  EXPECT_EQ(told.route->name, "any");
  EXPECT_EQ(told.cluster, "other");
  EXPECT_FALSE(told.refusal);
  ASSERT_EQ(told.passed.size(), 5u);
  EXPECT_EQ(told.passed[0].route, "get");
  EXPECT_EQ(told.passed[0].why, "it wants the path /pkg.Users/Get");
  EXPECT_EQ(told.passed[1].why, "it wants a path that begins with /pkg.Admin");
  EXPECT_EQ(told.passed[2].why, "it wants the listener side");
  EXPECT_EQ(told.passed[3].why, "it wants the authority *.example.com; the call says h:1");
  EXPECT_EQ(told.passed[4].why, "it wants the metadata x-tenant=blue; the call says red");

  EXPECT_EQ(Told({.path = "/pkg.Users/Get"}).route->name, "get");
  EXPECT_EQ(Told({.path = "/p.S/M", .metadata = {}, .listener = "side"}).route->name, "side");
  EXPECT_EQ(Told({.path = "/p.S/M", .metadata = {}, .authority = "A.example.com."}).route->name, "host");
  EXPECT_EQ(Told({.path = "/p.S/M", .metadata = {{"x-tenant", "blue"}}}).route->name, "tenant");
  EXPECT_THAT(Told({.path = "/p.S/M"}).passed[4].why, HasSubstr("the call has none"));
}

TEST_F(CallExplainTest, ARefusalHasTheStatusTheReasonAndTheSentenceOfTheCall) {
  proxy::RouteOptions& guarded = AddRoute("guarded");
  guarded.service = "pkg.Admin";
  guarded.access = {{}};
  Init();
  CallExplanation told = Told({.path = "/pkg.Other/Get"});
  ASSERT_TRUE(told.refusal);
  EXPECT_EQ(told.refusal->status, "UNIMPLEMENTED");
  EXPECT_EQ(told.refusal->reason, "no_route");
  EXPECT_EQ(told.refusal->message, "no route for /pkg.Other/Get");
  EXPECT_EQ(told.refusal->http_status, "");
  EXPECT_FALSE(told.route);

  told = Told({.path = "/pkg.Admin/a/../Delete"});
  ASSERT_TRUE(told.refusal);
  EXPECT_THAT(told.refusal->message, HasSubstr("the path of a gRPC call is /package.Service/Method"));
  EXPECT_TRUE(told.passed.empty()) << "no route is asked";

  EXPECT_EQ(Error({.path = "/pkg.Other/Get", .metadata = {}, .authority = "a b"}).substr(0, 9), "no client");

  told = Told({.path = "/pkg.Other/Get", .metadata = {}, .authority = "a;b"});
  ASSERT_TRUE(told.refusal);
  EXPECT_EQ(told.refusal->status, "INVALID_ARGUMENT");
  EXPECT_EQ(told.refusal->reason, "malformed_request");

  told = Told({.path = "/pkg.Other/Get", .metadata = {{"grpc-timeout", "1x"}}});
  ASSERT_TRUE(told.refusal);
  EXPECT_EQ(told.refusal->reason, "malformed_request");

  told = Told({.path = "/index.html", .metadata = {}, .type = ""});
  ASSERT_TRUE(told.refusal);
  EXPECT_EQ(told.refusal->http_status, "404");

  told = Told({.path = "/PKG.admin/Delete"});
  ASSERT_TRUE(told.refusal);
  EXPECT_THAT(told.passed[0].why, HasSubstr("another spelling"));
}

TEST_F(CallExplainTest, AccessRulesAreAsked) {
  proxy::AccessRule blue, clients;
  blue.action = clients.action = proxy::AccessRule::Action::kAllow;
  blue.metadata = {{"x-tenant", MetadataMatch::Kind::kExact, "blue"}};
  clients.clients = {"CN=ann"};
  proxy::RouteOptions& tenant = AddRoute("tenant");
  tenant.service = "pkg.Tenant";
  tenant.access = {blue};
  AddRoute("cert").access = {clients};
  Init();
  CallExplanation told = Told({.path = "/pkg.Tenant/Get", .metadata = {{"x-tenant", "blue"}}});
  ASSERT_EQ(told.gates.size(), 1u);
  EXPECT_EQ(told.gates[0].name, "route/tenant/access");
  EXPECT_EQ(told.gates[0].verdict, CallExplanation::Gate::Verdict::kPasses);
  EXPECT_FALSE(told.refusal);

  told = Told({.path = "/pkg.Tenant/Get", .metadata = {{"x-tenant", "red"}}});
  EXPECT_EQ(told.gates.at(0).verdict, CallExplanation::Gate::Verdict::kRefuses);
  ASSERT_TRUE(told.refusal);
  EXPECT_EQ(told.refusal->status, "PERMISSION_DENIED");
  EXPECT_EQ(told.refusal->reason, "access_denied");
  EXPECT_EQ(told.refusal->message, "no access rule of route tenant allows this call");

  told = Told({.path = "/pkg.Other/Get"});
  EXPECT_EQ(told.gates.at(0).verdict, CallExplanation::Gate::Verdict::kDepends);
  EXPECT_THAT(told.gates[0].why, HasSubstr("without one it is refused"));
  EXPECT_FALSE(told.refusal) << "a client's certificate decides";
}

TEST_F(CallExplainTest, TheEndpointIsTheOwnerOfTheKey) {
  proxy::RouteOptions& route = AddRoute("r");
  route.hash_by.kind = HashBy::Kind::kMetadata;
  route.hash_by.metadata = "x-user";
  Init();
  const proxy::Snapshot& snapshot = *clusters->snapshot();
  const upstream::ClusterState& users = *snapshot.clusters[snapshot.config->routes.routes()[0].cluster];
  std::set<std::string> seen;
  for (int i = 0; i < 50; ++i) {
    const std::string user = std::to_string(i);
    const CallExplanation told = Told({.path = "/p.S/M", .metadata = {{"x-user", user}}});
    EXPECT_EQ(told.endpoint, OwnerOf(users, base::Hash64(user, snapshot.config->hash_seed)));
    EXPECT_EQ(told.endpoint_why, "by metadata x-user");
    seen.insert(told.endpoint);
  }
  EXPECT_EQ(seen.size(), 3u);
  const CallExplanation none = Told({.path = "/p.S/M"});
  EXPECT_EQ(none.endpoint, "");
  EXPECT_THAT(none.endpoint_why, HasSubstr("the call has no x-user"));
}

TEST_F(CallExplainTest, AClusterOfASplitIsThatOfTheKey) {
  proxy::RouteOptions& route = AddRoute("r");
  route.clusters = {{"users", 1}, {"other", 1}};
  route.hash_by.kind = HashBy::Kind::kMetadata;
  route.hash_by.metadata = "x-user";
  Init();
  const proxy::ClusterSplit& split = *clusters->snapshot()->config->routes.routes()[0].split;
  std::set<std::string> seen;
  for (int i = 0; i < 50; ++i) {
    const std::string user = std::to_string(i);
    const uint64_t key = base::Hash64(user, clusters->snapshot()->config->hash_seed);
    const CallExplanation told = Told({.path = "/p.S/M", .metadata = {{"x-user", user}}});
    EXPECT_EQ(told.cluster, split.Of(proxy::SplitPosition(key)).name);
    seen.insert(told.cluster);
  }
  EXPECT_EQ(seen.size(), 2u);
  const CallExplanation none = Told({.path = "/p.S/M"});
  EXPECT_EQ(none.cluster, "");
  EXPECT_THAT(none.cluster_why, HasSubstr("by weight and key: the call has no x-user"));
}

TEST_F(CallExplainTest, SaysWhetherItMayBeCachedOrRepeated) {
  proxy::RouteOptions& route = AddRoute("r");
  route.cache.methods = {{"/p.S/Get", std::chrono::seconds(5)}};
  route.retry.methods = proxy::RetryOptions::Methods::kListed;
  route.retry.paths = {"/p.S/Get"};
  inputs.cache = std::make_shared<proxy::ResponseCache>(config.cache, registry);
  Init();
  CallExplanation told = Told({.path = "/p.S/Get"});
  EXPECT_TRUE(told.cache.may);
  EXPECT_THAT(told.cache.why, HasSubstr("5000 ms"));
  EXPECT_TRUE(told.repeat.may);
  EXPECT_EQ(told.repeat.why, "retry.methods: listed, at most 3 attempts");

  told = Told({.path = "/p.S/Get", .metadata = {{"authorization", "x"}}});
  EXPECT_FALSE(told.cache.may);
  EXPECT_EQ(told.cache.why, "not cached: authorization");

  told = Told({.path = "/p.S/Put"});
  EXPECT_FALSE(told.cache.may);
  EXPECT_FALSE(told.repeat.may);
  EXPECT_THAT(told.repeat.why, HasSubstr("only where no backend has worked on it"));
}

TEST_F(CallExplainTest, WhatNoClientCanSendIsAnErrorThatNamesIt) {
  AddRoute("r");
  Init();
  EXPECT_EQ(Error({.path = "/p.S/M", .metadata = {{"x-bin", "YWI="}}}), "none") << "is respelled, as a session does";
  EXPECT_THAT(Error({.path = "p.S/M"}), HasSubstr("no client can send this over HTTP/2: "));
  EXPECT_THAT(Error({.path = "/p.S/M", .metadata = {{"X-User", "a"}}}),
              HasSubstr("metadata X-User: a name is of lower"));
  EXPECT_THAT(Error({.path = "/p.S/M", .metadata = {{"x-user", "a\nb"}}}),
              HasSubstr("metadata x-user: a value has no"));
  EXPECT_THAT(Error({.path = "/p.S/M", .metadata = {{"x-bin", "!"}}}),
              HasSubstr("metadata x-bin: the value of a -bin"));
  EXPECT_THAT(Error({.path = "/p.S/M", .metadata = {{":path", "/"}}}), HasSubstr("pseudo-headers"));
  EXPECT_EQ(Error({.path = "/p.S/M", .metadata = {}, .listener = "nope"}), "no listener nope; there is main or side");
  EXPECT_EQ(Ask({.path = "/p.S/M", .metadata = {}, .listener = "nope"}).error().kind, base::ErrorKind::kNotFound);
}

// The page of routes has what decides, in the words of the configuration.
TEST_F(CallExplainTest, RoutesHaveTheirConditionsAndWhereTheyLead) {
  proxy::RouteOptions& first = AddRoute("first");
  first.service = "pkg.Users";
  first.method = "Get";
  first.metadata = {{"x-a", MetadataMatch::Kind::kPresent, ""}, {"x-b", MetadataMatch::Kind::kPrefix, "v"}};
  first.failover = "other";
  first.retry.attempts_max = 1;
  proxy::RouteOptions& second = AddRoute("routes[1]");
  second.access = {{}};
  Init();
  const auto views = MakeRouteViews(clusters->snapshot()->config->routes);
  ASSERT_EQ(views.size(), 2u);
  EXPECT_EQ(views[0].path, "/pkg.Users/Get");
  EXPECT_TRUE(views[0].exact);
  EXPECT_THAT(views[0].metadata, testing::ElementsAre("x-a", "x-b=v*"));
  EXPECT_EQ(views[0].clusters[0].name, "users");
  EXPECT_EQ(views[0].failover, "other");
  EXPECT_EQ(views[0].retry, "off");
  EXPECT_EQ(views[1].path, "");
  EXPECT_THAT(views[1].gates, testing::ElementsAre("route/routes[1]/access"));
  EXPECT_EQ(views[1].retry, "declared");
}

}  // namespace
}  // namespace sluice::server
