// What may stand in `ejection`, `slow_start` and `health` of a cluster.
#pragma once

#include "base/option.h"
#include "upstream/health/options.h"

namespace sluice::upstream {

inline constexpr base::Option<EjectionOptions> kEjectionOptions[] = {
    {"enabled", &EjectionOptions::enabled},
    {"consecutive", &EjectionOptions::consecutive, 0, 1e6},
    {"error_rate", &EjectionOptions::error_rate, 0.01, 1, base::kOrZero},
    {"stuck", &EjectionOptions::stuck, 0, base::kHour},
    {"min_available", &EjectionOptions::min_available, 0, 1},
    {"base", &EjectionOptions::base, 1, base::kHour},
    {"max", &EjectionOptions::max, 1, base::kHour},
};
inline constexpr base::Option<SlowOptions> kSlowOptions[] = {
    {"factor", &SlowOptions::factor, 1.5, 1000, base::kOrZero},
    {"floor", &SlowOptions::floor, 0, base::kHour},
};
inline constexpr base::Option<SlowStartOptions> kSlowStartOptions[] = {
    {"window", &SlowStartOptions::window, 0, base::kHour},
    {"first", &SlowStartOptions::first, 0.01, 1},
};
inline constexpr base::Option<HealthOptions> kHealthOptions[] = {
    {"interval", &HealthOptions::interval, 100, base::kHour},
    {"timeout", &HealthOptions::timeout, 100, base::kMinute},
    {"fall", &HealthOptions::fall, 1, 1000},
    {"rise", &HealthOptions::rise, 1, 1000},
};

}  // namespace sluice::upstream
