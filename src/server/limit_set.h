// LimitSet: every limiter of the process, its clusters and its routes, by name; what is configured of it and what is in
// force. The request path gets the limiters from here (through the snapshot), the admin RPC changes their options.
//
//   process/concurrency   cluster/NAME/{rate,concurrency,endpoint_concurrency}   route/NAME/{rate,client_rate}
//
// A limit that is not configured has a limiter too, one that lets everything pass, so that it can be put in force at
// run time. cluster/NAME/endpoint_concurrency is options only: each endpoint has its own limiter, which the endpoints'
// owner makes.
//
// What is in force is what is configured until Change(); then what was changed, until a reset, or a reload in which the
// configuration of this limit is another than before. Nothing is kept over a restart.
//
// A reload has two steps, so that one that fails changes nothing: MakePlan() makes what is new and keeps what stays;
// Commit() gives what stays its new options and closes what is gone (its waiters go). Between them the new snapshot is
// built from the plan and published; after Commit() the endpoints of each cluster are given EndpointConcurrency() once
// more, as it may have been changed meanwhile.
//
// Thread safety: every function from any thread; one mutex. It is held while limiters are configured, which never
// waits. Hooks run without it. Two reloads at once are the caller's to exclude.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "admin/backend.h"
#include "base/clock.h"
#include "base/error.h"
#include "config/config.h"
#include "limits/concurrency_limiter.h"
#include "limits/keyed_rate_limiter.h"
#include "limits/options.h"
#include "limits/rate_limiter.h"

namespace sluice::server {

inline constexpr uint32_t kWhole = 1000;  // permille

// One limit of each kind: what is configured, what is in force, and the limiter that enforces it.
struct RateLimit {
  limits::RateOptions configured, in_force;
  std::shared_ptr<limits::RateLimiter> limiter;
  uint32_t permille = kWhole;  // of rate and burst that are this process's; the rest is another one's for a moment
};
struct ClientRateLimit {
  proxy::ClientRateOptions configured;
  limits::RateOptions in_force;  // of each client
  std::shared_ptr<limits::KeyedRateLimiter> limiter;
  uint32_t permille = kWhole;  // as of RateLimit
};
struct ConcurrencyLimit {
  limits::ConcurrencyOptions configured, in_force;
  std::shared_ptr<limits::ConcurrencyLimiter> limiter;
};
struct EndpointLimit {
  limits::ConcurrencyOptions configured, in_force;  // of each endpoint
  std::string cluster;
};

// The limits of one configuration, in the order process, clusters, routes. A value; copies share the limiters.
class LimitTable {
 public:
  // Null (and no limit) where there is no such cluster or route.
  std::shared_ptr<limits::ConcurrencyLimiter> Process() const;
  std::shared_ptr<limits::RateLimiter> ClusterRate(std::string_view cluster) const;
  std::shared_ptr<limits::ConcurrencyLimiter> ClusterConcurrency(std::string_view cluster) const;
  limits::ConcurrencyOptions EndpointConcurrency(std::string_view cluster) const;
  std::shared_ptr<limits::RateLimiter> RouteRate(std::string_view route) const;
  std::shared_ptr<limits::KeyedRateLimiter> RouteClientRate(std::string_view route) const;

  using Limit = std::variant<RateLimit, ClientRateLimit, ConcurrencyLimit, EndpointLimit>;
  struct Named {
    std::string name;
    Limit limit;
  };
  // In the order of the table.
  const std::vector<Named>& all() const { return limits_; }
  // Null: there is none of that name.
  const Named* Get(std::string_view name) const;

 private:
  friend class LimitSet;

  // Null if there is none, or none of that kind.
  template <typename Kind>
  const Kind* Find(std::string_view name) const;
  Named* Find(std::string_view name);
  void Add(std::string name, Limit limit);

  std::vector<Named> limits_;
  std::map<std::string, size_t, std::less<>> index_;
};

class LimitSet {
 public:
  // Sums over a cluster's endpoints.
  struct EndpointUse {
    uint64_t waiting = 0, in_use = 0;
  };
  struct Hooks {
    // For List and Change. Empty: zeros.
    std::function<EndpointUse(const std::string& cluster)> endpoint_use;
    // After endpoint_concurrency of the cluster was changed by RPC: give its endpoints EndpointConcurrency(cluster),
    // read under the lock that guards them, so that of two changes the later one stays. Empty: nothing.
    std::function<void(const std::string& cluster)> endpoint_concurrency_changed;
  };

  // Without limits but the process's, which is not in force, until the first Commit.
  explicit LimitSet(const base::Clock& clock = base::Clock::Steady());

  // Before any other use of the set.
  void SetHooks(Hooks hooks) { hooks_ = std::move(hooks); }

  // The limits of `config`: limiters that can stay are the present ones, untouched; the others are new, with their
  // configured options. Changes nothing.
  LimitTable MakePlan(const config::Config& config) const;
  // Takes over a plan of MakePlan; no other Commit between the two. Changes made by RPC since then count.
  void Commit(LimitTable plan);
  void Apply(const config::Config& config) { Commit(MakePlan(config)); }

  // What is in force. The limiters are the same ones, the options are copies.
  LimitTable Table() const;
  limits::ConcurrencyOptions EndpointConcurrency(std::string_view cluster) const;

  // A handover. `limit` is what another process had: what was put in force there by RPC is so here too, where the same
  // is configured.
  void TakeInForce(const LimitTable::Named& limit);
  // Which part of a rate is this process's: 1..kWhole. Nothing where there is no such rate.
  void SetPermille(std::string_view name, uint32_t permille);

  // In the order process, clusters, routes.
  std::vector<admin::LimitView> List() const;
  // kNotFound; kInvalidArgument says what is allowed. The limit as it is then.
  base::Result<admin::LimitView> Change(const admin::LimitChange& change);

 private:
  // Without mutex_: it asks the hook.
  admin::LimitView View(const LimitTable::Named& named) const;

  const base::Clock& clock_;
  Hooks hooks_;
  mutable std::mutex mutex_;
  LimitTable table_;  // under mutex_
};

}  // namespace sluice::server
