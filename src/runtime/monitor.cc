#include "runtime/monitor.h"

#include <algorithm>

#include "base/log.h"
#include "runtime/runtime_impl.h"

namespace sluice::runtime {
namespace {

using std::chrono::milliseconds;

// With every worker parked there is nothing to see: the period doubles up to this, so an idle process costs
// nothing that can be measured.
constexpr milliseconds kIdlePeriodMax{100};
constexpr std::chrono::seconds kLogInterval{1};

}  // namespace

Monitor::Monitor(Runtime& runtime, milliseconds threshold)
    : runtime_(runtime),
      threshold_(threshold),
      samples_(runtime.size(), Sample{0, std::chrono::steady_clock::now(), false}),
      thread_([this] { Run(); }) {}

Monitor::~Monitor() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stop_signal_.notify_one();
  thread_.join();
}

void Monitor::Run() {
  const milliseconds busy_period = std::max(threshold_ / 5, milliseconds(1));
  milliseconds period = busy_period;
  std::unique_lock lock(mutex_);
  while (!stop_signal_.wait_for(lock, period, [&] { return stop_; })) {
    const bool awake = Look(std::chrono::steady_clock::now());
    period = awake ? busy_period : std::max(busy_period, std::min(period * 2, kIdlePeriodMax));
  }
}

bool Monitor::Look(std::chrono::steady_clock::time_point now) {
  bool any_awake = false;
  for (size_t i = 0; i < samples_.size(); ++i) {
    Worker::Impl& worker = runtime_.impl_->ImplOf(i);
    Sample& sample = samples_[i];
    const uint64_t polls = worker.polls_.load(std::memory_order_relaxed);
    const bool parked = worker.park_.load(std::memory_order_relaxed) == Worker::Impl::kParked;
    any_awake |= !parked;
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
  return any_awake;
}

void Monitor::Report(size_t index, std::chrono::nanoseconds stuck, std::chrono::steady_clock::time_point now) {
  if (now < next_log_) return;
  next_log_ = now + kLogInterval;
  SLUICE_LOG_WARN("worker {} has been in one task for {} ms with work queued behind it", index,
                  std::chrono::duration_cast<milliseconds>(stuck).count());
}

}  // namespace sluice::runtime
