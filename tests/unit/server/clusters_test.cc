#include "server/clusters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "integration/support/temp_dir.h"
#include "support/captured_log.h"
#include "support/manual_worker.h"
#include "sync/event.h"

namespace sluice::server {
namespace {

using base::ErrorKind;
using upstream::EndpointChange;
using upstream::EndpointSpec;
using upstream::ListSource;
using Kind = EndpointChange::Kind;
using Strings = std::vector<std::string>;

class ClustersTest : public ::testing::Test {
 public:
  ClustersTest() {
    config.clusters.resize(2);
    config.clusters[0].name = "c";
    config.clusters[1].name = "other";
    config.routes.resize(1);
    config.routes[0].name = "r";
    config.routes[0].cluster = "c";
    Configure({{"a", "10.0.0.1:1"}, {"b", "10.0.0.2:1"}});
  }
  ~ClustersTest() override {
    if (context) {
      context->pools.CloseAll();
      time.Run();
    }
    time.runtime.Shutdown();
  }
  void Configure(const std::vector<std::pair<std::string, std::string>>& endpoints) {
    config.clusters[0].endpoints.clear();
    for (const auto& [name, address] : endpoints)
      config.clusters[0].endpoints.push_back({name, *net::Address::Parse(address), 1});
  }
  void Init() {
    clusters.emplace(registry, 1);
    auto status = clusters->Init(config);
    ASSERT_TRUE(status.ok()) << status.error().detail;
    context.emplace(time.worker, clusters->snapshots(), metrics);
    clusters->SetWorkers({&*context});
  }
  EndpointChange Change(Kind kind, std::vector<EndpointSpec> endpoints) {
    EndpointChange change;
    change.kind = kind;
    change.cluster = "c";
    change.endpoints = std::move(endpoints);
    return change;
  }
  admin::ClusterView View() { return (*clusters->List("c"))[0]; }
  // "name weight state" of each endpoint.
  Strings Endpoints() {
    Strings out;
    for (const admin::EndpointView& e : View().endpoints) {
      char weight[20];
      std::snprintf(weight, sizeof(weight), " %g ", e.weight);
      out.push_back(e.name + weight + std::string(ToString(e.state)));
    }
    return out;
  }
  // What a call would read.
  Strings Published() {
    Strings out;
    clusters->snapshots().Read(0, [&](const std::shared_ptr<const proxy::Snapshot>& snapshot) {
      for (const auto& entry : snapshot->clusters[snapshot->config->routes.routes()[0].cluster]->endpoints) {
        out.push_back(entry.endpoint->name());
      }
    });
    return out;
  }
  std::shared_ptr<upstream::Endpoint> Endpoint(size_t i) {
    return clusters->snapshots().Read(
        0, [&](const std::shared_ptr<const proxy::Snapshot>& p) { return p->clusters[0]->endpoints[i].endpoint; });
  }

