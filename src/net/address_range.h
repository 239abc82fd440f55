// AddressRange: a set of IP addresses as CIDR writes it ("10.0.0.0/8", "fd00::/8", "192.0.2.7"), or all peers of Unix
// sockets ("unix").
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice::net {

class AddressRange {
 public:
  AddressRange() = default;
  // An address alone is itself only. Bits beyond the prefix must be 0: a mistake in one of the two numbers would let in
  // others than were meant. The error says what is wrong and what is allowed.
  static base::Result<AddressRange> Parse(std::string_view text);

  // Of a peer as its connection names it, without a port: "192.0.2.7", "[::1]" or "::1", "unix:...". IPv4 in IPv6
  // (::ffff:192.0.2.7) is IPv4. Any thread.
  bool Contains(std::string_view peer) const;
  const std::string& ToString() const { return text_; }
  bool operator==(const AddressRange&) const = default;

 private:
  bool unix_ = false;
  uint8_t bits_ = 0;                 // of `bytes_` that count
  std::array<uint8_t, 16> bytes_{};  // IPv4 as ::ffff:0:0/96 has it
  std::string text_;
};

}  // namespace sluice::net
