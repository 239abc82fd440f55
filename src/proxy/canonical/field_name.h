// Names of fields as servers read them: those that go by CGI's rules (RFC 3875 4.1.18), among them WSGI, PHP and
// Rack, take "x_user" and "x-user" for one name. Where a name decides, its aliases decide too.
//
// Thread safety: pure functions.
#pragma once

#include <string_view>

#include "http2/fields/field.h"

namespace sluice::proxy {

// Whether some server takes the two names, in lower case, for one.
inline bool SameFieldName(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  const auto folded = [](char c) { return c == '_' ? '-' : c; };
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && folded(a[i]) != folded(b[i])) return false;
  }
  return true;
}

// Whether the name, which is not one with a Token, is an alias of one: "x_forwarded_for", "grpc_timeout".
bool IsAliasOfKnown(std::string_view name);

}  // namespace sluice::proxy
