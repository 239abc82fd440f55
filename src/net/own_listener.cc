#include "net/own_listener.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <optional>
#include <string>

namespace sluice::net {
namespace {

// As IPv6 has it: IPv4 is mapped (RFC 4291 2.5.5.2), so that one comparison serves both.
using Bytes = std::array<uint8_t, 16>;

Bytes Mapped(const in_addr& v4) {
  Bytes bytes{};
  bytes[10] = bytes[11] = 0xff;
  std::memcpy(&bytes[12], &v4, sizeof v4);
  return bytes;
}

std::optional<Bytes> BytesOf(const std::string& host) {
  in_addr v4{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return Mapped(v4);
  Bytes bytes{};
  if (::inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1) return bytes;
  return std::nullopt;
}

bool IsV4(const Bytes& bytes) { return std::memcmp(bytes.data(), Mapped({}).data(), 12) == 0; }
bool IsAny(const Bytes& bytes) { return bytes == Bytes{} || bytes == Mapped({}); }
bool IsLoopback(const Bytes& bytes) {
  Bytes v6{};
  v6[15] = 1;
  return bytes == v6 || (IsV4(bytes) && bytes[12] == 127);
}

bool IsOfThisHost(const Bytes& bytes) {
  // A connection to 0.0.0.0 or :: goes to this host.
  if (IsAny(bytes) || IsLoopback(bytes)) return true;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return false;
  bool found = false;
  for (const ifaddrs* each = first; each != nullptr && !found; each = each->ifa_next) {
    if (each->ifa_addr == nullptr) continue;
    if (each->ifa_addr->sa_family == AF_INET) {
      found = bytes == Mapped(reinterpret_cast<const sockaddr_in*>(each->ifa_addr)->sin_addr);
    } else if (each->ifa_addr->sa_family == AF_INET6) {
      const auto& v6 = reinterpret_cast<const sockaddr_in6*>(each->ifa_addr)->sin6_addr;
      found = std::memcmp(bytes.data(), &v6, bytes.size()) == 0;
    }
  }
  ::freeifaddrs(first);
  return found;
}

}  // namespace

bool LeadsToListener(const Address& to, const Address& listener) {
  if (to.kind() == Address::Kind::kUnix || listener.kind() == Address::Kind::kUnix) return to == listener;
  if (to.port() != listener.port() || to.port() == 0) return false;
  if (to.host() == listener.host()) return true;
  const std::optional<Bytes> on = BytesOf(listener.host());
  if (!on) return false;
  if (to.kind() == Address::Kind::kName) return to.host() == "localhost" && (IsAny(*on) || IsLoopback(*on));
  const std::optional<Bytes> at = BytesOf(to.host());
  if (!at) return false;
  if (IsAny(*on)) return (IsV4(*at) || !IsV4(*on)) && IsOfThisHost(*at);
  return *at == *on || (IsAny(*at) && IsLoopback(*on));
}

}  // namespace sluice::net
