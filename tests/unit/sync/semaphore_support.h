// What the tests of the semaphore share: a wake-up that is only recorded, and a core with waiters that have names.
#pragma once

#include <coroutine>
#include <vector>

#include "sync/semaphore.h"

namespace sluice::sync::test {

// A wake-up that notes its number in a log instead of making a task run.
class RecordingWakeup {
 public:
  RecordingWakeup() = default;
  RecordingWakeup(std::vector<int>& log, int number) : log_(&log), number_(number) {}
  RecordingWakeup(RecordingWakeup&& other) noexcept
      : log_(std::exchange(other.log_, nullptr)), number_(other.number_) {}
  RecordingWakeup& operator=(RecordingWakeup&& other) noexcept {
    log_ = std::exchange(other.log_, nullptr);
    number_ = other.number_;
    return *this;
  }
  static RecordingWakeup ForCurrentTask(std::coroutine_handle<>) { return {}; }
  void Wake() const {
    if (log_ != nullptr) log_->push_back(number_);
  }

 private:
  std::vector<int>* log_ = nullptr;
  int number_ = 0;
};

struct RecordingTraits : SemaphoreTraits {
  using Wakeup = RecordingWakeup;
};

using TestSemaphore = BasicSemaphore<RecordingTraits>;
using TestCore = BasicSemaphoreCore<RecordingTraits>;
using Outcome = SemaphoreOutcome;

}  // namespace sluice::sync::test
