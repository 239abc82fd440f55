#include "proxy/call/hedge_delay.h"

#include <algorithm>

namespace sluice::proxy {

HedgeDelay::Cell& HedgeDelay::At(uint32_t worker, base::TimePoint now) {
  std::unique_ptr<Cell>& cell = cells_[worker];
  if (cell == nullptr) cell = std::make_unique<Cell>();
  const int64_t second = std::chrono::floor<std::chrono::seconds>(now.time_since_epoch()).count();
  if (second == cell->second) return *cell;
  const int64_t passed = std::min<int64_t>(second - cell->second, kSeconds);
  for (int64_t i = 0; i < passed; ++i) cell->seconds[static_cast<size_t>((second - i) % kSeconds)].fill(0);
  cell->second = second;
  cell->delay = Percentile(*cell);
  return *cell;
}

std::optional<base::Nanos> HedgeDelay::Percentile(const Cell& cell) {
  std::array<uint64_t, metrics::Histogram::kBuckets> sums{};
  uint64_t calls = 0;
  for (const auto& buckets : cell.seconds) {
    for (size_t i = 0; i < buckets.size(); ++i) {
      sums[i] += buckets[i];
      calls += buckets[i];
    }
  }
  if (calls < kCallsMin) return std::nullopt;
  const uint64_t rank = (calls * 95 + 99) / 100;
  uint64_t below = 0;
  size_t bucket = 0;
  while ((below += sums[bucket]) < rank) ++bucket;
  const auto bound = base::Nanos(static_cast<int64_t>(
      std::min<uint64_t>(metrics::Histogram::UpperBound(bucket), static_cast<uint64_t>(INT64_MAX))));
  return std::max(bound, kLeast);
}

void HedgeDelay::Observe(uint32_t worker, base::Nanos took, base::TimePoint now) {
  Cell& cell = At(worker, now);
  const auto nanos = static_cast<uint64_t>(std::max<int64_t>(took.count(), 0));
  ++cell.seconds[static_cast<size_t>(cell.second % kSeconds)][metrics::Histogram::BucketOf(nanos)];
}

std::optional<base::Nanos> HedgeDelay::Get(uint32_t worker, base::TimePoint now) { return At(worker, now).delay; }

}  // namespace sluice::proxy
