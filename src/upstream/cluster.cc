#include "upstream/cluster.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/hash.h"
#include "upstream/cluster_health.h"
#include "upstream/endpoint_pool.h"

namespace sluice::upstream {

using base::ErrorKind;
using base::MakeError;

uint32_t ClusterState::Find(std::string_view name) const {
  const uint64_t hash = base::Hash64(name);
  for (auto it = name_hashes.begin(); (it = std::find(it, name_hashes.end(), hash)) != name_hashes.end(); ++it) {
    const auto place = static_cast<uint32_t>(it - name_hashes.begin());
    if (endpoints[place].endpoint->name() == name) return place;
  }
  return kNowhere;
}

bool ClusterState::BelowBoundedLoad(uint32_t i, uint32_t worker) const {
  if (options->bounded_load <= 0) return true;
  const ListedEndpoint& entry = endpoints[i];
  const EndpointPool* pool = entry.endpoint->pool(worker);
  if (pool == nullptr) return true;  // none of its calls is under way
  double all = active_weight;
  for (const Tier& tier : tiers) {
    if (tier.id == entry.tier) all = tier.active_weight;
  }
  const double share = entry.weight / std::max(all, entry.weight);
  return pool->in_flight() < std::ceil(options->bounded_load * share * (load->of(worker) + 1.0));
}

namespace {
std::shared_ptr<const ClusterLimits> MakeLimits(const ClusterOptions& options, metrics::Registry& registry) {
  // The bucket begins full, so any time in the past will do.
  return std::make_shared<const ClusterLimits>(
      std::make_shared<limits::RateLimiter>(options.rate_limit, base::TimePoint{}),
      std::make_shared<limits::ConcurrencyLimiter>(options.concurrency), options.name, registry);
}

// Proxies of a fleet jitter apart from each other: they started at different times.
std::shared_ptr<ClusterHealth> MakeHealth(const ClusterOptions& options, metrics::Registry& registry) {
  const uint64_t seed =
      base::Hash64(options.name, static_cast<uint64_t>(base::Clock::Steady().Now().time_since_epoch().count()));
  return std::make_shared<ClusterHealth>(options.name, seed, registry);
}

base::Status CheckEntry(const std::string& name, double weight, const Standing& standing) {
  const auto bad = [&](const std::string& what) {
    return MakeError(ErrorKind::kInvalidArgument, "endpoint " + name + ": " + what);
  };
  if (!(weight >= 0.01 && weight <= 100)) return bad("weight is not in [0.01, 100]");
  if (standing.priority >= kPrioritiesMax)
    return bad("priority is not in [0, " + std::to_string(kPrioritiesMax - 1) + "]");
  if (!IsLocality(standing.locality))
    return bad("locality is not printable ASCII of at most " + std::to_string(kLocalityBytesMax) + " bytes");
  return base::Ok();
}

template <typename List>
base::Status CheckSize(const ClusterOptions& options, const List& list) {
  if (list.size() > kEndpointsMax) {
    return MakeError(ErrorKind::kInvalidArgument, "more than " + std::to_string(kEndpointsMax) + " endpoints");
  }
  if (options.policy != Policy::kRingHash || options.ring != Ring::kSluice) return base::Ok();
  double points = 0;
  for (const auto& entry : list) points += entry.weight * options.ring_points;
  if (points > static_cast<double>(kRingPointsMax)) {
    return MakeError(ErrorKind::kInvalidArgument, "the ring would have more than " + std::to_string(kRingPointsMax) +
                                                      " points (weights times ring_points)");
  }
  return base::Ok();
}

// Groups the list that `state` has.
void TakeTiers(ClusterState& state, const ListChange& change, BalancerEndpoints balanced, const ClusterState* previous,
               uint32_t workers) {
  const ClusterOptions& options = *state.options;
  const bool plain = std::all_of(change.entries.begin(), change.entries.end(),
                                 [](const ListChange::Entry& entry) { return entry.standing.plain(); });
  if (plain) return;
  std::vector<uint8_t> ids;
  ids.reserve(change.entries.size());
  for (size_t i = 0; i < change.entries.size(); ++i) {
    state.standings.push_back(change.entries[i].standing);
    ids.push_back(TierIdOf(state.standings.back(), options.locality));
    state.endpoints[i].tier = ids.back();
  }
  state.tiers = BuildTiers(options.policy, RingShape(options), balanced, ids, workers,
                           previous == nullptr ? std::span<const Tier>() : previous->tiers);
  for (Tier& tier : state.tiers) {
    for (const uint32_t place : tier.places) {
      if (!state.endpoints[place].draining) tier.active_weight += state.endpoints[place].weight;
    }
  }
}

// Fills in the list; all else of `state` is there.
void TakeList(ClusterState& state, const ListChange& change, const ClusterState* previous, uint32_t workers,
              metrics::Registry& registry) {
  const ClusterOptions& options = *state.options;
  const bool same_policy = previous != nullptr && previous->options->policy == options.policy &&
                           RingShape(*previous->options) == RingShape(options);
  state.endpoints.reserve(change.entries.size());
  state.name_hashes.reserve(change.entries.size());
  std::vector<BalancerEndpoint> balanced;
  balanced.reserve(change.entries.size());
  size_t own_series = 0;
  for (const ListChange::Entry& entry : change.entries) {
    if (!entry.is_new && previous->endpoints[entry.place].endpoint->has_own_series()) ++own_series;
  }
  for (const ListChange::Entry& entry : change.entries) {
    std::shared_ptr<Endpoint> endpoint;
    uint64_t hash;
    if (entry.is_new) {
      const WantedEndpoint& want = change.added[entry.place];
      endpoint = std::make_shared<Endpoint>(options.name, want.name, want.address, state.options, state.load, workers,
                                            registry, own_series++ < EndpointSeries::kNamedMax);
      hash = base::Hash64(want.name);
    } else {
      endpoint = previous->endpoints[entry.place].endpoint;
      hash = previous->name_hashes[entry.place];
    }
    balanced.emplace_back(endpoint->name(), entry.weight, hash, entry.is_new ? BalancerEndpoint::kNew : entry.place);
    state.endpoints.push_back({std::move(endpoint), entry.weight, entry.ramp, entry.draining});
    state.name_hashes.push_back(hash);
    if (!entry.draining) state.active_weight += entry.weight;
  }
  state.balancer = MakeLoadBalancer(options.policy, RingShape(options), balanced, workers,
                                    same_policy ? previous->balancer.get() : nullptr);
  TakeTiers(state, change, balanced, same_policy ? previous : nullptr, workers);
}

std::vector<BalancerEndpoint> Balanced(const ClusterState& state) {
  std::vector<BalancerEndpoint> out;
  out.reserve(state.endpoints.size());
  for (const ListedEndpoint& entry : state.endpoints) out.emplace_back(entry.endpoint->name(), entry.weight);
  return out;
}

}  // namespace

ListChange NoChange(const ClusterState& state) {
  ListChange change;
  change.entries.reserve(state.endpoints.size() + 1);
  for (uint32_t i = 0; i < state.endpoints.size(); ++i) {
    const ListedEndpoint& listed = state.endpoints[i];
    change.entries.push_back({i, false, listed.draining, listed.weight, listed.ramp, state.StandingOf(i)});
  }
  return change;
}

base::Result<ListChange> ChangeTo(const std::vector<WantedEndpoint>& wanted, const ClusterState* previous) {
  absl::flat_hash_map<std::string_view, uint32_t> known;
  if (previous != nullptr) {
    for (uint32_t i = 0; i < previous->endpoints.size(); ++i) known[previous->endpoints[i].endpoint->name()] = i;
  }
  ListChange change;
  change.entries.reserve(wanted.size());
  absl::flat_hash_set<std::string_view> names;
  for (const WantedEndpoint& want : wanted) {
    if (want.name.empty()) return MakeError(ErrorKind::kInvalidArgument, "an endpoint needs a name or an address");
    if (!names.insert(want.name).second) {
      return MakeError(ErrorKind::kInvalidArgument, "endpoint " + want.name + " is in the list twice");
    }
    if (auto status = CheckEntry(want.name, want.weight, want.standing); !status) return status.error();
    auto it = known.find(want.name);
    if (it != known.end() && previous->endpoints[it->second].endpoint->address() == want.address) {
      change.entries.push_back({it->second, false, want.draining, want.weight, want.ramp, want.standing});
    } else {
      change.entries.push_back(
          {static_cast<uint32_t>(change.added.size()), true, want.draining, want.weight, want.ramp, want.standing});
      change.added.push_back(want);
    }
  }
  return change;
}

base::Status CheckList(const ClusterOptions& options, const std::vector<WantedEndpoint>& wanted) {
  if (auto status = CheckSize(options, wanted); !status) return status;
  const auto change = ChangeTo(wanted, nullptr);
  return change ? base::Ok() : base::Status(change.error());
}

base::Status CheckChange(const ClusterState& previous, const ListChange& change) {
  if (auto status = CheckSize(*previous.options, change.entries); !status) return status;
  for (const ListChange::Entry& entry : change.entries) {
    const std::string& name =
        entry.is_new ? change.added[entry.place].name : previous.endpoints[entry.place].endpoint->name();
    if (auto status = CheckEntry(name, entry.weight, entry.standing); !status) return status;
  }
  return base::Ok();
}

base::Result<std::shared_ptr<const ClusterState>> BuildClusterState(std::shared_ptr<const ClusterOptions> options,
                                                                    const std::vector<WantedEndpoint>& wanted,
                                                                    const ClusterState* previous, ListSource source,
                                                                    uint32_t workers, metrics::Registry& registry,
                                                                    std::shared_ptr<const ClusterLimits> limits,
                                                                    uint64_t first_version) {
  if (auto status = CheckSize(*options, wanted); !status) return status.error();
  auto change = ChangeTo(wanted, previous);
  if (!change) return change.error();
  auto state = std::make_shared<ClusterState>();
  state->version = previous == nullptr ? first_version : previous->version + 1;
  state->source = source;
  state->load = previous != nullptr ? previous->load : std::make_shared<ClusterLoad>(workers);
  state->health = previous != nullptr ? previous->health : MakeHealth(*options, registry);
  state->spill = previous != nullptr ? previous->spill : std::make_shared<Spill>();
  state->limits = limits != nullptr     ? std::move(limits)
                  : previous != nullptr ? previous->limits
                                        : MakeLimits(*options, registry);
  state->options = std::move(options);
  TakeList(*state, *change, previous, workers, registry);
  return std::shared_ptr<const ClusterState>(std::move(state));
}

base::Result<std::shared_ptr<const ClusterState>> ChangeClusterState(const ClusterState& previous,
                                                                     const ListChange& change, uint32_t workers,
                                                                     metrics::Registry& registry, ListSource source) {
  if (auto status = CheckChange(previous, change); !status) return status.error();
  auto state = std::make_shared<ClusterState>();
  state->options = previous.options;
  state->version = previous.version + 1;
  state->source = source;
  state->load = previous.load;
  state->health = previous.health;
  state->spill = previous.spill;
  state->limits = previous.limits;
  TakeList(*state, change, &previous, workers, registry);
  return std::shared_ptr<const ClusterState>(std::move(state));
}

double MovedByBalancer(const ClusterState& before, const ClusterState& after) {
  if (auto moved = MovedShareOfRings(*before.balancer, *after.balancer)) return *moved;
  return MovedShare(*before.balancer, Balanced(before), *after.balancer, Balanced(after));
}

std::vector<std::shared_ptr<Endpoint>> Removed(const ClusterState& before, const ClusterState* after) {
  std::vector<std::shared_ptr<Endpoint>> out;
  auto begin = before.endpoints.begin(), end = before.endpoints.end();
  absl::flat_hash_set<const Endpoint*> kept;
  if (after != nullptr) {
    // Most changes leave what is before and behind one place as it was.
    auto same = [](const ListedEndpoint& a, const ListedEndpoint& b) { return a.endpoint == b.endpoint; };
    auto [from, after_from] = std::mismatch(begin, end, after->endpoints.begin(), after->endpoints.end(), same);
    auto [to, after_to] =
        std::mismatch(std::reverse_iterator(end), std::reverse_iterator(from),
                      std::reverse_iterator(after->endpoints.end()), std::reverse_iterator(after_from), same);
    begin = from;
    end = to.base();
    for (auto it = after_from; it != after_to.base(); ++it) kept.insert(it->endpoint.get());
  }
  for (auto it = begin; it != end; ++it) {
    if (!kept.contains(it->endpoint.get())) out.push_back(it->endpoint);
  }
  return out;
}

}  // namespace sluice::upstream
