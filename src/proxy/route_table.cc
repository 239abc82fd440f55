#include "proxy/route_table.h"

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "base/check.h"
#include "proxy/client.h"

namespace sluice::proxy {
namespace {

bool MetadataMatches(const MetadataMatch& wanted, const http2::HeaderList& request) {
  // Any of several fields of that name will do.
  return std::any_of(request.begin(), request.end(), [&](const http2::Field* field) {
    return field->name() == wanted.name && ValueFits(wanted, field->value());
  });
}

// "host:50051" -> "host", ":50051"; "[::1]:50051" -> "[::1]", ":50051". A name with a closing dot is the same name (RFC
// 1034 3.1): a client must not pass a route by because of it.
std::pair<std::string_view, std::string_view> HostAndPort(std::string_view authority) {
  size_t colon = authority.rfind(':');
  if (colon != authority.npos && authority.find(']', colon) != authority.npos) colon = authority.npos;
  std::string_view host = authority.substr(0, colon);
  if (host.ends_with('.')) host.remove_suffix(1);
  return {host, colon == authority.npos ? std::string_view() : authority.substr(colon)};
}

}  // namespace

// Two routes may lead to one cluster, and tell it different things.
std::string CacheScope(const std::string& cluster, const RouteOptions& route) {
  const RewriteOptions& rewrite = route.rewrite;
  if (!rewrite.enabled()) return cluster;
  std::string scope = cluster;
  const auto add = [&](char kind, const std::string& text) { (scope += '\n') += kind + text; };
  add('a', rewrite.authority);
  for (const FieldRewrite* fields : {&rewrite.request, &rewrite.response}) {
    add('f', "");
    for (const std::string& name : fields->remove) add('-', name);
    for (const FieldRewrite::Entry& entry : fields->set) add('=', entry.name + ' ' + entry.value);
    for (const FieldRewrite::Entry& entry : fields->add) add('+', entry.name + ' ' + entry.value);
  }
  return scope;
}

bool ValueFits(const MetadataMatch& wanted, std::string_view value) {
  switch (wanted.kind) {
    case MetadataMatch::Kind::kPresent:
      return true;
    case MetadataMatch::Kind::kExact:
      return value == wanted.value;
    case MetadataMatch::Kind::kPrefix:
      return value.starts_with(wanted.value);
  }
  return false;
}

ClusterSplit::ClusterSplit(const RouteOptions& options, const std::vector<uint32_t>& places,
                           std::vector<RouteMetrics> metrics) {
  uint64_t total = 0, before = 0;
  for (const WeightedCluster& cluster : options.clusters) total += cluster.weight;
  SLUICE_CHECK(total > 0 && total < uint64_t{1} << 32);
  for (size_t i = 0; i < options.clusters.size(); ++i) {
    before += options.clusters[i].weight;
    const std::string& name = options.clusters[i].name;
    parts_.push_back({name, places[i], metrics[i], CacheScope(name, options), (before << 32) / total});
  }
}

RouteTable::RouteTable(std::vector<Route> routes) : routes_(std::move(routes)) {
  for (Route& route : routes_) {
    const RouteOptions& options = route.options;
    route.cache_scope = CacheScope(options.cluster, options);
    route.rewrites_request = options.rewrite.of_request();
    route.rewrites_response = !options.rewrite.response.empty();
    Matcher matcher;
    if (!options.service.empty()) {
      matcher.path = "/" + options.service + "/" + options.method;
      matcher.exact = !options.method.empty();
    } else {
      matcher.path = options.prefix;
    }
    const std::string authority = base::ToLower(options.authority);
    const auto [host, port] = HostAndPort(authority);
    matcher.any_subdomain = host.starts_with("*.");
    matcher.host = host.substr(matcher.any_subdomain ? 1 : 0);
    matcher.port = port;
    for (const std::string& name : options.listeners) matcher.listeners.push_back(ListenerId(name));
    by_listener_ |= !matcher.listeners.empty();
    matchers_.push_back(std::move(matcher));
  }
}

bool RouteTable::AuthorityMatches(const Matcher& matcher, std::string_view authority) {
  const auto [host, port] = HostAndPort(authority);
  if (!matcher.port.empty() && port != matcher.port) return false;
  if (!matcher.any_subdomain) return base::EqualsIgnoreCase(host, matcher.host);
  return host.size() > matcher.host.size() && base::EndsWithIgnoreCase(host, matcher.host);
}

const Route* RouteTable::Match(const http2::HeaderList& request, uint64_t listener) const {
  const http2::Field* path_field = request.Find(http2::Token::kPath);
  std::string_view path = path_field != nullptr ? path_field->value() : std::string_view();
  for (size_t i = 0; i < routes_.size(); ++i) {
    const Matcher& matcher = matchers_[i];
    if (matcher.exact ? path != matcher.path : !path.starts_with(matcher.path)) continue;
    if (!matcher.listeners.empty() &&
        std::find(matcher.listeners.begin(), matcher.listeners.end(), listener) == matcher.listeners.end()) [[unlikely]]
      continue;
    if (!matcher.host.empty()) {
      const http2::Field* authority = request.Find(http2::Token::kAuthority);
      if (authority == nullptr) authority = request.Find(http2::Token::kHost);
      if (authority == nullptr || !AuthorityMatches(matcher, authority->value())) continue;
    }
    const std::vector<MetadataMatch>& metadata = routes_[i].options.metadata;
    if (std::all_of(metadata.begin(), metadata.end(),
                    [&](const auto& wanted) { return MetadataMatches(wanted, request); })) {
      return &routes_[i];
    }
  }
  return nullptr;
}

}  // namespace sluice::proxy
