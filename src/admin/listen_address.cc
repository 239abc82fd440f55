#include "admin/listen_address.h"

#include <sys/un.h>

#include <charconv>

#include "net/address.h"

namespace sluice::admin {
namespace {

base::Error Bad(std::string_view text, std::string_view why) {
  return base::MakeError(base::ErrorKind::kInvalidArgument,
                         "admin address \"" + std::string(text) + "\": " + std::string(why));
}

}  // namespace

bool ListenAddress::is_local() const {
  if (is_unix() || host == "localhost") return true;
  const base::Result<net::Address> parsed = net::Address::Parse(ToString());
  return parsed.ok() && parsed->is_loopback();
}

std::string ListenAddress::ToString() const {
  if (is_unix()) return "unix:" + path;
  const bool v6 = host.find(':') != host.npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

base::Result<ListenAddress> ParseListenAddress(std::string_view text) {
  ListenAddress address;
  if (text.starts_with("unix:")) {
    address.path = text.substr(5);
    if (!address.path.starts_with('/')) return Bad(text, "the path of a Unix socket must begin with /");
    if (address.path.find('\0') != address.path.npos) return Bad(text, "the path holds a zero byte");
    if (address.path.size() >= sizeof(sockaddr_un::sun_path)) {
      return Bad(text, "the path of a Unix socket has at most " + std::to_string(sizeof(sockaddr_un::sun_path) - 1) +
                           " bytes");
    }
    return address;
  }
  const size_t colon = text.rfind(':');
  if (colon == text.npos || colon == 0) return Bad(text, "must be unix:/path or host:port");
  std::string_view host = text.substr(0, colon), port = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']') && host.size() > 2) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != host.npos) {
    return Bad(text, "an IPv6 address is written in brackets: [::1]:9901");
  }
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (error != std::errc() || end != port.data() + port.size()) return Bad(text, "the port must be 0 to 65535");
  address.host = host;
  return address;
}

}  // namespace sluice::admin
