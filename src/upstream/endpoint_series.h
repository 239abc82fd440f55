// EndpointSeries: the statuses that attempts at an endpoint ended with and the times until it answered, for /metrics.
//
// Cell w is written by worker w with plain loads and stores: one addition an attempt for its status, two for its time.
// Read sums the cells from any thread. All accesses are relaxed: a sum may be a moment old. Counters are of 64 bits, so
// they do not wrap and a scraper sees no false reset.
//
// The first kNamedMax endpoints of a cluster have an EndpointSeries each; all further ones share the cluster's, so that
// a long list costs a bounded number of series and the sum of the rest never goes back.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "metrics/registry.h"

namespace sluice::upstream {

class EndpointSeries {
 public:
  static constexpr size_t kNamedMax = 100;
  static constexpr size_t kStatuses = 17;  // gRPC's codes, 0..16
  // The registry's buckets, four to one: bucket i ends at 2^(10 + i) nanoseconds, the last one is open.
  static constexpr size_t kBuckets = 32;
  static_assert((metrics::Histogram::kBuckets - 1 + 3) / 4 == kBuckets - 1);
  static constexpr uint64_t UpperBound(size_t bucket) { return uint64_t{1} << (10 + bucket); }

  class alignas(64) Cell {
   public:
    // `status` below kStatuses.
    void Ended(size_t status) { Add(statuses_[status], 1); }
    // `bucket`: metrics::Histogram::BucketOf(after).
    void Answered(size_t bucket, base::Nanos after) {
      Add(buckets_[(bucket + 3) / 4], 1);
      const auto nanos = static_cast<uint64_t>(after.count());
      Add(nanos_, nanos);
      if (nanos > max_.load(std::memory_order_relaxed)) [[unlikely]]
        max_.store(nanos, std::memory_order_relaxed);
    }

   private:
    friend class EndpointSeries;
    static void Add(std::atomic<uint64_t>& cell, uint64_t n) {
      cell.store(cell.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    }
    std::array<std::atomic<uint64_t>, kStatuses> statuses_{};
    std::atomic<uint64_t> nanos_{0}, max_{0};
    std::array<std::atomic<uint64_t>, kBuckets> buckets_{};
  };

  explicit EndpointSeries(uint32_t workers) : cells_(workers) {}
  Cell& of(uint32_t worker) { return cells_[worker]; }

  struct Sums {
    std::array<uint64_t, kStatuses> statuses{};
    uint64_t nanos = 0, max = 0;  // the sum, and the largest
    std::array<uint64_t, kBuckets> buckets{};
  };
  Sums Read() const;

 private:
  std::vector<Cell> cells_;
};

}  // namespace sluice::upstream
