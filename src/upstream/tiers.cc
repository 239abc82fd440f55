#include "upstream/tiers.h"

#include <algorithm>
#include <array>
#include <utility>

namespace sluice::upstream {

std::vector<Tier> BuildTiers(Policy policy, const RingShape& ring, BalancerEndpoints endpoints,
                             std::span<const uint8_t> ids, uint32_t workers, std::span<const Tier> previous) {
  std::vector<Tier> tiers;
  if (std::all_of(ids.begin(), ids.end(), [&](uint8_t id) { return id == ids.front(); })) return tiers;
  std::array<std::vector<uint32_t>, kTiersMax> places;
  for (uint32_t i = 0; i < ids.size(); ++i) places[ids[i]].push_back(i);
  for (uint8_t id = 0; id < kTiersMax; ++id) {
    if (places[id].empty()) continue;
    std::vector<BalancerEndpoint> members;
    members.reserve(places[id].size());
    // An endpoint's place in the former list of this tier is not known: it is looked for by its name.
    for (const uint32_t place : places[id]) {
      members.push_back(endpoints[place]);
      members.back().from = BalancerEndpoint::kByName;
    }
    const auto before = std::find_if(previous.begin(), previous.end(), [&](const Tier& tier) { return tier.id == id; });
    auto balancer =
        MakeLoadBalancer(policy, ring, members, workers, before == previous.end() ? nullptr : before->balancer.get());
    tiers.push_back({id, std::move(places[id]), std::move(balancer)});
  }
  return tiers;
}

}  // namespace sluice::upstream
