#include "runtime/internal/monitor.h"

#include <algorithm>

#include "base/log.h"
#include "runtime/internal/runtime_impl.h"

namespace sluice::runtime {
namespace {

using std::chrono::milliseconds;

// Looks at an idle pool before the monitor sleeps. More looks mean fewer system calls of the workers that wake it: a
// pool with a call now and then wakes it at most once in so many periods.
constexpr int kQuietLooksMax = 2;
constexpr std::chrono::seconds kLogInterval{1};

}  // namespace

Monitor::Monitor(Runtime& runtime, milliseconds threshold)
    : runtime_(runtime),
      threshold_(threshold),
      period_(std::max(threshold / 5, milliseconds(1))),
      samples_(runtime.size(), Sample{0, std::chrono::steady_clock::now(), false}),
      thread_([this] { Run(); }) {}

Monitor::~Monitor() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stop_signal_.notify_one();
  runtime_.impl_->doze.End();
  thread_.join();
}

void Monitor::Run() {
  int quiet_looks = 0;
  while (WaitForNextLook()) {
    quiet_looks = Look(std::chrono::steady_clock::now()) ? 0 : quiet_looks + 1;
    if (quiet_looks < kQuietLooksMax) continue;
    quiet_looks = 0;
    runtime_.impl_->doze.Sleep([this] { return MustNotSleep(); });
    // A poll that begins now must not be taken for one that has lasted since before the sleep.
    for (Sample& sample : samples_) sample.since = std::chrono::steady_clock::now();
  }
}

bool Monitor::WaitForNextLook() {
  std::unique_lock lock(mutex_);
  return !stop_signal_.wait_for(lock, period_, [this] { return stop_; });
}

// After the announcement in Doze::Sleep. The mutex orders stop_ against it: a destructor that sets stop_ after this
// look then sees the announcement in Doze::End.
bool Monitor::MustNotSleep() {
  {
    std::lock_guard lock(mutex_);
    if (stop_) return true;
  }
  for (size_t i = 0; i < samples_.size(); ++i) {
    // seq_cst: pairs with EndWait.
    if (runtime_.impl_->ImplOf(i).park_.load(std::memory_order_seq_cst) != Worker::Impl::kParked) return true;
  }
  return false;
}

bool Monitor::Look(std::chrono::steady_clock::time_point now) {
  bool active = false;
  for (size_t i = 0; i < samples_.size(); ++i) {
    Worker::Impl& worker = runtime_.impl_->ImplOf(i);
    Sample& sample = samples_[i];
    const uint64_t polls = worker.polls_.load(std::memory_order_relaxed);
    const bool parked = worker.park_.load(std::memory_order_relaxed) == Worker::Impl::kParked;
    active |= !parked || polls != sample.polls;
    if (parked || polls != sample.polls) {
      sample = Sample{polls, now, false};
      continue;
    }
    const bool stealable = !worker.run_queue_.Empty() || worker.slot_.load(std::memory_order_relaxed) != nullptr;
    if (stealable && samples_.size() > 1) {
      worker.behind_.store(true, std::memory_order_release);
      runtime_.impl_->WakeSearcher(static_cast<uint32_t>(i + 1));
    }
    const bool queued = stealable || worker.fifo_size_.load(std::memory_order_relaxed) != 0 || !worker.inbox_.Empty();
    if (queued && !sample.counted && now - sample.since >= threshold_) {
      sample.counted = true;
      Worker::Impl::Bump(worker.blocked_);
      Report(i, now - sample.since, now);
    }
  }
  return active;
}

void Monitor::Report(size_t index, std::chrono::nanoseconds stuck, std::chrono::steady_clock::time_point now) {
  if (now < next_log_) return;
  next_log_ = now + kLogInterval;
  SLUICE_LOG_WARN("worker {} has been in one task for {} ms with work queued behind it", index,
                  std::chrono::duration_cast<milliseconds>(stuck).count());
}

}  // namespace sluice::runtime
