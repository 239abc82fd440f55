// RouteTable: from a call's path, authority and metadata to a route. Immutable once built.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "http2/fields/header.h"
#include "limits/keyed_rate_limiter.h"
#include "limits/limiter_metrics.h"
#include "limits/rate_limiter.h"
#include "metrics/registry.h"
#include "proxy/grpc_status.h"
#include "proxy/options.h"

namespace sluice::proxy {

class Gate;
class HedgeDelay;
using GateList = std::vector<std::shared_ptr<const Gate>>;  // call/gate.h

struct RouteMetrics {
  std::array<metrics::Counter*, kGrpcCodes> calls;
  metrics::Histogram* duration;
  metrics::Counter* failovers = nullptr;  // set where the route has a failover cluster
};

// How fast calls of a route may start. Both limiters are there, with a limit or without. Any thread.
struct RouteLimits {
  RouteLimits(std::shared_ptr<limits::RateLimiter> all, std::shared_ptr<limits::KeyedRateLimiter> each_client,
              const std::string& route, metrics::Registry& registry)
      : rate(std::move(all)),
        client_rate(std::move(each_client)),
        rate_bound(registry, "route/" + route + "/rate"),
        client_rate_bound(registry, "route/" + route + "/client_rate") {}

  const std::shared_ptr<limits::RateLimiter> rate;
  const std::shared_ptr<limits::KeyedRateLimiter> client_rate;
  const limits::LimiterMetrics rate_bound, client_rate_bound;
};

struct Route {
  static constexpr uint32_t kNoFailover = UINT32_MAX;

  RouteOptions options;
  uint32_t cluster = 0;  // index into the snapshot's clusters
  RouteMetrics metrics;
  std::shared_ptr<const RouteLimits> limits;          // null: none
  std::shared_ptr<const GateList> gates = nullptr;    // null: none
  std::shared_ptr<HedgeDelay> hedge_delay = nullptr;  // set up where hedge.delay is automatic
  uint32_t failover = kNoFailover;                    // as `cluster`, of the one that steps in
  // The cache's key has all that endpoints learn of a credential that a gate takes off (GateFields::DropCredential).
  bool key_has_credential = false;
};

// What the condition says of one value of its field. Any thread.
bool ValueFits(const MetadataMatch& wanted, std::string_view value);

class RouteTable {
 public:
  explicit RouteTable(std::vector<Route> routes);

  // The first route that takes the request, which came on `listener` (ListenerId), or null. Thread-safe, no allocation.
  const Route* Match(const http2::HeaderList& request, uint64_t listener) const;
  // Whether the listener decides.
  bool by_listener() const { return by_listener_; }
  const std::vector<Route>& routes() const { return routes_; }

 private:
  struct Matcher {
    std::string path;  // exact path, or prefix
    bool exact = false;
    std::string host;                 // of the authority, lower case, without a closing dot; empty: any
    std::string port;                 // ":50051"; empty: any
    bool any_subdomain = false;       // the host is a suffix ".example.com"
    std::vector<uint64_t> listeners;  // ListenerId; empty: any
  };
  static bool AuthorityMatches(const Matcher& matcher, std::string_view authority);

  std::vector<Route> routes_;
  std::vector<Matcher> matchers_;
  bool by_listener_ = false;
};

}  // namespace sluice::proxy
