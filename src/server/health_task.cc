#include "server/health_task.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "runtime/sleep.h"
#include "upstream/cluster_health.h"
#include "upstream/endpoint_pool.h"

namespace sluice::server {

using upstream::ClusterHealth;

runtime::Task<void> HealthTask::Run(HealthTask* self) {
  // Of its time, what passes in quick succession may take at most is one part in this many.
  constexpr int kSparing = 20;
  const base::Clock& clock = self->runtime_.clock();
  base::Nanos wait = upstream::Judge::kPeriod;
  for (;;) {
    // Of the worker that runs it now, which may be another one after each wait.
    co_await runtime::SleepUntil(runtime::Worker::Current()->now() + wait);
    const base::TimePoint began = clock.Now();
    const bool closer = self->Pass();
    wait = upstream::Judge::kPeriod;
    if (closer) wait = std::min(wait, std::max(upstream::Judge::kCloser, (clock.Now() - began) * kSparing));
  }
}

bool HealthTask::Pass() {
  const runtime::Worker& worker = *runtime::Worker::Current();
  proxy::CallContext& here = *contexts_[worker.index()];
  std::shared_ptr<const proxy::Snapshot> snapshot;
  snapshots_.Read(worker.index(), [&](const std::shared_ptr<const proxy::Snapshot>& now) { snapshot = now; });
  if (snapshot == nullptr) return false;
  bool closer = false;
  for (const auto& cluster : snapshot->clusters) {
    ClusterHealth::Work work =
        cluster->health->Pass(*cluster->options, cluster->endpoints, *cluster->spill, worker.now());
    for (ClusterHealth::Probe& probe : work.probes) {
      here.pools.Probe(probe.endpoint, cluster->options, cluster->balancer->feedback(), std::move(probe.result));
    }
    for (ClusterHealth::Stop& stop : work.stops) {
      proxy::CallContext* context = contexts_[stop.worker];
      context->worker().Post([context, stop] { context->pools.StopHealth(*stop.endpoint, stop.report.get()); });
    }
    for (ClusterHealth::Ask& ask : work.asks) {
      proxy::CallContext* context = contexts_[ask.worker];
      context->worker().Post([context, cluster, ask] {
        context->pools.AskHealth(ask.endpoint, cluster->options, cluster->balancer->feedback(), ask.report, ask.watch);
      });
    }
    for (const std::shared_ptr<upstream::Endpoint>& endpoint : work.returned) {
      for (proxy::CallContext* context : contexts_) {
        context->worker().Post([context, endpoint] { context->pools.EndBackoff(*endpoint); });
      }
    }
    closer |= work.look_closer;
  }
  return closer;
}

}  // namespace sluice::server
