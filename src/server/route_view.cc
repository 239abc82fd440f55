#include "server/route_view.h"

#include "proxy/call/gate.h"

namespace sluice::server {

using proxy::HashBy;
using proxy::MetadataMatch;
using proxy::Route;
using proxy::RouteOptions;

namespace {

// By the limiters, which a change by RPC may have turned on or off.
std::vector<std::string> LimitsOf(const Route& route) {
  std::vector<std::string> names;
  if (route.limits == nullptr) return names;
  const std::string begin = "route/" + route.options.name;
  if (route.limits->rate->enabled()) names.push_back(begin + "/rate");
  if (route.limits->client_rate->enabled()) names.push_back(begin + "/client_rate");
  return names;
}

}  // namespace

std::string ConditionText(const MetadataMatch& match) {
  switch (match.kind) {
    case MetadataMatch::Kind::kPresent:
      break;
    case MetadataMatch::Kind::kExact:
      return match.name + "=" + match.value;
    case MetadataMatch::Kind::kPrefix:
      return match.name + "=" + match.value + "*";
  }
  return match.name;
}

std::string HashText(const HashBy& by) {
  switch (by.kind) {
    case HashBy::Kind::kRandom:
      return "random";
    case HashBy::Kind::kMethod:
      return "method";
    case HashBy::Kind::kPeer:
      return "peer";
    case HashBy::Kind::kMetadata:
      return "metadata " + by.metadata.text();
    case HashBy::Kind::kField:
      return "field " + by.field;
  }
  return {};
}

std::string RetryText(const proxy::RetryOptions& retry) {
  if (retry.attempts_max <= 1) return "off";
  switch (retry.methods) {
    case proxy::RetryOptions::Methods::kAll:
      return "all";
    case proxy::RetryOptions::Methods::kNone:
      return "none";
    case proxy::RetryOptions::Methods::kDeclared:
      return "declared";
    case proxy::RetryOptions::Methods::kListed:
      return "listed";
  }
  return {};
}

admin::RouteView MakeRouteView(const proxy::RouteTable& routes, size_t place) {
  const Route& route = routes.routes()[place];
  const RouteOptions& options = route.options;
  admin::RouteView view;
  view.name = options.name;
  view.listeners = options.listeners;
  view.authority = options.authority;
  view.path = routes.PathOf(place, &view.exact);
  for (const MetadataMatch& match : options.metadata) view.metadata.push_back(ConditionText(match));
  if (route.gates != nullptr) {
    for (const auto& gate : *route.gates) view.gates.emplace_back(gate->name());
  }
  view.limits = LimitsOf(route);
  for (const proxy::WeightedCluster& part : options.clusters) view.clusters.push_back({part.name, part.weight});
  if (view.clusters.empty()) view.clusters.push_back({options.cluster, 1});
  view.failover = options.failover;
  view.mirror = options.mirror.cluster;
  view.hash_by = HashText(options.hash_by);
  view.cached_methods = static_cast<uint32_t>(options.cache.methods.size());
  view.retry = RetryText(options.retry);
  view.timeout = options.timeout;
  return view;
}

std::vector<admin::RouteView> MakeRouteViews(const proxy::RouteTable& routes) {
  std::vector<admin::RouteView> views;
  for (size_t place = 0; place < routes.routes().size(); ++place) views.push_back(MakeRouteView(routes, place));
  return views;
}

}  // namespace sluice::server
