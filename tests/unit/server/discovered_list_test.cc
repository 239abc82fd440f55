// Lists that a source keeps: what gives way to what, over changes by RPC, reloads and restarts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "integration/support/temp_dir.h"
#include "server/clusters.h"
#include "support/captured_log.h"
#include "support/manual_worker.h"

namespace sluice::server {
namespace {

using discovery::RpcRule;
using ::testing::HasSubstr;
using upstream::EndpointChange;
using upstream::ListSource;
using PutKind = discovery::PutResult::Kind;
using Strings = std::vector<std::string>;

class DiscoveredListTest : public ::testing::Test {
 protected:
  DiscoveredListTest() {
    config.clusters.resize(1);
    config.clusters[0].name = "c";
    config.clusters[0].endpoints = Listed({"configured"});
    config.routes.resize(1);
    config.routes[0].name = "r";
    config.routes[0].cluster = "c";
    Source("f");
  }
  ~DiscoveredListTest() override {
    clusters.reset();
    time.runtime.Shutdown();
  }
  void Source(const std::string& path) { config.discovery["c"] = FileOf(path); }
  static discovery::List Listed(const std::vector<std::string>& hosts) {
    discovery::List list;
    for (const std::string& host : hosts) {
      list.emplace_back();
      list.back().name = host;
      list.back().address = *net::Address::Parse(host + ":1");
    }
    return list;
  }
  Clusters& Started() {
    if (!clusters) {
      clusters.emplace(registry, 1);
      const auto status = clusters->Init(config);
      EXPECT_TRUE(status.ok());
    }
    return *clusters;
  }
  static discovery::DiscoveryOptions FileOf(const std::string& path, RpcRule rule = RpcRule::kRefuse) {
    discovery::DiscoveryOptions options;
    options.kind = discovery::SourceKind::kFile;
    options.file.path = path;
    options.changes_by_rpc = rule;
    return options;
  }
  PutKind Put(const std::vector<std::string>& hosts, double moved_max = 1) {
    return PutFrom(config.discovery["c"], hosts, moved_max);
  }
  PutKind PutFrom(const discovery::DiscoveryOptions& source, const std::vector<std::string>& hosts,
                  double moved_max = 1) {
    last = Started().Put("c", source, Listed(hosts), moved_max);
    return last.kind;
  }
  base::Status Change(EndpointChange::Kind kind, const std::string& host = "") {
    EndpointChange change;
    change.kind = kind;
    change.cluster = "c";
    if (!host.empty()) change.endpoints = {{host, host + ":1", 1, 0, ""}};
    const auto result = Started().Change(change);
    return result.ok() ? base::Ok() : base::Status(result.error());
  }
  Strings Names() {
    Strings out;
    const auto views = Started().List("c");
    for (const admin::EndpointView& endpoint : (*views)[0].endpoints) out.push_back(endpoint.name);
    return out;
  }
  ListSource From() { return (*Started().List("c"))[0].source; }

