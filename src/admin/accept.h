// Which of the two formats of metrics a scraper asks for (RFC 9110 12.5.1). No state.
#pragma once

#include <string_view>

namespace sluice::admin {

// Whether an Accept field (several: joined with commas) wants application/openmetrics-text, version 1.0.0, at least as
// much as text/plain. It must name it: a wildcard, or no field, means the plain text.
bool WantsOpenMetrics(std::string_view accept);

}  // namespace sluice::admin
