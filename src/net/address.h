// Address: where to listen or connect: "127.0.0.1:50051", "[::1]:50051", "dns-name:50051", "unix:/path". Canonical
// text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice::net {

class Address {
 public:
  enum class Kind : uint8_t { kIp, kName, kUnix };

  Address() = default;
  // Accepts the forms above; the port is 0..65535 (0 only makes sense for a listener). IPv6 literals get one canonical
  // spelling (RFC 5952), so that all proxies hash the same endpoint name. The error says what is wrong and what is
  // allowed.
  static base::Result<Address> Parse(std::string_view text);

  Kind kind() const { return kind_; }
  const std::string& host() const { return host_; }  // IP literal without brackets, or name; for kUnix the path
  uint16_t port() const { return port_; }
  // An IP address that only this host reaches: 127.0.0.0/8 (also as ::ffff:127.x.y.z), ::1. RFC 1122 3.2.1.3, RFC
  // 4291 2.5.3.
  bool is_loopback() const;
  std::string ToString() const;
  bool operator==(const Address&) const = default;

 private:
  Kind kind_ = Kind::kIp;
  std::string host_;
  uint16_t port_ = 0;
};

}  // namespace sluice::net
