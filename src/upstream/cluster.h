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
#include "upstream/list_source.h"
#include "upstream/load_balancer.h"
#include "upstream/spill.h"
#include "upstream/tiers.h"

namespace sluice::upstream {

class ClusterHealth;

struct ClusterState {
  std::shared_ptr<const ClusterOptions> options;
  std::vector<ListedEndpoint> endpoints;
  std::vector<uint64_t> name_hashes;  // of the endpoints, base::Hash64: found without a look at each of them
  std::unique_ptr<const LoadBalancer> balancer;
  std::shared_ptr<const ClusterLimits> limits;  // never null
  std::shared_ptr<ClusterLoad> load;            // never null
  std::shared_ptr<ClusterHealth> health;        // never null
  std::shared_ptr<Spill> spill;                 // never null
  std::vector<Standing> standings;              // of the endpoints; empty: all are plain
  std::vector<Tier> tiers;                      // empty: there is only one, all of the list
  double active_weight = 0;                     // of the endpoints that are not draining, summed
  uint64_t version = 1;
  ListSource source = ListSource::kConfig;

  const std::string& name() const { return options->name; }
  // Its endpoints have a limit on calls under way.
  bool EndpointsLimited() const { return !endpoints.empty() && endpoints[0].endpoint->concurrency()->enabled(); }
  // Bounded load: may endpoint i take one more of this worker's calls? (Mirrokni, Thorup, Zadimoghaddam 2016: none gets
  // more than ceil(c x share x (calls + 1)), so that together they always have room.) True where there is no bound.
  bool BelowBoundedLoad(uint32_t i, uint32_t worker) const;
  const Standing& StandingOf(uint32_t i) const {
    static const Standing plain;
    return standings.empty() ? plain : standings[i];
  }
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
  DrainRamp ramp{};
  Standing standing{};
};

// What BuildClusterState says of the list, building nothing.
base::Status CheckList(const ClusterOptions& options, const std::vector<WantedEndpoint>& wanted);

// Builds the state for `wanted`. Endpoints of `previous` with the same name and address are kept: their connections,
// calls and counters go on, also under changed options. `limits`: of the cluster from now on; null: those of
// `previous`, or new ones as the options say. `first_version`: of a list without a `previous`. kInvalidArgument:
// duplicate names, bad weight, too many.
base::Result<std::shared_ptr<const ClusterState>> BuildClusterState(
    std::shared_ptr<const ClusterOptions> options, const std::vector<WantedEndpoint>& wanted,
    const ClusterState* previous, ListSource source, uint32_t workers, metrics::Registry& registry,
    std::shared_ptr<const ClusterLimits> limits = nullptr, uint64_t first_version = 1);

// A list by what stays of the one before.
struct ListChange {
  struct Entry {
    uint32_t place;  // in the list before, or in `added`
    bool is_new;
    bool draining;
    double weight;
    DrainRamp ramp{};
    Standing standing{};
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

// As BuildClusterState, with all but the list as it was. Takes time for what changed, and a little for each endpoint.
// No name is in the list twice (the caller has looked); kInvalidArgument: bad weight, too many.
base::Result<std::shared_ptr<const ClusterState>> ChangeClusterState(const ClusterState& previous,
                                                                     const ListChange& change, uint32_t workers,
                                                                     metrics::Registry& registry,
                                                                     ListSource source = ListSource::kRpc);

// Share of the keys that have another endpoint, by name. Draining endpoints count as any other.
double MovedByBalancer(const ClusterState& before, const ClusterState& after);

// The endpoints of `before` that are in no list any more.
std::vector<std::shared_ptr<Endpoint>> Removed(const ClusterState& before, const ClusterState* after);

}  // namespace sluice::upstream
