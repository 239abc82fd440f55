// LoadBalancer: which endpoint takes a call. Immutable once built, published with its endpoint list.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "upstream/options.h"

namespace sluice::upstream {

// What a balancer needs to know of an endpoint; index i is the endpoint's place in the cluster's list.
struct BalancerEndpoint {
  std::string name;
  double weight = 1.0;
};

// What changes on every call, asked while picking. Functions must not suspend and may be called on any
// worker.
struct PickContext {
  uint64_t key = 0;     // hash of the call's key; random where it has none
  uint64_t random = 0;  // fresh random bits, for policies that draw
  uint32_t worker = 0;  // whose counters to use (round robin keeps a cursor a worker)
  // May this endpoint take the call (healthy, not draining, not tried)? Asked at most once an endpoint and
  // pick.
  absl::FunctionRef<bool(uint32_t index)> ok;
  // Calls in flight to it, as far as this worker knows (least_request).
  absl::FunctionRef<uint32_t(uint32_t index)> load;
};

class LoadBalancer {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  virtual ~LoadBalancer() = default;
  // The index of the endpoint, or kNone if ok refused all.
  virtual uint32_t Pick(const PickContext& context) const = 0;
  // Share of the keys (or of calls) of each endpoint if all are ok; sums to 1.
  virtual std::vector<double> Shares() const = 0;
  // Equal on all proxies with the same list and options.
  virtual uint64_t Digest() const = 0;
};

// `workers`: how many workers will pick; context.worker is below it. Endpoint names are unique (checked by
// the caller). `previous`: the one to be replaced, if any; a ring takes over the points that stay. It changes
// the time to build, not the result.
std::unique_ptr<LoadBalancer> MakeLoadBalancer(Policy policy, uint32_t ring_points,
                                               const std::vector<BalancerEndpoint>& endpoints,
                                               uint32_t workers, const LoadBalancer* previous = nullptr);

// Share of keys whose endpoint (by name) differs between the two, 0..1. Exact for two rings; for other
// policies half the sum of the differences of the shares. 1 between none and some endpoints.
double MovedShare(const LoadBalancer& before, const std::vector<BalancerEndpoint>& before_endpoints,
                  const LoadBalancer& after, const std::vector<BalancerEndpoint>& after_endpoints);

}  // namespace sluice::upstream
