// ToOpenMetrics: the text of Registry::RenderPrometheus in the OpenMetrics text format 1.0, the one that has exemplars.
#pragma once

#include <string>
#include <string_view>

#include "metrics/exemplars.h"

namespace sluice::metrics {

inline constexpr const char* kOpenMetricsType = "application/openmetrics-text; version=1.0.0; charset=utf-8";

// `text`: whole lines, families in the order of their names, the HELP of each before its TYPE before its samples. A
// counter's family loses "_total", which its samples keep; where it has not got that, or the rest is another family's
// name, its type is "unknown" and its name stays, because two families may not have one name. Families in seconds and
// bytes say their unit. Samples stay as they are, but for exemplars behind those of buckets.
std::string ToOpenMetrics(std::string_view text, const Exemplars& exemplars);

}  // namespace sluice::metrics
