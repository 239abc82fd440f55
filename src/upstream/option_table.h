// What may stand in a cluster and its endpoints, besides their lists and maps.
#pragma once

#include "base/option.h"
#include "upstream/options.h"

namespace sluice::upstream {

inline constexpr base::Option<EndpointOptions> kEndpointOptions[] = {
    {"weight", &EndpointOptions::weight, 0.01, 100},
    {"priority", &EndpointOptions::priority, 0, kPrioritiesMax - 1},
};
inline constexpr base::Option<SpillOptions> kSpillOptions[] = {
    {"headroom", &SpillOptions::headroom, 0, 10},
};
inline constexpr base::Option<RetryBudgetOptions> kRetryBudgetOptions[] = {
    {"ratio", &RetryBudgetOptions::ratio, 0, 10},
    {"min_per_second", &RetryBudgetOptions::min_per_second, 0, 1e6},
};
inline constexpr base::Option<ClusterOptions> kClusterOptions[] = {
    {"ring_points", &ClusterOptions::ring_points, 1, 10000},
    {"ring_size_min", &ClusterOptions::ring_size_min, 1, kXdsRingSizeMax},
    {"ring_size_max", &ClusterOptions::ring_size_max, 1, kXdsRingSizeMax},
    {"connect_timeout", &ClusterOptions::connect_timeout, 1, 10 * base::kMinute},
    {"backoff_base", &ClusterOptions::backoff_base, 1, base::kHour},
    {"backoff_max", &ClusterOptions::backoff_max, 1, base::kHour},
    {"connections_max", &ClusterOptions::connections_max, 1, 1024},
    {"pending_calls_max", &ClusterOptions::pending_calls_max, 1, 1e6},
    {"pending_timeout", &ClusterOptions::pending_timeout, 1, base::kHour},
    {"drain_timeout", &ClusterOptions::drain_timeout, 0, base::kHour},
    {"bounded_load", &ClusterOptions::bounded_load, 1.01, 100, base::kOrZero},
};

}  // namespace sluice::upstream
