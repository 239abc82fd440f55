// Snapshot: everything a call reads of the configuration, as one immutable value: routes, clusters, rings.
//
// Published through DoublyBufferedData. A call takes a counted reference to it; so that taking one writes no line that
// other workers write and costs no atomic operation, each worker counts by itself (WorkerRef).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "concurrent/doubly_buffered_data.h"
#include "proxy/options.h"
#include "proxy/route_table.h"
#include "proxy/worker_ref.h"
#include "upstream/cluster.h"

namespace sluice::proxy {

class AccessLog;
class CallObserver;
struct Insight;
class ResponseCache;
class Tracer;

// Bounds the calls under way in the whole process. Any thread.
struct ProcessLimits {
  ProcessLimits(std::shared_ptr<limits::ConcurrencyLimiter> limiter, metrics::Registry& registry)
      : concurrency(std::move(limiter)), bound(registry, "process/concurrency") {}

  const std::shared_ptr<limits::ConcurrencyLimiter> concurrency;
  const limits::LimiterMetrics bound;
};

// Fields of requests that only the proxy may set (call/forwarded_fields.h).
struct FieldGuard {
  std::vector<std::string> names;    // taken away
  std::vector<std::string> claims;   // taken away on arrival, before gates set them (call/gate.h)
  bool client_cert_decides = false;  // a route looks at x-forwarded-client-cert
};

// What a call needs to its end. Apart from the endpoint lists, so that a call that lasts for hours does not keep the
// rings of its time in memory.
struct RouteConfig {
  RouteTable routes;
  ForwardingOptions forwarding;
  std::shared_ptr<AccessLog> access_log;  // never null
  uint64_t hash_seed = 0;
  std::shared_ptr<const ProcessLimits> limits;           // null: none
  std::shared_ptr<ResponseCache> cache;                  // null: no route caches
  std::vector<std::shared_ptr<CallObserver>> observers;  // told of each finished call; the access log, if it is on

  std::shared_ptr<Insight> insight = nullptr;         // null: nothing is kept of calls
  std::shared_ptr<const Tracer> tracer = nullptr;     // null: no call is traced
  std::shared_ptr<const FieldGuard> guard = nullptr;  // null: no field has to be looked at on arrival
  // Whether a call has to keep what a CallRecord tells: there is an observer, or a tracer.
  bool is_observed = !observers.empty() || tracer != nullptr;

  bool observed() const { return is_observed; }
};

// What it needs until its response begins.
struct Snapshot {
  std::shared_ptr<const RouteConfig> config;
  std::vector<std::shared_ptr<const upstream::ClusterState>> clusters;
};

using SnapshotData = concurrent::DoublyBufferedData<std::shared_ptr<const Snapshot>>;

}  // namespace sluice::proxy
