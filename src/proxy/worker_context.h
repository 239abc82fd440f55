// WorkerContext: what the proxy keeps for each worker: shared buffers, upstream pools, downstream connections.
//
// Belongs to its worker: nothing in it is touched by another thread but the atomic count.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/intrusive_list.h"
#include "http2/connection.h"
#include "metrics/registry.h"
#include "proxy/connection_limits.h"
#include "proxy/early_hits.h"
#include "proxy/memory_relief.h"
#include "proxy/ready_headers.h"
#include "proxy/response_cache.h"
#include "proxy/snapshot.h"
#include "proxy/tls_accept.h"
#include "upstream/endpoint_pool.h"

namespace sluice::proxy {

class Call;
class CallMover;
class DownstreamConnection;

// Metrics of the whole process that the data path writes.
struct ProxyMetrics {
  explicit ProxyMetrics(metrics::Registry& registry);
  metrics::Gauge* calls_in_flight;
  metrics::Gauge* downstream_connections;
  metrics::Counter* downstream_connections_total;
  metrics::Counter* downstream_connections_refused;          // connections_per_peer_max
  std::array<metrics::Counter*, http2::kTimeouts> timeouts;  // of client connections, by http2::Timeout
  metrics::Counter* memory_read_pauses;
  metrics::Counter* memory_connections_closed;
  // By base::ErrorKind.
  static constexpr size_t kKinds = static_cast<size_t>(base::ErrorKind::kMemoryLimited) + 1;
  std::array<metrics::Counter*, kKinds> errors;
  std::array<metrics::Counter*, kKinds> retries;
  http2::AbuseRecord abuse;
};

struct WorkerContext {
  WorkerContext(runtime::Worker& worker, const SnapshotData& snapshots, ProxyMetrics& metrics);
  ~WorkerContext();

  runtime::Worker& worker() const { return connection.worker; }
  uint32_t index() const { return connection.worker.index(); }

  // Brings `snapshot` and `config` up to what is published. Each call does it when it reads them; and whoever publishes
  // posts it to each worker, so that one without calls does not keep what is old.
  void Refresh() {
    bool same = false;
    snapshots.Read(index(), [&](const std::shared_ptr<const Snapshot>& now) { same = now.get() == snapshot.get(); });
    if (!same) [[unlikely]]
      TakeNewer();
  }

  // The limits of `cluster`, at place `index` of its snapshot, held by this worker's count: for calls, whose permits
  // may outlive the snapshot.
  const WorkerRef<upstream::ClusterLimits>& LimitsOf(size_t index, const upstream::ClusterState& cluster) {
    if (index < limits_.size() && limits_[index].get() == cluster.limits.get()) return limits_[index];
    return HoldLimits(index, cluster);
  }

  // A key for who looks in the cache just now: memory that is used again. Good until the next call.
  CacheKey& TakeCacheKey() {
    constexpr size_t kBytesKept = 16384;  // what a large message took is not
    if (cache_key_.bytes.capacity() > kBytesKept) cache_key_ = {};
    return cache_key_;
  }

  // All downstream connections begin their two-step GOAWAY. Those whose TLS handshake is under way have no calls, and
  // end.
  void DrainDownstream();
  // A downstream connection has gone.
  void OnDownstreamClosed();
  // First step of the worker's end: every call is told that it ends, and answers when its task runs. Again until
  // HasCalls is false on all workers.
  void EndCalls();
  // Calls that run here, or came here and run elsewhere.
  bool HasCalls() const;
  // Second step: closes every connection, down and up. Their calls are told and end by themselves this turn.
  void CloseAll();

  http2::ConnectionContext connection;
  ReadyHeaders ready_headers{connection.interns};
  EarlyHits early_hits{*this};
  upstream::PoolSet pools;
  const SnapshotData& snapshots;
  WorkerRef<Snapshot> snapshot;   // as last read
  WorkerRef<RouteConfig> config;  // its
  ProxyMetrics& metrics;
  base::IntrusiveList<DownstreamConnection, DownstreamConnection> downstream;
  base::IntrusiveList<TlsAccept, TlsAccept> handshakes;  // connections to come; each owns itself
  // For the choice of a worker for a new connection: written by this worker and the acceptor's, read by the acceptor's.
  std::atomic<uint32_t> connections{0};
  base::IntrusiveList<Call, Call> calls;  // alive; each owns itself
  MemoryRelief memory{*this};
  // Of the process; null: no bounds. Set before listeners start.
  std::shared_ptr<ConnectionLimits> connection_limits;
  // Called when the last downstream connection has gone while draining, or at once if there is none.
  std::function<void()> on_drained;
  bool draining = false;  // new connections are told to go at once
  bool closed = false;    // CloseAll was called: there will be no new ones
  // Where there are several workers. Goes first: what it holds is in the tables above.
  std::unique_ptr<CallMover> mover;

 private:
  void TakeNewer();
  const WorkerRef<upstream::ClusterLimits>& HoldLimits(size_t index, const upstream::ClusterState& cluster);

  CacheKey cache_key_;
  // By the places of `snapshot`, as far as they were asked for; emptied with each new one, so that nothing old is kept.
  std::vector<WorkerRef<upstream::ClusterLimits>> limits_;
};

}  // namespace sluice::proxy
