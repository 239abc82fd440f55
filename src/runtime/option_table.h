// What may stand at the top level for the workers.
#pragma once

#include "base/option.h"
#include "runtime/options.h"

namespace sluice::runtime {

inline constexpr base::Option<RuntimeOptions> kRuntimeOptions[] = {
    {"workers", &RuntimeOptions::workers, 0, 256, base::kRestart},
    {"blocking_threshold", &RuntimeOptions::blocking_threshold, 0, base::kHour, base::kRestart},
    {"blocking_threads", &RuntimeOptions::blocking_threads, 1, 64, base::kRestart},
};

}  // namespace sluice::runtime
