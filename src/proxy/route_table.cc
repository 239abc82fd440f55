#include "proxy/route_table.h"

#include <algorithm>

#include "base/ascii.h"

namespace sluice::proxy {
namespace {

bool MetadataMatches(const MetadataMatch& wanted, const http2::HeaderList& request) {
  // Any of several fields of that name will do.
  for (const http2::Field* field : request) {
    if (field->name() != wanted.name) continue;
    switch (wanted.kind) {
      case MetadataMatch::Kind::kPresent:
        return true;
      case MetadataMatch::Kind::kExact:
        if (field->value() == wanted.value) return true;
        break;
      case MetadataMatch::Kind::kPrefix:
        if (field->value().starts_with(wanted.value)) return true;
        break;
    }
  }
  return false;
}

// "host:50051" -> "host"; "[::1]:50051" -> "[::1]".
std::string_view WithoutPort(std::string_view authority) {
  size_t colon = authority.rfind(':');
  if (colon == std::string_view::npos || authority.find(']', colon) != std::string_view::npos) return authority;
  return authority.substr(0, colon);
}

}  // namespace

RouteTable::RouteTable(std::vector<Route> routes) : routes_(std::move(routes)) {
  for (const Route& route : routes_) {
    const RouteOptions& options = route.options;
    Matcher matcher;
    if (!options.service.empty()) {
      matcher.path = "/" + options.service + "/" + options.method;
      matcher.exact = !options.method.empty();
    } else {
      matcher.path = options.prefix;
    }
    matcher.authority = base::ToLower(options.authority);
    if (matcher.authority.starts_with("*.")) {
      matcher.authority.erase(0, 1);
      matcher.any_subdomain = true;
    }
    matchers_.push_back(std::move(matcher));
  }
}

bool RouteTable::AuthorityMatches(const Matcher& matcher, std::string_view authority) {
  if (matcher.authority.empty()) return true;
  std::string_view host = WithoutPort(authority);
  if (matcher.any_subdomain)
    return host.size() > matcher.authority.size() && base::EndsWithIgnoreCase(host, matcher.authority);
  return base::EqualsIgnoreCase(authority, matcher.authority) || base::EqualsIgnoreCase(host, matcher.authority);
}

const Route* RouteTable::Match(const http2::HeaderList& request) const {
  const http2::Field* path_field = request.Find(http2::Token::kPath);
  std::string_view path = path_field != nullptr ? path_field->value() : std::string_view();
  for (size_t i = 0; i < routes_.size(); ++i) {
    const Matcher& matcher = matchers_[i];
    if (matcher.exact ? path != matcher.path : !path.starts_with(matcher.path)) continue;
    if (!matcher.authority.empty()) {
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
