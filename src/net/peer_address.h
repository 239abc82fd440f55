// PeerAddressKey: which peers count as one where a bound applies to each address.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice::net {

// The address in "192.0.2.7:40000" or "[2001:db8::1]:40000" as a number; none of anything else (a Unix socket has none:
// its file's mode controls access). Of an IPv6 address the first 64 bits: what one host can choose of freely. An
// IPv4 address in IPv6 form (RFC 4291 2.5.5.2) is the IPv4 address. Thread safety: any.
std::optional<uint64_t> PeerAddressKey(std::string_view peer_name);

}  // namespace sluice::net
