// Requests that meet at a cluster: busy, removed, two at once. Threads wait for states they can observe, never for
// time.
#include "server/cluster_lock.h"

#include <gtest/gtest.h>

#include <future>
#include <latch>

#include "integration/support/temp_dir.h"
#include "server/clusters.h"

namespace sluice::server {
namespace {

using base::ErrorKind;
using std::chrono::milliseconds;
using sync::LockMode;
using upstream::EndpointChange;

constexpr ClusterWaits kLong{std::chrono::hours(1), std::chrono::hours(1), std::chrono::hours(1)};
// A wait that is meant to end without its wish: long enough to queue, no longer.
constexpr ClusterWaits kShort{milliseconds(2), milliseconds(2), milliseconds(2)};

class ClusterLockTest : public ::testing::Test {
 public:
  ClusterLockTest() {
    config.clusters.resize(3);
    config.clusters[0].name = "a";
    config.clusters[1].name = "b";
    config.clusters[2].name = "c";
    for (auto& cluster : config.clusters) cluster.endpoints.push_back({"e1", *net::Address::Parse("10.0.0.1:1"), 1});
    config.routes.resize(1);
    config.routes[0].name = "r";
    config.routes[0].cluster = "c";
  }
  void Init(ClusterWaits waits) {
    clusters.emplace(registry, 1, waits);
    auto status = clusters->Init(config);
    ASSERT_TRUE(status.ok()) << status.error().detail;
  }
  static EndpointChange Add(std::string cluster, std::string endpoint) {
    EndpointChange change;
    change.kind = EndpointChange::Kind::kAdd;
    change.cluster = std::move(cluster);
    change.endpoints = {{std::move(endpoint), "10.0.0.2:1", 1}};
    return change;
  }
  LockedCluster Hold(std::string_view name, LockMode mode, std::string_view what) {
    return std::move(*clusters->LockForTest(name, mode, what));
  }
  size_t Endpoints(std::string_view name) { return (*clusters->List(name))[0].endpoints.size(); }
  // Returns when `waiting` requests stand in the cluster's queue.
  static void AwaitQueue(const LockedCluster& held, size_t exclusives) {
    while (held.lock->Look().exclusive_waiting < exclusives) std::this_thread::yield();
  }

  config::Config config;
  metrics::Registry registry{1};
  std::optional<Clusters> clusters;
};

TEST_F(ClusterLockTest, InspectionOfABusyClusterNamesTheHolder) {
  Init(kShort);
  LockedCluster held = Hold("b", LockMode::kExclusive, "reload");
  for (std::string_view name : {"b", ""}) {
    auto list = clusters->List(name);
    ASSERT_FALSE(list.ok());
    EXPECT_EQ(list.error().kind, ErrorKind::kBusy);
    EXPECT_EQ(list.error().detail, "cluster b is busy: held by reload");
  }
  EXPECT_TRUE(clusters->List("a").ok());  // of another: nothing to wait for
  EXPECT_TRUE(clusters->Change(Add("a", "e2")).ok());
  held.guard.Downgrade();
  EXPECT_EQ(clusters->List("")->size(), 3u);
}

TEST_F(ClusterLockTest, AChangeThatWaitsTooLongIsBusyAndChangesNothing) {
  Init(kShort);
  LockedCluster held = Hold("a", LockMode::kShared, "inspection");
  auto result = clusters->Change(Add("a", "e2"));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, ErrorKind::kBusy);
  EXPECT_EQ(result.error().detail, "cluster a is busy: held by inspection");
  EXPECT_EQ(Endpoints("a"), 1u);
  EndpointChange preview = Add("a", "e2");
  preview.preview = true;
  EXPECT_TRUE(clusters->Change(preview).ok());  // it only looks
  held.guard.Release();
  EXPECT_TRUE(clusters->Change(Add("a", "e2")).ok());
}

TEST_F(ClusterLockTest, AReloadThatWaitsTooLongIsBusyAndChangesNothing) {
  Init(kShort);
  LockedCluster held = Hold("b", LockMode::kShared, "drain");
  for (auto& cluster : config.clusters) cluster.pending_calls_max = 7;
  auto status = clusters->Apply(config);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::kBusy);
  EXPECT_EQ(status.error().detail, "cluster b is busy: held by drain");
  EXPECT_EQ((*clusters->List("a"))[0].version, 1u);
  EXPECT_TRUE(clusters->Change(Add("a", "e2")).ok());  // what the reload had taken is free again
}

TEST_F(ClusterLockTest, AReloadWaitsForNoClusterThatItKeeps) {
  Init(kShort);
  LockedCluster held = Hold("b", LockMode::kExclusive, "change of endpoints");
  config.clusters[0].pending_calls_max = 7;
  EXPECT_TRUE(clusters->Apply(config).ok());
  EXPECT_EQ((*clusters->List("a"))[0].version, 2u);
}

TEST_F(ClusterLockTest, AWaiterForAClusterThatIsRemovedIsTold) {
  Init(kLong);
  auto held = std::make_unique<LockedCluster>(Hold("a", LockMode::kExclusive, "change of endpoints"));
  // The reload stands in the queue first, the others behind it.
  auto gone = config;
  gone.clusters.erase(gone.clusters.begin());
  auto reload = std::async(std::launch::async, [&] { return clusters->Apply(gone); });
  AwaitQueue(*held, 1);
  std::vector<std::future<base::Result<admin::ChangeResult>>> changes;
  for (size_t i = 0; i < 3; ++i) {
    changes.push_back(std::async(std::launch::async, [&] { return clusters->Change(Add("a", "e2")); }));
    AwaitQueue(*held, 2 + i);
  }
  auto list = std::async(std::launch::async, [&] { return clusters->List("a"); });
  while (held->lock->Look().groups < 5) std::this_thread::yield();
  held.reset();
  EXPECT_TRUE(reload.get().ok());
  for (auto& change : changes) {
    auto result = change.get();
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().kind, ErrorKind::kRemoved);
    EXPECT_EQ(result.error().detail, "cluster a was removed while the request waited");
  }
  EXPECT_EQ(list.get().error().kind, ErrorKind::kRemoved);
  EXPECT_EQ(clusters->Change(Add("a", "e2")).error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(clusters->List("")->size(), 2u);
}

