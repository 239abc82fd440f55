#include "upstream/cluster.h"

#include <algorithm>
#include <cmath>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "upstream/endpoint_pool.h"

namespace sluice::upstream {

using base::ErrorKind;
using base::MakeError;

std::vector<BalancerEndpoint> ClusterState::BalancerEndpoints() const {
  std::vector<BalancerEndpoint> out;
  out.reserve(endpoints.size());
  for (const ListedEndpoint& entry : endpoints) out.push_back({entry.endpoint->name(), entry.weight});
  return out;
}

bool ClusterState::BelowBoundedLoad(uint32_t i, uint32_t worker) const {
  if (options->bounded_load <= 0) return true;
  const ListedEndpoint& entry = endpoints[i];
  const EndpointPool* pool = entry.endpoint->pool(worker);
  if (pool == nullptr) return true;  // none of its calls is under way
  const double share = entry.weight / std::max(active_weight, entry.weight);
  return pool->in_flight() < std::ceil(options->bounded_load * share * (load->of(worker) + 1.0));
}

namespace {
std::shared_ptr<const ClusterLimits> MakeLimits(const ClusterOptions& options, metrics::Registry& registry) {
  // The bucket begins full, so any time in the past will do.
  return std::make_shared<const ClusterLimits>(std::make_shared<limits::RateLimiter>(options.rate_limit, base::TimePoint{}),
                                               std::make_shared<limits::ConcurrencyLimiter>(options.concurrency), options.name,
                                               registry);
}
}  // namespace

base::Result<std::shared_ptr<const ClusterState>> BuildClusterState(std::shared_ptr<const ClusterOptions> options,
                                                                    const std::vector<WantedEndpoint>& wanted,
                                                                    const ClusterState* previous, bool overridden,
                                                                    uint32_t workers, metrics::Registry& registry,
                                                                    std::shared_ptr<const ClusterLimits> limits) {
  if (wanted.size() > kEndpointsMax) {
    return MakeError(ErrorKind::kInvalidArgument, "more than " + std::to_string(kEndpointsMax) + " endpoints");
  }
  double points = 0;
  for (const WantedEndpoint& want : wanted) points += want.weight * options->ring_points;
  if (options->policy == Policy::kRingHash && points > static_cast<double>(kRingPointsMax)) {
    return MakeError(ErrorKind::kInvalidArgument, "the ring would have more than " + std::to_string(kRingPointsMax) +
                                                      " points (weights times ring_points)");
  }
  absl::flat_hash_map<std::string_view, const ListedEndpoint*> known;
  if (previous != nullptr) {
    for (const ListedEndpoint& entry : previous->endpoints) known[entry.endpoint->name()] = &entry;
  }
  auto state = std::make_shared<ClusterState>();
  state->options = options;
  state->version = previous == nullptr ? 1 : previous->version + 1;
  state->overridden = overridden;
  state->load = previous != nullptr ? previous->load : std::make_shared<ClusterLoad>(workers);
  state->limits = limits != nullptr ? std::move(limits) : previous != nullptr ? previous->limits : MakeLimits(*options, registry);
  state->endpoints.reserve(wanted.size());
  absl::flat_hash_set<std::string_view> names;
  for (const WantedEndpoint& want : wanted) {
    if (want.name.empty()) return MakeError(ErrorKind::kInvalidArgument, "an endpoint needs a name or an address");
    if (!names.insert(want.name).second) {
      return MakeError(ErrorKind::kInvalidArgument, "endpoint " + want.name + " is in the list twice");
    }
    if (!(want.weight >= 0.01 && want.weight <= 100)) {
      return MakeError(ErrorKind::kInvalidArgument, "endpoint " + want.name + ": weight is not in [0.01, 100]");
    }
    auto it = known.find(want.name);
    std::shared_ptr<Endpoint> endpoint;
    if (it != known.end() && it->second->endpoint->address() == want.address) {
      endpoint = it->second->endpoint;
    } else {
      endpoint = std::make_shared<Endpoint>(options->name, want.name, want.address, options, state->load, workers, registry);
    }
    state->endpoints.push_back({std::move(endpoint), want.weight, want.draining});
    if (!want.draining) state->active_weight += want.weight;
  }
  const bool same_ring = previous != nullptr && previous->options->policy == options->policy &&
                         previous->options->ring_points == options->ring_points;
  state->balancer = MakeLoadBalancer(options->policy, options->ring_points, state->BalancerEndpoints(), workers,
                                     same_ring ? previous->balancer.get() : nullptr);
  return std::shared_ptr<const ClusterState>(std::move(state));
}

std::vector<std::shared_ptr<Endpoint>> Removed(const ClusterState& before, const ClusterState* after) {
  absl::flat_hash_set<const Endpoint*> kept;
  if (after != nullptr) {
    for (const ListedEndpoint& entry : after->endpoints) kept.insert(entry.endpoint.get());
  }
  std::vector<std::shared_ptr<Endpoint>> out;
  for (const ListedEndpoint& entry : before.endpoints) {
    if (!kept.contains(entry.endpoint.get())) out.push_back(entry.endpoint);
  }
  return out;
}

std::string_view ToString(Policy policy) {
  switch (policy) {
    case Policy::kRingHash: return "ring_hash";
    case Policy::kRoundRobin: return "round_robin";
    case Policy::kLeastRequest: return "least_request";
  }
  return "ring_hash";
}

}  // namespace sluice::upstream
