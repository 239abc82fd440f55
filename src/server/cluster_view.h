// A cluster as the admin plane shows it.
#pragma once

#include <memory>
#include <vector>

#include "admin/backend.h"
#include "upstream/cluster.h"

namespace sluice::server {

// `leaving`: endpoints that left the list; those with calls in flight are shown as kRemoved.
admin::ClusterView MakeClusterView(const upstream::ClusterState& state,
                                   const std::vector<std::shared_ptr<upstream::Endpoint>>& leaving,
                                   base::TimePoint now);

}  // namespace sluice::server
