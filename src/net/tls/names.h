// TlsNames: the names of a certificate, and whether one of them is allowed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice::net {

// The names of a peer's or of our own certificate. Text only: names with a NUL or other control characters in them are
// left out, as their sole use is to be taken for others.
struct TlsNames {
  std::string common_name;        // empty if there is none, or more than one
  std::vector<std::string> dns;   // as in the certificate
  std::vector<std::string> uris;  // same
  std::vector<std::string> ips;   // canonical text
  // The name to show: the first URI, else DNS name, else the common name.
  const std::string& Best() const;
};

// True if one of `names` is allowed by `pattern` (tls/options.h, CheckAllowedName).
bool NameAllowed(const TlsNames& names, std::string_view pattern);
bool NameAllowed(const TlsNames& names, const std::vector<std::string>& patterns);

}  // namespace sluice::net
