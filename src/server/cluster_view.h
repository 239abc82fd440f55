// A cluster as the admin plane shows it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "admin/backend.h"
#include "upstream/cluster.h"

namespace sluice::server {

// Equal on all proxies that hold the same list: what the balancer goes by, and of each endpoint, in any order, its
// name, address, weight, priority, locality and whether it is drained. Linear in the endpoints.
uint64_t ListDigest(const upstream::ClusterState& state);

// `leaving`: endpoints that left the list; those with calls in flight are shown as kRemoved.
admin::ClusterView MakeClusterView(const upstream::ClusterState& state,
                                   const std::vector<std::shared_ptr<upstream::Endpoint>>& leaving,
                                   base::TimePoint now);

}  // namespace sluice::server
