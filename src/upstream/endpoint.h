// Endpoint: one backend of a cluster, shared by all workers and by all lists in which it stands.
//
// It holds what must survive a change of the list: identity, metrics, and each worker's pool of connections. What a
// list says of it (weight, draining) is in ClusterState. Immutable but for the atomics and the pools; pool w belongs to
// worker w.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "limits/concurrency_limiter.h"
#include "metrics/registry.h"
#include "upstream/cluster_limits.h"
#include "upstream/options.h"

namespace sluice::upstream {

class EndpointPool;

struct EndpointMetrics {
  metrics::Counter* calls;
  metrics::Counter* failures;
  metrics::Gauge* in_flight;
  metrics::Gauge* connections;
  metrics::Counter* connects;
  metrics::Counter* connect_failures;
  metrics::Counter* timeouts;
};

class Endpoint {
 public:
  // `load`: of its cluster.
  Endpoint(std::string cluster, std::string name, net::Address address, std::shared_ptr<const ClusterOptions> options,
           std::shared_ptr<ClusterLoad> load, uint32_t workers, metrics::Registry& registry);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  const std::string& cluster() const { return cluster_; }
  const std::string& name() const { return name_; }
  const net::Address& address() const { return address_; }
  // Of the list it came with first. A pool goes by those of the newest list it has seen.
  const std::shared_ptr<const ClusterOptions>& options() const { return options_; }
  EndpointMetrics& metrics() { return metrics_; }
  // Bounds the calls under way to it, over all workers. Never null; begins with options().endpoint_concurrency.
  const std::shared_ptr<limits::ConcurrencyLimiter>& concurrency() const { return concurrency_; }
  ClusterLoad& load() { return *load_; }

  // Worker `w` only: its pool, or null if it has none (yet, or any more).
  EndpointPool* pool(uint32_t w) const { return pools_[w]; }
  void set_pool(uint32_t w, EndpointPool* pool) { pools_[w] = pool; }

  // Out of every list from now on. Set before workers are told to drain their pools, so that a call with an older list
  // does not open a new one. Relaxed: the Post that tells the worker orders it.
  void MarkRemoved() { removed_.store(true, std::memory_order_relaxed); }
  bool removed() const { return removed_.load(std::memory_order_relaxed); }

  // Each worker's word on its connections, for inspection: any thread may read, worker w writes bits of its own.
  enum class Link : uint8_t { kIdle, kConnecting, kConnected, kBackoff };
  void set_link(uint32_t w, Link link) { links_[w].store(link, std::memory_order_relaxed); }
  // The best of all workers: connected, else connecting, else in back-off, else idle.
  Link link() const;

 private:
  const std::string cluster_, name_;
  const net::Address address_;
  const std::shared_ptr<const ClusterOptions> options_;
  const std::shared_ptr<ClusterLoad> load_;
  const std::shared_ptr<limits::ConcurrencyLimiter> concurrency_;
  EndpointMetrics metrics_;
  std::vector<EndpointPool*> pools_;
  std::vector<std::atomic<Link>> links_;
  std::atomic<bool> removed_{false};
};

std::string_view ToString(Endpoint::Link link);

}  // namespace sluice::upstream
