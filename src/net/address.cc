#include "net/address.h"

#include <arpa/inet.h>
#include <sys/un.h>

#include <algorithm>
#include <charconv>

namespace sluice::net {
namespace {

using base::Error;
using base::Result;

constexpr std::string_view kForms = "allowed: host:port, [IPv6]:port, unix:/path";
constexpr size_t kUnixPathBytesMax = sizeof(sockaddr_un::sun_path) - 1;  // the kernel wants a closing NUL
constexpr size_t kNameBytesMax = 253;                                    // RFC 1035 2.3.4, as text
constexpr size_t kLabelBytesMax = 63;
constexpr size_t kShownBytesMax = 100;

// Safe to print: the text may hold anything.
std::string Shown(std::string_view text) {
  std::string out = "\"";
  for (char c : text.substr(0, kShownBytesMax)) out += c >= ' ' && c <= '~' ? c : '?';
  if (text.size() > kShownBytesMax) out += "...";
  return out + '"';
}

Error Bad(std::string_view text, std::string_view why) {
  std::string detail = Shown(text) + ": " + std::string(why);
  return base::MakeError(base::ErrorKind::kInvalidArgument, std::move(detail));
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsAlpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Strict: no sign, blank or leading zero, so that an address has one spelling.
bool ParsePort(std::string_view text, uint16_t* port) {
  if (text.empty() || text.size() > 5 || (text.size() > 1 && text[0] == '0')) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *port);
  return error == std::errc() && end == text.data() + text.size();
}

// RFC 952 and 1123 2.1, and the underscore that container platforms put into service names. One closing dot is legal.
bool IsName(std::string_view name) {
  if (name.ends_with('.')) name.remove_suffix(1);
  if (name.empty() || name.size() > kNameBytesMax) return false;
  size_t label = 0;
  char last = '.';
  for (char c : name) {
    if (c == '.') {
      if (label == 0 || last == '-') return false;
      label = 0;
    } else if (IsAlpha(c) || IsDigit(c) || c == '_' || (c == '-' && label > 0)) {
      if (++label > kLabelBytesMax) return false;
    } else {
      return false;
    }
    last = c;
  }
  return label > 0 && last != '-';
}

// A name whose last label is a number can only be a mistyped IPv4 address ("10.0.0.256"): no top-level domain is a
// number.
bool EndsInNumber(std::string_view name) {
  if (name.ends_with('.')) name.remove_suffix(1);
  const std::string_view label = name.substr(name.rfind('.') + 1);
  return !label.empty() && std::all_of(label.begin(), label.end(), IsDigit);
}

// RFC 5952 by way of the C library: lower case, the longest run of zeros as "::", ::ffff:a.b.c.d for mapped addresses.
bool CanonicalIp(const std::string& text, int family, std::string* out) {
  unsigned char bytes[sizeof(in6_addr)];
  char buffer[INET6_ADDRSTRLEN];
  if (inet_pton(family, text.c_str(), bytes) != 1) return false;
  if (inet_ntop(family, bytes, buffer, sizeof(buffer)) == nullptr) return false;
  *out = buffer;
  return true;
}

// After "unix:". "unix:///path" is what gRPC also takes for an absolute path.
Result<std::string> ParseUnixPath(std::string_view text, std::string_view path) {
  if (path.starts_with("///")) path.remove_prefix(2);
  if (!path.starts_with('/') || path.starts_with("//")) return Bad(text, "the path must be absolute: unix:/path");
  if (path.find('\0') != path.npos) return Bad(text, "the path has a NUL in it");
  if (path.size() > kUnixPathBytesMax) {
    return Bad(text, "the path has " + std::to_string(path.size()) + " bytes; the system allows " +
                         std::to_string(kUnixPathBytesMax));
  }
  return std::string(path);
}

}  // namespace

Result<Address> Address::Parse(std::string_view text) {
  Address out;
  if (text.empty()) return Bad(text, "no address; " + std::string(kForms));
  if (text.find('\0') != text.npos) return Bad(text, "the address has a NUL in it");
  if (text.starts_with("unix:")) {
    auto path = ParseUnixPath(text, text.substr(5));
    if (!path.ok()) return path.error();
    out.kind_ = Kind::kUnix;
    out.host_ = std::move(*path);
    return out;
  }
  if (text[0] == '/') return Bad(text, "a path; a Unix socket is written with unix: before its path: unix:/path");
  if (text.find("://") != text.npos) return Bad(text, "a URL is no address; " + std::string(kForms));

  const size_t colon = text.rfind(':');
  const bool bracketed = text[0] == '[';
  const size_t bracket = text.find(']');
  if (bracketed && bracket == text.npos) return Bad(text, "no ] after the IPv6 address");
  if (colon == text.npos || (bracketed && colon < bracket)) {
    return Bad(text, "no port; " + std::string(kForms));
  }
  if (bracketed && colon != bracket + 1) return Bad(text, "a colon and the port must follow the ]");
  if (!ParsePort(text.substr(colon + 1), &out.port_)) {
    return Bad(text, "the port is no number in [0, 65535] without leading zeros");
  }

  if (bracketed) {
    const std::string host(text.substr(1, bracket - 1));
    if (host.find('%') != host.npos) return Bad(text, "zones of link-local addresses are not supported");
    if (!CanonicalIp(host, AF_INET6, &out.host_)) return Bad(text, "no IPv6 address in the brackets");
    return out;
  }
  const std::string host(text.substr(0, colon));
  if (host.empty()) return Bad(text, "no host; for all interfaces write 0.0.0.0:port or [::]:port");
  if (host.find(':') != host.npos) return Bad(text, "an IPv6 address needs brackets: [::1]:port");
  if (CanonicalIp(host, AF_INET, &out.host_)) return out;
  if (EndsInNumber(host)) return Bad(text, "no IPv4 address: four numbers in [0, 255] without leading zeros");
  if (!IsName(host)) return Bad(text, "no host name: letters, digits, - and _ in labels of at most 63, 253 in all");
  out.kind_ = Kind::kName;
  out.host_ = host;
  // Names do not differ by case (RFC 4343): one spelling, so that all proxies hash the same endpoint name.
  std::transform(host.begin(), host.end(), out.host_.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

bool Address::is_loopback() const {
  if (kind_ != Kind::kIp) return false;
  if (host_ == "::1") return true;
  std::string_view v4 = host_;
  constexpr std::string_view kMapped = "::ffff:";
  if (v4.starts_with(kMapped)) v4.remove_prefix(kMapped.size());
  return v4.starts_with("127.") && v4.find(':') == v4.npos;
}

std::string Address::ToString() const {
  if (kind_ == Kind::kUnix) return "unix:" + host_;
  const bool ipv6 = host_.find(':') != host_.npos;
  return (ipv6 ? "[" + host_ + "]" : host_) + ":" + std::to_string(port_);
}

}  // namespace sluice::net
