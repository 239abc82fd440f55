#include "limits/concurrency_limiter.h"

#include <algorithm>

#include "runtime/worker.h"

namespace sluice::limits {

base::TimePoint ConcurrencyLimiterTraits::Now() {
  const runtime::Worker* worker = runtime::Worker::Current();
  return worker == nullptr ? base::kNever : worker->now();
}

void ReturnRate::Note(base::TimePoint now) {
  if (now == base::kNever) return;
  const int64_t time = now.time_since_epoch().count();
  const int64_t last = last_.exchange(time, std::memory_order_relaxed);
  // Workers' turns differ a little: the time may seem to stand still or to go back.
  if (last == 0 || time < last) return;
  const int64_t mean = mean_.load(std::memory_order_relaxed);
  mean_.store(mean < 0 ? time - last : mean + (time - last - mean) / 16, std::memory_order_relaxed);
}

std::chrono::milliseconds ReturnRate::TimeFor(size_t units) const {
  const int64_t mean = mean_.load(std::memory_order_relaxed);
  if (mean < 0) return kUnknown;
  const double nanos = static_cast<double>(mean) * static_cast<double>(units);
  const double ms = nanos / 1e6 + 1;  // rounded up
  return std::clamp(std::chrono::milliseconds(static_cast<int64_t>(std::min(ms, 1e9))), kMin, kMax);
}

}  // namespace sluice::limits
