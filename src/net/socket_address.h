// Socket-level helpers: an Address as a sockaddr, and the name of a peer. Includes the system's socket headers.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "net/address.h"

namespace sluice::net {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// For kIp and kUnix; kInvalidArgument for a name (resolve it first) or a Unix path that does not fit (107 bytes).
base::Result<SocketAddress> ToSocketAddress(const Address& address);
// All addresses of a DNS name. Blocks: only inside Runtime::Block. kConnectFailed when there is none.
base::Result<std::vector<SocketAddress>> ResolveBlocking(const Address& address);
// "127.0.0.1:40000", "[::1]:40000" or "unix:path".
std::string ToString(const SocketAddress& address);

}  // namespace sluice::net
