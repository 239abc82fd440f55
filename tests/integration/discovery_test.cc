// Lists that a source keeps, under load: real clients and servers, a file that is replaced again and again.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "support/call_stream.h"
#include "support/list_case.h"
#include "support/operator.h"
#include "support/proxy.h"
#include "support/wait_until.h"

namespace sluice::integration {
namespace {

using std::chrono::milliseconds;

class DiscoveryTest : public ListCase {
 protected:
  // Replaces the file by rename.
  void List(const std::set<size_t>& places) override {
    std::string text = "endpoints:\n";
    for (const size_t place : places) text += "  - " + backends.address(place) + "\n";
    if (places.empty()) text = "endpoints: []\n";
    Write(text);
  }
  void Write(const std::string& text) { std::filesystem::rename(dir.Write("new", text), dir.File("list.yaml")); }
  ProxyConfig Config(const std::string& more = "") {
    ProxyConfig config;
    config.cluster = {"discovery: {file: {path: " + dir.File("list.yaml") + "}" + more + "}"};
    return config;
  }
};

TEST_F(DiscoveryTest, AFileThatChangesUnderLoadFailsNoCall) {
  List({0, 1, 2});
  Proxy proxy(Config());
  ASSERT_TRUE(Follows(proxy, {0, 1, 2}));
  ChangeUnderLoad(proxy);
  EXPECT_GE(proxy.Metric("sluice_discovery_updates_total"), 1);
}

TEST_F(DiscoveryTest, NeitherAnEmptyListNorABadFileTakesEndpointsAway) {
  List({0, 1});
  Proxy proxy(Config());
  ASSERT_TRUE(Follows(proxy, {0, 1}));
  CallStream calls(proxy.target());
  Operator person(proxy);
  List({});
  ASSERT_TRUE(WaitUntil([&] { return person.Ctl({"clusters"}).output.find("held") != std::string::npos; }));
  Write("endpoints: [");
  ASSERT_TRUE(WaitUntil([&] { return person.Ctl({"clusters"}).output.find("end of sequence") != std::string::npos; }));
  std::filesystem::remove(dir.File("list.yaml"));
  ASSERT_TRUE(WaitUntil([&] { return person.Ctl({"clusters"}).output.find("cannot be read") != std::string::npos; }));
  EXPECT_EQ(Listed(proxy), Names({0, 1}));
  List({1, 2});
  ASSERT_TRUE(Follows(proxy, {1, 2}));
  calls.Stop();
  EXPECT_EQ(calls.failed(), "");
}

TEST_F(DiscoveryTest, AListThatReplacesAllIsTakenWhenItIsSeenAgain) {
  List({0, 1});
  Proxy proxy(Config());
  ASSERT_TRUE(Follows(proxy, {0, 1}));
  CallStream calls(proxy.target());
  List({2, 3, 4});
  ASSERT_TRUE(
      WaitUntil([&] { return Operator(proxy).Ctl({"clusters"}).output.find("unconfirmed") != std::string::npos; }));
  EXPECT_TRUE(Follows(proxy, {2, 3, 4}));
  calls.Stop();
  EXPECT_EQ(calls.failed(), "");
}

TEST_F(DiscoveryTest, ItIsReadyWhenItHasAList) {
  Proxy proxy(Config(", ready_timeout: 1h"));
  EXPECT_FALSE(proxy.server().backend().Ready());
  List({0});
  EXPECT_TRUE(WaitUntil([&] { return proxy.server().backend().Ready(); }));
  EXPECT_EQ(proxy.EndpointNames(), Names({0}));
}

TEST_F(DiscoveryTest, AnOperatorIsToldWhereTheListComesFrom) {
  List({0});
  Proxy proxy(Config());
  ASSERT_TRUE(Follows(proxy, {0}));
  Operator person(proxy);
  const Finished refused = person.Ctl({"add", "echo", "127.0.0.1:1"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.output.find("the list of cluster echo comes from file " + dir.File("list.yaml")),
            std::string::npos);
  EXPECT_NE(person.Ctl({"clusters"}).output.find("file " + dir.File("list.yaml")), std::string::npos);
  EXPECT_EQ(person.Ctl({"reset", "echo"}).code, 0);
}

TEST_F(DiscoveryTest, AChangeByRpcLastsUntilItIsReset) {
  List({0});
  Proxy proxy(Config(", changes_by_rpc: override"));
  ASSERT_TRUE(Follows(proxy, {0}));
  Operator person(proxy);
  ASSERT_EQ(person.Ctl({"add", "echo", backends.address(1)}).code, 0);
  List({0, 2});
  ASSERT_TRUE(WaitUntil([&] { return person.Ctl({"clusters"}).output.find("overridden") != std::string::npos; }));
  EXPECT_EQ(Listed(proxy), Names({0, 1}));
  ASSERT_EQ(person.Ctl({"reset", "echo"}).code, 0);
  EXPECT_TRUE(Follows(proxy, {0, 2}));
}

TEST_F(DiscoveryTest, AResetBringsBackAListThatHasNotChanged) {
  List({0});
  Proxy proxy(Config(", changes_by_rpc: override"));
  ASSERT_TRUE(Follows(proxy, {0}));
  Operator person(proxy);
  ASSERT_EQ(person.Ctl({"add", "echo", backends.address(1)}).code, 0);
  EXPECT_TRUE(WaitUntil([&] { return person.Ctl({"clusters"}).output.find("overridden") != std::string::npos; }))
      << "an operator sees that the source is not heard";
  ASSERT_EQ(person.Ctl({"reset", "echo"}).code, 0);
  EXPECT_TRUE(Follows(proxy, {0}));
}

TEST_F(DiscoveryTest, AReloadStartsAndEndsSources) {
  List({2, 3});
  ProxyConfig plain;
  plain.endpoints = {{"a", backends.address(0)}};
  Proxy proxy(plain);
  Operator person(proxy);
  CallStream calls(proxy.target());
  for (int i = 0; i < 5; ++i) {
    person.ReloadWith(Config());
    ASSERT_TRUE(Follows(proxy, {2, 3}));
    person.ReloadWith(plain);
    ASSERT_EQ(proxy.EndpointNames(), (std::vector<std::string>{"a"}));
  }
  calls.Stop();
  EXPECT_EQ(calls.failed(), "");
}

}  // namespace
}  // namespace sluice::integration
