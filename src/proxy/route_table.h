// RouteTable: from a call's path, authority and metadata to a route. Immutable once built.
#pragma once

#include <array>
#include <atomic>
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
#include "proxy/canonical/request.h"
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

// Route::cache_scope for a cluster of the route.
std::string CacheScope(const std::string& cluster, const RouteOptions& route);

// The clusters that share the calls of a route. Each has a piece of [0, 2^32), in the order of the configuration and as
// large as its weight. Where weights change, only the borders between pieces move: with two clusters no call moves that
// need not. Any thread.
class ClusterSplit {
 public:
  struct Part {
    std::string name;
    uint32_t cluster = 0;  // index into the snapshot's clusters
    RouteMetrics metrics;
    std::string cache_scope;  // as Route's
    uint64_t end = 0;         // of its piece
  };

  // `places`, `metrics`: of `options.clusters`, whose weights are not all 0.
  ClusterSplit(const RouteOptions& options, const std::vector<uint32_t>& places, std::vector<RouteMetrics> metrics);

  const Part& Of(uint32_t position) const {
    size_t i = 0;
    while (position >= parts_[i].end) ++i;
    return parts_[i];
  }
  const std::vector<Part>& parts() const { return parts_; }

 private:
  std::vector<Part> parts_;
};

// What became of a mirrored call.
enum class MirrorResult : uint8_t {
  kAnswered,  // not compared
  kEqual,     // compared, as are the next two
  kStatusDiffers,
  kMessageDiffers,
  kIncomplete,  // it failed or was too slow, or its client's call has no answer of an endpoint's
  kBusy,        // not made: too many are under way
  kFull,        // given up: its request was longer than its cluster took it
  kLimited,     // not made: a limit of its cluster would have let it wait
  kNoEndpoint,  // not made: no endpoint took it at once
};
inline constexpr std::array<std::string_view, 9> kMirrorResults = {
    "answered", "equal", "status_differs", "message_differs", "incomplete", "busy", "full", "limited", "no_endpoint"};

// Where calls of a route are made a second time. Any thread.
struct RouteMirror {
  uint32_t cluster = 0;  // index into the snapshot's clusters
  std::array<metrics::Counter*, kMirrorResults.size()> results{};
  std::shared_ptr<std::atomic<uint32_t>> under_way;  // of the route also under former configurations
  void Count(MirrorResult result, uint32_t worker) const { results[static_cast<size_t>(result)]->Add(worker); }
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
  std::shared_ptr<const RouteMirror> mirror = nullptr;  // null: none
  std::shared_ptr<const ClusterSplit> split = nullptr;  // null: all calls go to `cluster`, but for failover
  // What the cache's keys have of where responses come from: the cluster, and what is rewritten. It and those below are
  // set by RouteTable.
  std::string cache_scope{};
  bool rewrites_request = false, rewrites_response = false;
};

// The first condition of a route that a call does not meet.
struct RouteMiss {
  enum class What : uint8_t { kNone, kPath, kSpelling, kListener, kAuthority, kMetadata } what = What::kNone;
  size_t metadata = 0;  // kMetadata: the place in RouteOptions::metadata
};

class RouteTable {
 public:
  explicit RouteTable(std::vector<Route> routes);

  // The first route that takes the request, which came on `listener` (ListenerId), or null. Null too where the path is
  // another spelling of one that a guarded route takes, one with access rules, JWTs or limits on rates: to gRPC
  // "/pkg.admin/delete" is another method than "/pkg.Admin/Delete", but a server that ignores case runs it, and a route
  // for the rest would lead there past the rules. A route that names the service in this very spelling takes it.
  // Thread-safe; allocates only for a path that is none of gRPC's.
  const Route* Match(const CanonicalRequest& request, uint64_t listener) const;
  // For a person: why the route at `place` does not take the request, whatever routes before it do. kSpelling: the path
  // is another spelling of the route's, which to some servers is the same. kNone: all conditions hold.
  RouteMiss WhyNot(size_t place, const CanonicalRequest& request, uint64_t listener) const;
  // What the path of the route at `place` must be, or begin with; empty: any.
  std::string_view PathOf(size_t place, bool* exact) const;
  // For a person, of a request for which Match says null.
  std::string WhyNone(const CanonicalRequest& request, uint64_t listener) const;
  // Whether a route, an access rule, a key or the cache looks at fields of that name, or of one that some server takes
  // for it.
  bool DecidesBy(std::string_view name) const;
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
    std::string lenient;              // `path` as LenientPath has it; what stands behind a prefix may follow
    bool guarded = false;
    bool names_service = false;
    bool by_path_alone = false;  // no other condition
  };
  // How a path fits a matcher.
  enum class Reading : uint8_t { kAsIs, kIgnoringCase, kLenient };
  static bool PathFits(const Matcher& matcher, std::string_view path, Reading reading);
  void AddNames(const RouteOptions& route);
  static bool ListenerFits(const Matcher& matcher, uint64_t listener);
  static bool AuthorityFits(const Matcher& matcher, const CanonicalRequest& request);
  bool OthersFit(size_t route, const CanonicalRequest& request, uint64_t listener) const;
  const Route* MatchLoose(const CanonicalRequest& request, uint64_t listener) const;
  const Route* First(const CanonicalRequest& request, uint64_t listener, std::string_view path, Reading reading) const;
  static bool AuthorityMatches(const Matcher& matcher, std::string_view authority);

  std::vector<Route> routes_;
  std::vector<Matcher> matchers_;
  std::vector<std::string> deciding_names_;
  bool by_listener_ = false;
  bool any_guarded_ = false;
};

}  // namespace sluice::proxy
