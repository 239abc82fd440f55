// LoadBalancer: which endpoint takes a call. Immutable once built, published with its endpoint list.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/hash.h"
#include "upstream/feedback.h"
#include "upstream/options.h"
#include "upstream/xds_ring.h"

namespace sluice::upstream {

// What a balancer needs to know of an endpoint; index i is the endpoint's place in the cluster's list.
struct BalancerEndpoint {
  // What `from` says where it is no index.
  static constexpr uint32_t kNew = UINT32_MAX;
  static constexpr uint32_t kByName = UINT32_MAX - 1;

  BalancerEndpoint(std::string_view n, double w) : BalancerEndpoint(n, w, base::Hash64(n), kByName) {}
  BalancerEndpoint(std::string_view n, double w, uint64_t h, uint32_t f) : name(n), weight(w), name_hash(h), from(f) {}

  std::string_view name;  // outlives the building
  double weight;
  uint64_t name_hash;  // base::Hash64(name)
  // Its place in the list of the previous balancer; kNew: it was not in it; kByName: look.
  uint32_t from;
};
using BalancerEndpoints = std::span<const BalancerEndpoint>;

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
  // Another attempt of a call that was picked for before: takes no turn of another call's (round robin).
  bool again = false;
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
  // What hears how attempts at the endpoints end; null: the policy goes by no outcomes. A balancer that is built from a
  // previous one takes it over.
  const std::shared_ptr<Feedback>& feedback() const { return feedback_; }

 protected:
  std::shared_ptr<Feedback> feedback_;
};

// Which ring Policy::kRingHash builds; other policies do not look at it.
struct RingShape {
  // Of kSluice, with so many points for a weight of 1.
  RingShape(uint32_t p) : points(p) {}  // NOLINT(google-explicit-constructor): a number of points is a shape
  explicit RingShape(const ClusterOptions& options)
      : ring(options.ring), points(options.ring_points), size{options.ring_size_min, options.ring_size_max} {}

  Ring ring = Ring::kSluice;
  uint32_t points;
  XdsRingSize size = {};  // of kXds
  bool operator==(const RingShape&) const = default;
};

// `workers`: how many workers will pick; context.worker is below it. Endpoint names are unique (checked by
// the caller). `previous`: the one to be replaced, if any; what stays is taken over from it. It changes the time
// to build, not the result.
std::unique_ptr<LoadBalancer> MakeLoadBalancer(Policy policy, const RingShape& ring, BalancerEndpoints endpoints,
                                               uint32_t workers, const LoadBalancer* previous = nullptr);

// What Digest says of a policy that goes by weights alone: of the policy and the names with their weights, in whatever
// order they are listed.
uint64_t DigestOfWeights(Policy policy, BalancerEndpoints endpoints);

// Share of keys whose endpoint (by name) differs between the two, 0..1. Exact for two rings; for other
// policies half the sum of the differences of the shares. 1 between none and some endpoints.
double MovedShare(const LoadBalancer& before, BalancerEndpoints before_endpoints, const LoadBalancer& after,
                  BalancerEndpoints after_endpoints);
// The same of two rings, which know their names; nullopt: one of them is none.
std::optional<double> MovedShareOfRings(const LoadBalancer& before, const LoadBalancer& after);

}  // namespace sluice::upstream
