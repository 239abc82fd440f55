// Runtime: the pool of workers. Spawn puts tasks in; Shutdown runs or destroys every one of them.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "runtime/options.h"
#include "runtime/task.h"
#include "runtime/waker.h"
#include "runtime/worker.h"

namespace sluice::runtime {

class Runtime {
 public:
  explicit Runtime(RuntimeOptions options, const base::Clock& clock = base::Clock::Steady());
  ~Runtime();  // Shutdown, if it has not been

  void Start();
  // Refuse spawns; wake all workers; each destroys what it owns; join. Idempotent; not from a worker.
  void Shutdown();

  size_t size() const { return workers_.size(); }
  Worker& worker(size_t index) { return *workers_[index]; }
  const base::Clock& clock() const { return clock_; }

  // Any thread. Returns false, and destroys the task, after shutdown began.
  // Spawn: any worker may run and steal it at any suspension.
  bool Spawn(Task<void> task);
  // Any worker may take it until it first runs; from then on it stays where it started, so it may use its worker's
  // connections, which no other worker may touch.
  bool SpawnPinOnStart(Task<void> task);
  // Runs only on `worker`.
  bool SpawnOn(Worker& worker, Task<void> task);

  // Runs `fn` on a helper thread, then `done` on `worker`. If the runtime shuts down first `done` is
  // destroyed unrun. False, with neither run, when the helpers' queue is full or closed
  // (BlockingPool::kQueuedMax). See also blocking_call.h.
  bool Block(Worker& worker, std::function<void()> fn, std::function<void()> done);

  // Tasks alive (spawned, neither finished nor destroyed). A reader of 0 sees their effects. For tests and
  // metrics.
  size_t LiveTasks() const;
  // Whether the monitor sleeps because every worker is parked (docs/scheduler.md, Parking). Any thread.
  bool MonitorDozesForTest() const;

 private:
  friend class Worker;
  friend class TaskHeader;
  friend class Monitor;
  friend class Waker;
  struct Impl;

  RuntimeOptions options_;
  const base::Clock& clock_;
  std::unique_ptr<Impl> impl_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace sluice::runtime
