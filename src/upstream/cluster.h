// ClusterState: a cluster's endpoint list with its balancer, as one immutable value; Cluster: the writer's side of it.
//
// A change makes a new ClusterState aside, which the server publishes whole in its snapshot.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "upstream/cluster_limits.h"
#include "upstream/endpoint.h"
#include "upstream/load_balancer.h"

namespace sluice::upstream {

struct ListedEndpoint {
  std::shared_ptr<Endpoint> endpoint;
  double weight = 1.0;
  bool draining = false;  // keeps its place on the ring, takes no new calls
};

struct ClusterState {
  std::shared_ptr<const ClusterOptions> options;
  std::vector<ListedEndpoint> endpoints;
  std::vector<uint64_t> name_hashes;  // of the endpoints, base::Hash64: found without a look at each of them
  std::unique_ptr<const LoadBalancer> balancer;
  std::shared_ptr<const ClusterLimits> limits;  // never null
  std::shared_ptr<ClusterLoad> load;            // never null
  double active_weight = 0;                     // of the endpoints that are not draining, summed
  uint64_t version = 1;
  bool overridden = false;  // changed by RPC since the configuration was read

  const std::string& name() const { return options->name; }
  // Its endpoints have a limit on calls under way.
  bool EndpointsLimited() const { return !endpoints.empty() && endpoints[0].endpoint->concurrency()->enabled(); }
  // Bounded load: may endpoint i take one more of this worker's calls? (Mirrokni, Thorup, Zadimoghaddam 2016: none gets
  // more than ceil(c x share x (calls + 1)), so that together they always have room.) True where there is no bound.
  bool BelowBoundedLoad(uint32_t i, uint32_t worker) const;
  // The place of the endpoint of that name in the list; kNowhere.
  static constexpr uint32_t kNowhere = UINT32_MAX;
  uint32_t Find(std::string_view name) const;
};

// One entry of a wanted list.
struct WantedEndpoint {
  std::string name;
  net::Address address;
  double weight = 1.0;
  bool draining = false;
};

// What BuildClusterState says of the list, building nothing.
base::Status CheckList(const ClusterOptions& options, const std::vector<WantedEndpoint>& wanted);

// Builds the state for `wanted`. Endpoints of `previous` with the same name and address are kept: their connections,
// calls and counters go on, also under changed options. `limits`: of the cluster from now on; null: those of
// `previous`, or new ones as the options say. kInvalidArgument: duplicate names, bad weight, too many.
base::Result<std::shared_ptr<const ClusterState>> BuildClusterState(
    std::shared_ptr<const ClusterOptions> options, const std::vector<WantedEndpoint>& wanted,
    const ClusterState* previous, bool overridden, uint32_t workers, metrics::Registry& registry,
    std::shared_ptr<const ClusterLimits> limits = nullptr);

// A list by what stays of the one before.
struct ListChange {
  struct Entry {
    uint32_t place;  // in the list before, or in `added`
    bool is_new;
    bool draining;
    double weight;
  };
  std::vector<Entry> entries;
  std::vector<WantedEndpoint> added;  // in any order, each in one entry; its weight and draining are not looked at
};
// Each endpoint as it is.
ListChange NoChange(const ClusterState& state);
// The change that comes to `wanted`. Duplicate names and bad weights: kInvalidArgument.
base::Result<ListChange> ChangeTo(const std::vector<WantedEndpoint>& wanted, const ClusterState* previous);

// What ChangeClusterState says of the change, building nothing.
base::Status CheckChange(const ClusterState& previous, const ListChange& change);

// As BuildClusterState, with what was before but for the list; a change by hand, so it is overridden. Takes time for
// what changed, and a little for each endpoint. No name is in the list twice (the caller has looked); kInvalidArgument:
// bad weight, too many.
base::Result<std::shared_ptr<const ClusterState>> ChangeClusterState(const ClusterState& previous,
                                                                     const ListChange& change, uint32_t workers,
                                                                     metrics::Registry& registry);

// Share of the keys that have another endpoint, by name. Draining endpoints count as any other.
double MovedByBalancer(const ClusterState& before, const ClusterState& after);

// The endpoints of `before` that are in no list any more.
std::vector<std::shared_ptr<Endpoint>> Removed(const ClusterState& before, const ClusterState* after);

std::string_view ToString(Policy policy);

}  // namespace sluice::upstream
