// ClusterLimits: when calls to a cluster may go. ClusterLoad: how many are under way, as each worker counts them.
//
// Both outlive the lists: a change of endpoints or options keeps them, so that calls in flight stay counted.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "limits/bound.h"
#include "limits/concurrency_limiter.h"
#include "limits/rate_limiter.h"
#include "upstream/options.h"

namespace sluice::upstream {

// Never-null limiters; one without a limit lets all calls go. Any thread.
struct ClusterLimits {
  ClusterLimits(std::shared_ptr<limits::RateLimiter> rate_limiter,
                std::shared_ptr<limits::ConcurrencyLimiter> concurrency_limiter, const std::string& cluster,
                metrics::Registry& registry)
      : rate(std::move(rate_limiter)),
        concurrency(std::move(concurrency_limiter)),
        rate_bound(registry, "cluster/" + cluster + "/rate"),
        concurrency_bound(registry, "cluster/" + cluster + "/concurrency"),
        endpoint_bound(registry, "cluster/" + cluster + "/endpoint_concurrency") {}

  const std::shared_ptr<limits::RateLimiter> rate;
  const std::shared_ptr<limits::ConcurrencyLimiter> concurrency;
  const limits::BoundMetrics rate_bound, concurrency_bound, endpoint_bound;
};

// Attempts under way to all endpoints of a cluster. Cell w belongs to worker w; no two share a cache line.
class ClusterLoad {
 public:
  explicit ClusterLoad(uint32_t workers) : cells_(workers) {}
  uint32_t& of(uint32_t worker) { return cells_[worker].in_flight; }

 private:
  struct alignas(64) Cell {
    uint32_t in_flight = 0;
  };
  std::vector<Cell> cells_;
};

}  // namespace sluice::upstream
