// Authorities: the one spelling of a host and its port (RFC 3986 3.2).
//
// Thread safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice::proxy {

// Whether `authority` stands in its one spelling already: a name in lower case without a closing dot, or an IPv4
// address; behind it no port, or one of 0 to 65535 without leading zeros. An IPv6 address is left to
// CanonicalAuthority.
bool IsCanonicalAuthority(std::string_view authority);

// The one spelling, or nullopt: it is none. Names have labels of letters, digits, "-" and "_" (names of containers have
// it) with a dot between two; other characters that RFC 3986 lets a reg-name have ("%2e", ";", ",") are those that two
// readers read in two ways, so no host is taken that has them. Lower case (6.2.2.1), no closing dot (RFC 1034 3.1), an
// IPv6 address as RFC 5952 writes it, no empty port and no leading zeros in one. A default port stays: which it is says
// the scheme, and a route that names a port names it.
std::optional<std::string> CanonicalAuthority(std::string_view authority);

}  // namespace sluice::proxy
