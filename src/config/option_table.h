// What may stand at the top level, in `drain` and in `memory`, besides lists and maps.
#pragma once

#include "base/option.h"
#include "config/config.h"

namespace sluice::config {

inline constexpr base::Option<Config> kProcessOptions[] = {
    {"connections_max", &Config::connections_max, 1, 1e7},
    {"drain_timeout", &Config::drain_timeout, 0, base::kHour},
};
inline constexpr base::Option<Config> kDrainOptions[] = {
    {"delay", &Config::drain_delay, 0, base::kHour},
    {"spread", &Config::drain_spread, 0, base::kHour},
};
inline constexpr base::Option<Config> kMemoryOptions[] = {
    {"buffered_bytes_max", &Config::buffered_bytes_max, 16 * base::kMiB, base::kTiB, base::kBytes},
};

}  // namespace sluice::config
