#include "limits/return_rate.h"

#include <algorithm>

namespace sluice::limits {

namespace {
constexpr int64_t kSpan = 16;     // of the moving mean, in returns
constexpr int64_t kOutlier = 32;  // means; a longer time counts as so many
}  // namespace

void ReturnRate::Note(base::TimePoint now) {
  if (now == base::kNever) return;
  const int64_t time = now.time_since_epoch().count();
  const int64_t last = last_.exchange(time, std::memory_order_relaxed);
  const int64_t noted = noted_.exchange(time, std::memory_order_relaxed);
  if (last == 0) {
    if (time - noted > kFresh.count()) samples_.store(0, std::memory_order_relaxed);
    return;
  }
  // Workers' turns differ a little: the time may seem to stand still or to go back.
  if (time < last) return;
  const uint32_t samples = samples_.load(std::memory_order_relaxed);
  const int64_t mean = mean_.load(std::memory_order_relaxed);
  int64_t gap = time - last;
  if (samples >= kSure) gap = std::min(gap, std::max<int64_t>(1, mean) * kOutlier);
  mean_.store(samples == 0 ? gap : mean + (gap - mean) / kSpan, std::memory_order_relaxed);
  samples_.store(std::min(samples + 1, 1u << 20), std::memory_order_relaxed);
}

std::chrono::milliseconds ReturnRate::TimeFor(size_t units) const {
  const int64_t mean = mean_.load(std::memory_order_relaxed);
  if (mean < 0) return kUnknown;
  const double nanos = static_cast<double>(mean) * static_cast<double>(units);
  const double ms = nanos / 1e6 + 1;  // rounded up
  return std::clamp(std::chrono::milliseconds(static_cast<int64_t>(std::min(ms, 1e9))), kMin, kMax);
}

std::optional<base::Nanos> ReturnRate::WaitFor(size_t units, base::TimePoint now) const {
  if (samples_.load(std::memory_order_relaxed) < kSure) return std::nullopt;
  const base::Nanos since_last(now.time_since_epoch().count() - noted_.load(std::memory_order_relaxed));
  if (last_.load(std::memory_order_relaxed) == 0 && since_last > kFresh) return std::nullopt;
  constexpr double kMost = 1e15;  // eleven days
  const double nanos = static_cast<double>(mean_.load(std::memory_order_relaxed)) * static_cast<double>(units);
  return base::Nanos(static_cast<int64_t>(std::min(nanos, kMost)));
}

}  // namespace sluice::limits
