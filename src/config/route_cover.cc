#include "config/route_cover.h"

#include <algorithm>
#include <string_view>

#include "config/text.h"

namespace sluice::config {
namespace {

using proxy::MetadataMatch;
using proxy::RouteOptions;

// What every path the route takes begins with.
std::string PathStart(const RouteOptions& route) {
  return route.service.empty() ? route.prefix : Cat("/", route.service, "/", route.method);
}

bool PathFollows(const RouteOptions& first, const RouteOptions& second) {
  if (!first.prefix.empty()) return PathStart(second).starts_with(first.prefix);
  if (first.service.empty()) return true;
  if (second.service.empty()) return false;  // a prefix may go on in ways an exact service does not
  return first.service == second.service && (first.method.empty() || first.method == second.method);
}

bool Implies(const MetadataMatch& given, const MetadataMatch& wanted) {
  if (given.name != wanted.name) return false;
  switch (wanted.kind) {
    case MetadataMatch::Kind::kPresent:
      return true;
    case MetadataMatch::Kind::kExact:
      return given.kind == MetadataMatch::Kind::kExact && given.value == wanted.value;
    case MetadataMatch::Kind::kPrefix:
      return given.kind != MetadataMatch::Kind::kPresent && given.value.starts_with(wanted.value);
  }
  return false;
}

// RFC 3986 3.2.2: hosts do not differ by case.
bool SameAuthority(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace

bool Covers(const RouteOptions& first, const RouteOptions& second) {
  if (!PathFollows(first, second)) return false;
  const auto takes = [&](const std::string& name) {
    return std::find(first.listeners.begin(), first.listeners.end(), name) != first.listeners.end();
  };
  if (!first.listeners.empty() &&
      (second.listeners.empty() || !std::all_of(second.listeners.begin(), second.listeners.end(), takes)))
    return false;
  if (!first.authority.empty() && !SameAuthority(first.authority, second.authority)) return false;
  return std::all_of(first.metadata.begin(), first.metadata.end(), [&](const MetadataMatch& wanted) {
    return std::any_of(second.metadata.begin(), second.metadata.end(),
                       [&](const MetadataMatch& given) { return Implies(given, wanted); });
  });
}

}  // namespace sluice::config
