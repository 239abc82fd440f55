// HealthTask: the one task of the process that judges the endpoints of all clusters, every upstream::Judge::kPeriod;
// every kCloser while a cluster asks for that, as long as passes then take no more than a twentieth of the time.
//
// It is a free task (docs/scheduler.md): whichever worker has time runs its passes. A pass reads the counts of all
// workers, and begins the probes that are due on the worker that it runs on; what all workers have to know of, and the
// Watches and Checks that are to be begun or ended on the worker that has the connection for them, is posted. It
// suspends only between passes.
#pragma once

#include <vector>

#include "proxy/call/call_context.h"
#include "runtime/runtime.h"
#include "runtime/task.h"

namespace sluice::server {

class HealthTask {
 public:
  // `contexts`: of all workers, in their order; they and `snapshots` outlive the runtime's tasks.
  HealthTask(runtime::Runtime& runtime, const proxy::SnapshotData& snapshots, std::vector<proxy::CallContext*> contexts)
      : runtime_(runtime), snapshots_(snapshots), contexts_(std::move(contexts)) {}

  // Once, when the workers run or are about to. It ends with the runtime.
  void Start() { runtime_.Spawn(Run(this)); }
  // One pass, on the worker that this thread is. Returns whether the next one is wanted after kCloser.
  bool Pass();

 private:
  static runtime::Task<void> Run(HealthTask* self);

  runtime::Runtime& runtime_;
  const proxy::SnapshotData& snapshots_;
  const std::vector<proxy::CallContext*> contexts_;
};

}  // namespace sluice::server
