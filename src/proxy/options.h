// Options of listeners, routes and calls. Parsed by config, with the ranges in option_table.h; documented in
// config/reference.yaml.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "http2/options.h"
#include "limits/options.h"
#include "net/address.h"
#include "net/address_range.h"
#include "net/tls/options.h"
#include "proxy/canonical/path.h"
#include "proxy/metadata_name.h"
#include "proxy/traffic_options.h"

namespace sluice::net {
class CurrentTlsContext;
}

namespace sluice::proxy {

// Which pages of other origins may use gRPC-Web (the Fetch standard's CORS protocol). Without origins: off, and what
// backends say of it goes on as it is.
struct CorsOptions {
  // As browsers say them: "https://app.example.com", "https://*.example.com" (any name below), or "*", every origin.
  std::vector<std::string> origins;
  // Request headers that scripts may set beyond those of gRPC-Web, in lower case; "*": whatever they ask for.
  std::vector<std::string> headers;
  // Response headers that scripts may read beyond gRPC's, in lower case; "*": all, where there are no credentials.
  std::vector<std::string> expose;
  // How long a browser may remember what a preflight was answered.
  std::chrono::milliseconds max_age{600000};
  // Cookies and client certificates may be sent along. Not with "*" in origins.
  bool credentials = false;
  bool enabled() const { return !origins.empty(); }
  bool operator==(const CorsOptions&) const = default;
};
inline constexpr size_t kCorsListMax = 64;

struct GrpcWebOptions {
  bool enabled = false;  // the section is there
  CorsOptions cors;
  bool operator==(const GrpcWebOptions&) const = default;
};

// Proxies in front of a listener whose word on their clients is taken: in x-forwarded-for, -proto, -host and
// x-forwarded-client-cert.
struct TrustedProxies {
  // How many stand in a row, each of which adds to the fields: so many elements of a chain stay, and proto and host
  // where they are there. 0: whatever a client says in these fields is replaced.
  uint32_t hops = 0;
  // The last of them, by which a connection comes here, is one of these addresses, or has shown a certificate with one
  // of these names (net::CheckAllowedName). Any other peer is a client.
  std::vector<net::AddressRange> addresses;
  std::vector<std::string> names;
  bool operator==(const TrustedProxies&) const = default;
};
inline constexpr size_t kTrustedProxiesMax = 256;

struct ListenerOptions {
  std::string name;  // default: the address
  net::Address address;
  // Mode of a Unix socket's file. Octal in YAML ("0660").
  uint32_t unix_mode = 0666;
  // Connections accepted at once on this listener; more wait in the kernel's queue.
  uint32_t connections_max = 100000;
  // Connections from one IP address (IPv6: of one /64); more are closed at once, because the address is known only
  // after accept. 0: no bound, the default, because a balancer in front is one address.
  uint32_t connections_per_peer_max = 0;
  // Connections the kernel queues for us (listen(2)).
  uint32_t backlog = 1024;
  http2::KeepaliveOptions keepalive;
  http2::LifeOptions life;
  http2::SessionOptions http2;
  net::ListenerTlsOptions tls;
  GrpcWebOptions grpc_web;
  // Which paths gRPC calls may have. kAny is for services whose names are not of gRPC: their servers then read paths in
  // whatever way they do, and only rules that deny know of it (RouteTable::Match).
  PathRule paths = PathRule::kGrpc;
  TrustedProxies trusted_proxies;
  // Not configured: where the context for `tls` stands, put here by server::TlsReloader.
  // Options that are equal have the same one. Null with tls.enabled: every connection is closed.
  std::shared_ptr<net::CurrentTlsContext> tls_slot;
  bool operator==(const ListenerOptions&) const = default;
};

// One metadata condition of a route: present and, if given, equal to or starting with a value.
struct MetadataMatch {
  std::string name;  // lower case
  enum class Kind : uint8_t { kPresent, kExact, kPrefix } kind = Kind::kPresent;
  std::string value;
  bool operator==(const MetadataMatch&) const = default;
};

// What a route says of the calls that all conditions of the rule fit (call/access_gate.h).
struct AccessRule {
  enum class Action : uint8_t { kAllow, kDeny } action = Action::kDeny;
  // Names (net::CheckAllowedName), one of which stands in the client's certificate. Empty: of any client.
  std::vector<std::string> clients;
  std::vector<MetadataMatch> metadata;  // all of them
  // kDeny: the gRPC code that the call ends with, 1..16, and its message. Empty: one that names the rule.
  uint8_t status = 7;  // PERMISSION_DENIED
  std::string message;
  bool operator==(const AccessRule&) const = default;
};

// Where a field stands in the messages of one method.
struct MethodField {
  std::string path;  // "/pkg.Service/Get"; empty: every method of the route
  std::vector<uint32_t>
      numbers;  // field numbers from the message down: "user.id" may be {3, 1}. 1..kFieldDepthMax of them
  bool operator==(const MethodField&) const = default;
};
inline constexpr size_t kFieldDepthMax = 16;

// What a metadata field that is there more than once comes to as a key. A client must not choose its key by sending
// two: of servers behind, most read the last value, or all of them joined by commas (gRPC over HTTP/2,
// "Custom-Metadata").
enum class Repeated : uint8_t { kJoined, kFirst, kLast };
inline constexpr std::array<std::string_view, 3> kRepeated = {"joined", "first", "last"};

struct HashBy {
  enum class Kind : uint8_t { kRandom, kMethod, kPeer, kMetadata, kField } kind = Kind::kRandom;
  MetadataName metadata;  // for kMetadata; a call without it is hashed at random
  // For kField: a field of the first request message, by method (sorted by path). Config resolved the names.
  std::vector<MethodField> fields;
  std::string field;  // kField: as it is written
  // kField: bytes of the first message that are looked at.
  uint32_t field_bytes_max = 64 * 1024;
  Repeated repeated = Repeated::kJoined;  // kMetadata
  bool operator==(const HashBy&) const = default;
};

// A bucket for each client, told apart by a metadata value or by the peer's address without its port.
struct ClientRateOptions {
  limits::RateOptions rate;
  MetadataName metadata;  // empty: by peer. A call without the metadata counts as one client with all others without
  // Clients remembered at once.
  uint32_t clients_max = 10000;
  Repeated repeated = Repeated::kJoined;  // of metadata
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
  // Of a fetch for which no call waits, because a stale response was served.
  std::chrono::milliseconds fetch_timeout{60000};
  bool enabled() const { return !methods.empty(); }
  bool operator==(const CacheRule&) const = default;
};

// The process's one response cache.
struct CacheOptions {
  // Memory for responses, with their keys.
  size_t capacity_bytes = 64 * 1024 * 1024;
  // A larger response (message and metadata) is passed on and not cached.
  size_t entry_bytes_max = 1024 * 1024;
  // A larger request message is not looked up.
  size_t request_bytes_max = 64 * 1024;
  // What an entry is expected to take; sizes the table.
  size_t entry_bytes_expected = 4096;
  // Never above capacity_bytes, not for a moment; else by a few entries.
  bool strict = false;
  // A response is cached when its key was asked for before, not the first time: keeps scans out.
  bool doorkeeper = false;
  // Fetches under way at once that others may join; more calls go by themselves.
  uint32_t fetches_max = 10000;
  bool operator==(const CacheOptions&) const = default;
};

// When a call is tried again. One that certainly was not processed: always; any other only where its method may be
// repeated, as often as the cluster's RetryBudgetOptions let it, and before its response has begun.
struct RetryOptions {
  // Attempts in all. 1: none is tried again.
  uint32_t attempts_max = 3;
  // Request bytes kept for another attempt until the response starts; a longer request is not tried again.
  uint32_t buffer_bytes_max = 64 * 1024;
  // Methods that may be repeated: what they do twice is as if they had done it once.
  enum class Methods : uint8_t { kDeclared, kAll, kNone, kListed } methods = Methods::kDeclared;
  // kListed: their paths, "/pkg.Service/Get", sorted. kDeclared: those that the descriptor set says this of; config has
  // read it.
  std::vector<std::string> paths;
  // Statuses upon which they are: bit N is gRPC's code N. A reset, a lost connection and the like always are.
  uint32_t on = 1u << 14;  // UNAVAILABLE
  // Before an endpoint is tried again that has failed: first, doubled up to max, each with 20% jitter.
  std::chrono::milliseconds backoff_base{25};
  std::chrono::milliseconds backoff_max{1000};
  // An attempt of theirs that has no response's headers after this long is given up where another may follow. 0: none.
  std::chrono::milliseconds per_try_timeout{0};
  bool operator==(const RetryOptions&) const = default;
};

// A second attempt of a call that takes long, at another endpoint, beside the first; the first to answer is taken. For
// methods that may be repeated, within the budget of retries.
struct HedgeOptions {
  // When it begins. 0: the 95th percentile of the route's calls in the last ten seconds (call/hedge_delay.h).
  std::chrono::milliseconds delay{0};
  // How many at once. 0: none; at most one.
  uint32_t max = 0;
  bool automatic() const { return max > 0 && delay.count() == 0; }
  bool operator==(const HedgeOptions&) const = default;
};

// A claim that a call is handed on with.
struct JwtClaim {
  std::string claim, metadata;
  bool operator==(const JwtClaim&) const = default;
};

// An issuer of JWTs, and what is asked of them (RFC 7519).
struct JwtProviderOptions {
  // Bits of `algorithms` (RFC 7518 3.1, RFC 8037 3.1).
  enum Algorithm : uint8_t { kRs256 = 1, kEs256 = 2, kEdDsa = 4, kAll = 7 };

