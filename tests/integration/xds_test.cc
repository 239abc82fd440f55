// Lists by xDS, under load: real clients and servers, and a control plane that the test plays.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "support/ads_server.h"
#include "support/call_stream.h"
#include "support/list_case.h"
#include "support/operator.h"
#include "support/proxy.h"
#include "support/wait_until.h"

namespace sluice::integration {
namespace {

class XdsTest : public ListCase {
 protected:
  XdsTest() { plane.Put(test::EdsCluster("echo", "echo-list")); }
  void List(const std::set<size_t>& places) override { plane.Put(test::Assignment("echo-list", Names(places))); }
  ProxyConfig Config(const std::string& more = "") {
    const std::string path = dir.Write("bootstrap.json", R"({"xds_servers": [{"server_uri": ")" + plane.target() +
                                                             R"(", "channel_creds": [{"type": "insecure"}]}],
                                                                "node": {"id": "sidecar-1"}})");
    ProxyConfig config;
    config.cluster = {"discovery: {xds: {}" + more + "}"};
    config.top = {"xds: {bootstrap: " + path + "}"};
    return config;
  }
  static bool Shows(Proxy& proxy, const std::string& command, const std::string& text) {
    return WaitUntil([&] { return Operator(proxy).Ctl({command}).output.find(text) != std::string::npos; });
  }

  test::AdsServer plane;
};

TEST_F(XdsTest, AListThatChangesUnderLoadFailsNoCall) {
  List({0, 1, 2});
  Proxy proxy(Config());
  ASSERT_TRUE(Follows(proxy, {0, 1, 2}));
  ChangeUnderLoad(proxy);
  EXPECT_EQ(plane.streams_begun(), 1);
}

TEST_F(XdsTest, NoBadNewsTakesEndpointsAway) {
  List({0, 1});
  Proxy proxy(Config());
  ASSERT_TRUE(Follows(proxy, {0, 1}));
  CallStream load(proxy.target());
  List({});
  ASSERT_TRUE(Shows(proxy, "clusters", "held"));
  auto bad = test::Assignment("echo-list", Names({2}));
  bad.mutable_endpoints(0)->set_priority(9);
  plane.Put(bad);
  ASSERT_TRUE(Shows(proxy, "clusters", "endpoints[0].priority: 9; allowed: [0, 7]"));
  ASSERT_TRUE(Shows(proxy, "xds", "NACKED"));
  EXPECT_NE(proxy.server().backend().RenderMetrics().find(
                "sluice_xds_responses_total{result=\"refused\",type=\"endpoints\"} 1\n"),
            std::string::npos);
  EXPECT_EQ(proxy.Metric("sluice_xds_connected"), 1);
  plane.Remove(test::kClusterUrl, "echo");
  ASSERT_TRUE(Shows(proxy, "clusters", "the cluster \"echo\" does not exist on the server"));
  ASSERT_TRUE(Shows(proxy, "xds", "DOES_NOT_EXIST"));
  plane.Stop();
  ASSERT_TRUE(Shows(proxy, "clusters", "cannot be asked: UNAVAILABLE"));
  EXPECT_EQ(proxy.Metric("sluice_xds_connected"), 0);
  EXPECT_EQ(Listed(proxy), Names({0, 1}));
  plane.Start();
  plane.Put(test::EdsCluster("echo", "echo-list"));
  List({1, 2});
  ASSERT_TRUE(Follows(proxy, {1, 2}));
  ASSERT_TRUE(Shows(proxy, "xds", "connected"));
  load.Stop();
  EXPECT_EQ(load.failed(), "");
}

TEST_F(XdsTest, AControlPlaneThatRestartsAgainAndAgainFailsNoCall) {
  std::set<size_t> listed = {0, 1, 2};
  List(listed);
  Proxy proxy(Config());
  ASSERT_TRUE(Follows(proxy, listed));
  CallStream load(proxy.target());
  for (size_t i = 0; i < 5; ++i) {
    plane.Stop();
    plane.Start();
    if (!listed.erase(i)) listed.insert(i);
    if (listed.size() < 2) listed.insert(5);
    List(listed);
    ASSERT_TRUE(Follows(proxy, listed)) << "restart " << i;
  }
  load.Stop();
  EXPECT_EQ(load.failed(), "");
}

TEST_F(XdsTest, ALargeListIsTakenBesideCallsAndGivenBack) {
  List({0, 1, 2});
  Proxy proxy(Config());
  ASSERT_TRUE(Follows(proxy, {0, 1, 2}));
  CallStream load(proxy.target());
  // Of the next priority, so that no call goes where no server is.
  test::XdsAssignment many = test::Assignment("echo-list", Names({0, 1, 2}));
  auto* spare = test::AddLocality(&many, 1);
  for (size_t i = 0; i < upstream::kEndpointsMax - 3; ++i)
    test::AddEndpoint(spare, "127.1." + std::to_string(i / 250) + "." + std::to_string(i % 250) + ":9");
  plane.Put(many);
  ASSERT_TRUE(WaitUntil([&] { return Listed(proxy).size() == upstream::kEndpointsMax; }));
  List({0, 1, 2});
  ASSERT_TRUE(Follows(proxy, {0, 1, 2}));
  load.Stop();
  EXPECT_EQ(load.failed(), "");
}

TEST_F(XdsTest, AReloadStartsAndEndsIt) {
  List({2, 3});
  ProxyConfig plain;
  plain.endpoints = {{"a", backends.address(0)}};
  Proxy proxy(plain);
  Operator person(proxy);
  EXPECT_EQ(person.Ctl({"xds"}).output, "no cluster follows xDS\n");
  CallStream load(proxy.target());
  for (int i = 0; i < 3; ++i) {
    person.ReloadWith(Config());
    ASSERT_TRUE(Follows(proxy, {2, 3}));
    person.ReloadWith(plain);
    ASSERT_EQ(Listed(proxy), (std::vector<std::string>{"a"}));
  }
  load.Stop();
  EXPECT_EQ(load.failed(), "");
}

TEST_F(XdsTest, AReloadMayNameAnotherControlPlane) {
  List({0, 1});
  Proxy proxy(Config());
  ASSERT_TRUE(Follows(proxy, {0, 1}));
  test::AdsServer second;
  second.Put(test::EdsCluster("echo"));
  second.Put(test::Assignment("echo", Names({1, 2})));
  ProxyConfig config = Config();
  dir.Write("bootstrap.json", R"({"xds_servers": [{"server_uri": ")" + second.target() +
                                  R"(", "channel_creds": [{"type": "insecure"}]}]})");
  CallStream load(proxy.target());
  Operator(proxy).ReloadWith(config);
  ASSERT_TRUE(Follows(proxy, {1, 2}));
  EXPECT_TRUE(Shows(proxy, "xds", second.target() + " connected"));
  load.Stop();
  EXPECT_EQ(load.failed(), "");
}

TEST_F(XdsTest, ItIsReadyWhenItHasAList) {
  Proxy proxy(Config(", ready_timeout: 1h"));
  EXPECT_FALSE(proxy.server().backend().Ready());
  EXPECT_TRUE(Shows(proxy, "xds", "REQUESTED"));
  List({0});
  EXPECT_TRUE(WaitUntil([&] { return proxy.server().backend().Ready(); }));
  EXPECT_EQ(Listed(proxy), Names({0}));
}

}  // namespace
}  // namespace sluice::integration
