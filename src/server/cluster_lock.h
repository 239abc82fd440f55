// ClusterLock: the lock of one cluster, from the reload that brings the cluster to the reload that removes it. Requests
// that read the cluster share it, a change holds it alone. It also keeps the former endpoints that may still have
// calls. docs/shared-lock.md draws which request holds which locks.
//
// A cluster that is removed and comes back under the same name has a new lock; both may exist for a moment.
//
// Thread safety: all of it from any thread but a worker's. Held counted: LockedCluster keeps it while it holds its
// lock.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "sync/shared_lock.h"
#include "upstream/endpoint.h"

namespace sluice::server {

// How long each kind of request waits for others to let go of a cluster, then it ends with kBusy.
struct ClusterWaits {
  // A change of one list, or its preview.
  base::Nanos change = std::chrono::seconds(5);
  // A reload, for all its clusters together. Below the 10 s after which sluicectl gives up, so that its user is
  // told which request was in the way.
  base::Nanos reload = std::chrono::seconds(8);
  // An inspection of the lists. Short: it answers "busy" rather than wait behind a reload that builds rings.
  base::Nanos inspection = std::chrono::milliseconds(250);
};

class ClusterLock;

// A cluster's lock, held. Moves, but is not assigned: the guard goes before the lock that it points into.
struct LockedCluster {
  std::shared_ptr<ClusterLock> lock;
  sync::SharedLock::Guard guard;

  LockedCluster(std::shared_ptr<ClusterLock> l, sync::SharedLock::Guard g) : lock(std::move(l)), guard(std::move(g)) {}
  LockedCluster(LockedCluster&&) = default;
  LockedCluster& operator=(LockedCluster&&) = delete;
};

class ClusterLock {
 public:
  explicit ClusterLock(std::string name) : name_(std::move(name)) {}

  const std::string& name() const { return name_; }

  // Blocks until `deadline`. kBusy names the holder; kRemoved: the cluster was removed meanwhile. `what`: static text.
  static base::Result<LockedCluster> Lock(std::shared_ptr<ClusterLock> lock, sync::LockMode mode, std::string_view what,
                                          base::TimePoint deadline);
  // The end. The guard is exclusive (CHECK); waiters get kRemoved.
  void Remove(sync::SharedLock::Guard& guard);

  // Its holders and waiters.
  sync::SharedLock::View Look() { return lock_.Look(); }

  // Endpoints that left the list and may still have calls. AddLeaving: under the exclusive lock; the others: any.
  void AddLeaving(const std::vector<std::shared_ptr<upstream::Endpoint>>& endpoints);
  std::vector<std::shared_ptr<upstream::Endpoint>> Leaving();
  // Forgets those that are no longer used: by no call, no pool and no list that a call still reads.
  void Sweep();

 private:
  const std::string name_;
  sync::SharedLock lock_;
  std::mutex mutex_;  // for a few lines, as inspections are in here together
  std::vector<std::weak_ptr<upstream::Endpoint>> leaving_;
};

}  // namespace sluice::server