  integration::TempDir dir;
  config::Config config;
  metrics::Registry registry{1};
  test::ManualWorker time;
  std::optional<Clusters> clusters;
  discovery::PutResult last;
};

TEST_F(DiscoveredListTest, ItTakesThePlaceOfTheConfigurations) {
  EXPECT_EQ(Names(), (Strings{"configured"}));
  EXPECT_EQ(clusters->Discovered("c"), nullptr);
  ASSERT_EQ(Put({"a", "b"}), PutKind::kDone);
  EXPECT_EQ(last.moved, 1);
  EXPECT_EQ(Names(), (Strings{"a", "b"}));
  EXPECT_EQ(From(), ListSource::kDiscovery);
  EXPECT_EQ(*clusters->Discovered("c"), Listed({"a", "b"}));
}

TEST_F(DiscoveredListTest, WhatMovesTooMuchChangesNothing) {
  ASSERT_EQ(Put({"a", "b", "c"}), PutKind::kDone);
  const uint64_t version = (*clusters->List("c"))[0].version;
  ASSERT_EQ(Put({"d", "e", "f"}, 0.5), PutKind::kMovesTooMuch);
  EXPECT_GT(last.moved, 0.9);
  EXPECT_EQ(Names(), (Strings{"a", "b", "c"}));
  EXPECT_EQ((*clusters->List("c"))[0].version, version);
  EXPECT_EQ(Put({"a", "b", "c", "d"}, 0.5), PutKind::kDone);
}

// Whichever way it comes: from a source, or by RPC.
TEST_F(DiscoveredListTest, AnOwnListenerIsNoEndpoint) {
  config.listeners.resize(1);
  config.listeners[0].address = *net::Address::Parse("0.0.0.0:1");
  test::CapturedLog log;
  ASSERT_EQ(Put({"10.0.0.1", "127.0.0.1", "localhost"}), PutKind::kDone);
  EXPECT_EQ(Names(), (Strings{"10.0.0.1"}));
  EXPECT_EQ(log.Take(),
            "warning cluster c: endpoint 127.0.0.1 (127.0.0.1:1) is left out: it leads to this process's own listener "
            "0.0.0.0:1\n"
            "warning cluster c: endpoint localhost (localhost:1) is left out: it leads to this process's own listener "
            "0.0.0.0:1\n");
  config.discovery["c"] = FileOf("f", RpcRule::kOverride);
  ASSERT_TRUE(clusters->Apply(config).ok());
  const base::Status status = Change(EndpointChange::Kind::kAdd, "127.0.0.1");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, base::ErrorKind::kInvalidArgument);
  EXPECT_EQ(status.error().detail,
            "endpoint 127.0.0.1: 127.0.0.1:1 leads to this process's own listener 0.0.0.0:1: calls would go round in a "
            "circle");
  EXPECT_TRUE(Change(EndpointChange::Kind::kAdd, "10.0.0.2").ok());
}

TEST_F(DiscoveredListTest, AnotherSourcesListIsRefused) {
  Started();
  EXPECT_EQ(PutFrom(FileOf("g"), {"a"}), PutKind::kRefused);
  EXPECT_EQ(Names(), (Strings{"configured"}));
  last = clusters->Put("gone", FileOf("f"), Listed({"a"}), 1);
  EXPECT_EQ(last.kind, PutKind::kRefused);
  EXPECT_EQ(last.error, "no cluster gone");
}

TEST_F(DiscoveredListTest, AListThatCannotBeIsRefused) {
  config.clusters[0].ring_points = 10000;
  ASSERT_EQ(Put({"a"}), PutKind::kDone);
  discovery::List heavy = Listed({"a", "b", "c", "d", "e"});
  for (auto& endpoint : heavy) endpoint.weight = 100;
  for (const double moved_max : {1.0, 0.5}) {
    last = clusters->Put("c", FileOf("f"), heavy, moved_max);
    EXPECT_EQ(last.kind, PutKind::kRefused);
    EXPECT_THAT(last.error, HasSubstr("points"));
  }
  EXPECT_EQ(Names(), (Strings{"a"}));
}

TEST_F(DiscoveredListTest, ChangesByRpcAreRefusedWithTheSourcesName) {
  ASSERT_EQ(Put({"a"}), PutKind::kDone);
  const base::Status status = Change(EndpointChange::Kind::kAdd, "b");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, base::ErrorKind::kConflict);
  EXPECT_THAT(status.error().detail, HasSubstr("the list of cluster c comes from file f"));
  EXPECT_EQ(Names(), (Strings{"a"}));
}

TEST_F(DiscoveredListTest, OverriddenItWaitsForAReset) {
  config.discovery["c"].changes_by_rpc = RpcRule::kOverride;
  ASSERT_EQ(Put({"a"}), PutKind::kDone);
  ASSERT_TRUE(Change(EndpointChange::Kind::kAdd, "b").ok());
  EXPECT_EQ(Put({"c"}), PutKind::kOverridden);
  EXPECT_EQ(Names(), (Strings{"a", "b"}));
  ASSERT_TRUE(Change(EndpointChange::Kind::kReset).ok());
  EXPECT_EQ(Names(), (Strings{"a", "b"})) << "until the source's list is there";
  EXPECT_EQ(Put({"c"}), PutKind::kDone);
  EXPECT_EQ(Names(), (Strings{"c"}));
  ASSERT_TRUE(Change(EndpointChange::Kind::kAdd, "d").ok());
  EXPECT_EQ(Put({"c"}), PutKind::kOverridden) << "a reset is for one list";
}

TEST_F(DiscoveredListTest, WithoutASourceAResetGoesBackToTheConfiguration) {
  config.discovery.clear();
  ASSERT_TRUE(Change(EndpointChange::Kind::kAdd, "b").ok());
  EXPECT_EQ(From(), ListSource::kRpc);
  ASSERT_TRUE(Change(EndpointChange::Kind::kReset).ok());
  EXPECT_EQ(Names(), (Strings{"configured"}));
  EXPECT_EQ(From(), ListSource::kConfig);
}

