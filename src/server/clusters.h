// Clusters: the writer's side of routes, clusters and endpoint lists. Builds a Snapshot aside, publishes it whole, and
// tells the workers to drain what has left.
//
// Thread safety: every function may be called from any thread but a worker's; they exclude each other by one mutex.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "admin/backend.h"
#include "base/error.h"
#include "config/config.h"
#include "metrics/registry.h"
#include "proxy/snapshot.h"
#include "proxy/worker_context.h"
#include "server/state_file.h"

namespace sluice::server {

class Clusters {
 public:
  Clusters(metrics::Registry& registry, uint32_t workers);

  // The first snapshot: the configuration, with what the state file keeps of earlier changes. Once, before workers run.
  base::Status Init(const config::Config& config);
  // The workers to tell of endpoints that leave: set before Apply and Change, and to none before they are destroyed.
  void SetWorkers(std::vector<proxy::WorkerContext*> workers) {
    std::lock_guard lock(mutex_);
    workers_ = std::move(workers);
  }

  // A reload. Lists changed by RPC stay, unless the configuration's list of that cluster has changed. On an error
  // (access log, state file) nothing has changed.
  base::Status Apply(const config::Config& config);
  base::Result<admin::ChangeResult> Change(const admin::EndpointChange& change);
  base::Result<std::vector<admin::ClusterView>> List(std::string_view name);

  const proxy::SnapshotData& snapshots() const { return snapshots_; }
  std::shared_ptr<proxy::AccessLog> access_log();
  // name -> version, for metrics.
  std::vector<std::pair<std::string, uint64_t>> Versions();

 private:
  struct Entry {
    std::shared_ptr<const upstream::ClusterState> state;
    uint64_t configured = 0;  // Fingerprint of the configuration's list
  };
  using Entries = std::map<std::string, Entry, std::less<>>;

  base::Result<Entries> BuildEntries(const config::Config& config, const SavedLists& saved) const;
  base::Result<std::shared_ptr<const proxy::Snapshot>> BuildSnapshot(const config::Config& config, const Entries& entries);
  void Publish(std::shared_ptr<const proxy::Snapshot> snapshot, Entries entries);
  base::Status Save(const Entries& entries) const;
  admin::ClusterView View(const upstream::ClusterState& state) const;

  metrics::Registry& registry_;
  const uint32_t worker_count_;
  proxy::SnapshotData snapshots_;

  std::mutex mutex_;
  // All below: under mutex_.
  std::vector<proxy::WorkerContext*> workers_;
  std::string state_file_;
  Entries entries_;
  std::shared_ptr<const proxy::Snapshot> current_;
  // Endpoints that left a list and may still have calls; for inspection.
  std::vector<std::weak_ptr<upstream::Endpoint>> leaving_;
};

}  // namespace sluice::server
