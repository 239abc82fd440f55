// /status.json: what the pages show, in the JSON of the admin RPC's messages where there is one, for programs.
#pragma once

#include <string>
#include <vector>

#include "admin/backend.h"
#include "admin/status_page.h"

namespace sluice::admin {

// The process, its clusters without their endpoints and changes, traffic, failures, limits, cache, certificates, the
// control plane without its resources, the last reload.
std::string RenderStatusJson(const StatusParts& parts, const std::vector<ClusterView>& clusters,
                             const TrafficHistory& history);
// A cluster with its endpoints, the last changes of their health, and its traffic.
std::string RenderClusterJson(const ClusterView& cluster, const TrafficHistory& history);

}  // namespace sluice::admin
