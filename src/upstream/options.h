// Options of clusters and endpoints. Parsed by config, with the ranges in option_table.h; changed in part by the admin
// RPC; documented in config/reference.yaml.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "http2/options.h"
#include "limits/options.h"
#include "net/address.h"
#include "net/tls/options.h"
#include "upstream/health/options.h"

namespace sluice::net {
class CurrentTlsContext;
}

namespace sluice::upstream {

struct EndpointOptions {
  // Stable name: the ring's points depend on it alone. Default: the address's canonical text. Unique in its cluster.
  std::string name;
  net::Address address;
  // Share of keys relative to the others.
  double weight = 1.0;
  // Below kPrioritiesMax; 0 is the highest. Where it is, at most kLocalityBytesMax; empty: as near as any. tiers.h
  uint32_t priority = 0;
  std::string locality;
  bool operator==(const EndpointOptions&) const = default;
};

inline constexpr uint32_t kPrioritiesMax = 8;
// A priority, nearby or in another locality.
inline constexpr size_t kTiersMax = 2 * kPrioritiesMax;
inline constexpr size_t kLocalityBytesMax = 64;
// Printable ASCII of at most that; may be empty.
inline bool IsLocality(std::string_view text) {
  return text.size() <= kLocalityBytesMax &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

enum class Policy : uint8_t { kRingHash, kRoundRobin, kLeastRequest };
inline constexpr std::array<std::string_view, 3> kPolicies = {"ring_hash", "round_robin", "least_request"};
inline std::string_view ToString(Policy policy) { return kPolicies[static_cast<size_t>(policy)]; }

// Whose ring policy ring_hash uses: our own (hash_ring.h), or that of Envoy and gRPC (xds_ring.h).
enum class Ring : uint8_t { kSluice, kXds };
inline constexpr std::array<std::string_view, 2> kRings = {"sluice", "xds"};

// How many calls may be tried again though that puts load on backends (retry_budget.h).
struct RetryBudgetOptions {
  // Attempts more for each call that succeeded.
  double ratio = 0.2;
  // And this many a second besides.
  uint32_t min_per_second = 3;
  bool operator==(const RetryBudgetOptions&) const = default;
};

// When endpoints of a lower priority take calls (spill.h).
struct SpillOptions {
  // What is left of a priority may carry its share and this much more of it.
  double headroom = 0.4;
  bool operator==(const SpillOptions&) const = default;
};

struct ClusterOptions {
  std::string name;
  Policy policy = Policy::kRingHash;
  Ring ring = Ring::kSluice;
  // Points a weight of 1 gets on the ring of kSluice.
  uint32_t ring_points = 160;
  // Points of the whole ring of kXds, at least and at most (XdsRingSize).
  uint32_t ring_size_min = 1024;
  uint32_t ring_size_max = 8 * 1024 * 1024;
  std::vector<EndpointOptions> endpoints;  // at most kEndpointsMax

  // A new connection must be ready (TCP, TLS and the server's SETTINGS) in this time. In a data centre that
  // takes milliseconds; two seconds leave room for one lost SYN, which is sent again after one (RFC 6298 2).
  std::chrono::milliseconds connect_timeout{2000};
  // Back-off between failed connections: first, doubled up to max, each with 20% jitter.
  std::chrono::milliseconds backoff_base{100};
  std::chrono::milliseconds backoff_max{10000};
  // Connections a worker may have to one endpoint.
  uint32_t connections_max = 8;
  // Calls of one worker that may wait for a connection to one endpoint; the next goes elsewhere or fails.
  uint32_t pending_calls_max = 1024;
  // And may wait for room on the connections that are there for this long; then it goes elsewhere or fails.
  std::chrono::milliseconds pending_timeout{2000};
  // A removed endpoint's calls may go on for this long, then they are reset.
  std::chrono::milliseconds drain_timeout{30000};
  // A connection without calls is closed earlier than a client's, which is cheap to keep.
  http2::LifeOptions life = {.idle_timeout = std::chrono::milliseconds(300000)};
  // While calls are out. `repeat` is a little more than gRPC's servers ask for.
  http2::KeepaliveOptions keepalive = {.interval = std::chrono::milliseconds(10000),
                                       .timeout = std::chrono::milliseconds(10000),
                                       .repeat = std::chrono::milliseconds(310000)};
  // A larger stream window than a listener's: an endpoint that sends a response of megabytes must not stop for each 256
  // KiB. A larger header block, too: one caller asks for it, and the connection is that of others.
  http2::SessionOptions http2 = {.stream_window_bytes = 1024 * 1024, .header_block_bytes_max = 1024 * 1024};
  limits::RateOptions rate_limit;
  limits::ConcurrencyOptions concurrency;  // calls to the whole cluster
  limits::ConcurrencyOptions
      endpoint_concurrency;  // calls to each endpoint; a full one is passed over while another has room
  // No endpoint takes more than this factor of the mean number of calls under way (each worker counts its own); its
  // keys go on along the ring (Mirrokni, Thorup, Zadimoghaddam 2016). 0: no bound. 1.25 is a good one.
  double bounded_load = 0;
  RetryBudgetOptions retry_budget;
  // Where the process is: endpoints of another locality come after those of the same priority that are nearby. Empty:
  // not known, all are near.
  std::string locality;
  SpillOptions spill;
  EjectionOptions ejection;
  SlowStartOptions slow_start;
  HealthOptions health;
  net::ClusterTlsOptions tls;
  // Not configured: where the context for `tls` stands, put here by server::TlsReloader.
  // Options that are equal have the same one. Null with tls.enabled: no connection can be made.
  std::shared_ptr<net::CurrentTlsContext> tls_slot;
  bool operator==(const ClusterOptions&) const = default;
};
inline constexpr size_t kEndpointsMax = 10000;
// Points of one cluster's ring of kSluice: the sum of ring_points times weight. Bounds its memory and the time to build
// it; a list that would need more is refused. A ring of kXds has ring_size_max at most, whatever the list is.
inline constexpr size_t kRingPointsMax = 4 * 1024 * 1024;
// The largest ring_size_min and ring_size_max, as in Envoy and gRPC. A ring of that size takes 160 MB.
inline constexpr uint32_t kXdsRingSizeMax = 8 * 1024 * 1024;

}  // namespace sluice::upstream
