// What `sluicectl top` shows: two looks at the daemon and the time between them, as text.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "sluice/admin/v1/admin.pb.h"
#include "sluicectl/metrics_text.h"

namespace sluice::ctl {

// One look.
struct TopSample {
  std::chrono::steady_clock::time_point at{};
  admin::v1::GetServerResponse server;
  admin::v1::ListClustersResponse clusters;
  admin::v1::ListLimitsResponse limits;
  admin::v1::ListHotKeysResponse keys;
  CallMetrics metrics;
};

// Lines without control characters. Of each cluster at most `endpoints_max` endpoints, those with most calls first, and
// what is left out is said.
std::string PrintTop(const TopSample& before, const TopSample& now, size_t endpoints_max);

// The lines of `text` that fit into `rows` and `columns`, for a terminal: each ends with "erase to the end of the
// line".
std::string FitScreen(const std::string& text, size_t rows, size_t columns);

}  // namespace sluice::ctl
