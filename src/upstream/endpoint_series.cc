#include "upstream/endpoint_series.h"

#include <algorithm>

namespace sluice::upstream {

EndpointSeries::Sums EndpointSeries::Read() const {
  Sums sums;
  for (const Cell& cell : cells_) {
    for (size_t i = 0; i < kStatuses; ++i) sums.statuses[i] += cell.statuses_[i].load(std::memory_order_relaxed);
    for (size_t i = 0; i < kBuckets; ++i) sums.buckets[i] += cell.buckets_[i].load(std::memory_order_relaxed);
    sums.nanos += cell.nanos_.load(std::memory_order_relaxed);
    sums.max = std::max(sums.max, cell.max_.load(std::memory_order_relaxed));
  }
  return sums;
}

}  // namespace sluice::upstream
