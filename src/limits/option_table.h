// What may stand in `rate_limit` and `concurrency`.
#pragma once

#include "base/option.h"
#include "limits/options.h"

namespace sluice::limits {

inline constexpr base::Option<RateOptions> kRateOptions[] = {
    {"rate", &RateOptions::rate, 0.001, 1e7, base::kOrZero},
    {"burst", &RateOptions::burst, 1, 1e7},
    {"capped", &RateOptions::capped},
    {"queue", &RateOptions::queue_max, 0, 1e6},
    {"queue_time", &RateOptions::queue_time, 0, base::kHour},
};
inline constexpr base::Option<ConcurrencyOptions> kConcurrencyOptions[] = {
    {"max", &ConcurrencyOptions::max, 0, 1e7},
    {"queue", &ConcurrencyOptions::queue_max, 0, 1e6},
    {"queue_time", &ConcurrencyOptions::queue_time, 0, base::kHour},
};

}  // namespace sluice::limits