  std::string name;                    // a label of metrics
  std::string jwks_file;               // RFC 7517; as it is opened
  std::string issuer;                  // what `iss` must equal
  std::vector<std::string> audiences;  // one of them must be in `aud`. Empty: any, also none
  uint8_t algorithms = kAll;
  std::chrono::milliseconds leeway{30000};  // by how much clocks may differ
  std::vector<JwtClaim> forward_claims;     // no metadata name stands twice
  bool forward_token = true;                // authorization goes on to the endpoint
  uint32_t tokens_max = 10000;              // of which the result is kept
  size_t token_bytes_max = 8192;
  bool operator==(const JwtProviderOptions&) const = default;
};

// What a route asks of its calls.
struct JwtRule {
  std::string provider;  // empty: nothing
  bool required = true;  // false: calls without a JWT pass, too
  bool enabled() const { return !provider.empty(); }
  bool operator==(const JwtRule&) const = default;
};

// The first route whose conditions all hold takes the call.
struct RouteOptions {
  std::string name;       // default: "routes[i]"; a label of metrics and access log
  std::string service;    // "pkg.Service": exact. Empty: any
  std::string method;     // "Get": exact, only with service. Empty: any
  std::string prefix;     // of the whole path "/pkg.Service/Get". Empty: any. Not with service
  std::string authority;  // exact, case-insensitive, port optional; "*.example.com" matches any prefix. Empty: any
  std::vector<MetadataMatch> metadata;
  std::vector<std::string> listeners;  // names; the call came on one of them. Empty: any
  std::string cluster;                 // with `clusters`: the first of them
  // They share the calls: which one takes a call depends on the key of hash_by. Empty: `cluster` takes all.
  std::vector<WeightedCluster> clusters;
  // Takes the calls while the cluster that is theirs has no endpoint that could; another one than it. Empty: none.
  std::string failover;
  HashBy hash_by;
  // Bound on a call's whole life where the client gave none or a longer one. 0: none.
  std::chrono::milliseconds timeout{0};
  RetryOptions retry;
  HedgeOptions hedge;
  limits::RateOptions rate_limit;
  ClientRateOptions client_rate_limit;
  std::vector<AccessRule> access;  // empty: every client may call
  CacheRule cache;
  JwtRule jwt;
  RewriteOptions rewrite;
  MirrorOptions mirror;
  bool operator==(const RouteOptions&) const = default;
};

// What a line of the access log can say of a call; docs/access-log.md has a table of them that a test compares.
enum class AccessField : uint8_t {
  kTime,
  kPeer,
  kClient,
  kAuthority,
  kPath,
  kStatus,
  kRoute,
  kCluster,
  kEndpoint,
  kAttempts,
  kTries,
  kRequestBytes,
  kResponseBytes,
  kUpstreamMs,
  kResponseMs,
  kTotalMs,
  kCache,
  kWaited,
  kLimit,
  kCause,
  kProcessed,
  kDetail,
  kCallId,
  kRequestId,
};
// Their names in the configuration and in JSON, by AccessField.
inline constexpr std::string_view kAccessFieldNames[] = {
    "time",     "peer",     "client", "authority",     "path",           "status",      "route",       "cluster",
    "endpoint", "attempts", "tries",  "request_bytes", "response_bytes", "upstream_ms", "response_ms", "total_ms",
    "cache",    "waited",   "limit",  "cause",         "processed",      "detail",      "call_id",     "request_id"};

struct AccessLogField {
  enum class Source : uint8_t { kCall, kMetadata, kTrailer } source = Source::kCall;
  AccessField field = AccessField::kTime;  // kCall
  std::string name;                        // of the metadata: of the request as it went on, or of the response's end
  std::string as;                          // the key in the line
  bool operator==(const AccessLogField&) const = default;
};

struct AccessLogOptions {
  static constexpr size_t kFieldsMax = 64;

