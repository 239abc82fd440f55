// Clusters: the writer's side of routes, clusters and endpoint lists. Builds new states aside, publishes a Snapshot
// whole, and tells the workers to drain what has left.
//
// Each cluster has a lock of its own (cluster_lock.h): expensive work (building a ring, writing the state file) happens
// under it alone, so two clusters change at the same time, and a cluster that is being built does not delay requests
// that read another one. The mutex is held for the table of clusters and the publication only.
//
//   request              holds                                             waits, then kBusy
//   Change               its cluster, exclusive; shared while it drains    5 s
//   a preview            its cluster, shared                               5 s
//   Put (of a source)    as Change                                         5 s, then kLater
//   Apply (a reload)     all that it changes or removes, exclusive,     8 s in all
//                        in name order; shared while it drains
//   List                 one cluster after the other, shared               250 ms in all
// Order: reload_mutex_, clusters' locks by name, then the state file's mutex or mutex_, never both.
//
// Thread safety: every function may be called from any thread but a worker's.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "admin/backend.h"
#include "base/error.h"
#include "base/log_limit.h"
#include "config/config.h"
#include "discovery/list_sink.h"
#include "metrics/registry.h"
#include "proxy/call/call_context.h"
#include "proxy/snapshot.h"
#include "server/cluster_lock.h"
#include "server/gate_set.h"
#include "server/limit_set.h"
#include "server/own_listeners.h"
#include "server/state_file.h"
#include "server/state_file_writer.h"

namespace sluice::server {

// What a snapshot refers to besides routes and clusters. Without: no limits but those of the clusters' options, no
// cache.
struct SnapshotInputs {
  const LimitTable* limits = nullptr;
  std::shared_ptr<proxy::ResponseCache> cache;
  std::shared_ptr<const proxy::Tracer> tracer;
  const GateTable* gates = nullptr;  // null: no route asks for any (CHECK)
};

// What another process had in force of a cluster (docs/handover.md).
struct InheritedList {
  SavedList list;  // of kConfig without endpoints
  uint64_t version = 0;
  bool released = false;
};
using InheritedLists = std::map<std::string, InheritedList>;  // by cluster

class Clusters final : public discovery::ListSink {
 public:
  // `limits`: its EndpointConcurrency is what endpoints get when a list has changed; null: their cluster's options.
  // `first_version`: of each list (FirstListVersion).
  Clusters(metrics::Registry& registry, uint32_t workers, ClusterWaits waits = {}, const LimitSet* limits = nullptr,
           uint64_t first_version = 1);

  // The first snapshot: the configuration, with what the state file keeps of earlier changes; or, in place of the file,
  // what another process had in force. Once, before workers run.
  base::Status Init(const config::Config& config, const SnapshotInputs& inputs = {},
                    const InheritedLists* inherited = nullptr);
  // For another process, which takes over.
  InheritedLists ListsInForce();
  // From now on another process writes the state file; or this one does, which took over from another. After Init with
  // lists of another process that one writes it.
  void LeaveStateFile() { state_.Leave(); }
  void TakeStateFile() { state_.Enter(); }
  // The workers to tell of endpoints that leave: set before Apply and Change, and to none before they are destroyed.
  void SetWorkers(std::vector<proxy::CallContext*> workers) {
    std::lock_guard lock(mutex_);
    workers_ = std::move(workers);
  }

  // A reload. Lists changed by RPC stay, unless the configuration's list of that cluster has changed. On an error
  // (kBusy, access log, state file) nothing has changed.
  base::Status Apply(const config::Config& config, const SnapshotInputs& inputs = {});
  // Gives the endpoints of the cluster (empty: of all) their limit in force.
  void ConfigureEndpoints(std::string_view cluster = {});
  LimitSet::EndpointUse UseOfEndpoints(std::string_view cluster);
  // kBusy, kRemoved, and as admin::Backend::ChangeEndpoints.
  base::Result<admin::ChangeResult> Change(const upstream::EndpointChange& change);
  // The list of the cluster's source. It is put in force where the state file cannot be written, too: the source says
  // it again.
  discovery::PutResult Put(const std::string& cluster, const discovery::DiscoveryOptions& source,
                           const discovery::List& list, double moved_max) override;
  // The list in force, if the source gave it. Null: another one is. The cluster is there.
  std::shared_ptr<const discovery::List> Discovered(const std::string& cluster);
  // As admin::Backend::SetEndpointHealth. The list stays as it is, so no lock is taken.
  base::Status SetHealth(const admin::HealthOrder& order);
  // kBusy, kNotFound, kRemoved.
  base::Result<std::vector<admin::ClusterView>> List(std::string_view name);

  const proxy::SnapshotData& snapshots() const { return snapshots_; }
  std::shared_ptr<proxy::AccessLog> access_log();
  std::shared_ptr<proxy::Insight> insight();
  // The route of this name, else the one at this place ("0"), else the only one whose calls go to the cluster of this
  // name. kNotFound: there is none; the message says which there are.
  base::Result<std::string> RouteOf(std::string_view name);
  // Null: before Init.
  std::shared_ptr<const proxy::RouteConfig> route_config() const;
  std::shared_ptr<const proxy::Snapshot> snapshot() const;
  // name -> version, for metrics.
  std::vector<std::pair<std::string, uint64_t>> Versions();
  // Sums of the calls of its routes, by cluster; a failover's count for the cluster that it steps in for.
  std::vector<admin::ClusterTraffic> Traffic();
  // Each cluster as it is now, by name.
  std::vector<std::shared_ptr<const upstream::ClusterState>> States();

