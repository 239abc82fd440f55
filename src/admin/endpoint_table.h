// Tables of endpoints, as the overview and the page of a cluster show them.
#pragma once

#include <string>
#include <vector>

#include "admin/backend.h"
#include "admin/traffic_history.h"

namespace sluice::admin {

// Not taking its share of calls, by its health or its connection.
bool Unwell(const EndpointView& endpoint);
// It takes calls: in the list, not drained, not unwell.
bool IsWell(const EndpointView& endpoint);
// Its state in a word: of its health, "unreachable" where that is up and no connection can be made, "draining" or
// "removed" by the list. sluicectl has the same words (print.h).
std::string_view StateWord(const EndpointView& endpoint);
// The same with a mark, and for how long it has been so.
std::string StateText(const EndpointView& endpoint);
// Why it is as it is: the evidence of its last change, its last error, when it is tried next. Escaped.
std::string WhyText(const EndpointView& endpoint);

// A table of `endpoints`, which are some of the cluster's.
void AppendEndpoints(std::string& out, std::string_view title, const ClusterView& cluster,
                     const std::vector<const EndpointView*>& endpoints, const TrafficHistory& history);

}  // namespace sluice::admin
