// ManualWorker: a runtime of one worker that the test turns by hand, with a clock that stands still until
// told.
#pragma once

#include "base/clock.h"
#include "runtime/runtime.h"

namespace sluice::test {

inline runtime::RuntimeOptions OneWorker() {
  runtime::RuntimeOptions options;
  options.workers = 1;
  options.blocking_threshold = std::chrono::milliseconds(0);
  options.blocking_threads = 1;
  return options;
}

struct ManualWorker {
  base::ManualClock clock;
  runtime::Runtime runtime{OneWorker(), clock};
  runtime::Worker& worker = runtime.worker(0);

  uint64_t Run() { return worker.RunUntilIdleForTest(); }
};

}  // namespace sluice::test
