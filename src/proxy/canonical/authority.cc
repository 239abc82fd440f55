#include "proxy/canonical/authority.h"

#include <arpa/inet.h>

#include <array>
#include <cstdint>

#include "base/ascii.h"

namespace sluice::proxy {
namespace {

constexpr uint8_t kLower = 1;  // in a canonical label
constexpr uint8_t kUpper = 2;  // comes to one

constexpr std::array<uint8_t, 256> MakeClasses() {
  std::array<uint8_t, 256> classes{};
  for (int c = 0; c < 256; ++c) {
    const bool lower = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    classes[static_cast<size_t>(c)] = lower ? kLower : c >= 'A' && c <= 'Z' ? kUpper : 0;
  }
  return classes;
}
constexpr std::array<uint8_t, 256> kClasses = MakeClasses();

// Labels of the bytes in `wanted`, with a dot between two.
bool IsName(std::string_view host, uint8_t wanted) {
  bool after_label = false;
  for (char c : host) {
    if ((kClasses[static_cast<uint8_t>(c)] & wanted) != 0) {
      after_label = true;
    } else {
      if (c != '.' || !after_label) return false;
      after_label = false;
    }
  }
  return after_label;
}

// 0 to 65535. `zeros`: with leading ones.
bool IsPort(std::string_view port, bool zeros) {
  while (zeros && port.size() > 1 && port[0] == '0') port.remove_prefix(1);
  if (port.empty() || port.size() > 5 || (port.size() > 1 && port[0] == '0')) return false;
  uint32_t number = 0;
  for (char c : port) {
    if (c < '0' || c > '9') return false;
    number = number * 10 + static_cast<uint32_t>(c - '0');
  }
  return number <= 65535;
}

// Of "[::1]", as RFC 5952 writes it. A zone (RFC 6874) is this machine's word for one of its links.
std::optional<std::string> CanonicalIpv6(std::string_view literal) {
  if (literal.size() < 4 || literal.back() != ']') return std::nullopt;
  in6_addr address;
  const std::string text(literal.substr(1, literal.size() - 2));
  if (inet_pton(AF_INET6, text.c_str(), &address) != 1 || text.find('\0') != text.npos) return std::nullopt;
  char out[INET6_ADDRSTRLEN];
  if (inet_ntop(AF_INET6, &address, out, sizeof(out)) == nullptr) return std::nullopt;
  return std::string("[") + out + "]";
}

}  // namespace

bool IsCanonicalAuthority(std::string_view authority) {
  const size_t colon = authority.find(':');
  if (colon != authority.npos && !IsPort(authority.substr(colon + 1), /*zeros=*/false)) return false;
  return IsName(authority.substr(0, colon), kLower);
}

std::optional<std::string> CanonicalAuthority(std::string_view authority) {
  if (IsCanonicalAuthority(authority)) return std::string(authority);
  const bool literal = authority.starts_with('[');
  const size_t end = literal ? authority.find(']') : authority.find(':');
  if (literal && end == authority.npos) return std::nullopt;
  std::string_view host = authority.substr(0, literal ? end + 1 : end);
  std::string_view port = authority.substr(host.size());
  if (port.starts_with(':')) {
    port.remove_prefix(1);
    if (!port.empty() && !IsPort(port, /*zeros=*/true)) return std::nullopt;
    while (port.size() > 1 && port[0] == '0') port.remove_prefix(1);
  } else if (!port.empty()) {
    return std::nullopt;
  }
  std::string out;
  if (literal) {
    const auto address = CanonicalIpv6(host);
    if (!address) return std::nullopt;
    out = *address;
  } else {
    if (host.ends_with('.')) host.remove_suffix(1);
    if (!IsName(host, kLower | kUpper)) return std::nullopt;
    out = base::ToLower(host);
  }
  if (!port.empty()) (out += ':') += port;
  return out;
}

}  // namespace sluice::proxy
