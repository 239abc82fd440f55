// CallContext: what a worker keeps for its calls: the configuration as last read, the pools of upstream connections,
// metrics, and memory that is used again. Client connections and all else above a call: downstream/worker_front.h.
//
// Thread safety: its worker's.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/intrusive_list.h"
#include "base/log_limit.h"
#include "http2/connection/connection.h"
#include "limits/service_times.h"
#include "proxy/call/quarantine.h"
#include "proxy/call_id.h"
#include "proxy/proxy_metrics.h"
#include "proxy/response_cache/cache.h"
#include "proxy/response_cache/stored_header_memo.h"
#include "proxy/snapshot.h"
#include "upstream/endpoint_pool.h"

namespace sluice::proxy {

class Call;
struct Fault;
class MirrorCall;

struct CallContext {
  CallContext(runtime::Worker& worker, const SnapshotData& snapshots, ProxyMetrics& metrics);
  ~CallContext();

  runtime::Worker& worker() const { return connection.worker; }
  uint32_t index() const { return connection.worker.index(); }

  // Brings `snapshot` and `config` up to what is published. Each call does it when it reads them; and the publisher
  // posts it to each worker, so that one without calls does not keep an old configuration.
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

  // A name for one call.
  CallId TakeCallId() { return CallId::Of(index(), ++call_ids_); }

  // A key for one look-up in the cache: memory that is used again. Good until the next call.
  CacheKey& TakeCacheKey() {
    constexpr size_t kBytesKept = 16384;  // what a large message took is not
    if (cache_key_.bytes.capacity() > kBytesKept) cache_key_ = {};
    return cache_key_;
  }

  http2::ConnectionContext connection;
  StoredHeaderMemo stored_header_memo{connection.interns};
  upstream::PoolSet pools;
  const SnapshotData& snapshots;
  WorkerRef<Snapshot> snapshot;   // as last read
  WorkerRef<RouteConfig> config;  // its
  uint64_t config_version = 0;    // differs for each `config`, also where one lies at the address of an earlier one
  // Calls with a key until one of them is a sample for insight/hot_keys.h; the look at it may find that there are none.
  uint32_t key_sample_in = 1;
  // The call whose client was told its name last, until its record has it.
  struct Named {
    const Call* call = nullptr;
    CallId id;
  } named;
  // Failures that operators have asked for (fault.h); null: none, also while a table has none that is for a call.
  std::shared_ptr<const std::vector<std::shared_ptr<const Fault>>> faults;
  ProxyMetrics& metrics;
  std::unique_ptr<limits::ServiceTimes> service_times;    // of calls that limits let go; null: none yet
  uint64_t answers_behind_limits = 0;                     // of which some are samples
  base::IntrusiveList<base::ListNode<Call>, Call> calls;  // alive; each owns itself. Read by Call::ForEach
  base::IntrusiveList<base::ListNode<MirrorCall>, MirrorCall> mirrors;  // the same
  Quarantine quarantine;
  base::LogLimit mirror_log;  // lines about answers that differ
  bool closed = false;        // the worker ends: no call may start any more

 private:
  void TakeNewer();
  const WorkerRef<upstream::ClusterLimits>& HoldLimits(size_t index, const upstream::ClusterState& cluster);

  CacheKey cache_key_;
  uint64_t call_ids_ = 0;  // taken
  // By the places of `snapshot`, as far as they were asked for; emptied with each new one, so that nothing old is kept.
  std::vector<WorkerRef<upstream::ClusterLimits>> limits_;
};

}  // namespace sluice::proxy
