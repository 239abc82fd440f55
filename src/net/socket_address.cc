#include "net/socket_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>

namespace sluice::net {

using base::ErrorKind;
using base::MakeError;

base::Result<SocketAddress> ToSocketAddress(const Address& address) {
  SocketAddress out;
  if (address.kind() == Address::Kind::kUnix) {
    auto* un = reinterpret_cast<sockaddr_un*>(&out.storage);
    if (address.host().size() >= sizeof(un->sun_path)) {
      return MakeError(ErrorKind::kInvalidArgument, "unix path longer than 107 bytes: " + address.host());
    }
    un->sun_family = AF_UNIX;
    std::memcpy(un->sun_path, address.host().c_str(), address.host().size() + 1);
    out.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.host().size() + 1);
    return out;
  }
  auto* v4 = reinterpret_cast<sockaddr_in*>(&out.storage);
  if (::inet_pton(AF_INET, address.host().c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(address.port());
    out.length = sizeof(sockaddr_in);
    return out;
  }
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&out.storage);
  if (::inet_pton(AF_INET6, address.host().c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(address.port());
    out.length = sizeof(sockaddr_in6);
    return out;
  }
  return MakeError(ErrorKind::kInvalidArgument, "not an IP address: " + address.host());
}

base::Result<std::vector<SocketAddress>> ResolveBlocking(const Address& address) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  int rc = ::getaddrinfo(address.host().c_str(), std::to_string(address.port()).c_str(), &hints, &found);
  if (rc != 0) {
    return MakeError(ErrorKind::kConnectFailed, "cannot resolve " + address.host() + ": " + ::gai_strerror(rc));
  }
  std::vector<SocketAddress> out;
  for (addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    SocketAddress one;
    std::memcpy(&one.storage, entry->ai_addr, entry->ai_addrlen);
    one.length = entry->ai_addrlen;
    out.push_back(one);
  }
  ::freeaddrinfo(found);
  return out;
}

std::string ToString(const SocketAddress& address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address.storage.ss_family == AF_INET) {
    auto* v4 = reinterpret_cast<const sockaddr_in*>(&address.storage);
    ::inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text));
    return std::string(text) + ":" + std::to_string(ntohs(v4->sin_port));
  }
  if (address.storage.ss_family == AF_INET6) {
    auto* v6 = reinterpret_cast<const sockaddr_in6*>(&address.storage);
    ::inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
    return "[" + std::string(text) + "]:" + std::to_string(ntohs(v6->sin6_port));
  }
  if (address.storage.ss_family == AF_UNIX && address.length > offsetof(sockaddr_un, sun_path)) {
    auto* un = reinterpret_cast<const sockaddr_un*>(&address.storage);
    return std::string("unix:") + un->sun_path;
  }
  return "unix:";
}

}  // namespace sluice::net
