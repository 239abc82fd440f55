// BlockingPool: helper threads for calls that block (DNS, files). Threads start when first needed. Private.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace sluice::runtime {

class Worker;

class BlockingPool {
 public:
  // Jobs that wait for a thread. The next one is refused: a resolver that hangs cannot take the process's
  // memory.
  static constexpr size_t kQueuedMax = 1024;

  explicit BlockingPool(uint32_t threads_max) : threads_max_(threads_max) {}
  ~BlockingPool() { Close(); }

  // Any thread. Runs fn on a helper, then posts done to worker. False when full or closed; both are destroyed
  // then.
  bool Submit(Worker& worker, std::function<void()> fn, std::function<void()> done);
  // Waits for the functions that run; those queued are dropped, their `done` is destroyed on its worker.
  // Idempotent.
  void Close();
  bool closed() const {
    std::lock_guard lock(mutex_);
    return closed_;
  }

 private:
  struct Job {
    Worker* worker;
    std::function<void()> fn;
    std::function<void()> done;
  };
  void RunHelper();

  const uint32_t threads_max_;
  mutable std::mutex mutex_;
  std::condition_variable work_;
  // Under mutex_:
  std::deque<Job> queue_;
  std::vector<std::thread> threads_;
  uint32_t idle_ = 0;
  bool closed_ = false;
};

}  // namespace sluice::runtime
