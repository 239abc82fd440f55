#include "server/health_task.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "proxy/call/call.h"
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
    return std::clamp<base::Nanos>((ended - began) * kSparingBusy, Judge::kBusy, Judge::kPeriod);
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
    const std::shared_ptr<const proxy::Snapshot> snapshot = self->Snapshot();
    Pace wanted = snapshot == nullptr ? Pace::kUsual : Pace::kIdle;
    base::Nanos spent{0};  // without what others did meanwhile
    for (size_t from = 0, to = 0; snapshot != nullptr && from < snapshot->clusters.size(); from = to) {
      // A yield would go on before the worker has looked at its sockets.
      if (from != 0) co_await runtime::SleepUntil(runtime::Worker::Current()->now() + kTurnsApart);
      const TimePoint began = clock.Now();
      to = EndOfTurn(*snapshot, from);
      wanted = std::max(wanted, self->Pass(*snapshot, from, to));
      spent += clock.Now() - began;
    }
    const TimePoint ended = clock.Now();
    wait = pace.Next(wanted, ended - spent, ended);
  }
}

std::shared_ptr<const proxy::Snapshot> HealthTask::Snapshot() const {
  std::shared_ptr<const proxy::Snapshot> snapshot;
  snapshots_.Read(runtime::Worker::Current()->index(),
                  [&](const std::shared_ptr<const proxy::Snapshot>& now) { snapshot = now; });
  return snapshot;
}

size_t HealthTask::EndOfTurn(const proxy::Snapshot& snapshot, size_t from) {
  size_t endpoints = 0, to = from;
  while (to < snapshot.clusters.size() && endpoints < kEndpointsPerTurn)
    endpoints += snapshot.clusters[to++]->endpoints.size() + 1;
  return to;
}

HealthTask::Pace HealthTask::Pass() {
  const auto snapshot = Snapshot();
  return snapshot == nullptr ? Pace::kUsual : Pass(*snapshot, 0, snapshot->clusters.size());
}

HealthTask::Pace HealthTask::Pass(const proxy::Snapshot& snapshot, size_t from, size_t to) {
  const runtime::Worker& worker = *runtime::Worker::Current();
  proxy::CallContext& here = *contexts_[worker.index()];
  Pace pace = Pace::kIdle;
  for (size_t i = from; i < to; ++i) {
    const auto& cluster = snapshot.clusters[i];
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
        context->worker().Post([context, endpoint] {
          proxy::Call::LeaveSilent(*context, *endpoint);
          context->pools.Renew(*endpoint);
        });
      }
    }
    if (work.backoff && on_backoff_) on_backoff_(cluster->name());
    pace = std::max(pace, work.pace);
  }
  return pace;
}

}  // namespace sluice::server
