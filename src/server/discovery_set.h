// DiscoverySet: the followers of all clusters that a source keeps; what they are told, and what is told of them.
//
// Thread safety: every function from any thread but where a worker is named; Apply one at a time.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "config/config.h"
#include "discovery/follower.h"
#include "metrics/registry.h"
#include "runtime/runtime.h"
#include "server/clusters.h"

namespace sluice::server {

class DiscoverySet {
 public:
  // All outlive the runtime's tasks.
  DiscoverySet(runtime::Runtime& runtime, Clusters& clusters, metrics::Registry& registry);

  // The start, or a reload: behind Clusters::Init and Apply, whose clusters it names. Followers whose source is
  // configured as before go on.
  void Apply(const config::Config& config);
  // None may start any more.
  void Stop();

  // Each cluster with a source has had a list, or its ready_timeout is over.
  bool ready() const;
  std::optional<discovery::DiscoveryView> Describe(const std::string& cluster) const;
  // Also on a worker: an endpoint of the cluster cannot be connected to.
  void Hurry(const std::string& cluster) const;
  // The cluster's list by RPC is to be replaced.
  void Reset(const std::string& cluster) const;

 private:
  std::shared_ptr<discovery::Follower> Make(const std::string& cluster, const discovery::DiscoveryOptions& options);
  std::shared_ptr<discovery::Follower> Find(const std::string& cluster) const;
  void AddMetrics();

  runtime::Runtime& runtime_;
  Clusters& clusters_;
  metrics::Registry& registry_;
  const base::TimePoint started_;

  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<discovery::Follower>> followers_;  // under mutex_
};

}  // namespace sluice::server
