// The metrics by endpoint that are summed when they are asked for: attempts by status, and times until the answer.
//
// Their series are those of the endpoints in the lists of that moment, so an endpoint's go when it leaves the list; one
// that comes back begins at 0.
#pragma once

#include "metrics/registry.h"
#include "server/clusters.h"

namespace sluice::server {

// Adds sluice_endpoint_calls_total and sluice_endpoint_latency_seconds. `clusters` must outlive every rendering of
// `registry`.
void AddEndpointMetrics(metrics::Registry& registry, Clusters& clusters);

}  // namespace sluice::server
