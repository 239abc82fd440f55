// Options of listeners, routes and calls. Parsed by config, documented in config/reference.yaml.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "http2/options.h"
#include "limits/options.h"
#include "net/address.h"
#include "net/tls_options.h"

namespace sluice::net {
class TlsSlot;
}

namespace sluice::proxy {

struct ListenerOptions {
  std::string name;  // default: the address
  net::Address address;
  // Mode of a Unix socket's file. Octal in YAML ("0660").
  uint32_t unix_mode = 0666;
  // Connections accepted at once on this listener; more wait in the kernel's queue. 1..1000000.
  uint32_t connections_max = 100000;
  // Connections from one IP address (IPv6: of one /64); more are closed at once, as nobody can tell before accepting
  // one whose it is. 0: no bound, the default, because a balancer in front is one address. 0..1000000.
  uint32_t connections_per_peer_max = 0;
  // Connections the kernel queues for us (listen(2)). 1..65535.
  uint32_t backlog = 1024;
  http2::KeepaliveOptions keepalive;
  http2::LifeOptions life;
  http2::SessionOptions http2;
  net::ListenerTlsOptions tls;
  // Not configured: where the context for `tls` stands, put here by whoever reads the files (server/tls_store.h).
  // Options that are equal have the same one. Null with tls.enabled: every connection is closed.
  std::shared_ptr<net::TlsSlot> tls_slot;
  bool operator==(const ListenerOptions&) const = default;
};

// One metadata condition of a route: present and, if given, equal to or starting with a value.
struct MetadataMatch {
  std::string name;  // lower case
  enum class Kind : uint8_t { kPresent, kExact, kPrefix } kind = Kind::kPresent;
  std::string value;
  bool operator==(const MetadataMatch&) const = default;
};

// Where a field stands in the messages of one method.
struct MethodField {
  std::string path;  // "/pkg.Service/Get"; empty: every method of the route
  std::vector<uint32_t>
      numbers;  // field numbers from the message down: "user.id" may be {3, 1}. 1..kFieldDepthMax of them
  bool operator==(const MethodField&) const = default;
};
inline constexpr size_t kFieldDepthMax = 16;

struct HashBy {
  enum class Kind : uint8_t { kRandom, kMethod, kPeer, kMetadata, kField } kind = Kind::kRandom;
  std::string metadata;  // for kMetadata; a call without it is hashed at random
  // For kField: a field of the first request message, by method (sorted by path). Config resolved the names.
  std::vector<MethodField> fields;
  // kField: bytes of the first message that are looked at. 1..1 MiB.
  uint32_t field_bytes_max = 64 * 1024;
  bool operator==(const HashBy&) const = default;
};

// A bucket for each client, told apart by a metadata value or by the peer's address without its port.
struct ClientRateOptions {
  limits::RateOptions rate;
  std::string metadata;  // empty: by peer. A call without the metadata counts as one client with all others without
  // Clients remembered at once. 16..1000000.
  uint32_t clients_max = 10000;
  bool operator==(const ClientRateOptions&) const = default;
};

// A unary method whose responses may be cached.
struct CachedMethod {
  std::string path;  // "/pkg.Service/Get"
  std::chrono::milliseconds ttl{0};
  bool operator==(const CachedMethod&) const = default;
};

// What a route caches. Without methods: nothing.
struct CacheRule {
  std::vector<CachedMethod> methods;  // sorted by path
  std::vector<std::string> vary;      // metadata names that are part of the key, lower case, sorted
  // Responses are the same for all callers: calls with authorization are cached though it is not in vary.
  bool shared = false;
  // gRPC codes other than OK that are cached, sorted, for error_ttl.
  std::vector<uint8_t> errors;
  std::chrono::milliseconds error_ttl{1000};
  // After its TTL a response may be served for this long while one call fetches a new one. 0: not.
  std::chrono::milliseconds stale_while_revalidate{0};
  // And for this long where fetching failed with UNAVAILABLE. 0: not.
  std::chrono::milliseconds stale_if_unavailable{0};
  // A fetch shared by several calls may go on for this long after the deadline of the call that began it; calls whose
  // deadline is later still go by themselves. 1ms..24h.
  std::chrono::milliseconds fetch_timeout{60000};
  bool enabled() const { return !methods.empty(); }
  bool operator==(const CacheRule&) const = default;
};

// The process's one response cache.
struct CacheOptions {
  // Memory for responses, with their keys. 1 MiB..1 TiB.
  size_t capacity_bytes = 64 * 1024 * 1024;
  // A larger response (message and metadata) is passed on and not cached. 1 KiB..64 MiB.
  size_t entry_bytes_max = 1024 * 1024;
  // A larger request message is not looked up. 0..1 MiB.
  size_t request_bytes_max = 64 * 1024;
  // What an entry is expected to take; sizes the table. 256..1 MiB. Restart.
  size_t entry_bytes_expected = 4096;
  // Never above capacity_bytes, not for a moment; else by a few entries. Restart.
  bool strict = false;
  // A response is cached when its key was asked for before, not the first time: keeps scans out. Restart.
  bool doorkeeper = false;
  // Fetches under way at once that others may join; more calls go by themselves. 1..1000000.
  uint32_t fetches_max = 10000;
  bool operator==(const CacheOptions&) const = default;
};

struct RetryOptions {
  // Attempts in all for a call that was certainly not processed (refused, never sent). 1: none. 1..10.
  uint32_t attempts_max = 3;
  // Request bytes kept for another attempt until the response starts; a longer request is not tried again. 0..16 MiB.
  uint32_t buffer_bytes_max = 64 * 1024;
  bool operator==(const RetryOptions&) const = default;
};

// The first route whose conditions all hold takes the call.
struct RouteOptions {
  std::string name;       // default: "routes[i]"; a label of metrics and access log
  std::string service;    // "pkg.Service": exact. Empty: any
  std::string method;     // "Get": exact, only with service. Empty: any
  std::string prefix;     // of the whole path "/pkg.Service/Get". Empty: any. Not with service
  std::string authority;  // exact, case-insensitive, port optional; "*.example.com" matches any prefix. Empty: any
  std::vector<MetadataMatch> metadata;
  std::string cluster;
  HashBy hash_by;
  // Bound on a call's whole life where the client gave none or a longer one. 0: none. 0..24h.
  std::chrono::milliseconds timeout{0};
  RetryOptions retry;
  limits::RateOptions rate_limit;
  ClientRateOptions client_rate_limit;
  CacheRule cache;
  bool operator==(const RouteOptions&) const = default;
};

struct AccessLogOptions {
  enum class Format : uint8_t { kOff, kText, kJson } format = Format::kOff;
  std::string path;  // empty: stdout
  bool operator==(const AccessLogOptions&) const = default;
};

struct ForwardingOptions {
  // Append the peer's address to x-forwarded-for; set x-forwarded-proto and x-forwarded-host where absent.
  bool x_forwarded = false;
  // Add "via: 2 sluice" in both directions.
  bool via = false;
  bool operator==(const ForwardingOptions&) const = default;
};

}  // namespace sluice::proxy
