// ClusterLife: one cluster from the reload that brings it to the reload that takes it away: who may look at it, who may
// change it, and which of its former endpoints may still have calls. docs/shared-lock.md draws who holds what.
//
// A cluster that is taken away and comes back under the same name has a new life; both may exist for a moment.
//
// Thread safety: all of it from any thread but a worker's. Held counted: HeldCluster keeps it while it holds its lock.
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
  // A reload, for all its clusters together. Below the 10 s after which sluicectl stops listening, so that its user is
  // told who was in the way.
  base::Nanos reload = std::chrono::seconds(8);
  // A look at the lists. Short: it answers "busy" rather than wait behind a reload that builds rings.
  base::Nanos inspection = std::chrono::milliseconds(250);
};

class ClusterLife;

// A cluster's lock, held. Moves, but is not assigned: the guard goes before the life that it points into.
struct HeldCluster {
  std::shared_ptr<ClusterLife> life;
  sync::SharedLock::Guard guard;

  HeldCluster(std::shared_ptr<ClusterLife> l, sync::SharedLock::Guard g) : life(std::move(l)), guard(std::move(g)) {}
  HeldCluster(HeldCluster&&) = default;
  HeldCluster& operator=(HeldCluster&&) = delete;
};

class ClusterLife {
 public:
  explicit ClusterLife(std::string name) : name_(std::move(name)) {}

  const std::string& name() const { return name_; }

  // Blocks until `deadline`. kBusy names who holds it; kRemoved: it was taken away meanwhile. `what`: static text.
  static base::Result<HeldCluster> Hold(std::shared_ptr<ClusterLife> life, sync::LockMode mode, std::string_view what,
                                        base::TimePoint deadline);
  // The end. The guard is exclusive (CHECK); who waits is told kRemoved.
  void Remove(sync::SharedLock::Guard& guard);

  // Who holds it and who waits.
  sync::SharedLock::View Look() { return lock_.Look(); }

  // Endpoints that left the list and may still have calls. AddLeaving: under the exclusive lock; the others: any.
  void AddLeaving(const std::vector<std::shared_ptr<upstream::Endpoint>>& endpoints);
  std::vector<std::shared_ptr<upstream::Endpoint>> Leaving();
  // Forgets those that nobody uses any more: no call, no pool, no list that a call still reads.
  void Sweep();

 private:
  const std::string name_;
  sync::SharedLock lock_;
  std::mutex mutex_;  // for a few lines, as inspections are in here together
  std::vector<std::weak_ptr<upstream::Endpoint>> leaving_;
};

}  // namespace sluice::server
