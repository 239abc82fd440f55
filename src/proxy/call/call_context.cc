#include "proxy/call/call_context.h"

#include <utility>

#include "base/check.h"

namespace sluice::proxy {

CallContext::CallContext(runtime::Worker& worker, const SnapshotData& s, ProxyMetrics& m)
    : connection{worker, {}, {}, net::Dial, http2::FloodReports(&m.abuse), {}, {}},
      pools(connection),
      snapshots(s),
      metrics(m) {}

CallContext::~CallContext() { SLUICE_CHECK(calls.empty() && mirrors.empty()); }

void CallContext::TakeNewer() {
  std::shared_ptr<const Snapshot> newer;
  snapshots.Read(index(), [&](const std::shared_ptr<const Snapshot>& now) { newer = now; });
  if (newer.get() == snapshot.get()) return;
  if (newer->config.get() != config.get()) {
    config = WorkerRef<RouteConfig>(newer->config);
    ++config_version;
    key_sample_in = 1;  // it may have been off
  }
  snapshot = WorkerRef<Snapshot>(std::move(newer));
  limits_.clear();
}

const WorkerRef<upstream::ClusterLimits>& CallContext::HoldLimits(size_t index, const upstream::ClusterState& cluster) {
  if (index >= limits_.size()) limits_.resize(index + 1);
  limits_[index] = WorkerRef<upstream::ClusterLimits>(cluster.limits);
  return limits_[index];
}

}  // namespace sluice::proxy
