#include "limits/limiter_metrics.h"

namespace sluice::limits {

LimiterMetrics::LimiterMetrics(metrics::Registry& registry, std::string bound_name) : name(std::move(bound_name)) {
  constexpr std::string_view kReasons[] = {"queue_full", "too_many_clients", "deadline_too_near", "deadline_passed",
                                           "queue_time"};
  const auto refused =
      registry.AddCounters("sluice_limit_refused_total", "Calls refused by a limit, by limit and reason.",
                           {{"limit", name}}, "reason", kReasons, metrics::Show::kTouched);
  refused_full = &refused[0];
  refused_clients = &refused[1];
  refused_late = &refused[2];
  timed_out = &refused[3];
  refused_time = &refused[4];
  waited = registry.AddHistogram("sluice_limit_wait_seconds",
                                 "Time that calls waited for a limit; calls that did not wait are not in it.", 1e-9,
                                 {{"limit", name}}, metrics::Show::kTouched);
}

}  // namespace sluice::limits
