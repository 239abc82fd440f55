// Options of clusters and endpoints. Parsed by config, changed in part by the admin RPC, documented in
// config/reference.yaml.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "http2/options.h"
#include "limits/options.h"
#include "net/address.h"
#include "net/tls_options.h"

namespace sluice::net {
class TlsSlot;
}

namespace sluice::upstream {

struct EndpointOptions {
  // Stable name: the ring's points depend on it alone. Default: the address's canonical text. Unique in its cluster.
  std::string name;
  net::Address address;
  // Share of keys relative to the others. 0.01..100.
  double weight = 1.0;
  bool operator==(const EndpointOptions&) const = default;
};

enum class Policy : uint8_t { kRingHash, kRoundRobin, kLeastRequest };

struct ClusterOptions {
  std::string name;
  Policy policy = Policy::kRingHash;
  // Points a weight of 1 gets on the ring. 1..10000.
  uint32_t ring_points = 160;
  std::vector<EndpointOptions> endpoints;  // at most kEndpointsMax

  // A new connection must be ready (TCP, TLS and our preface written) in this time. 1ms..10min.
  std::chrono::milliseconds connect_timeout{5000};
  // Back-off between failed connections: first, doubled up to max, each with 20% jitter. 1ms..1h.
  std::chrono::milliseconds backoff_base{100};
  std::chrono::milliseconds backoff_max{10000};
  // Connections a worker may have to one endpoint. 1..1024.
  uint32_t connections_max = 8;
  // Calls of one worker that may wait for a connection to one endpoint; the next goes elsewhere or fails. 1..1000000.
  uint32_t pending_calls_max = 1024;
  // A removed endpoint's calls may go on for this long, then they are reset. 0..1h.
  std::chrono::milliseconds drain_timeout{30000};
  // A connection without calls is closed earlier than a client's, which is cheap to keep.
  http2::LifeOptions life = {.idle_timeout = std::chrono::milliseconds(300000)};
  http2::KeepaliveOptions keepalive;
  // A larger stream window than a listener's: an endpoint that sends a response of megabytes must not stop for each 256
  // KiB.
  http2::SessionOptions http2 = {.stream_window_bytes = 1024 * 1024};
  limits::RateOptions rate_limit;
  limits::ConcurrencyOptions concurrency;  // calls to the whole cluster
  limits::ConcurrencyOptions
      endpoint_concurrency;  // calls to each endpoint; a full one is passed over while another has room
  // No endpoint takes more than this factor of the mean number of calls under way (each worker counts its own); its
  // keys go on along the ring (Mirrokni, Thorup, Zadimoghaddam 2016). 0: no bound. 1.01..100; 1.25 is a good one.
  double bounded_load = 0;
  net::ClusterTlsOptions tls;
  // Not configured: where the context for `tls` stands, put here by whoever reads the files (server/tls_store.h).
  // Options that are equal have the same one. Null with tls.enabled: no connection can be made.
  std::shared_ptr<net::TlsSlot> tls_slot;
  bool operator==(const ClusterOptions&) const = default;
};
inline constexpr size_t kEndpointsMax = 10000;
// Points of one cluster's ring: the sum of ring_points times weight. Bounds its memory and the time to build it; a list
// that would need more is refused.
inline constexpr size_t kRingPointsMax = 4 * 1024 * 1024;

}  // namespace sluice::upstream