TEST_F(DiscoveredListTest, AReloadLeavesItToTheSource) {
  ASSERT_EQ(Put({"a"}), PutKind::kDone);
  config.clusters[0].endpoints = Listed({"other"});
  config.clusters[0].connections_max = 3;
  ASSERT_TRUE(clusters->Apply(config).ok());
  EXPECT_EQ(Names(), (Strings{"a"}));
  Source("g");
  config.clusters[0].endpoints.clear();
  ASSERT_TRUE(clusters->Apply(config).ok());
  EXPECT_EQ(Names(), (Strings{"a"})) << "until the new source's first list";
  EXPECT_EQ(PutFrom(FileOf("f"), {"z"}), PutKind::kRefused) << "the former source's follower may be at work still";
  EXPECT_EQ(Put({"b"}), PutKind::kDone);
}

TEST_F(DiscoveredListTest, AReloadThatTakesTheSourceAwayGoesBackToTheConfiguration) {
  ASSERT_EQ(Put({"a"}), PutKind::kDone);
  config.discovery.clear();
  ASSERT_TRUE(clusters->Apply(config).ok());
  EXPECT_EQ(Names(), (Strings{"configured"}));
  EXPECT_EQ(From(), ListSource::kConfig);
}

TEST_F(DiscoveredListTest, AReloadThatGivesAListByRpcASourceKeepsItUntilTheFirstList) {
  const auto discovery = std::exchange(config.discovery, {});
  ASSERT_TRUE(Change(EndpointChange::Kind::kAdd, "b").ok());
  config.discovery = discovery;
  ASSERT_TRUE(clusters->Apply(config).ok());
  EXPECT_EQ(Names(), (Strings{"configured", "b"}));
  EXPECT_EQ(Put({"a"}), PutKind::kDone) << "changes_by_rpc: refuse";
}

TEST_F(DiscoveredListTest, ItIsThereAfterARestart) {
  config.state_file = dir.File("state");
  ASSERT_EQ(Put({"a", "b"}), PutKind::kDone);
  clusters.reset();
  EXPECT_EQ(Names(), (Strings{"a", "b"}));
  EXPECT_EQ(From(), ListSource::kDiscovery);
  ASSERT_NE(clusters->Discovered("c"), nullptr);
  EXPECT_THAT(dir.Read("state"), HasSubstr("discovered: "));
  // A reload writes the file too.
  config.clusters[0].connections_max = 3;
  ASSERT_TRUE(clusters->Apply(config).ok());
  clusters.reset();
  EXPECT_EQ(Names(), (Strings{"a", "b"}));
}

TEST_F(DiscoveredListTest, AfterARestartWithAnotherSourceItIsForgotten) {
  config.state_file = dir.File("state");
  ASSERT_EQ(Put({"a", "b"}), PutKind::kDone);
  clusters.reset();
  Source("g");
  EXPECT_EQ(Names(), (Strings{"configured"}));
}

// The source says it again after a restart; endpoints that are gone would not come back.
TEST_F(DiscoveredListTest, AFullDiskDoesNotKeepItOut) {
  config.state_file = dir.File("folder/state");
  EXPECT_EQ(Put({"a"}), PutKind::kDone);
  EXPECT_EQ(Names(), (Strings{"a"}));
  std::filesystem::create_directory(dir.File("folder"));
  EXPECT_EQ(Put({"a", "b"}), PutKind::kDone);
  clusters.reset();
  EXPECT_EQ(Names(), (Strings{"a", "b"})) << "the next one is written";
}

TEST_F(DiscoveredListTest, TheSameListAgainIsNoChange) {
  ASSERT_EQ(Put({"a", "b"}), PutKind::kDone);
  EXPECT_TRUE(last.changed);
  const uint64_t version = (*clusters->List("c"))[0].version;
  ASSERT_EQ(Put({"a", "b"}), PutKind::kDone);
  EXPECT_FALSE(last.changed);
  EXPECT_EQ((*clusters->List("c"))[0].version, version);
}

