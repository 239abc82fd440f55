// Members of a field that is a list (RFC 9110 5.6.1): what stands between commas, without blanks at its ends.
#pragma once

#include <string_view>

namespace sluice::proxy {

inline std::string_view WithoutBlanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Calls fn(member) for each, in order; at least once. Empty ones count, and quotes hold nothing together: a server
// may split the value at any comma.
template <typename Fn>
void ForEachMember(std::string_view value, const Fn& fn) {
  while (true) {
    const size_t comma = value.find(',');
    fn(WithoutBlanks(value.substr(0, comma)));
    if (comma == value.npos) return;
    value.remove_prefix(comma + 1);
  }
}

}  // namespace sluice::proxy
