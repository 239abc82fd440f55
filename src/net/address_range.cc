#include "net/address_range.h"

#include <arpa/inet.h>

#include <charconv>
#include <cstring>
#include <optional>

namespace sluice::net {
namespace {

using Bytes = std::array<uint8_t, 16>;

constexpr uint8_t kIpv4At = 96;  // bits before an IPv4 address in one of IPv6 (RFC 4291 2.5.5.2)

// `ipv4`: it was written as one.
std::optional<Bytes> BytesOf(std::string_view address, bool* ipv4 = nullptr) {
  const std::string text(address);
  if (text.find('\0') != text.npos) return std::nullopt;
  Bytes bytes{};
  bytes[10] = bytes[11] = 0xff;
  const bool is_ipv4 = inet_pton(AF_INET, text.c_str(), &bytes[12]) == 1;
  if (ipv4 != nullptr) *ipv4 = is_ipv4;
  if (is_ipv4 || inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1) return bytes;
  return std::nullopt;
}

bool Bit(const Bytes& bytes, size_t i) { return (bytes[i / 8] >> (7 - i % 8) & 1) != 0; }

base::Error BadRange(std::string_view text, std::string_view why) {
  std::string detail(text.substr(0, 100));
  for (char& c : detail) {
    if (c < ' ' || c > '~') c = '?';
  }
  detail.append(why).append("; allowed: 10.0.0.0/8, 192.0.2.7, fd00::/8, unix");
  return base::MakeError(base::ErrorKind::kInvalidArgument, std::move(detail));
}

}  // namespace

base::Result<AddressRange> AddressRange::Parse(std::string_view text) {
  AddressRange out;
  out.text_ = text;
  if (text == "unix") {
    out.unix_ = true;
    return out;
  }
  const size_t slash = text.find('/');
  bool ipv4 = false;
  const auto bytes = BytesOf(text.substr(0, slash), &ipv4);
  if (!bytes) return BadRange(text, " is no range of IP addresses");
  const unsigned whole = ipv4 ? 32 : 128;
  unsigned bits = whole;
  if (slash != text.npos) {
    const std::string_view number = text.substr(slash + 1);
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), bits);
    if (error != std::errc() || end != number.data() + number.size() || bits > whole)
      return BadRange(text, " has a prefix that is too long or no number");
  }
  out.bits_ = static_cast<uint8_t>(bits + (ipv4 ? kIpv4At : 0));
  out.bytes_ = *bytes;
  for (size_t i = out.bits_; i < 128; ++i) {
    if (Bit(out.bytes_, i)) return BadRange(text, " has bits behind its prefix");
  }
  return out;
}

bool AddressRange::Contains(std::string_view peer) const {
  if (unix_ || peer.starts_with("unix:")) return unix_ && peer.starts_with("unix:");
  if (peer.starts_with('[') && peer.ends_with(']')) peer = peer.substr(1, peer.size() - 2);
  const auto bytes = BytesOf(peer.substr(0, peer.find('%')));  // a link's zone says nothing of the peer
  if (!bytes) return false;
  for (size_t i = 0; i < bits_; ++i) {
    if (Bit(*bytes, i) != Bit(bytes_, i)) return false;
  }
  return true;
}

}  // namespace sluice::net
