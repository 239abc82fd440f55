// LimiterMetrics: what is counted of one limiter, and the name by which metrics, logs and trailers speak of it.
#pragma once

#include <string>

#include "limits/verdict.h"
#include "metrics/registry.h"

namespace sluice::limits {

struct LimiterMetrics {
  LimiterMetrics(metrics::Registry& registry, std::string bound_name);

  std::string name;                   // "cluster/users/rate"
  metrics::Counter* refused_full;     // the queue was full
  metrics::Counter* refused_time;     // it waited, or would have waited, longer than queue_time
  metrics::Counter* refused_clients;  // of a limit of each client: more than clients_max call
  metrics::Counter* refused_late;     // the wait, or the service after it, would have passed the deadline
  metrics::Counter* timed_out;        // the deadline passed in the queue
  metrics::Histogram* waited;         // of calls that queued, granted or not

  metrics::Counter* refused(Refusal why) const {
    if (why == Refusal::kTableFull || why == Refusal::kDebt) return refused_clients;
    if (why == Refusal::kQueueTime) return refused_time;
    return why == Refusal::kTooLate ? refused_late : refused_full;
  }
};

}  // namespace sluice::limits
