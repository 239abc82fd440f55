// SpanRings: the way of traced calls from the workers to the exporter: a ring for each worker, and a bell.
//
//   worker 0 --Tracer::Write--> ring 0 --+
//   worker 1 --Tracer::Write--> ring 1 --+-- the exporter's thread (tracing/exporter.h)
//
//   open --Close: nothing is written any more--> closed
//
// Thread safety: each ring as concurrent/record_ring.h says; the rest from any thread.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "concurrent/record_ring.h"
#include "proxy/bell.h"

namespace sluice::proxy {

class SpanRings {
 public:
  // `bytes`: of each ring, rounded up to a power of two.
  SpanRings(uint32_t workers, uint64_t bytes) {
    for (uint32_t i = 0; i < workers; ++i)
      rings_.push_back(std::make_unique<concurrent::RecordRing>(std::bit_ceil(bytes)));
  }

  concurrent::RecordRing& ring(uint32_t worker) { return *rings_[worker]; }
  const std::vector<std::unique_ptr<concurrent::RecordRing>>& all() const { return rings_; }
  Bell& bell() { return bell_; }
  // What was written before is exported within the exporter's bound.
  void Close() {
    closed_.store(true, std::memory_order_release);
    bell_.Ring();
  }
  bool closed() const { return closed_.load(std::memory_order_acquire); }
  // Calls for which a ring had no room.
  uint64_t dropped() const {
    uint64_t sum = 0;
    for (const auto& ring : rings_) sum += ring->dropped();
    return sum;
  }

 private:
  std::vector<std::unique_ptr<concurrent::RecordRing>> rings_;  // by worker
  Bell bell_;
  std::atomic<bool> closed_{false};
};

}  // namespace sluice::proxy
