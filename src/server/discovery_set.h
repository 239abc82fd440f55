// DiscoverySet: the followers of all clusters that a source keeps; what they are told, and what is told of them.
//
// Thread safety: every function from any thread but where a worker is named; Apply one at a time.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "config/config.h"
#include "discovery/follower.h"
#include "discovery/xds/ads_client.h"
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

  // Each cluster with a source has had a list, or its ready_timeout is over. Once that is so it stays so: a cluster
  // that a reload adds does not take the others out of service.
  bool ready() const;
  std::optional<discovery::DiscoveryView> Describe(const std::string& cluster) const;
  // Also on a worker: an endpoint of the cluster cannot be connected to.
  void Hurry(const std::string& cluster) const;
  // The cluster's list has changed by RPC, or that one is to be replaced.
  void Again(const std::string& cluster) const;
  // The control plane; nullopt: no cluster follows one.
  std::optional<discovery::XdsView> DescribeXds(bool resources = true) const;

 private:
  std::shared_ptr<discovery::Follower> Make(const std::string& cluster, const discovery::DiscoveryOptions& options);
  // In Apply, which alone writes xds_. `in_force`: null, or the list that the cluster's source has given before.
  discovery::Follower::MakeSource SourceOf(const discovery::DiscoveryOptions& options,
                                           const discovery::List* in_force) const;
  // The client of the bootstrap file is replaced if that has changed. True: it was.
  bool ApplyXds(const config::Config& config);
  std::shared_ptr<discovery::Follower> Find(const std::string& cluster) const;
  void AddMetrics();
  void AddXdsMetrics();

  runtime::Runtime& runtime_;
  Clusters& clusters_;
  metrics::Registry& registry_;
  const base::TimePoint started_;

  // Lists that are put in force at once: a put may wait for its cluster, and the helper threads have other work, too.
  static constexpr uint32_t kPutsMax = 2;
  const std::shared_ptr<sync::Semaphore> puts_ = std::make_shared<sync::Semaphore>(kPutsMax);

  mutable std::atomic<bool> was_ready_{false};
  mutable std::mutex mutex_;
  // Under mutex_:
  std::map<std::string, std::shared_ptr<discovery::Follower>> followers_;
  bool applied_ = false;                       // followers_ are those of a configuration
  std::shared_ptr<discovery::AdsClient> xds_;  // null: none is needed
};

}  // namespace sluice::server
