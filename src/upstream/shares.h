// What policies that go by weights alone have in common.
#pragma once

#include <cstdint>

#include "upstream/load_balancer.h"

namespace sluice::upstream {

// Of the policy and the names with their weights, in whatever order they are listed.
uint64_t DigestOfWeights(Policy policy, BalancerEndpoints endpoints);

}  // namespace sluice::upstream
