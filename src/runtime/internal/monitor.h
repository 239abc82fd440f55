// Monitor: a thread that notices a worker stuck in one task while work is queued behind it. Private to the
// runtime.
//
// Coroutines cannot be preempted. The monitor samples each worker's count of polls. Unchanged since the last
// look with stealable work queued: the worker counts as behind and another one is woken to steal. Unchanged
// for blocking_threshold: counted in Stats.blocked and logged, once per occurrence and at most once a second.
//
// It looks every fifth of blocking_threshold. After kQuietLooksMax looks at which all workers were parked and none had
// polled a task in between, it sleeps until a worker leaves its park (doze.h): an idle process costs nothing, and the
// first long poll after any idleness is noticed as fast as any other.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace sluice::runtime {

class Runtime;

class Monitor {
 public:
  Monitor(Runtime& runtime, std::chrono::milliseconds threshold);
  ~Monitor();  // stops and joins

 private:
  struct Sample {
    uint64_t polls = 0;
    std::chrono::steady_clock::time_point since;
    bool counted = false;
  };
  void Run();
  bool WaitForNextLook();                                // false: stop
  bool Look(std::chrono::steady_clock::time_point now);  // true if any worker is awake or has run since the last look
  bool MustNotSleep();
  void Report(size_t index, std::chrono::nanoseconds stuck, std::chrono::steady_clock::time_point now);

  Runtime& runtime_;
  const std::chrono::milliseconds threshold_;
  const std::chrono::milliseconds period_;
  std::vector<Sample> samples_;                       // the monitor's thread only
  std::chrono::steady_clock::time_point next_log_{};  // same
  std::mutex mutex_;
  std::condition_variable stop_signal_;
  bool stop_ = false;  // under mutex_
  std::thread thread_;
};

}  // namespace sluice::runtime
