#include "proxy/worker_context.h"

#include "proxy/call.h"
#include "proxy/call_mover.h"
#include "proxy/listener.h"

namespace sluice::proxy {

ProxyMetrics::ProxyMetrics(metrics::Registry& registry) : abuse(registry) {
  calls_in_flight = registry.AddGauge("sluice_calls_in_flight", "Calls received and not yet answered.");
  downstream_connections = registry.AddGauge("sluice_downstream_connections", "Client connections open.");
  downstream_connections_total =
      registry.AddCounter("sluice_downstream_connections_total", "Client connections accepted.");
  downstream_connections_refused = registry.AddCounter(
      "sluice_downstream_connections_refused_total", "Client connections closed at once: their address has too many.");
  memory_read_pauses = registry.AddCounter("sluice_memory_read_pauses_total",
                                           "Times a connection was not read because the process holds too much.");
  memory_connections_closed = registry.AddCounter("sluice_memory_connections_closed_total",
                                                  "Client connections closed because they held most of too much.");
  for (size_t i = 0; i < http2::kTimeouts; ++i) {
    timeouts[i] = registry.AddCounter("sluice_downstream_timeouts_total",
                                      "Client connections, or calls of theirs, that a bound in time ended.",
                                      {{"timeout", std::string(ToString(static_cast<http2::Timeout>(i)))}});
  }
  for (size_t kind = 0; kind < kKinds; ++kind) {
    metrics::Labels labels = {{"reason", std::string(base::Reason(static_cast<base::ErrorKind>(kind)))}};
    errors[kind] =
        registry.AddCounter("sluice_proxy_errors_total", "Calls that the proxy itself ended with an error.", labels);
    retries[kind] =
        registry.AddCounter("sluice_retries_total", "Attempts that failed and were tried again elsewhere.", labels);
  }
}

WorkerContext::WorkerContext(runtime::Worker& worker, const SnapshotData& s, ProxyMetrics& m)
    : connection{worker, {}, {}, net::Dial, http2::AbuseReports(&m.abuse), {}, {}},
      pools(connection),
      snapshots(s),
      metrics(m) {
  connection.paused.watch = &memory;
}

WorkerContext::~WorkerContext() { SLUICE_CHECK(downstream.empty() && calls.empty() && handshakes.empty()); }

void WorkerContext::TakeNewer() {
  std::shared_ptr<const Snapshot> newer;
  snapshots.Read(index(), [&](const std::shared_ptr<const Snapshot>& now) { newer = now; });
  if (newer.get() == snapshot.get()) return;
  if (newer->config.get() != config.get()) {
    early_hits.Forget();
    config = WorkerRef<RouteConfig>(newer->config);
  }
  snapshot = WorkerRef<Snapshot>(std::move(newer));
  limits_.clear();
}

const WorkerRef<upstream::ClusterLimits>& WorkerContext::HoldLimits(size_t index,
                                                                    const upstream::ClusterState& cluster) {
  if (index >= limits_.size()) limits_.resize(index + 1);
  limits_[index] = WorkerRef<upstream::ClusterLimits>(cluster.limits);
  return limits_[index];
}

void WorkerContext::DrainDownstream() {
  draining = true;
  while (!handshakes.empty()) handshakes.front()->Cancel();
  for (DownstreamConnection* c = downstream.front(); c != nullptr; c = downstream.Next(*c)) c->Drain();
  OnDownstreamClosed();
}

void WorkerContext::OnDownstreamClosed() {
  // `connections` also counts those that are on their way here from the acceptor.
  if (!draining || connections.load(std::memory_order_relaxed) != 0 || !on_drained) return;
  std::exchange(on_drained, nullptr)();
}

void WorkerContext::EndCalls() {
  draining = true;
  early_hits.StartCalls();
  if (mover != nullptr) mover->Stop();
  for (Call* call = calls.front(); call != nullptr; call = calls.Next(*call)) call->EndForShutdown();
}

bool WorkerContext::HasCalls() const {
  return !calls.empty() || !early_hits.empty() || (mover != nullptr && !mover->Idle());
}

void WorkerContext::CloseAll() {
  draining = closed = true;
  while (!handshakes.empty()) handshakes.front()->Cancel();
  while (DownstreamConnection* c = downstream.PopFront()) {
    c->CloseNow();
    delete c;
  }
  pools.CloseAll();
}

}  // namespace sluice::proxy