  config::Config config;
  test::ManualWorker time;
  metrics::Registry registry{1};
  proxy::ProxyMetrics metrics{registry};
  std::optional<Clusters> clusters;
  std::optional<proxy::CallContext> context;
};

TEST_F(ClustersTest, TheConfigurationIsPublished) {
  Init();
  EXPECT_EQ(Endpoints(), (Strings{"a 1 active", "b 1 active"}));
  EXPECT_EQ(Published(), (Strings{"a", "b"}));
  EXPECT_EQ(View().version, 1u);
  EXPECT_EQ(View().source, ListSource::kConfig);
  EXPECT_EQ(clusters->List("")->size(), 2u);
  EXPECT_EQ(clusters->List("nope").error().kind, ErrorKind::kNotFound);
}

TEST_F(ClustersTest, EveryKindOfChangeDoesWhatItSays) {
  Init();
  struct Step {
    EndpointChange change;
    Strings after;
  };
  uint64_t version = 1;
  for (const Step& step : std::vector<Step>{
           {Change(Kind::kAdd, {{"c", "10.0.0.3:1", 2}, {"", "10.0.0.4:1", 1}}),
            {"a 1 active", "b 1 active", "c 2 active", "10.0.0.4:1 1 active"}},
           {Change(Kind::kRemove, {{"a", "", 1}, {"", "10.0.0.4:1", 1}}), {"b 1 active", "c 2 active"}},
           {Change(Kind::kReweight, {{"b", "", 0.5}}), {"b 0.5 active", "c 2 active"}},
           {Change(Kind::kDrain, {{"c", "", 1}}), {"b 0.5 active", "c 2 draining"}},
           {Change(Kind::kUndrain, {{"c", "", 1}}), {"b 0.5 active", "c 2 active"}},
           {Change(Kind::kReplace, {{"x", "10.0.0.9:1", 1}}), {"x 1 active"}},
           {Change(Kind::kReplace, {}), {}},
       }) {
    auto result = clusters->Change(step.change);
    ASSERT_TRUE(result.ok()) << result.error().detail;
    EXPECT_EQ(result->version, ++version);
    EXPECT_EQ(View().version, version);
    EXPECT_EQ(View().digest, result->digest);
    EXPECT_EQ(Endpoints(), step.after);
    EXPECT_EQ(Published().size(), step.after.size());
    EXPECT_EQ(View().source, ListSource::kRpc);
  }
  EXPECT_EQ((*clusters->List("other"))[0].version, 1u);
}

TEST_F(ClustersTest, AChangeThatIsWrongChangesNothing) {
  Init();
  const std::vector<std::pair<EndpointChange, ErrorKind>> cases = {
      {Change(Kind::kAdd, {{"n", "10.0.0.5:1", 1}, {"a", "10.0.0.6:1", 1}}), ErrorKind::kInvalidArgument},
      {Change(Kind::kAdd, {{"n", "nonsense", 1}}), ErrorKind::kInvalidArgument},
      {Change(Kind::kAdd, {{"n", "10.0.0.5:0", 1}}), ErrorKind::kInvalidArgument},
      {Change(Kind::kAdd, {{"n", "10.0.0.5:1", 0}}), ErrorKind::kInvalidArgument},
      {Change(Kind::kAdd, {}), ErrorKind::kInvalidArgument},
      {Change(Kind::kRemove, {}), ErrorKind::kInvalidArgument},
      {Change(Kind::kRemove, {{"a", "", 1}, {"none", "", 1}}), ErrorKind::kNotFound},
      {Change(Kind::kRemove, {{"a", "", 1}, {"a", "", 1}}), ErrorKind::kNotFound},
      {Change(Kind::kReweight, {{"a", "", 1000}}), ErrorKind::kInvalidArgument},
      {Change(Kind::kDrain, {{"none", "", 1}}), ErrorKind::kNotFound},
      {Change(Kind::kReplace, {{"x", "10.0.0.9:1", 1}, {"x", "10.0.0.8:1", 1}}), ErrorKind::kInvalidArgument},
  };
  for (const auto& [change, kind] : cases) {
    auto result = clusters->Change(change);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().kind, kind) << result.error().detail;
  }
  EndpointChange elsewhere = Change(Kind::kRemove, {{"a", "", 1}});
  elsewhere.cluster = "nope";
  EXPECT_EQ(clusters->Change(elsewhere).error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(Endpoints(), (Strings{"a 1 active", "b 1 active"}));
  EXPECT_EQ(View().version, 1u);
  EXPECT_EQ(View().source, ListSource::kConfig);
}

TEST_F(ClustersTest, AnotherVersionThanExpectedIsAConflict) {
  Init();
  EndpointChange change = Change(Kind::kDrain, {{"a", "", 1}});
  change.expected_version = 2;
  EXPECT_EQ(clusters->Change(change).error().kind, ErrorKind::kConflict);
  EXPECT_EQ(View().version, 1u);
  change.expected_version = 1;
  EXPECT_TRUE(clusters->Change(change).ok());
  EXPECT_EQ(clusters->Change(change).error().kind, ErrorKind::kConflict);
}

// "Have all proxies the same list?" is asked of it.
TEST_F(ClustersTest, TheDigestIsOfAllThatTheListSays) {
  Init();
  std::set<uint64_t> digests = {View().digest};
  const auto differs = [&](const EndpointChange& change) {
    ASSERT_TRUE(clusters->Change(change).ok());
    EXPECT_TRUE(digests.insert(View().digest).second) << digests.size();
  };
  differs(Change(Kind::kDrain, {{"a", "", 1}}));
  differs(Change(Kind::kReplace, {{"a", "10.0.0.8:1", 1}, {"b", "10.0.0.2:1", 1}}));  // another address
  differs(Change(Kind::kReplace, {{"a", "10.0.0.2:1", 1}, {"b", "10.0.0.8:1", 1}}));  // the two changed about
  differs(Change(Kind::kReplace, {{"a", "10.0.0.2:1", 1, 1, ""}, {"b", "10.0.0.8:1", 1}}));
  differs(Change(Kind::kReplace, {{"a", "10.0.0.2:1", 1, 1, "eu"}, {"b", "10.0.0.8:1", 1}}));
  differs(Change(Kind::kReweight, {{"b", "", 2}}));
  const uint64_t before = View().digest;
  ASSERT_TRUE(clusters->Change(Change(Kind::kReplace, {{"b", "10.0.0.8:1", 2}, {"a", "10.0.0.2:1", 1, 1, "eu"}})).ok());
  EXPECT_EQ(View().digest, before) << "in another order it is the same list";
}

TEST_F(ClustersTest, APreviewTellsAndChangesNothing) {
  integration::TempDir dir;
  config.state_file = dir.File("state");
  Init();
  const uint64_t digest = View().digest;
  EndpointChange change = Change(Kind::kRemove, {{"a", "", 1}});
  change.preview = true;
  auto preview = clusters->Change(change);
  ASSERT_TRUE(preview.ok());
  EXPECT_EQ(preview->version, 2u);
  EXPECT_NEAR(preview->moved_share, 0.5, 0.2);
  EXPECT_EQ(View().version, 1u);
  EXPECT_EQ(View().digest, digest);
  EXPECT_EQ(Published(), (Strings{"a", "b"}));
  EXPECT_EQ(::access(config.state_file.c_str(), F_OK), -1);
  change.preview = false;
  auto done = clusters->Change(change);
  EXPECT_EQ(done->digest, preview->digest);
  EXPECT_EQ(done->moved_share, preview->moved_share);
}

TEST_F(ClustersTest, DrainingMovesItsShareOfTheKeys) {
  Init();
  const double share = View().endpoints[0].share;
  auto result = clusters->Change(Change(Kind::kDrain, {{"a", "", 1}}));
  EXPECT_NEAR(result->moved_share, share, 1e-9);
  EXPECT_EQ(View().endpoints[0].share, 0);
}

// Its keys went with the drain, which has told so.
TEST_F(ClustersTest, RemovingADrainedEndpointMovesNothing) {
  Init();
  ASSERT_TRUE(clusters->Change(Change(Kind::kAdd, {{"c", "10.0.0.3:1", 1}})).ok());
  EndpointChange change = Change(Kind::kRemove, {{"b", "", 1}});
  change.preview = true;
  const double share_of_b = clusters->Change(change)->moved_share;
  ASSERT_TRUE(clusters->Change(Change(Kind::kDrain, {{"a", "", 1}})).ok());
  change = Change(Kind::kRemove, {{"a", "", 1}});
  change.preview = true;
  EXPECT_NEAR(clusters->Change(change)->moved_share, 0, 1e-9);
  change = Change(Kind::kRemove, {{"a", "", 1}, {"b", "", 1}});
  change.preview = true;
  EXPECT_NEAR(clusters->Change(change)->moved_share, share_of_b, 1e-9);
  // With all the others: all that is left.
  change = Change(Kind::kRemove, {{"a", "", 1}, {"b", "", 1}, {"c", "", 1}});
  change.preview = true;
  EXPECT_EQ(clusters->Change(change)->moved_share, 1);
  EXPECT_NEAR(clusters->Change(Change(Kind::kRemove, {{"a", "", 1}}))->moved_share, 0, 1e-9);
}

TEST_F(ClustersTest, AReloadKeepsListsChangedByRpcUnlessTheConfiguredListHasChanged) {
  Init();
  ASSERT_TRUE(clusters->Change(Change(Kind::kAdd, {{"c", "10.0.0.3:1", 1}})).ok());
  ASSERT_TRUE(clusters->Apply(config).ok());
  EXPECT_EQ(Endpoints(), (Strings{"a 1 active", "b 1 active", "c 1 active"}));
  EXPECT_EQ(View().source, ListSource::kRpc);
  // Other options, the same list: the RPC's list stays.
  config.clusters[0].pending_calls_max = 7;
  ASSERT_TRUE(clusters->Apply(config).ok());
  EXPECT_EQ(Endpoints().size(), 3u);
  EXPECT_EQ(View().source, ListSource::kRpc);
  // Another list: the configuration wins.
  Configure({{"a", "10.0.0.1:1"}, {"z", "10.0.0.7:1"}});
  ASSERT_TRUE(clusters->Apply(config).ok());
  EXPECT_EQ(Endpoints(), (Strings{"a 1 active", "z 1 active"}));
  EXPECT_EQ(View().source, ListSource::kConfig);
}

TEST_F(ClustersTest, AReloadWithoutChangesKeepsEndpointsAndVersions) {
  Init();
  std::shared_ptr<upstream::Endpoint> a = Endpoint(0);
  ASSERT_TRUE(clusters->Apply(config).ok());
  EXPECT_EQ(Endpoint(0), a);
  EXPECT_EQ(View().version, 1u);
  Configure({{"a", "10.0.0.1:1"}, {"n", "10.0.0.5:1"}});
  ASSERT_TRUE(clusters->Apply(config).ok());
  EXPECT_EQ(Endpoint(0), a);  // the same options but for the list: its connections stay
  EXPECT_EQ(View().version, 2u);
  config.clusters[0].life.idle_timeout = std::chrono::seconds(7);
  ASSERT_TRUE(clusters->Apply(config).ok());
  EXPECT_EQ(Endpoint(0), a);  // also under other options: its calls go on, new connections go by the new ones
  EXPECT_FALSE(a->removed());
}

// Else a tool that has read the former list could change this one unseen.
TEST_F(ClustersTest, AClusterThatComesBackHasNoVersionThatItHadBefore) {
  clusters.emplace(registry, 1, ClusterWaits(), nullptr, 1000);
  ASSERT_TRUE(clusters->Init(config).ok());
  EXPECT_EQ((*clusters->List("other"))[0].version, 1000u);
  EndpointChange change = Change(Kind::kAdd, {{"n", "10.0.0.5:1", 1}});
  change.cluster = "other";
  ASSERT_EQ(clusters->Change(change)->version, 1001u);
  config::Config without = config;
  without.clusters.pop_back();
  ASSERT_TRUE(clusters->Apply(without).ok());
  ASSERT_TRUE(clusters->Apply(config).ok());
  EXPECT_EQ((*clusters->List("other"))[0].version, 1002u);
  EXPECT_EQ(View().version, 1000u);
}

TEST_F(ClustersTest, AReloadThatFailsChangesNothing) {
  Init();
  const config::Config good = config;
  Configure({{"z", "10.0.0.7:1"}});
  config.access_log = {proxy::AccessLogOptions::Format::kText, "/nonexistent/folder/log"};
  EXPECT_FALSE(clusters->Apply(config).ok());
  EXPECT_EQ(Published(), (Strings{"a", "b"}));
  config = good;
  config.routes[0].cluster = "nope";
  EXPECT_FALSE(clusters->Apply(config).ok());
  EXPECT_EQ(Published(), (Strings{"a", "b"}));
}

TEST_F(ClustersTest, ChangesAreRestoredFromTheStateFileUnlessTheConfiguredListHasChanged) {
  integration::TempDir dir;
  config.state_file = dir.File("state");
  {
    Clusters earlier(registry, 1);
    ASSERT_TRUE(earlier.Init(config).ok());
    ASSERT_TRUE(earlier.Change(Change(Kind::kReplace, {{"x", "10.0.0.9:1", 3}, {"y", "10.0.0.8:1", 1}})).ok());
    ASSERT_TRUE(earlier.Change(Change(Kind::kDrain, {{"y", "", 1}})).ok());
  }
  Init();
  EXPECT_EQ(Endpoints(), (Strings{"x 3 active", "y 1 draining"}));
  EXPECT_EQ(View().source, ListSource::kRpc);
  EXPECT_EQ((*clusters->List("other"))[0].source, ListSource::kConfig);
  Configure({{"a", "10.0.0.1:1"}});
  Clusters later(registry, 1);
  ASSERT_TRUE(later.Init(config).ok());
  EXPECT_EQ((*later.List("c"))[0].endpoints[0].name, "a");
  EXPECT_EQ((*later.List("c"))[0].source, ListSource::kConfig);
}

// Calls are served by the configuration's lists, and what is left of the file can be looked at.
TEST_F(ClustersTest, AStateFileThatCannotBeUnderstoodIsSetAside) {
  integration::TempDir dir;
  config.state_file = dir.Write("state", "clusters: [");
  test::CapturedLog log;
  Init();
  EXPECT_EQ(Endpoints(), (Strings{"a 1 active", "b 1 active"}));
  EXPECT_EQ(::access(config.state_file.c_str(), F_OK), -1);
  EXPECT_EQ(dir.Read("state.bad"), "clusters: [");
  EXPECT_NE(log.Take().find("error state file " + config.state_file), std::string::npos);
  ASSERT_TRUE(clusters->Change(Change(Kind::kDrain, {{"a", "", 1}})).ok());
  EXPECT_TRUE(LoadState(config.state_file).ok());
}

// Not to the one of the process's start: a reload may have brought another.
TEST_F(ClustersTest, AResetGoesBackToTheListThatIsConfiguredNow) {
  Init();
  Configure({{"a", "10.0.0.1:1"}, {"z", "10.0.0.7:1"}});
  ASSERT_TRUE(clusters->Apply(config).ok());
  EXPECT_EQ(Endpoints(), (Strings{"a 1 active", "z 1 active"}));
  ASSERT_TRUE(clusters->Change(Change(Kind::kReplace, {{"x", "10.0.0.9:1", 3}})).ok());
  ASSERT_TRUE(clusters->Change(Change(Kind::kReset, {})).ok());
  EXPECT_EQ(Endpoints(), (Strings{"a 1 active", "z 1 active"}));
}

TEST_F(ClustersTest, AStateFileThatCannotBeReadStopsTheStart) {
  integration::TempDir dir;
  config.state_file = dir.File("folder");
  std::filesystem::create_directory(config.state_file);
  Clusters broken(registry, 1);
  EXPECT_FALSE(broken.Init(config).ok());
}

TEST_F(ClustersTest, AChangeThatCannotBeSavedChangesNothing) {
  integration::TempDir dir;
  config.state_file = dir.File("gone/state");
  Init();
  auto result = clusters->Change(Change(Kind::kDrain, {{"a", "", 1}}));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, ErrorKind::kIo);
  EXPECT_EQ(View().version, 1u);
  EXPECT_EQ(Endpoints(), (Strings{"a 1 active", "b 1 active"}));
}

TEST_F(ClustersTest, AChangeThatCouldNotBeSavedIsNotSavedByTheNext) {
  integration::TempDir dir;
  const std::string folder = dir.File("folder");
  config.state_file = folder + "/state";
  std::filesystem::create_directory(folder);
  Init();
  ASSERT_TRUE(clusters->Change(Change(Kind::kDrain, {{"a", "", 1}})).ok());
  std::filesystem::remove_all(folder);
  EXPECT_FALSE(clusters->Change(Change(Kind::kDrain, {{"b", "", 1}})).ok());
  EndpointChange other = Change(Kind::kAdd, {{"x", "10.0.0.7:1", 1}});
  other.cluster = "other";
  EXPECT_FALSE(clusters->Change(other).ok());  // nor that of a cluster that had none before
  std::filesystem::create_directory(folder);
  ASSERT_TRUE(clusters->Change(Change(Kind::kReweight, {{"b", "", 2}})).ok());
  const auto saved = LoadState(config.state_file);
  ASSERT_TRUE(saved.ok());
  ASSERT_EQ(saved->size(), 1u);
  const auto& list = saved->at("c").endpoints;
  EXPECT_TRUE(list[0].draining);
  EXPECT_FALSE(list[1].draining);
  EXPECT_EQ(list[1].weight, 2);
}

// Series last as long as the process, and there is room for so many.
TEST_F(ClustersTest, ARefusedChangeLeavesNoSeries) {
  integration::TempDir dir;
  config.state_file = dir.File("gone/state");
  std::filesystem::create_directory(dir.File("gone"));
  Init();
  ASSERT_TRUE(clusters->Change(Change(Kind::kDrain, {{"a", "", 1}})).ok());
  std::filesystem::remove_all(dir.File("gone"));
  const std::string before = registry.RenderPrometheus();
  EXPECT_EQ(clusters->Change(Change(Kind::kAdd, {{"new", "10.0.0.3:1", 1}})).error().kind, ErrorKind::kIo);
  EXPECT_EQ(clusters->Change(Change(Kind::kAdd, {{"new", "10.0.0.3:1", 1e9}})).error().kind,
            ErrorKind::kInvalidArgument);
  const config::Config good = config;
  const auto refused = [&] {
    config.clusters.push_back({});
    config.clusters.back().name = "new";
    config.clusters.back().endpoints.push_back({"first", *net::Address::Parse("10.0.0.4:1"), 1});
    config.routes.push_back(config.routes[0]);
    config.routes.back().name = "new";
    return !clusters->Apply(std::exchange(config, good)).ok();
  };
  config.access_log = {proxy::AccessLogOptions::Format::kText, "/nonexistent/folder/log"};
  EXPECT_TRUE(refused());
  config.routes.push_back(config.routes[0]);
  config.routes.back().cluster = "nope";
  EXPECT_TRUE(refused());
  Configure({{"x", "10.0.0.5:1"}, {"x", "10.0.0.6:1"}});
  EXPECT_TRUE(refused());
  Configure({{"x", "10.0.0.5:1"}});  // good, but the file must forget the former list
  EXPECT_TRUE(refused());
  EXPECT_TRUE(registry.RenderPrometheus() == before);  // long
}

TEST_F(ClustersTest, AReloadThatChangesNoListNeedsNoStateFile) {
  integration::TempDir dir;
  config.state_file = dir.File("gone/state");
  Init();
  config.routes[0].name = "renamed";
  Configure({{"a", "10.0.0.1:1"}});  // of a list that was not changed by RPC
  EXPECT_TRUE(clusters->Apply(config).ok());
  EXPECT_EQ(Published(), (Strings{"a"}));
}

// Else it would be in force again after the next start.
TEST_F(ClustersTest, AListThatLostToTheConfigurationGoesFromTheFileWithTheNextReload) {
  integration::TempDir dir;
  config.state_file = dir.File("state");
  {
    Clusters earlier(registry, 1);
    ASSERT_TRUE(earlier.Init(config).ok());
    ASSERT_TRUE(earlier.Change(Change(Kind::kDrain, {{"a", "", 1}})).ok());
  }
  const config::Config first = config;
  Configure({{"a", "10.0.0.1:1"}});
  Init();
  EXPECT_EQ(Endpoints(), (Strings{"a 1 active"}));
  ASSERT_TRUE(clusters->Apply(first).ok());
  EXPECT_EQ(Endpoints(), (Strings{"a 1 active", "b 1 active"}));
  Clusters later(registry, 1);
  ASSERT_TRUE(later.Init(first).ok());
  EXPECT_EQ((*later.List("c"))[0].endpoints[0].state, upstream::EndpointState::kActive);
}

TEST_F(ClustersTest, EndpointsThatLeaveAreMarkedAndDrainedOnTheirWorkers) {
  Init();
  std::shared_ptr<upstream::Endpoint> a = clusters->snapshots().Read(
      0, [](const std::shared_ptr<const proxy::Snapshot>& p) { return p->clusters[0]->endpoints[0].endpoint; });
  upstream::EndpointPool* pool = context->pools.Get(a, a->options(), nullptr);
  pool->BeginCall();
  ASSERT_TRUE(clusters->Change(Change(Kind::kRemove, {{"a", "", 1}})).ok());
  EXPECT_TRUE(a->removed());
  EXPECT_TRUE(pool->Usable());  // the worker has not heard yet
  time.Run();
  EXPECT_FALSE(pool->Usable());
  EXPECT_EQ(Endpoints(), (Strings{"b 1 active", "a 1 removed"}));  // visible while it has calls
  pool->EndCall(upstream::Outcome::kAnswered, 0);
  time.Run();
  EXPECT_EQ(a->pool(0), nullptr);
  EXPECT_EQ(Endpoints(), (Strings{"b 1 active"}));
}

// A call keeps the snapshot it began with; those between it and the one in force go with the next change, though the
// worker does nothing meanwhile, and its own goes with the first look after it has let go.
TEST_F(ClustersTest, FormerSnapshotsGoWhenNoCallReadsThem) {
  Init();
  auto published = [&] {
    return clusters->snapshots().Read(0, [](const auto& now) { return std::weak_ptr<const proxy::Snapshot>(now); });
  };
  context->Refresh();
  proxy::WorkerRef<proxy::Snapshot> call = context->snapshot;
  const std::weak_ptr<const proxy::Snapshot> of_call = published();
  std::vector<std::weak_ptr<const proxy::Snapshot>> all;
  auto alive = [&] { return std::count_if(all.begin(), all.end(), [](const auto& one) { return !one.expired(); }); };
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(clusters->Change(Change(i % 2 == 0 ? Kind::kDrain : Kind::kUndrain, {{"a", "", 1}})).ok());
    all.push_back(published());
    if (i % 10 == 9) time.Run();  // the worker hears of them in bursts
    EXPECT_LE(alive(), 3);        // in force, the one before it, and the worker's
    EXPECT_FALSE(of_call.expired());
  }
  EXPECT_EQ(context->snapshot.get(), all.back().lock().get());  // without a call
  call = {};
  EXPECT_FALSE(of_call.expired());  // not dropped by the worker
  clusters->Versions();
  EXPECT_TRUE(of_call.expired());
  EXPECT_EQ(alive(), 1);
  // An inspection and a reload do it as well.
  for (const bool look : {true, false}) {
    ASSERT_TRUE(clusters->Change(Change(Kind::kDrain, {{"b", "", 1}})).ok());
    const auto before = published();
    ASSERT_TRUE(clusters->Change(Change(Kind::kUndrain, {{"b", "", 1}})).ok());
    EXPECT_TRUE(before.expired());
    time.Run();
    const auto last = published();
    ASSERT_TRUE(clusters->Apply(config).ok());
    EXPECT_FALSE(last.expired());  // the worker has not heard
    time.Run();
    if (look) {
      ASSERT_TRUE(clusters->List("c").ok());
    } else {
      ASSERT_TRUE(clusters->Apply(config).ok());
    }
    EXPECT_TRUE(last.expired());
  }
}