  enum class Format : uint8_t { kOff, kText, kJson } format = Format::kOff;
  std::string path;                    // empty: stdout
  std::vector<AccessLogField> fields;  // empty: all of the call
  // For each worker: what it has said and the log's thread has not yet taken. Rounded up to a power of two. When it is
  // full, the newest lines are dropped and counted.
  uint64_t buffer_bytes = 4 << 20;
  bool operator==(const AccessLogOptions&) const = default;
};

// What of the calls goes to a collector as spans (docs/tracing.md).
struct TracingOptions {
  // Of the collector that speaks OTLP over gRPC: "host:port" or "unix:/path". Empty: off.
  std::string endpoint;
  std::string service_name = "sluice";
  // A call is exported if any of these says so when it ends. parent: its caller's span is sampled; a call with a caller
  // does not meet the ratio then. slower_than 0: that says nothing.
  bool parent = true;
  bool errors = true;
  std::chrono::milliseconds slower_than{0};
  double ratio = 0;
  // Which calls' requests say where in the trace they are: those that are sampled when they are sent, or all, so that a
  // failed or slow one is one trace in all proxies that it passes.
  enum class Propagate : uint8_t { kSampled, kAll } propagate = Propagate::kSampled;
  // For each worker: records of calls that the exporter has not yet taken. Rounded up to a power of two. When it is
  // full, the newest calls are dropped and counted.
  uint64_t buffer_bytes = 1 << 20;
  // Calls in one export at most.
  uint32_t batch_max = 512;
  std::chrono::milliseconds export_timeout{5000};
  bool enabled() const { return !endpoint.empty(); }
  bool operator==(const TracingOptions&) const = default;
};

// What is kept of calls for a person to look at (insight/insight.h).
struct InsightOptions {
  // Calls that failed, of each worker: so many that happen in plenty (refused, cancelled) and so many others. 0: none.
  uint32_t failed_calls = 100;
  // Which keys of hash_by come most. hidden: without the keys themselves, which may be names of people.
  enum class HotKeys : uint8_t { kOff, kHidden, kShown } hot_keys = HotKeys::kHidden;
  bool operator==(const InsightOptions&) const = default;
};

// Which x-request-id endpoints are told. kOff: what the client says, as any metadata. kKeep: the client's, if it is one
// (call/request_id.h), else one made here. kReplace: always one made here.
enum class RequestIds : uint8_t { kOff, kKeep, kReplace };
// A client's longer one is not kept.
inline constexpr size_t kRequestIdBytesMax = 128;

struct ForwardingOptions {
  // Say the peer's address in x-forwarded-for, and x-forwarded-proto and x-forwarded-host. False: what a client says in
  // them goes on as it is.
  bool x_forwarded = false;
  // Add "via: 2 sluice" in both directions.
  bool via = false;
  RequestIds request_id = RequestIds::kOff;
  // Say the client's certificate in x-forwarded-client-cert, behind what trusted proxies have said of theirs.
  // False: the field is taken away.
  bool client_cert = false;
  // Names of metadata that only proxies may set: taken away from what clients send. Lower case.
  std::vector<std::string> remove;
  bool operator==(const ForwardingOptions&) const = default;
};

}  // namespace sluice::proxy
