// HedgeDelay: when a route that hedges begins its second attempt: the 95th percentile of how long first responses took
// in the last ten seconds, as a worker has seen it ("The Tail at Scale", Dean and Barroso 2013: at most one call in
// twenty is then sent twice).
//
// Buckets are those of metrics::Histogram, so a delay is up to 25% above the percentile.
//
// Thread safety: the functions of worker `worker` on that worker only.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "metrics/registry.h"

namespace sluice::proxy {

class HedgeDelay {
 public:
  static constexpr uint32_t kSeconds = 10;
  // With fewer calls in them nothing is known.
  static constexpr uint64_t kCallsMin = 20;
  static constexpr base::Nanos kLeast = std::chrono::milliseconds(1);

  explicit HedgeDelay(uint32_t workers) : cells_(workers) {}

  // A response began `took` after its first attempt.
  void Observe(uint32_t worker, base::Nanos took, base::TimePoint now);
  // At least kLeast; none: too few calls. Looks anew each second.
  std::optional<base::Nanos> Get(uint32_t worker, base::TimePoint now);

 private:
  struct Cell {
    std::array<std::array<uint32_t, metrics::Histogram::kBuckets>, kSeconds> seconds{};
    int64_t second = 0;  // counted now
    std::optional<base::Nanos> delay;
  };

  Cell& At(uint32_t worker, base::TimePoint now);
  static std::optional<base::Nanos> Percentile(const Cell& cell);

  std::vector<std::unique_ptr<Cell>> cells_;  // made by its worker
};

}  // namespace sluice::proxy
