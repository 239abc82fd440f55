#include "limits/limiter_metrics.h"

namespace sluice::limits {

LimiterMetrics::LimiterMetrics(metrics::Registry& registry, std::string bound_name, bool keyed)
    : name(std::move(bound_name)) {
  auto refusals = [&](const char* reason) {
    return registry.AddCounter("sluice_limit_refused_total", "Calls refused by a limit, by limit and reason.",
                               {{"limit", name}, {"reason", reason}});
  };
  refused_full = refusals("queue_full");
  if (keyed) refused_clients = refusals("too_many_clients");
  refused_late = refusals("deadline_too_near");
  timed_out = refusals("deadline_passed");
  waited = registry.AddHistogram("sluice_limit_wait_seconds",
                                 "Time that calls waited for a limit; calls that did not wait are not in it.", 1e-9,
                                 {{"limit", name}});
}

}  // namespace sluice::limits
