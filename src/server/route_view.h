// The routes in force as operators see them.
//
// Reads an immutable table. Thread safety: any thread; nothing suspends.
#pragma once

#include <string>
#include <vector>

#include "admin/route_view.h"
#include "proxy/options.h"
#include "proxy/route_table.h"

namespace sluice::server {

// Conditions, keys and retries as RouteView has them.
std::string ConditionText(const proxy::MetadataMatch& match);
std::string HashText(const proxy::HashBy& by);
std::string RetryText(const proxy::RetryOptions& retry);

admin::RouteView MakeRouteView(const proxy::RouteTable& routes, size_t place);
// In the order in which calls are matched.
std::vector<admin::RouteView> MakeRouteViews(const proxy::RouteTable& routes);

}  // namespace sluice::server
