// Runtime::Impl: what the workers share. Private to the runtime. The hot path touches none of it: global_ and
// idle_ are written when a worker overflows, falls behind, parks, or when a thread outside of the pool
// spawns.
#pragma once

#include <atomic>
#include <barrier>
#include <memory>
#include <thread>
#include <vector>

#include "concurrent/mpsc_queue.h"
#include "runtime/blocking_pool.h"
#include "runtime/idle.h"
#include "runtime/monitor.h"
#include "runtime/runtime.h"
#include "runtime/worker_impl.h"

namespace sluice::runtime {

struct Runtime::Impl {
  Impl(Runtime& runtime, uint32_t blocking_threads) : self(runtime), blocking(blocking_threads) {}

  // Any thread. Gives a free task to whoever looks first. False: shut down, the caller still owns the task.
  bool Inject(TaskHeader& task);
  // Wakes a parked worker as a searcher unless one searches already. After publishing work; any thread.
  void WakeSearcher(uint32_t first_to_try);
  bool Admit(TaskHeader& task, Worker* target);
  void RunWorker(Worker& worker);
  void StopWithoutThreads();
  Worker::Impl& ImplOf(size_t index) { return *self.workers_[index]->impl_; }
  void DrainGlobal(Worker::Impl& worker, bool close);

  Runtime& self;
  Idle idle;
  concurrent::MpscQueue global;
  std::atomic<bool> accepting{true};  // cleared once, by Shutdown
  std::atomic<bool> stopping{false};  // workers leave their loops; read every turn
  std::atomic<uint64_t> external_spawned{0}, external_finished{0};
  bool started = false;  // Start and Shutdown are called by one thread
  bool stopped = false;
  BlockingPool blocking;
  std::unique_ptr<Monitor> monitor;
  std::vector<std::thread> threads;
  std::optional<std::barrier<>> stop_barrier;
};

}  // namespace sluice::runtime
