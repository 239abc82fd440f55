// A ClusterLoadAssignment as a list of endpoints: which of them are in it, under which names and weights, and what is
// wrong with it. docs/discovery-xds.md says the rules to its users.
#pragma once

#include <cstddef>

#include "discovery/list.h"
#include "discovery/xds/resource.h"

namespace envoy::config::endpoint::v3 {
class ClusterLoadAssignment;
}

namespace sluice::discovery {

// Sets `list` and perhaps `note`, or `error`. Weights are whole numbers: an endpoint's times its locality's (gRFC A42),
// divided by what all of one priority have in common.
void ReadAssignment(const envoy::config::endpoint::v3::ClusterLoadAssignment& assignment, XdsResource* out);

// Weights that a cluster may have: from 0.01 to 100 each, `sum_max` together. Those that are more are divided so that
// their mean is 1 in each priority; the others stay. With an infinite `sum_max` those of a
// priority with one above 100 are divided by one power of two; those that are below 0.01 then are raised to it.
void FitWeights(List& list, double sum_max);

}  // namespace sluice::discovery
