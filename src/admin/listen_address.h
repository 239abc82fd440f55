// ListenAddress: where the control plane listens: "unix:/path" or "host:port".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice::admin {

struct ListenAddress {
  std::string path;  // of a Unix socket; empty: TCP
  std::string host;  // name or literal, IPv6 without brackets
  uint16_t port = 0;

  bool is_unix() const { return !path.empty(); }
  // Only processes of this host reach it: a Unix socket, a loopback address, "localhost".
  bool is_local() const;
  std::string ToString() const;
};

// Takes the text apart; whether the host exists is for the one who binds. kInvalidArgument names what is
// allowed.
base::Result<ListenAddress> ParseListenAddress(std::string_view text);

}  // namespace sluice::admin