TEST_F(ClustersTest, APreviewNeitherPublishesNorTouchesWhatIsInForce) {
  Init();
  const auto before = clusters->snapshots().Read(0, [](const auto& now) { return now; });
  const std::string series = registry.RenderPrometheus();
  for (Kind kind : {Kind::kAdd, Kind::kRemove, Kind::kReweight, Kind::kDrain, Kind::kReplace}) {
    EndpointChange change = Change(kind, {{kind == Kind::kAdd ? "n" : "a", "10.0.0.9:1", 3}});
    change.preview = true;
    auto result = clusters->Change(change);
    ASSERT_TRUE(result.ok()) << result.error().detail;
    EXPECT_EQ(result->version, 2u);
  }
  EXPECT_EQ(clusters->snapshots().Read(0, [](const auto& now) { return now; }), before);
  EXPECT_EQ(registry.RenderPrometheus(), series);  // of which there are only so many
  EXPECT_FALSE(Endpoint(0)->removed());
  EXPECT_EQ(Endpoints(), (Strings{"a 1 active", "b 1 active"}));
}

// A call in, another that waits for the same endpoint, which hangs: the other need not wait for the first.
TEST_F(ClustersTest, AWaiterForAnEndpointIsWokenWhenItLeaves) {
  config.clusters[0].endpoint_concurrency.max = 1;
  Init();
  runtime::Worker::ScopedCurrentForTest current(time.worker);
  const std::shared_ptr<upstream::Endpoint> a = Endpoint(0);
  limits::ConcurrencyLimiter::Ticket first, second;
  EXPECT_EQ(first.Ask(*a->concurrency(), 1).kind, limits::Verdict::Kind::kGo);
  bool removed = false, woken = false;
  const auto wait = [&]() -> runtime::Task<> {
    if (second.Ask(*a->concurrency(), 2).kind != limits::Verdict::Kind::kWait) co_return;
    sync::Event never;
    co_await never.Wait();  // until the ticket's wake-up
    woken = second.Poll().kind == limits::Verdict::Kind::kGo && !second.holding();
    removed = a->removed();
  };
  time.runtime.SpawnOn(time.worker, wait());
  time.Run();
  EXPECT_EQ(clusters->UseOfEndpoints("c").waiting, 1u);
  ASSERT_TRUE(clusters->Change(Change(Kind::kRemove, {{"a", "", 1}})).ok());
  time.Run();
  EXPECT_TRUE(woken);
  EXPECT_TRUE(removed);
  second.Drop();  // where it was not woken
}

