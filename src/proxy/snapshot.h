// Snapshot: everything a call reads of the configuration, as one immutable value: routes, clusters, rings.
//
// Published through DoublyBufferedData. A call takes a counted pointer to it; so that taking one does not write a line
// that other workers write, each worker has a pointer with a control block of its own (WorkerPointers).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "concurrent/doubly_buffered_data.h"
#include "proxy/options.h"
#include "proxy/access_log.h"
#include "proxy/response_cache.h"
#include "proxy/route_table.h"
#include "upstream/cluster.h"

namespace sluice::proxy {

// Bounds the calls under way in the whole process. Any thread.
struct ProcessLimits {
  ProcessLimits(std::shared_ptr<limits::ConcurrencyLimiter> limiter, metrics::Registry& registry)
      : concurrency(std::move(limiter)), bound(registry, "process/concurrency") {}

  const std::shared_ptr<limits::ConcurrencyLimiter> concurrency;
  const limits::BoundMetrics bound;
};

// What a call needs to its end. Apart from the endpoint lists, so that a call that lasts for hours does not keep the
// rings of its time in memory.
struct RouteConfig {
  RouteTable routes;
  ForwardingOptions forwarding;
  std::shared_ptr<AccessLog> access_log;  // never null
  uint64_t hash_seed = 0;
  std::shared_ptr<const ProcessLimits> limits;  // null: none
  std::shared_ptr<ResponseCache> cache;         // null: no route caches
};

// What it needs until its response begins.
struct Snapshot {
  std::shared_ptr<const RouteConfig> config;
  std::vector<std::shared_ptr<const upstream::ClusterState>> clusters;
};

// What a call takes, counted.
struct SnapshotRef {
  std::shared_ptr<const Snapshot> snapshot;
  std::shared_ptr<const RouteConfig> config;
};

class SnapshotPointers {
 public:
  SnapshotPointers() = default;
  SnapshotPointers(const std::shared_ptr<const Snapshot>& snapshot, size_t workers) {
    for (size_t i = 0; i < workers; ++i) workers_.push_back({OwnCount(snapshot), OwnCount(snapshot->config)});
  }
  const SnapshotRef& For(size_t worker) const { return workers_[worker]; }

 private:
  // A pointer with a control block of its own, which holds a reference to the common one. As large as two cache lines,
  // so that no two workers' counts share one.
  template <typename T>
  static std::shared_ptr<const T> OwnCount(const std::shared_ptr<const T>& common) {
    struct Line {
      std::shared_ptr<const T> common;
      char rest[128 - sizeof(std::shared_ptr<const T>)] = {};
    };
    return std::shared_ptr<const T>(std::make_shared<Line>(Line{common}), common.get());
  }
  std::vector<SnapshotRef> workers_;
};

using SnapshotData = concurrent::DoublyBufferedData<SnapshotPointers>;

}  // namespace sluice::proxy
