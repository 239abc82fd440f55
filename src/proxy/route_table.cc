#include "proxy/route_table.h"

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "base/check.h"
#include "proxy/canonical/field_name.h"
#include "proxy/client.h"
#include "proxy/metadata_match.h"

namespace sluice::proxy {
namespace {

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
    // An allow rule or a limit is passed by as a denial is.
    matcher.guarded = route.gates != nullptr || !options.access.empty() || options.jwt.enabled() ||
                      options.rate_limit.enabled() || options.client_rate_limit.rate.enabled();
    matcher.names_service = !options.service.empty();
    any_guarded_ |= matcher.guarded;
    matcher.lenient = LenientPath(matcher.path);
    if (!matcher.exact && matcher.path.ends_with('/') && matcher.lenient != "/") matcher.lenient += '/';
    if (matcher.path.empty()) matcher.lenient.clear();
    for (const std::string& name : options.listeners) matcher.listeners.push_back(ListenerId(name));
    by_listener_ |= !matcher.listeners.empty();
    matcher.by_path_alone = matcher.listeners.empty() && matcher.host.empty() && options.metadata.empty();
    AddNames(options);
    matchers_.push_back(std::move(matcher));
  }
}

void RouteTable::AddNames(const RouteOptions& route) {
  const auto add = [this](const std::string& name) {
    if (!name.empty() && !DecidesBy(name)) deciding_names_.push_back(name);
  };
  for (const MetadataMatch& match : route.metadata) add(match.name);
  for (const AccessRule& rule : route.access) {
    for (const MetadataMatch& match : rule.metadata) add(match.name);
  }
  for (const std::string& name : route.cache.vary) add(name);
  add(route.hash_by.metadata.text());
  add(route.client_rate_limit.metadata.text());
}

bool RouteTable::DecidesBy(std::string_view name) const {
  return std::any_of(deciding_names_.begin(), deciding_names_.end(),
                     [name](const std::string& one) { return SameFieldName(one, name); });
}

bool RouteTable::AuthorityMatches(const Matcher& matcher, std::string_view authority) {
  const auto [host, port] = HostAndPort(authority);
  if (!matcher.port.empty() && port != matcher.port) return false;
  if (!matcher.any_subdomain) return base::EqualsIgnoreCase(host, matcher.host);
  return host.size() > matcher.host.size() && base::EndsWithIgnoreCase(host, matcher.host);
}

bool RouteTable::PathFits(const Matcher& matcher, std::string_view path, Reading reading) {
  switch (reading) {
    case Reading::kAsIs:
      return matcher.exact ? path == matcher.path : path.starts_with(matcher.path);
    case Reading::kIgnoringCase: {
      const size_t size = matcher.path.size();
      return matcher.exact ? base::EqualsIgnoreCase(path, matcher.path)
                           : path.size() >= size && base::EqualsIgnoreCase(path.substr(0, size), matcher.path);
    }
    case Reading::kLenient:
      return matcher.exact ? path == matcher.lenient : path.starts_with(matcher.lenient);
  }
  return false;
}

inline bool RouteTable::ListenerFits(const Matcher& matcher, uint64_t listener) {
  return matcher.listeners.empty() ||
         std::find(matcher.listeners.begin(), matcher.listeners.end(), listener) != matcher.listeners.end();
}

inline bool RouteTable::AuthorityFits(const Matcher& matcher, const CanonicalRequest& request) {
  if (matcher.host.empty()) return true;
  const http2::Field* authority = request.Find(http2::Token::kAuthority);
  if (authority == nullptr) authority = request.Find(http2::Token::kHost);
  return authority != nullptr && AuthorityMatches(matcher, authority->value());
}

// All conditions but that on the path.
bool RouteTable::OthersFit(size_t route, const CanonicalRequest& request, uint64_t listener) const {
  const Matcher& matcher = matchers_[route];
  if (!ListenerFits(matcher, listener)) [[unlikely]]
    return false;
  if (!AuthorityFits(matcher, request)) return false;
  const std::vector<MetadataMatch>& metadata = routes_[route].options.metadata;
  return std::all_of(metadata.begin(), metadata.end(),
                     [&](const auto& wanted) { return AnyValueFits(wanted, request); });
}

RouteMiss RouteTable::WhyNot(size_t place, const CanonicalRequest& request, uint64_t listener) const {
  using What = RouteMiss::What;
  const Matcher& matcher = matchers_[place];
  const std::string_view path = request.path();
  const bool loose = request.loose_path();
  if (!PathFits(matcher, loose ? path.substr(0, path.find('?')) : path, Reading::kAsIs)) {
    const bool spelling = loose ? PathFits(matcher, LenientPath(path), Reading::kLenient)
                                : PathFits(matcher, path, Reading::kIgnoringCase);
    return {spelling ? What::kSpelling : What::kPath};
  }
  if (!ListenerFits(matcher, listener)) return {What::kListener};
  if (!AuthorityFits(matcher, request)) return {What::kAuthority};
  const std::vector<MetadataMatch>& metadata = routes_[place].options.metadata;
  const auto missed = std::find_if(metadata.begin(), metadata.end(),
                                   [&](const auto& wanted) { return !AnyValueFits(wanted, request); });
  if (missed == metadata.end()) return {};
  return {What::kMetadata, static_cast<size_t>(missed - metadata.begin())};
}

std::string_view RouteTable::PathOf(size_t place, bool* exact) const {
  *exact = matchers_[place].exact;
  return matchers_[place].path;
}

const Route* RouteTable::First(const CanonicalRequest& request, uint64_t listener, std::string_view path,
                               Reading reading) const {
  for (size_t i = 0; i < routes_.size(); ++i) {
    if (PathFits(matchers_[i], path, reading) && OthersFit(i, request, listener)) return &routes_[i];
  }
  return nullptr;
}

const Route* RouteTable::Match(const CanonicalRequest& request, uint64_t listener) const {
  const std::string_view path = request.path();
  if (request.loose_path()) [[unlikely]]
    return MatchLoose(request, listener);
  bool other_spelling = false;
  for (size_t i = 0; i < routes_.size(); ++i) {
    const Matcher& matcher = matchers_[i];
    const bool fits = matcher.exact ? path == matcher.path : path.starts_with(matcher.path);
    if (!fits && (!matcher.guarded || other_spelling || !PathFits(matcher, path, Reading::kIgnoringCase))) [[likely]]
      continue;
    if (!matcher.by_path_alone && !OthersFit(i, request, listener)) continue;
    if (fits) return other_spelling && !matcher.names_service ? nullptr : &routes_[i];
    other_spelling = true;
  }
  return nullptr;
}

// Plain HTTP, or gRPC where the listener takes any path. The query is for the server (RFC 3986 3.4).
const Route* RouteTable::MatchLoose(const CanonicalRequest& request, uint64_t listener) const {
  const std::string_view path = request.path();
  const Route* const as_is = First(request, listener, path.substr(0, path.find('?')), Reading::kAsIs);
  if (!any_guarded_) return as_is;
  // Whichever way its server reads the path, it must be this route's.
  return First(request, listener, LenientPath(path), Reading::kLenient) == as_is ? as_is : nullptr;
}

std::string RouteTable::WhyNone(const CanonicalRequest& request, uint64_t listener) const {
  const std::string_view path = request.path();
  if (path.empty()) return "no route for a request without path";
  std::string why = "no route for " + ShownText(path);
  if (First(request, listener, path.substr(0, path.find('?')), Reading::kAsIs) != nullptr)
    why += ": to some servers it is another spelling of a path that another route guards";
  return why;
}

}  // namespace sluice::proxy
