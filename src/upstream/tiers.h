// Tiers: the endpoints of a list in groups of the same priority and nearness, each with a balancer of its own. The
// first tier takes all calls while it can carry them; which keys go to later ones says Spill.
//
// A key's endpoint in a tier is the one that a walk along the whole list's ring from it meets first of those in the
// tier: points depend on names alone. (With ring: xds it is the one that Envoy and gRPC have: their rings are of the
// endpoints of one priority.)
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "upstream/load_balancer.h"
#include "upstream/options.h"

namespace sluice::upstream {

// Where an endpoint stands among the others of its list.
struct Standing {
  uint32_t priority = 0;  // 0 is the highest; below kPrioritiesMax
  std::string locality;   // empty: as near as any
  bool plain() const { return priority == 0 && locality.empty(); }
  bool operator==(const Standing&) const = default;
};

// Priority first; of one priority those nearby come before those in another locality. Below kTiersMax. `own`: the
// cluster's locality; empty: not known, so that all are near.
inline uint8_t TierIdOf(const Standing& standing, std::string_view own) {
  const bool far = !own.empty() && !standing.locality.empty() && standing.locality != own;
  return static_cast<uint8_t>(standing.priority * 2 + (far ? 1 : 0));
}

struct Tier {
  uint8_t id;
  std::vector<uint32_t> places;  // of its endpoints in the list; index i of the balancer is place i of these
  std::unique_ptr<const LoadBalancer> balancer;
  double active_weight = 0;  // of those that are not draining
};

// In ascending order of their ids; none where all endpoints are of one tier. `ids`: of each endpoint. `previous`: of
// the list before, by the same policy, or none.
std::vector<Tier> BuildTiers(Policy policy, const RingShape& ring, BalancerEndpoints endpoints,
                             std::span<const uint8_t> ids, uint32_t workers, std::span<const Tier> previous);

}  // namespace sluice::upstream
