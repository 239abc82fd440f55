// ASCII text without regard to case or locale: what RFC 9110 asks for in hosts and names. (Debian's absl has a
// string_view of its own, so its string functions do not take std::string_view.)
#pragma once

#include <string>
#include <string_view>

namespace sluice::base {

// OWS of RFC 9110 5.6.3.
constexpr bool IsBlank(char c) { return c == ' ' || c == '\t'; }

constexpr char ToLower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

inline std::string ToLower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = ToLower(c);
  return out;
}

constexpr bool EqualsIgnoreCase(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (ToLower(a[i]) != ToLower(b[i])) return false;
  }
  return true;
}

constexpr bool EndsWithIgnoreCase(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && EqualsIgnoreCase(text.substr(text.size() - end.size()), end);
}

// A host's name as certificates, SNI and :authority have it: in lower case, without the dot that closes an absolute
// name (RFC 6066 3; RFC 1034 3.1). For DNS the dot says where not to look: keep it there.
inline std::string HostAsNamed(std::string_view host) {
  if (host.size() > 1 && host.ends_with('.')) host.remove_suffix(1);
  return ToLower(host);
}

}  // namespace sluice::base
