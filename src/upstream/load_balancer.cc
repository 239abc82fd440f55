#include "upstream/load_balancer.h"

#include <bit>
#include <cmath>

#include "absl/container/flat_hash_map.h"
#include "base/check.h"
#include "upstream/hash_ring.h"
#include "upstream/least_request.h"
#include "upstream/round_robin.h"

namespace sluice::upstream {

static_assert(HashRing::kRingPointsMax == kRingPointsMax, "the configuration's bound is the ring's");
namespace {

class RingBalancer final : public LoadBalancer {
 public:
  explicit RingBalancer(HashRing ring) : ring_(std::move(ring)) {}
  uint32_t Pick(const PickContext& context) const override { return ring_.Pick(context.key, context.ok); }
  std::vector<double> Shares() const override { return ring_.Shares(); }
  uint64_t Digest() const override { return ring_.Digest(); }
  const HashRing& ring() const { return ring_; }

 private:
  HashRing ring_;
};
static_assert(LoadBalancer::kNone == HashRing::kNone);

const HashRing* RingOf(const LoadBalancer* balancer) {
  const auto* ring = dynamic_cast<const RingBalancer*>(balancer);
  return ring == nullptr ? nullptr : &ring->ring();
}

static_assert(BalancerEndpoint::kNew == RingEndpoint::kNew && BalancerEndpoint::kByName == RingEndpoint::kByName);

std::unique_ptr<LoadBalancer> MakeRing(const RingShape& shape, BalancerEndpoints endpoints,
                                       const LoadBalancer* previous) {
  std::vector<RingEndpoint> list;
  list.reserve(endpoints.size());
  for (const BalancerEndpoint& endpoint : endpoints) list.push_back({endpoint.name, endpoint.weight, endpoint.from});
  const HashRing* before = RingOf(previous);
  return std::make_unique<RingBalancer>(shape.ring == Ring::kXds ? HashRing::BuildXds(list, shape.size, before)
                                                                 : HashRing::Build(list, shape.points, before));
}

}  // namespace

uint64_t DigestOfWeights(Policy policy, BalancerEndpoints endpoints) {
  uint64_t sum = 0;
  for (const BalancerEndpoint& endpoint : endpoints) {
    sum += base::Hash64(std::bit_cast<uint64_t>(endpoint.weight), endpoint.name_hash);
  }
  return base::Hash64(sum, static_cast<uint64_t>(policy) << 32 | endpoints.size());
}

std::unique_ptr<LoadBalancer> MakeLoadBalancer(Policy policy, const RingShape& ring, BalancerEndpoints endpoints,
                                               uint32_t workers, const LoadBalancer* previous) {
  switch (policy) {
    case Policy::kRingHash:
      return MakeRing(ring, endpoints, previous);
    case Policy::kRoundRobin:
      return std::make_unique<RoundRobin>(endpoints, workers, dynamic_cast<const RoundRobin*>(previous));
    case Policy::kLeastRequest:
      return std::make_unique<LeastRequest>(endpoints);
  }
  SLUICE_CHECK(false);
  return nullptr;
}

std::optional<double> MovedShareOfRings(const LoadBalancer& before, const LoadBalancer& after) {
  const HashRing* ring_before = RingOf(&before);
  const HashRing* ring_after = RingOf(&after);
  if (ring_before == nullptr || ring_after == nullptr) return std::nullopt;
  return HashRing::MovedShare(*ring_before, *ring_after);
}

double MovedShare(const LoadBalancer& before, BalancerEndpoints before_endpoints, const LoadBalancer& after,
                  BalancerEndpoints after_endpoints) {
  if (auto moved = MovedShareOfRings(before, after)) return *moved;
  if (before_endpoints.empty() || after_endpoints.empty())
    return before_endpoints.empty() == after_endpoints.empty() ? 0 : 1;
  absl::flat_hash_map<std::string_view, double> differences;
  std::vector<double> shares = before.Shares();
  for (size_t i = 0; i < shares.size(); ++i) differences[before_endpoints[i].name] += shares[i];
  shares = after.Shares();
  for (size_t i = 0; i < shares.size(); ++i) differences[after_endpoints[i].name] -= shares[i];
  double sum = 0;
  for (const auto& [name, difference] : differences) sum += std::abs(difference);
  return sum / 2;
}

}  // namespace sluice::upstream
