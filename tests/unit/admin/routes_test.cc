// `sluicectl routes` and `explain`: the admin RPC's answers as a person reads them, and the questions as it gets them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "admin/admin_server.h"
#include "program.h"

namespace sluice::admin {
namespace {

using testing::HasSubstr;

class Routes : public testing::Test {
 protected:
  Routes() {
    RouteView get;
    get.name = "get";
    get.listeners = {"main", "side"};
    get.authority = "*.example.com";
    get.path = "/pkg.Users/Get";
    get.exact = true;
    get.metadata = {"x-tenant=blue*"};
    get.gates = {"jwt/corp", "route/get/access"};
    get.limits = {"route/get/rate"};
    get.clusters = {{"users", 90}, {"canary", 10}};
    get.failover = "backup";
    get.cached_methods = 1;
    get.retry = "listed";
    RouteView any;
    any.name = "routes[1]";
    any.clusters = {{"users", 1}};
    any.retry = "declared";
    backend_.set_routes({get, any});
    CallExplanation told;
    told.listener = "main";
    told.path = "/pkg.Users/Put";
    told.passed = {{"get", "it wants the path /pkg.Users/Get"}};
    told.route = any;
    told.gates = {{"jwt/corp", CallExplanation::Gate::Verdict::kDepends, "by the call's token"}};
    told.cluster = "users";
    told.endpoint = "a";
    told.endpoint_why = "by metadata x-user";
    told.cache = {false, "the route caches nothing"};
    told.repeat = {true, "retry.methods: all, at most 3 attempts"};
    backend_.set_explanation(told);
  }
  void SetUp() override {
    base::Result<std::unique_ptr<AdminServer>> server = AdminServer::Start("unix:" + (dir_ / "s"), backend_);
    ASSERT_TRUE(server.ok()) << server.error().detail;
    server_ = std::move(*server);
  }
  ProgramResult Ctl(std::vector<std::string> words) {
    words.insert(words.begin(), SLUICECTL_PATH);
    return RunProgram(words, {"SLUICE_ADMIN=" + server_->address()});
  }

  TempDir dir_;
  FakeBackend backend_;
  std::unique_ptr<AdminServer> server_;
};

TEST_F(Routes, AreATableInTheirOrder) {
  EXPECT_EQ(Ctl({"routes"}).out,
            "#  ROUTE      LISTENER   AUTHORITY      PATH            METADATA        GATES                      "
            "LIMITS          CLUSTER                         CACHE     RETRY\n"
            "0  get        main,side  *.example.com  /pkg.Users/Get  x-tenant=blue*  jwt/corp,route/get/access  "
            "route/get/rate  users:90,canary:10 else backup  1 method  listed\n"
            "1  routes[1]  *          *              *               *               -                          "
            "-               users                           no        declared\n");
  EXPECT_THAT(Ctl({"--json", "routes"}).out, HasSubstr("\"cached_methods\": 1"));
  backend_.set_routes({});
  EXPECT_EQ(Ctl({"routes"}).out, "no routes\n");
}

TEST_F(Routes, NamesAreCompletedWhereAFaultIsAdded) {
  EXPECT_EQ(Ctl({"__complete", "fault", "add", "rou"}).out, "routes[1]\n");
  EXPECT_EQ(Ctl({"__complete", "fault", "add", ""}).out, "get\nroutes[1]\n");
}

TEST_F(Routes, AnExplanationBeginsWithWhereTheCallGoes) {
  const ProgramResult told = Ctl({"explain", "pkg.Users/Put", "-H", "X-User=ann", "-H", "b=c"});
  EXPECT_EQ(told.code, 0) << told.err;
  EXPECT_EQ(told.out,
            "Route routes[1] takes it to cluster users, endpoint a\n"
            "\n"
            "listener   main\n"
            "path       /pkg.Users/Put\n"
            "authority  -\n"
            "not route  get: it wants the path /pkg.Users/Get\n"
            "route      routes[1]\n"
            "gate       jwt/corp depends: by the call's token\n"
            "cluster    users\n"
            "endpoint   a: by metadata x-user\n"
            "cache      no: the route caches nothing\n"
            "repeat     yes: retry.methods: all, at most 3 attempts\n");
  ASSERT_EQ(backend_.questions().size(), 1u);
  const CallQuestion asked = backend_.questions()[0];
  EXPECT_EQ(asked.path, "/pkg.Users/Put");
  EXPECT_EQ(asked.metadata, (std::vector<std::pair<std::string, std::string>>{{"x-user", "ann"}, {"b", "c"}}));
  EXPECT_EQ(asked.type, std::nullopt);
  EXPECT_EQ(Ctl({"explain", "/x", "--plain"}).code, 0);
  EXPECT_EQ(backend_.questions()[1].type, "");
}

TEST_F(Routes, ARefusalIsSaidFirst) {
  CallExplanation refused;
  refused.listener = "main";
  refused.path = "/x\x1b";
  refused.refusal = CallExplanation::Refusal{"UNIMPLEMENTED", "404", "no_route", "no route for /x"};
  backend_.set_explanation(refused);
  const ProgramResult told = Ctl({"explain", "/x"});
  EXPECT_EQ(told.code, 0);
  EXPECT_EQ(told.out,
            "It is refused with UNIMPLEMENTED, no_route (HTTP 404): no route for /x\n"
            "\n"
            "listener   main\n"
            "path       /x\\x1b\n"
            "authority  -\n");
}

TEST_F(Routes, WhatCannotBeAskedIsAnError) {
  const ProgramResult told = Ctl({"explain", "/x", "--listener", "unknown"});
  EXPECT_EQ(told.code, 1);
  EXPECT_THAT(told.err, HasSubstr("no listener unknown; there is in"));
  std::vector<std::string> words = {"explain", "/x"};
  for (int i = 0; i < 101; ++i) words.insert(words.end(), {"-H", "a=b"});
  EXPECT_THAT(Ctl(words).err, HasSubstr("at most 100 metadata entries, not 101"));
}

}  // namespace
}  // namespace sluice::admin
