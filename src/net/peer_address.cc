#include "net/peer_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstring>
#include <string>

namespace sluice::net {
namespace {

// Keeps IPv4 keys apart from the first halves of IPv6 addresses: those of 0100::/64 discard what is sent to them
// (RFC 6666), so no peer has one.
constexpr uint64_t kIpv4Key = uint64_t{0x0100} << 48;

uint64_t KeyOf(const in_addr& address) { return kIpv4Key | ntohl(address.s_addr); }

}  // namespace

std::optional<uint64_t> PeerAddressKey(std::string_view peer_name) {
  const size_t colon = peer_name.rfind(':');
  if (peer_name.starts_with("unix:") || colon == std::string_view::npos) return std::nullopt;
  std::string host(peer_name.substr(0, colon));
  in_addr v4;
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return KeyOf(v4);
  if (host.size() < 2 || host.front() != '[' || host.back() != ']') return std::nullopt;
  host = host.substr(1, host.size() - 2);
  in6_addr v6;
  if (::inet_pton(AF_INET6, host.c_str(), &v6) != 1) return std::nullopt;
  if (IN6_IS_ADDR_V4MAPPED(&v6)) {
    std::memcpy(&v4, v6.s6_addr + 12, sizeof(v4));
    return KeyOf(v4);
  }
  uint64_t key = 0;
  for (int i = 0; i < 8; ++i) key = key << 8 | v6.s6_addr[i];
  return key;
}

}  // namespace sluice::net
