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
#include "proxy/route_table.h"
#include "upstream/cluster.h"

namespace sluice::proxy {

struct Snapshot {
  std::shared_ptr<const RouteTable> routes;
  std::vector<std::shared_ptr<const upstream::ClusterState>> clusters;
  ForwardingOptions forwarding;
  std::shared_ptr<AccessLog> access_log;  // never null
  uint64_t hash_seed = 0;
};

class SnapshotPointers {
 public:
  SnapshotPointers() = default;
  SnapshotPointers(std::shared_ptr<const Snapshot> snapshot, size_t workers) : main_(std::move(snapshot)) {
    for (size_t i = 0; i < workers; ++i) {
      // A shared_ptr whose control block holds a reference to the common one.
      auto own = std::make_shared<OwnLine>(OwnLine{main_});
      const Snapshot* raw = own->snapshot.get();
      workers_.emplace_back(std::move(own), raw);
    }
  }
  const std::shared_ptr<const Snapshot>& For(size_t worker) const { return workers_[worker]; }
  const std::shared_ptr<const Snapshot>& main() const { return main_; }

 private:
  // As large as two cache lines, so that no two workers' counts share one.
  struct OwnLine {
    std::shared_ptr<const Snapshot> snapshot;
    char rest[128 - sizeof(std::shared_ptr<const Snapshot>)] = {};
  };
  std::shared_ptr<const Snapshot> main_;
  std::vector<std::shared_ptr<const Snapshot>> workers_;
};

using SnapshotData = concurrent::DoublyBufferedData<SnapshotPointers>;

}  // namespace sluice::proxy
