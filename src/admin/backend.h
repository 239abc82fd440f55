// Backend: what the admin RPC and the HTTP port may see and ask for. The server implements it; admin never
// owns anything.
//
// Thread safety: every function may be called from any thread (gRPC's), may block for as long as its comment
// says, and must not be called from a worker.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "admin/route_view.h"
#include "base/error.h"
#include "discovery/view.h"
#include "discovery/xds/xds_view.h"
#include "metrics/registry.h"
#include "proxy/call/fault.h"
#include "proxy/grpc_status.h"
#include "proxy/insight/failed_calls.h"
#include "proxy/response_cache/cache.h"
#include "upstream/cluster_health.h"
#include "upstream/endpoint_change.h"
#include "upstream/endpoint_state.h"
#include "upstream/list_source.h"

namespace sluice::admin {

struct EndpointView {
  std::string name, address;
  double weight = 1;
  double share = 0;  // of keys, 0..1; of one that is drained what it still takes
  upstream::EndpointState state = upstream::EndpointState::kActive;
  upstream::EndpointLink connection = upstream::EndpointLink::kIdle;
  uint64_t in_flight = 0, calls = 0, failures = 0, connections = 0;
  std::optional<upstream::HealthView> health{};  // not of one that is removed
  uint32_t priority = 0;
  std::string locality{};
};

struct ClusterView {
  std::string name, policy;
  uint64_t version = 0;  // grows by one with every change of the list, and over restarts; no two lists have the same
  uint64_t digest = 0;   // equal on all proxies with the same list
  upstream::ListSource source = upstream::ListSource::kConfig;
  std::vector<EndpointView> endpoints;
  std::vector<upstream::HealthChangeView> health_changes{};
  std::optional<discovery::DiscoveryView> discovery{};  // without a source: none
};

struct HealthOrder {
  std::string cluster, endpoint;
  upstream::ClusterHealth::Order order;
};

struct ChangeResult {
  uint64_t version = 0, digest = 0;
  double moved_share = 0;  // of keys that go to another endpoint than before, 0..1
};

// One limiter, as it is in force.
struct LimitView {
  // "process/concurrency", "cluster/NAME/{rate,concurrency,endpoint_concurrency}", "route/NAME/{rate,client_rate}". Its
  // last part tells what it is: what ends in "concurrency" has max, the rest a rate.
  std::string name;
  // Rates: calls a second, burst, capped. Concurrency: max. 0: no limit.
  double rate = 0;
  uint32_t burst = 0;
  bool capped = false;
  uint32_t max = 0;
  uint32_t queue_max = 0;
  std::chrono::milliseconds queue_time{0};
  bool overridden = false;  // changed by RPC and not as configured
  uint64_t waiting = 0;     // calls in the queue now; not client_rate
  uint64_t in_use = 0;      // concurrency: calls that hold a permit; capped: tokens out; not client_rate
  uint64_t keys = 0;        // client_rate: clients remembered
};

// Changes what is given; the rest stays. In force for the calls that wait and all later ones, until a restart or a
// reload in which the configuration of this limit has changed.
struct LimitChange {
  std::string name;
  std::optional<double> rate;     // rates only; 0: no limit
  std::optional<uint32_t> burst;  // rates only
  std::optional<uint32_t> max;    // concurrency only; 0: no limit
  std::optional<uint32_t> queue_max;
  std::optional<std::chrono::milliseconds> queue_time;
  bool reset = false;  // back to what is configured; alone
};

// A failure of calls that is asked for.
struct FaultOrder {
  // A route by its name, its place or a cluster that it alone leads to; or "/pkg.Service/Get", without the first / too.
  std::string target;
  std::chrono::milliseconds delay{0};
  proxy::GrpcCode abort = proxy::GrpcCode::kOk;
  std::optional<uint32_t> reset_after;
  double percent = 100;
  std::chrono::milliseconds time{0};
};

struct FaultView {
  uint64_t id = 0;
  proxy::FaultOptions options;
  base::Nanos left{0};
  uint64_t calls = 0;
};

struct CacheView {
  bool enabled = false;  // some route caches
  proxy::CacheStats stats;
};

// Which side of TLS a certificate proves: ours, or peers that it vouches for.
enum class CertificatePurpose : uint8_t { kOwn, kTrusted };

// A certificate in use for TLS.
struct CertificateView {
  std::string used_by;  // "listener/NAME", "cluster/NAME", "admin"
  CertificatePurpose purpose = CertificatePurpose::kOwn;
  std::string file;                       // or "system": the system's authorities, of which nothing else is told
  std::string subject, issuer;            // RFC 2253: "CN=a,O=b"
  std::vector<std::string> names;         // DNS, URIs, IP addresses
  int64_t not_before = 0, not_after = 0;  // seconds since 1970
  int64_t days_left = 0;                  // whole days; negative: it is over
  std::string error;                      // why the files' last change is not in force; empty: it is
};

struct ReloadResult {
  std::vector<std::string> errors;    // "file:line:column: path: ..."; not empty: nothing changed
  std::vector<std::string> warnings;  // what needs a restart to take effect
};

// The last reload since the start, by whatever it was asked for.
struct ReloadView {
  base::Nanos ago{};
  ReloadResult result;
  std::vector<std::string> changes;  // what it has changed, a line each; empty: nothing, or it has failed
};

struct ConfigView {
  std::string yaml;                   // empty with errors
  std::vector<std::string> errors;    // of the file: "file:line:column: path: ..."
  std::vector<std::string> warnings;  // of the file: what needs a restart
};
// Of ConfigView::yaml, as an answer.
inline constexpr size_t kConfigBytesMax = 60 * 1024 * 1024;

struct ServerView {
  std::string version, config_file;
  uint64_t pid = 0, uptime_seconds = 0, workers = 0;
  bool ready = false, draining = false;
  uint64_t downstream_connections = 0, calls_in_flight = 0;
};

// A process of the daemon: the one that serves, or one that it has replaced and that still has calls.
struct ProcessView {
  uint64_t pid = 0;
  uint32_t generation = 1;  // grows by one with every process that takes over
  std::string version;
  bool serving = true;
  base::Nanos since{};  // it began to serve; or it was replaced
  uint64_t calls = 0, connections = 0;
};

struct UpgradeResult {
  bool replaced = true;  // false: the program's file is the one that runs already
  uint64_t pid = 0;      // this and the rest: of the new process
  uint32_t generation = 0;
  std::string version;
};

// Calls that an endpoint has been given since the start.
struct EndpointCalls {
  std::string name;
  uint64_t calls = 0;
};

// What became of the calls of a cluster's routes, summed since the start.
struct ClusterTraffic {
  std::string cluster;
  std::array<uint64_t, proxy::kGrpcCodes> statuses{};
  metrics::Histogram::Snapshot duration;   // nanoseconds
  std::vector<EndpointCalls> endpoints{};  // those of its list
};

// Calls that the proxy has failed for a reason, since the start.
struct ReasonCount {
  std::string_view reason;  // its sluice-reason
  uint64_t count = 0;
};

// The calls that failed last.
struct FailedCallsView {
  struct Call : proxy::FailedCall {
    explicit Call(proxy::FailedCall call) : proxy::FailedCall(std::move(call)) {}
    base::Nanos ago{0};  // since it ended
  };
  std::vector<Call> calls;  // newest first
  uint32_t kept = 0;        // of each worker and kind (proxy/insight/failed_calls.h); 0: none is kept
  uint64_t failed = 0;      // since the start, also those that are gone
  uint64_t left_out = 0;    // and those that were not written, for there were too many of their kind
  std::string process;      // what the ids of this process begin with
};

// A key that many calls of a cluster have.
struct HotKeyView {
  // Its beginning, as the client sent it, any bytes; where keys are hidden, a name for it.
  std::string key;
  bool cut = false;      // the key is longer
  double share = 0;      // of the cluster's calls, at most; 0..1
  double error = 0;      // the share is at least so much less
  std::string endpoint;  // whose it is now; empty: there is none
};

struct HotKeysView {
  std::string cluster;
  bool hidden = false;
  uint64_t samples = 0;          // calls looked at, about one of 64
  base::Nanos span{0};           // over how long
  double floor = 0;              // a key that is not in the list has at most this share
  std::vector<HotKeyView> keys;  // largest share first
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual ServerView DescribeServer() = 0;
  // The one that serves, then those that it has replaced, newest first.
  virtual std::vector<ProcessView> ListProcesses() { return {}; }
  // Starts a new process from the program's file, which takes over from this one; returns when it serves. On an error
  // this one serves as before. `only_if_changed`: not where the file is the one that runs. Blocks for half a minute at
  // most. kBusy, kConflict, kIo, kInvalidArgument.
  virtual base::Result<UpgradeResult> Upgrade([[maybe_unused]] bool only_if_changed) {
    return base::MakeError(base::ErrorKind::kNotFound, "there is no program to start");
  }
  // For as long as the result lives an RPC may change something, and a process that takes over waits. kBusy: one takes
  // over, and what is changed here would be lost.
  virtual base::Result<std::shared_ptr<const void>> BeginChange() { return std::shared_ptr<const void>(); }
  // All clusters, or the one named; kNotFound.
  virtual base::Result<std::vector<ClusterView>> ListClusters(std::string_view name) = 0;
  // Returns when every later call sees the new list. kNotFound, kInvalidArgument, kConflict, kIo (state file;
  // nothing changed).
  virtual base::Result<ChangeResult> ChangeEndpoints(const upstream::EndpointChange& change) = 0;
  // kNotFound; kInvalidArgument: it is the last one in rotation.
  virtual base::Status SetEndpointHealth(const HealthOrder& order) = 0;
  // In the order process, clusters, routes.
  virtual std::vector<LimitView> ListLimits() = 0;
  // kNotFound, kInvalidArgument (says what is allowed). Returns the limit as it is now.
  virtual base::Result<LimitView> ChangeLimit(const LimitChange& change) = 0;
  // Those that have not ended.
  virtual std::vector<FaultView> ListFaults() = 0;
  // Every call that begins after it returns may meet it. kNotFound: no such route; kInvalidArgument: there are as many
  // as there may be. What is asked for has been checked.
  virtual base::Result<FaultView> AddFault(const FaultOrder& order) = 0;
  virtual base::Status RemoveFault(uint64_t id) = 0;
  // Each cluster that is there, by name.
  virtual std::vector<ClusterTraffic> ListTraffic() = 0;
  // Those that have happened.
  virtual std::vector<ReasonCount> ListReasons() = 0;
  virtual FailedCallsView ListFailedCalls() = 0;
  // Of each cluster of which there are samples, by name; at most kHotKeysMax keys of each.
  static constexpr size_t kHotKeysMax = 10;
  virtual std::vector<HotKeysView> ListHotKeys() = 0;
  // In the order in which calls are matched.
  virtual std::vector<RouteView> ListRoutes() = 0;
  // What would become of a call; none is made, and nothing is counted. kInvalidArgument: no client can send it;
  // kNotFound: no such listener.
  virtual base::Result<CallExplanation> ExplainCall(const CallQuestion& question) = 0;
  virtual CacheView DescribeCache() = 0;
  // Calls that begin after it returns get nothing from before. Returns how many responses were dropped.
  virtual uint64_t PurgeCache(const proxy::CachePurge& purge) = 0;
  virtual std::vector<CertificateView> ListCertificates() = 0;
  // nullopt: no cluster follows xDS.
  virtual std::optional<discovery::XdsView> DescribeXds() = 0;
  virtual ReloadResult Reload() = 0;
  // nullopt: there was none since the start.
  virtual std::optional<ReloadView> DescribeReload() = 0;
  // The configuration in force, or what a reload would take now.
  virtual ConfigView DescribeConfig(bool from_file) = 0;
  // "trace".."off"; kInvalidArgument names what is allowed.
  virtual base::Status SetLogLevel(std::string_view level) = 0;
  virtual std::string LogLevel() = 0;
  // Starts the drain and returns: not ready; after `delay` no new connections, and GOAWAY; exit when calls are done or
  // after `timeout`, of which the delay is a part. nullopt: as configured. kInvalidArgument: the delay leaves nothing
  // of the timeout.
  virtual base::Status Drain(std::optional<std::chrono::milliseconds> timeout,
                             std::optional<std::chrono::milliseconds> delay) = 0;
  // Stops now.
  virtual void Stop() = 0;
  // Prometheus text of all metrics.
  virtual std::string RenderMetrics() = 0;
  // The same as OpenMetrics text, with exemplars.
  virtual std::string RenderOpenMetrics() = 0;
  virtual bool Ready() = 0;
};

}  // namespace sluice::admin
