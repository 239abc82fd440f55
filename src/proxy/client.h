// Client: what a call knows of the connection it came on; lives as long as one of them does. One worker
// only: each worker on which the connection has calls has one of its own (remote_call.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "net/tls/names.h"
#include "proxy/canonical/path.h"
#include "proxy/failed_checks.h"

namespace sluice::proxy {

// The certificate that a client has shown, and that its listener's authorities vouch for.
struct ClientCertificate {
  net::TlsNames names;
  base::TimePoint ends;   // it counts until then
  std::string forwarded;  // its element of x-forwarded-client-cert
};

struct Client {
  std::string peer_name;   // "127.0.0.1:40000"
  uint64_t peer_hash;      // of the address without its port
  uint64_t flow;           // unique to the connection: whose turn it is in a fair queue
  uint64_t limit_key = 0;  // whose limits hold for it: net::PeerAddressKey, or peer_hash where it has no address
  bool tls = false;        // it came over TLS
  std::string
      identity;  // the name in its certificate: a URI, else a DNS name, else the common name; empty: it has shown none
  uint64_t listener = 0;             // ListenerId of the name of the one that accepted it
  PathRule paths = PathRule::kGrpc;  // that listener's
  // TrustedProxies::hops of its listener, if it is one of those proxies: by its address for ever, by its certificate
  // until that ends.
  uint32_t trusted_hops = 0;
  base::TimePoint trusted_until = base::kNever;
  std::shared_ptr<const ClientCertificate> certificate = nullptr;  // null: it has shown none
  // The largest header list that it takes (RFC 9113 6.5.2), as it said before its first call on this worker; by
  // default it says nothing. Written by the connection's worker, in the Client of its own.
  uint32_t header_list_max = UINT32_MAX;
  // There are clients that end all their calls at a larger one.
  bool Takes(size_t list_bytes) const { return list_bytes <= header_list_max; }
  mutable FailedChecks failed_checks{};

  // Of what it says in fields that proxies write, how many elements count. 0: none, it is no proxy.
  uint32_t TrustedHops(base::TimePoint now) const { return now < trusted_until ? trusted_hops : 0; }
  // The peer's name without the port.
  std::string_view address() const {
    std::string_view peer = peer_name;
    return peer.substr(0, peer.starts_with("unix:") ? peer.size() : peer.rfind(':'));
  }
};

// Why a list of that size is not sent to the client: the call ends, and no other of its client. `what`: "response
// headers".
base::Error BeyondClient(const Client& client, std::string_view what, size_t list_bytes);

// What routes and calls tell listeners apart by, over reloads: of equal names it is equal.
uint64_t ListenerId(std::string_view name);

// Its count is the number of calls alive or held on this worker, and one for the connection.
using ClientPtr = std::shared_ptr<const Client>;

}  // namespace sluice::proxy