TEST_F(ClusterLockTest, AClusterThatComesBackIsANewOne) {
  Init(kShort);
  ASSERT_TRUE(clusters->Change(Add("a", "e2")).ok());
  auto gone = config;
  gone.clusters.erase(gone.clusters.begin());
  ASSERT_TRUE(clusters->Apply(gone).ok());
  ASSERT_TRUE(clusters->Apply(config).ok());
  EXPECT_EQ(Endpoints("a"), 1u);
  EXPECT_EQ((*clusters->List("a"))[0].version, 3u);  // above all that the former one had
  EXPECT_TRUE(clusters->Change(Add("a", "e2")).ok());
}

TEST_F(ClusterLockTest, ChangesOfTwoClustersAtOnceBothTakeEffect) {
  constexpr int kChanges = 20;
  integration::TempDir dir;
  config.state_file = dir.File("state");
  Init(kLong);
  std::latch start(3);
  std::vector<std::future<int>> writers;
  for (const char* cluster : {"a", "b"}) {
    writers.push_back(std::async(std::launch::async, [&, cluster] {
      start.arrive_and_wait();
      int done = 0;
      for (int i = 0; i < kChanges; ++i) {
        EndpointChange change = Add(cluster, "n" + std::to_string(i));
        change.expected_version = static_cast<uint64_t>(i + 1);  // no other thread changes this cluster
        done += clusters->Change(change).ok() ? 1 : 0;
      }
      return done;
    }));
  }
  writers.push_back(std::async(std::launch::async, [&] {
    start.arrive_and_wait();
    auto wanted = config;
    int done = 0;
    for (int i = 0; i < kChanges; ++i) {
      wanted.clusters[2].pending_calls_max = static_cast<uint32_t>(100 + i);
      done += clusters->Apply(wanted).ok() ? 1 : 0;
    }
    return done;
  }));
  for (auto& writer : writers) EXPECT_EQ(writer.get(), kChanges);
  for (const char* cluster : {"a", "b"}) {
    EXPECT_EQ(Endpoints(cluster), 1u + kChanges);
    EXPECT_EQ((*clusters->List(cluster))[0].version, 1u + kChanges);
  }
  EXPECT_EQ((*clusters->List("c"))[0].version, 1u + kChanges);
  // What calls read, and what a restart would.
  clusters->snapshots().Read(clusters->snapshots().shared_slot(),
                             [&](const std::shared_ptr<const proxy::Snapshot>& snapshot) {
                               for (size_t i = 0; i < 2; ++i)
                                 EXPECT_EQ(snapshot->clusters[i]->endpoints.size(), 1u + kChanges);
                               return 0;
                             });
  Clusters later(registry, 1);
  ASSERT_TRUE(later.Init(config).ok());
  for (const char* cluster : {"a", "b"}) EXPECT_EQ((*later.List(cluster))[0].endpoints.size(), 1u + kChanges);
}

TEST_F(ClusterLockTest, OfManyChangesOfOneVersionOneIsDone) {
  Init(kLong);
  for (uint64_t version = 1; version <= 10; ++version) {
    std::latch start(4);
    std::vector<std::future<bool>> writers;
    for (int i = 0; i < 4; ++i) {
      writers.push_back(std::async(std::launch::async, [&, i] {
        EndpointChange change = Add("a", std::to_string(version) + "-" + std::to_string(i));
        change.expected_version = version;
        start.arrive_and_wait();
        auto result = clusters->Change(change);
        EXPECT_TRUE(result.ok() || result.error().kind == ErrorKind::kConflict);
        return result.ok();
      }));
    }
    int done = 0;
    for (auto& writer : writers) done += writer.get() ? 1 : 0;
    EXPECT_EQ(done, 1);
  }
  EXPECT_EQ(Endpoints("a"), 11u);
}

TEST_F(ClusterLockTest, AReloadAndChangesOfTheSameClusterLoseNothing) {
  constexpr int kRounds = 20;
  integration::TempDir dir;
  config.state_file = dir.File("state");
  Init(kLong);
  std::latch start(2);
  auto reloads = std::async(std::launch::async, [&] {
    auto wanted = config;
    start.arrive_and_wait();
    for (int i = 0; i < kRounds; ++i) {
      wanted.clusters[0].pending_calls_max = static_cast<uint32_t>(100 + i);  // other options, the same list
      EXPECT_TRUE(clusters->Apply(wanted).ok());
    }
  });
  start.arrive_and_wait();
  for (int i = 0; i < kRounds; ++i) EXPECT_TRUE(clusters->Change(Add("a", "n" + std::to_string(i))).ok());
  reloads.get();
  EXPECT_EQ(Endpoints("a"), 1u + kRounds);
  EXPECT_EQ((*clusters->List("a"))[0].version, 1u + 2 * kRounds);
  Clusters later(registry, 1);
  ASSERT_TRUE(later.Init(config).ok());
  EXPECT_EQ((*later.List("a"))[0].endpoints.size(), 1u + kRounds);
}

}  // namespace
}  // namespace sluice::server
