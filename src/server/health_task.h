// HealthTask: the one task of the process that judges the endpoints of all clusters, at the pace that they ask for.
//
// It is a free task (docs/scheduler.md): whichever worker has time runs its passes. A pass reads the counts of all
// workers, and begins the probes that are due on the worker that it runs on; what all workers have to know of, and the
// Watches and Checks that are to be begun or ended on the worker that has the connection for them, is posted. It
// suspends between passes, and within a pass between clusters: thousands of endpoints hold no worker for milliseconds.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proxy/call/call_context.h"
#include "runtime/runtime.h"
#include "runtime/task.h"
#include "upstream/cluster_health.h"

namespace sluice::server {

// How long the wait between two passes is: Judge::kPeriod; half of it where calls come one after the other; both up to
// twice as long where passes would take more than half a percent of the time; Judge::kCloser where a cluster asks for
// that, as long as they take no more than a twentieth; kIdlePeriod where all have been idle for kIdleAfter, because a
// process that has nothing to do shall not wake ten times a second for it. A value.
class HealthPace {
 public:
  using Pace = upstream::ClusterHealth::Pace;
  static constexpr base::Nanos kIdleAfter = std::chrono::seconds(10);
  static constexpr base::Nanos kIdlePeriod = std::chrono::seconds(1);
  static constexpr int kSparing = 20, kSparingBusy = 200;

  explicit HealthPace(base::TimePoint now) : idle_since_(now) {}
  // After a pass that wants `wanted`.
  base::Nanos Next(Pace wanted, base::TimePoint began, base::TimePoint ended);

 private:
  base::TimePoint idle_since_;
};

class HealthTask {
 public:
  using Pace = upstream::ClusterHealth::Pace;
  // `contexts`: of all workers, in their order; they and `snapshots` outlive the runtime's tasks.
  // `on_backoff`: on a worker, in a pass that finds an endpoint of the cluster in back-off.
  HealthTask(runtime::Runtime& runtime, const proxy::SnapshotData& snapshots, std::vector<proxy::CallContext*> contexts,
             std::function<void(const std::string& cluster)> on_backoff = nullptr)
      : runtime_(runtime), snapshots_(snapshots), contexts_(std::move(contexts)), on_backoff_(std::move(on_backoff)) {}

  // Once, when the workers run or are about to. It ends with the runtime.
  void Start() { runtime_.Spawn(Run(this)); }
  // One pass, on the worker that this thread is.
  Pace Pass();
  // A pass goes on in another turn of a worker when it has judged so many; some tenths of a millisecond.
  static constexpr size_t kEndpointsPerTurn = 256;
  static constexpr base::Nanos kTurnsApart = std::chrono::milliseconds(1);
  // The clusters of a turn are those from `from` to before it; a cluster is judged as a whole.
  static size_t EndOfTurn(const proxy::Snapshot& snapshot, size_t from);

 private:
  static runtime::Task<void> Run(HealthTask* self);
  std::shared_ptr<const proxy::Snapshot> Snapshot() const;
  Pace Pass(const proxy::Snapshot& snapshot, size_t from, size_t to);

  runtime::Runtime& runtime_;
  const proxy::SnapshotData& snapshots_;
  const std::vector<proxy::CallContext*> contexts_;
  const std::function<void(const std::string&)> on_backoff_;
};

}  // namespace sluice::server
