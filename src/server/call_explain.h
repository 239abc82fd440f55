// What would become of one call, by the code that judges calls: Canonicalize, RouteTable::Match, the access gate,
// KeyOfHeaders, the cache's policy and MayRepeat.
//
// Reads an immutable snapshot and counts nothing. Thread safety: any thread; nothing suspends.
#pragma once

#include <vector>

#include "admin/route_view.h"
#include "base/clock.h"
#include "base/error.h"
#include "proxy/options.h"
#include "proxy/snapshot.h"

namespace sluice::server {

// As admin::Backend::ExplainCall. `listeners`: those of the configuration, at least one.
base::Result<admin::CallExplanation> ExplainCall(const admin::CallQuestion& question,
                                                 const std::vector<proxy::ListenerOptions>& listeners,
                                                 const proxy::Snapshot& snapshot, base::TimePoint now);

}  // namespace sluice::server
