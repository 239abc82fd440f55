// Runtime::Impl: what the workers share. Private to the runtime. The hot path touches none of it: global_ and
// idle_ are written when a worker overflows, falls behind, parks, or when a thread outside of the pool
// spawns.
#pragma once

#include <atomic>
#include <barrier>
#include <memory>
#include <thread>
#include <vector>

#include "concurrent/global_queue.h"
#include "runtime/internal/blocking_pool.h"
#include "runtime/internal/doze.h"
#include "runtime/internal/idle.h"
#include "runtime/internal/worker_impl.h"
#include "runtime/runtime.h"

namespace sluice::runtime {

class Monitor;

struct Runtime::Impl {
  Impl(Runtime& runtime, uint32_t blocking_threads);
  ~Impl();

  // Any thread. Gives a free task to the first worker that looks. False: shut down, the caller still owns the task.
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
  concurrent::GlobalQueue global;
  std::atomic<bool> accepting{true};  // cleared once, by Shutdown
  std::atomic<bool> stopping{false};  // workers leave their loops; read every turn
  Doze doze;                          // read by a worker whenever it leaves its park, written when the pool was idle
  std::atomic<uint64_t> external_spawned{0}, external_finished{0};
  bool started = false;  // Start and Shutdown are called by one thread
  bool stopped = false;
  BlockingPool blocking;
  std::unique_ptr<Monitor> monitor;
  std::vector<std::thread> threads;
  std::optional<std::barrier<>> stop_barrier;
};

}  // namespace sluice::runtime