TEST_F(DiscoveredListTest, AFollowerOfOtherOptionsIsRefused) {
  ASSERT_EQ(Put({"a"}), PutKind::kDone);
  const auto former = config.discovery["c"];
  config.discovery["c"].empty_after = std::chrono::milliseconds(1);
  ASSERT_TRUE(clusters->Apply(config).ok());
  EXPECT_EQ(PutFrom(former, {}), PutKind::kRefused) << "its successor knows nothing of what it puts";
  EXPECT_EQ(Names(), (Strings{"a"}));
}

TEST_F(DiscoveredListTest, AResetHoldsOverAReload) {
  config.discovery["c"].changes_by_rpc = RpcRule::kOverride;
  ASSERT_EQ(Put({"a"}), PutKind::kDone);
  ASSERT_TRUE(Change(EndpointChange::Kind::kAdd, "b").ok());
  ASSERT_TRUE(Change(EndpointChange::Kind::kReset).ok());
  config.clusters[0].connections_max = 3;
  ASSERT_TRUE(clusters->Apply(config).ok());
  EXPECT_EQ(Put({"a"}), PutKind::kDone);
  EXPECT_EQ(Names(), (Strings{"a"}));
}

TEST_F(DiscoveredListTest, AResetLeavesAListOfTheSourceInTheFile) {
  config.state_file = dir.File("state");
  ASSERT_EQ(Put({"a", "b"}), PutKind::kDone);
  ASSERT_TRUE(Change(EndpointChange::Kind::kReset).ok());
  clusters.reset();
  EXPECT_EQ(Names(), (Strings{"a", "b"}));
}

TEST_F(DiscoveredListTest, AResetHoldsOverARestart) {
  config.state_file = dir.File("state");
  config.discovery["c"].changes_by_rpc = RpcRule::kOverride;
  ASSERT_EQ(Put({"a"}), PutKind::kDone);
  ASSERT_TRUE(Change(EndpointChange::Kind::kAdd, "b").ok());
  ASSERT_TRUE(Change(EndpointChange::Kind::kReset).ok());
  clusters.reset();
  EXPECT_EQ(Put({"a"}), PutKind::kDone);
  EXPECT_EQ(Names(), (Strings{"a"}));
}

TEST_F(DiscoveredListTest, TheConfigurationsListMayChangeWhileTheSourceIsAway) {
  config.state_file = dir.File("state");
  ASSERT_EQ(Put({"a", "b"}), PutKind::kDone);
  config.clusters[0].endpoints = Listed({"other"});
  clusters.reset();
  EXPECT_EQ(Names(), (Strings{"a", "b"}));
  // One that the source has emptied stays empty.
  ASSERT_EQ(Put({}), PutKind::kDone);
  config.clusters[0].endpoints = Listed({"another"});
  ASSERT_TRUE(clusters->Apply(config).ok());
  EXPECT_EQ(Names(), Strings());
}

TEST_F(DiscoveredListTest, BeforeTheFirstListTheConfigurationsIsInForceAlsoWhenItChanges) {
  EXPECT_EQ(Names(), (Strings{"configured"}));
  config.clusters[0].endpoints = Listed({"other"});
  ASSERT_TRUE(clusters->Apply(config).ok());
  EXPECT_EQ(Names(), (Strings{"other"}));
}

TEST_F(DiscoveredListTest, ASavedListThatDoesNotFitAnyMoreDoesNotStopTheStart) {
  config.state_file = dir.File("state");
  discovery::List heavy = Listed({"a", "b", "c", "d", "e"});
  for (auto& endpoint : heavy) endpoint.weight = 100;
  ASSERT_EQ(Started().Put("c", FileOf("f"), heavy, 1).kind, PutKind::kDone);
  clusters.reset();
  config.clusters[0].ring_points = 10000;
  EXPECT_EQ(Names(), (Strings{"configured"}));
}

TEST_F(DiscoveredListTest, AReloadDoesNotMakeASavedListYounger) {
  config.state_file = dir.File("state");
  dir.Write("state", "clusters:\n  c:\n    configured: " + std::to_string(Fingerprint({}, "file f")) +
                         "\n    discovered: 1000\n    endpoints:\n"
                         "      - {name: a, address: \"a:1\", weight: 1, draining: false}\n");
  EXPECT_EQ(Names(), (Strings{"a"}));
  config.clusters[0].connections_max = 3;
  ASSERT_TRUE(clusters->Apply(config).ok());
  EXPECT_THAT(dir.Read("state"), HasSubstr("discovered: 1000\n"));
}

}  // namespace
}  // namespace sluice::server
