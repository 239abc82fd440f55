// Insight: what a process keeps of its calls for a person to look at.
#pragma once

#include <cstdint>

#include "proxy/insight/failed_calls.h"
#include "proxy/insight/hot_keys.h"
#include "proxy/options.h"

namespace sluice::proxy {

struct Insight {
  Insight(const InsightOptions& as, uint32_t workers)
      : options(as), failed(as.failed_calls, workers), keys(as.hot_keys, workers) {}

  const InsightOptions options;
  FailedCalls failed;
  HotKeys keys;
};

}  // namespace sluice::proxy
