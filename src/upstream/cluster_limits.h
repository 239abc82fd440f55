// ClusterLimits: when calls to a cluster may go. ClusterLoad: how many are under way, as each worker counts them, what
// retries may cost, which keys' calls fail, and the series of endpoints without series of their own.
//
// Both outlive the lists: a change of endpoints or options keeps them, so that calls in flight stay counted.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "limits/concurrency_limiter.h"
#include "limits/limiter_metrics.h"
#include "limits/rate_limiter.h"
#include "upstream/endpoint_series.h"
#include "upstream/health/failing_keys.h"
#include "upstream/options.h"
#include "upstream/retry_budget.h"

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
  const limits::LimiterMetrics rate_bound, concurrency_bound, endpoint_bound;
};

// Attempts under way to all endpoints of a cluster. Cell w belongs to worker w; no two share a cache line.
class ClusterLoad {
 public:
  explicit ClusterLoad(uint32_t workers) : cells_(workers), retry_budget_(workers), shared_series_(workers) {}
  uint32_t& of(uint32_t worker) { return cells_[worker].in_flight; }
  // Worker `worker` only; made on first use. Null: none of its calls has failed yet.
  FailingKeys& failing_keys(uint32_t worker) {
    std::unique_ptr<FailingKeys>& keys = cells_[worker].failing_keys;
    if (keys == nullptr) keys = std::make_unique<FailingKeys>();
    return *keys;
  }
  const FailingKeys* any_failing_keys(uint32_t worker) const { return cells_[worker].failing_keys.get(); }
  // Any thread.
  RetryBudget& retry_budget() { return retry_budget_; }
  // Of all endpoints beyond EndpointSeries::kNamedMax.
  EndpointSeries& shared_series() { return shared_series_; }

 private:
  struct alignas(64) Cell {
    uint32_t in_flight = 0;
    std::unique_ptr<FailingKeys> failing_keys;
  };
  std::vector<Cell> cells_;
  RetryBudget retry_budget_;
  EndpointSeries shared_series_;
};

}  // namespace sluice::upstream