  // Locks a cluster as a change would. kNotFound, kBusy, kRemoved.
  base::Result<LockedCluster> LockForTest(std::string_view name, sync::LockMode mode, std::string_view what);

 private:
  struct Entry {
    std::shared_ptr<const upstream::ClusterState> state;
    uint64_t configured = 0;  // Fingerprint of the configuration's list
    std::shared_ptr<ClusterLock> lock;
    discovery::DiscoveryOptions discovery;
    bool released = false;  // a list by RPC is in force that the next one of the source replaces
    int64_t put_at = 0;     // when the list was put in force, in seconds since 1970
    // A list by RPC is in force, and stays.
    bool Overridden() const;
  };
  using Entries = std::map<std::string, Entry, std::less<>>;
  struct PlannedList {
    uint64_t configured;
    std::vector<upstream::WantedEndpoint> wanted;
    upstream::ListSource source;
    int64_t put_at = 0;     // as of Entry
    bool released = false;  // the same
    uint64_t version = 0;   // of a list that another process had; 0: none
  };
  struct Plan {
    std::map<std::string, PlannedList, std::less<>> lists;  // of clusters that are new or change
    std::shared_ptr<proxy::AccessLog> access_log;
    std::shared_ptr<proxy::Insight> insight;
  };
  // Endpoints that left a cluster's list.
  struct Left {
    std::shared_ptr<ClusterLock> lock;
    std::vector<std::shared_ptr<upstream::Endpoint>> endpoints;
  };
  using Endpoints = std::span<const std::shared_ptr<upstream::Endpoint>>;
  // Endpoints that are drained in one shared step.
  static constexpr size_t kDrainStep = 256;

  // Whether a reload leaves the cluster alone.
  static bool Keeps(const Entry& entry, const upstream::ClusterOptions& options, const config::Config& config);
  // The list that a cluster begins with, or goes on with.
  static PlannedList PlanList(const upstream::ClusterOptions& options, const config::Config& config,
                              const SavedLists& saved, const Entry* before);
  // Changes the list of a cluster that is held (shared for a preview).
  base::Result<admin::ChangeResult> PutList(LockedCluster held, const std::string& cluster, const Entry& entry,
                                            const upstream::ListChange& wanted, upstream::ListSource source,
                                            bool preview);
  static void TellAge(const std::string& cluster, const PlannedList& list);
  base::Result<admin::ChangeResult> ResetList(LockedCluster held, const std::string& cluster, const Entry& entry,
                                              bool preview);
  // Locks the cluster and reads its entry under the lock. kNotFound, kBusy, kRemoved.
  struct Held {
    LockedCluster cluster;
    Entry entry;
  };
  // `what`: literal text.
  base::Result<Held> Hold(const std::string& cluster, sync::LockMode mode, std::string_view what);
  // Locks, in name order, each cluster that the configuration changes or removes.
  base::Result<std::vector<LockedCluster>> LockForReload(const config::Config& config, const Entries& before) const;
  // All of a configuration that can fail: lists, clusters of routes, the access log. kInvalidArgument, kIo.
  base::Result<Plan> MakePlan(const config::Config& config, const SavedLists& saved, const Entries& before);
  // The same list keeps its version, another one has a greater one.
  void Inherit(const InheritedLists& inherited, Plan& plan);
  // The entries of `config`: those of `before` where the plan has no list, else new states. Their series of metrics are
  // there from then on, and for as long as the process.
  Entries BuildEntries(const config::Config& config, const SnapshotInputs& inputs, const Plan& plan,
                       const Entries& before) const;
  // What a snapshot has besides its clusters; these will stand in it in the order of `entries`.
  std::shared_ptr<const proxy::RouteConfig> BuildRouteConfig(const config::Config& config, const SnapshotInputs& inputs,
                                                             const Plan& plan, const Entries& entries) const;

  void ConfigureEndpointsLocked(std::string_view cluster);
  Entries entries();
  // Under mutex_: a snapshot of entries_. DropFormer is to follow.
  void PublishLocked(std::shared_ptr<const proxy::RouteConfig> config);
  // Drops the former snapshots that no call reads any more. The others go with a later change, or when the clusters or
  // their metrics are read.
  void DropFormer();
  // Drains in steps of kDrainStep. The first step is under the locks `held` (downgraded here, then released), each
  // other step under a shared lock of its own, so that a reload that waits meanwhile gets its turn.
  void Drain(std::vector<LockedCluster> held, const std::vector<Left>& all);
  void DrainStep(Endpoints endpoints);

  metrics::Registry& registry_;
  const uint32_t worker_count_;
  const ClusterWaits waits_;
  const LimitSet* const limits_;
  proxy::SnapshotData snapshots_;
  StateFileWriter state_;
  OwnListeners own_listeners_;

  std::mutex reload_mutex_;  // one reload at a time; the set of clusters changes in reloads only
  // Under reload_mutex_. Of clusters that are new: above all versions that a removed one has had, as that may come
  // back.
  uint64_t first_version_;

  mutable std::mutex mutex_;
  // All below: under mutex_.
  std::vector<proxy::CallContext*> workers_;
  Entries entries_;
  base::LogLimit unsaved_log_{1, std::chrono::seconds(10)};  // lists of sources that the state file has not
  std::shared_ptr<const proxy::Snapshot> current_;
  std::vector<std::shared_ptr<const proxy::Snapshot>> former_;  // that may still be read
};

}  // namespace sluice::server
