#include "server/cluster_view.h"

#include <algorithm>
#include <bit>

#include "base/hash.h"
#include "upstream/cluster_health.h"

namespace sluice::server {

using upstream::EndpointState;

namespace {

// Of the keys, as tiers take them now.
std::vector<double> SharesOf(const upstream::ClusterState& state) {
  if (state.tiers.empty()) return state.balancer->Shares();
  std::vector<double> shares(state.endpoints.size(), 0);
  for (const upstream::Tier& tier : state.tiers) {
    const std::vector<double> of_tier = tier.balancer->Shares();
    for (size_t i = 0; i < of_tier.size(); ++i) shares[tier.places[i]] = of_tier[i] * state.spill->ShareOf(tier.id);
  }
  return shares;
}

// Shares of keys become those that calls have now: what an endpoint does not take of its own, by its health, goes to
// the others, in proportion. Where none takes calls all are used as if they were well.
void TakeHealth(std::vector<admin::EndpointView>& endpoints) {
  double all = 0, taken = 0;
  const auto part = [](const admin::EndpointView& each) { return each.health ? each.health->share : 1; };
  for (const admin::EndpointView& each : endpoints) {
    if (each.state != EndpointState::kActive) continue;
    all += each.share;
    taken += each.share * part(each);
  }
  if (taken <= 0) return;
  for (admin::EndpointView& each : endpoints) {
    if (each.state == EndpointState::kActive) each.share *= part(each) * all / taken;
  }
}

}  // namespace

uint64_t ListDigest(const upstream::ClusterState& state) {
  uint64_t sum = 0;  // which does not depend on the order, and the hashes are well mixed
  for (uint32_t i = 0; i < state.endpoints.size(); ++i) {
    const upstream::ListedEndpoint& entry = state.endpoints[i];
    const upstream::Standing& standing = state.StandingOf(i);
    uint64_t hash = base::Hash64(entry.endpoint->name());
    hash = base::Hash64(entry.endpoint->address().ToString(), hash);
    hash = base::Hash64(std::bit_cast<uint64_t>(entry.weight), hash);
    hash = base::Hash64(standing.locality, hash);
    sum += base::Hash64(uint64_t{standing.priority} << 1 | (entry.draining ? 1 : 0), hash);
  }
  return base::Hash64(sum, state.balancer->Digest());
}

admin::ClusterView MakeClusterView(const upstream::ClusterState& state,
                                   const std::vector<std::shared_ptr<upstream::Endpoint>>& leaving,
                                   base::TimePoint now) {
  admin::ClusterView view;
  view.name = state.name();
  view.policy = ToString(state.options->policy);
  if (state.options->ring == upstream::Ring::kXds) view.policy += " (xds)";
  view.version = state.version;
  view.digest = ListDigest(state);
  view.source = state.source;
  auto describe = [](upstream::Endpoint& endpoint) {
    admin::EndpointView out;
    out.name = endpoint.name();
    out.address = endpoint.address().ToString();
    out.connection = endpoint.link();
    out.in_flight = static_cast<uint64_t>(std::max<int64_t>(0, endpoint.metrics().in_flight->Value()));
    out.calls = endpoint.calls();
    out.failures = endpoint.metrics().failures->Value();
    out.connections = static_cast<uint64_t>(std::max<int64_t>(0, endpoint.metrics().connections->Value()));
    return out;
  };
  view.health_changes = state.health->Changes(now);
  const std::vector<double> shares = SharesOf(state);
  for (size_t i = 0; i < state.endpoints.size(); ++i) {
    const upstream::ListedEndpoint& entry = state.endpoints[i];
    admin::EndpointView out = describe(*entry.endpoint);
    out.weight = entry.weight;
    out.priority = state.StandingOf(static_cast<uint32_t>(i)).priority;
    out.locality = state.StandingOf(static_cast<uint32_t>(i)).locality;
    out.share = shares[i] * (entry.draining ? entry.ramp.ShareAt(now) : 1);
    out.state = entry.draining ? EndpointState::kDraining : EndpointState::kActive;
    out.health = state.health->Describe(*entry.endpoint, now);
    view.endpoints.push_back(std::move(out));
  }
  TakeHealth(view.endpoints);
  for (const auto& endpoint : leaving) {
    if (endpoint->metrics().in_flight->Value() <= 0) continue;
    admin::EndpointView out = describe(*endpoint);
    out.state = EndpointState::kRemoved;
    view.endpoints.push_back(std::move(out));
  }
  return view;
}

}  // namespace sluice::server
