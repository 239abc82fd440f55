// What a change by RPC makes of an endpoint list, as values: no locks, no publication.
#pragma once

#include <vector>

#include "admin/backend.h"
#include "base/error.h"
#include "upstream/cluster.h"

namespace sluice::server {

std::vector<upstream::WantedEndpoint> WantedOf(const std::vector<upstream::EndpointOptions>& endpoints);
std::vector<upstream::WantedEndpoint> WantedOf(const upstream::ClusterState& state);
// What `change` makes of the list of `before`.
std::vector<upstream::WantedEndpoint> WantedOf(const upstream::ClusterState& before,
                                               const upstream::ListChange& change);

// What the change makes of the list; names that are not there, or are there already, are errors (kNotFound,
// kInvalidArgument), so nothing happens by mistake.
base::Result<upstream::ListChange> ApplyChange(const upstream::ClusterState& before,
                                               const admin::EndpointChange& change);

// Share of the keys that go elsewhere than before, 0..1.
double MovedShare(const upstream::ClusterState& before, const upstream::ClusterState& after);

}  // namespace sluice::server
