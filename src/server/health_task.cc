#include "server/health_task.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "runtime/sleep.h"
#include "upstream/endpoint_pool.h"

namespace sluice::server {

using base::TimePoint;
using upstream::ClusterHealth;
using upstream::Judge;

base::Nanos HealthPace::Next(Pace wanted, TimePoint began, TimePoint ended) {
  if (wanted != Pace::kIdle) idle_since_ = ended;
  if (wanted == Pace::kCloser)
    return std::clamp<base::Nanos>((ended - began) * kSparing, Judge::kCloser, Judge::kPeriod);
  if (wanted == Pace::kBusy)
    return std::clamp<base::Nanos>((ended - began) * kSparingBusy, Judge::kPeriod / 2, Judge::kPeriod);
  if (ended - idle_since_ >= kIdleAfter) return kIdlePeriod;
  return std::clamp<base::Nanos>((ended - began) * kSparingBusy, Judge::kPeriod, 2 * Judge::kPeriod);
}

runtime::Task<void> HealthTask::Run(HealthTask* self) {
  const base::Clock& clock = self->runtime_.clock();
  HealthPace pace(clock.Now());
  base::Nanos wait = Judge::kPeriod;
  for (;;) {
    // Of the worker that runs it now, which may be another one after each wait.
    co_await runtime::SleepUntil(runtime::Worker::Current()->now() + wait);
    const TimePoint began = clock.Now();
    const Pace wanted = self->Pass();
    wait = pace.Next(wanted, began, clock.Now());
  }
}

HealthTask::Pace HealthTask::Pass() {
  const runtime::Worker& worker = *runtime::Worker::Current();
  proxy::CallContext& here = *contexts_[worker.index()];
  std::shared_ptr<const proxy::Snapshot> snapshot;
  snapshots_.Read(worker.index(), [&](const std::shared_ptr<const proxy::Snapshot>& now) { snapshot = now; });
  if (snapshot == nullptr) return Pace::kUsual;
  Pace pace = Pace::kIdle;
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
    for (const std::shared_ptr<upstream::Endpoint>& endpoint : work.silent) {
      for (proxy::CallContext* context : contexts_) {
        context->worker().Post([context, endpoint] { context->pools.Renew(*endpoint); });
      }
    }
    if (work.backoff && on_backoff_) on_backoff_(cluster->name());
    pace = std::max(pace, work.pace);
  }
  return pace;
}

}  // namespace sluice::server
