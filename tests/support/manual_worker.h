// ManualWorker: a runtime of one worker, or a few, that the test turns by hand, with a clock that stands still until
// told.
#pragma once

#include "base/clock.h"
#include "runtime/runtime.h"

namespace sluice::test {

inline runtime::RuntimeOptions ManualWorkers(uint32_t count) {
  runtime::RuntimeOptions options;
  options.workers = count;
  options.blocking_threshold = std::chrono::milliseconds(0);
  options.blocking_threads = 1;
  return options;
}
inline runtime::RuntimeOptions OneWorker() { return ManualWorkers(1); }

struct ManualWorker {
  explicit ManualWorker(uint32_t workers = 1) : runtime(ManualWorkers(workers), clock) {}

  base::ManualClock clock;
  runtime::Runtime runtime;
  runtime::Worker& worker = runtime.worker(0);

  // Turns all workers until none has anything to do. Returns how many tasks were polled.
  uint64_t Run() {
    uint64_t tasks = 0;
    for (bool busy = true; busy;) {
      busy = false;
      for (size_t i = 0; i < runtime.size(); ++i) {
        const uint64_t turns = runtime.worker(i).stats().turns;
        tasks += runtime.worker(i).RunUntilIdleForTest();
        busy |= runtime.size() > 1 && runtime.worker(i).stats().turns > turns + 1;  // the last one found nothing
      }
    }
    return tasks;
  }
};

}  // namespace sluice::test
