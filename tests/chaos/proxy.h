// Proxy: a whole proxy as the server puts it together, but without sockets, threads and time of its own. It has one
// worker, or two: then all clients are the second's, and every call moves to the first (docs/call-movement.md).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "chaos/dice.h"
#include "config/config.h"
#include "metrics/registry.h"
#include "proxy/downstream/listener.h"
#include "proxy/downstream/worker_front.h"
#include "proxy/response_cache/cache.h"
#include "runtime/runtime.h"
#include "server/clusters.h"
#include "server/health_task.h"
#include "server/limit_set.h"

namespace sluice::chaos {

class Proxy {
 public:
  // `seed`: of the workers' own chance (jitter, balancers, which worker is late).
  Proxy(base::ManualClock& clock, const config::Config& config, uint64_t seed, bool moved, net::DialFunction dial);
  ~Proxy();

  // The client connections' worker.
  runtime::Worker& home() { return fronts_.back()->worker(); }
  base::TimePoint NextTimer();
  bool HasCallTasks() const;
  size_t UpstreamPools() const;
  void Drain();
  metrics::Registry& registry() { return registry_; }
  proxy::ProxyMetrics& metrics() { return metrics_; }
  server::Clusters& clusters() { return clusters_; }
  server::LimitSet& limits() { return limits_; }
  proxy::ResponseCache* cache() { return cache_.get(); }
  const config::Config& config() const { return config_; }

  // Turns the workers until none has anything to do.
  void Turn();
  // The same; of two workers perhaps only one, so that the other hears of it late.
  void TurnSome();
  // A pass of the task that judges endpoints.
  server::HealthTask::Pace Judge();
  // As Server::Reload.
  base::Status Reload(const config::Config& config);
  void Accept(std::unique_ptr<net::Stream> stream);
  // As Server::TearDown does: calls answer, then the connections go. False: calls are left.
  bool Stop();

  // Of all routes and clusters, and of none, by gRPC code.
  uint64_t CallsEnded(size_t code);
  // Empty, or the endpoints of the lists that take no calls for what is found or said of their health.
  std::string Out();
  // Empty, or what is not as it is in a proxy without calls.
  std::string Busy();
  int64_t open_connections() const { return *open_; }
  int64_t UpstreamConnections();

 private:
  // On each worker, which then has nothing more to do.
  void OnEach(const std::function<void(proxy::WorkerFront&)>& fn);
  std::shared_ptr<proxy::ResponseCache> CacheFor(const config::Config& config);

  base::ManualClock& clock_;
  config::Config config_;
  runtime::Runtime runtime_;
  metrics::Registry registry_;
  proxy::ProxyMetrics metrics_{registry_};
  server::LimitSet limits_;
  server::Clusters clusters_;
  std::shared_ptr<proxy::ResponseCache> cache_;
  std::vector<std::unique_ptr<proxy::WorkerFront>> fronts_;
  base::Random late_;
  std::unique_ptr<server::HealthTask> health_;
  std::shared_ptr<std::atomic<int64_t>> open_ = std::make_shared<std::atomic<int64_t>>(0);
};

}  // namespace sluice::chaos
