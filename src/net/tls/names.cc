#include "net/tls/names.h"

#include <algorithm>

#include "base/ascii.h"
#include "net/tls/options.h"

namespace sluice::net {
namespace {

constexpr std::string_view kCommonName = "CN=";
constexpr std::string_view kScheme = "://";
constexpr size_t kNameBytesMax = 2048;  // SPIFFE ID 2.3

// "*.rest" takes "label.rest", one label and no wildcard in it: a certificate for *.example.com is for many hosts, and
// says nothing of which one holds it.
bool DnsAllowed(std::string_view name, std::string_view pattern) {
  if (name.ends_with('.')) name.remove_suffix(1);
  if (!pattern.starts_with("*.")) return base::EqualsIgnoreCase(name, pattern);
  const size_t dot = name.find('.');
  return dot != std::string_view::npos && dot > 0 && name[0] != '*' &&
         base::EqualsIgnoreCase(name.substr(dot), pattern.substr(1));
}

bool UriAllowed(std::string_view uri, std::string_view pattern) {
  if (!pattern.ends_with("/*")) return uri == pattern;
  // SPIFFE ID 2.2 has no such segments; resolved, they lead out of the path that the pattern names.
  for (std::string_view climb : {"/./", "/../"}) {
    if (uri.find(climb) != std::string_view::npos || uri.ends_with(climb.substr(0, climb.size() - 1))) return false;
  }
  pattern.remove_suffix(1);  // the slash stays: "spiffe://a/b/*" is not for spiffe://a/bc
  return uri.size() > pattern.size() && uri.starts_with(pattern);
}

base::Status Bad(std::string_view name, std::string_view why) {
  std::string text(name.substr(0, 100));
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  text.append(": ").append(why);
  text.append("; allowed: a.example.com, *.example.com, spiffe://domain/path, spiffe://domain/path/*, CN=name");
  return base::MakeError(base::ErrorKind::kInvalidArgument, std::move(text));
}

}  // namespace

base::Status CheckAllowedName(std::string_view name) {
  if (name.empty()) return Bad(name, "an empty name");
  if (name.size() > kNameBytesMax) return Bad(name, "is longer than 2048 bytes");
  for (char c : name) {
    if (c < ' ' || c > '~') return Bad(name, "has a character that is not visible ASCII");
  }
  if (name.starts_with(kCommonName)) {
    return name.size() > kCommonName.size() ? base::Ok() : Bad(name, "has no name behind CN=");
  }
  if (const size_t scheme = name.find(kScheme); scheme != std::string_view::npos) {
    std::string_view rest = name.substr(scheme + kScheme.size());
    const size_t slash = rest.find('/');
    if (scheme == 0 || rest.empty() || slash == 0) return Bad(name, "is not a URI");
    if (rest.ends_with("/*")) rest.remove_suffix(2);
    if (rest.find('*') != std::string_view::npos) return Bad(name, "may have a * only as its last part, after a slash");
    return base::Ok();
  }
  std::string_view rest = name;
  if (rest.starts_with("*.")) rest.remove_prefix(2);
  if (rest.empty() || rest.size() > 253) return Bad(name, "is not a DNS name");
  size_t label = 0;
  for (char c : rest) {
    if (c == '*') return Bad(name, "may have a * only as its whole first label");
    const bool legal = (base::ToLower(c) >= 'a' && base::ToLower(c) <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '_' || c == '.';
    if (!legal || (c == '.' && label == 0)) return Bad(name, "is not a DNS name");
    label = c == '.' ? 0 : label + 1;
    if (label > 63) return Bad(name, "is not a DNS name");
  }
  if (label == 0) return Bad(name, "is not a DNS name");
  return base::Ok();
}

const std::string& TlsNames::Best() const {
  if (!uris.empty()) return uris.front();
  return dns.empty() ? common_name : dns.front();
}

bool NameAllowed(const TlsNames& names, std::string_view pattern) {
  if (pattern.starts_with(kCommonName)) {
    return !names.common_name.empty() && names.common_name == pattern.substr(kCommonName.size());
  }
  if (pattern.find(kScheme) != std::string_view::npos) {
    return std::any_of(names.uris.begin(), names.uris.end(), [&](const auto& uri) { return UriAllowed(uri, pattern); });
  }
  return std::any_of(names.dns.begin(), names.dns.end(), [&](const auto& name) { return DnsAllowed(name, pattern); });
}

bool NameAllowed(const TlsNames& names, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const auto& pattern) { return NameAllowed(names, pattern); });
}

}  // namespace sluice::net