// A limit of endpoints that was changed by RPC holds for a new endpoint from its first call, before the reload has
// ended.
TEST_F(ClustersTest, AReloadsNewEndpointsHaveTheLimitInForce) {
  LimitSet limits;
  limits.Apply(config);
  clusters.emplace(registry, 1, ClusterWaits(), &limits);
  LimitTable plan = limits.MakePlan(config);
  ASSERT_TRUE(clusters->Init(config, {&plan, nullptr}).ok());
  limits.SetHooks({{}, [this](const std::string& cluster) { clusters->ConfigureEndpoints(cluster); }});
  ASSERT_TRUE(limits.Change({.name = "cluster/c/endpoint_concurrency", .max = 1}).ok());
  EXPECT_TRUE(Endpoint(0)->concurrency()->enabled());
  Configure({{"a", "10.0.0.1:1"}, {"b", "10.0.0.2:1"}, {"new", "10.0.0.3:1"}});
  plan = limits.MakePlan(config);
  ASSERT_TRUE(clusters->Apply(config, {&plan, nullptr}).ok());
  EXPECT_EQ(Endpoint(2)->name(), "new");
  EXPECT_TRUE(Endpoint(2)->concurrency()->enabled());
  config.clusters[0].endpoint_concurrency.max = 7;
  plan = limits.MakePlan(config);
  ASSERT_TRUE(clusters->Apply(config, {&plan, nullptr}).ok());
  limits::ConcurrencyLimiter::Ticket tickets[8];
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(tickets[i].TryAsk(*Endpoint(0)->concurrency()).kind == limits::Verdict::Kind::kGo, i < 7) << i;
  }
}

TEST_F(ClustersTest, AClusterThatLeavesTheConfigurationTakesItsEndpointsAlong) {
  Init();
  std::shared_ptr<upstream::Endpoint> a = clusters->snapshots().Read(
      0, [](const std::shared_ptr<const proxy::Snapshot>& p) { return p->clusters[0]->endpoints[0].endpoint; });
  config.routes[0].cluster = "other";
  config.clusters.erase(config.clusters.begin());
  ASSERT_TRUE(clusters->Apply(config).ok());
  EXPECT_TRUE(a->removed());
  EXPECT_EQ(clusters->List("c").error().kind, ErrorKind::kNotFound);
}

}  // namespace
}  // namespace sluice::server
