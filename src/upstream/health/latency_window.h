// LatencyWindow: times to first byte of the last seconds, as counts in metrics::Histogram's buckets, with bounds on
// their median that hold for small samples.
//
// Two halves, of which the older one is dropped when the newer one is full of time: so it spans between one and two
// times that. Values in nanoseconds. One thread at a time.
#pragma once

#include <array>
#include <cstdint>

#include "base/clock.h"
#include "metrics/registry.h"

namespace sluice::upstream {

class LatencyWindow {
 public:
  static constexpr size_t kBuckets = metrics::Histogram::kBuckets;
  static constexpr base::Nanos kHalf = std::chrono::seconds(5);
  using Counts = std::array<uint32_t, kBuckets>;

  explicit LatencyWindow(base::Nanos half = kHalf) : half_(half) {}
  // `counts`: as they are now; each wraps. What was before the first call is not counted.
  void Take(const Counts& counts, base::TimePoint now);
  // As if nothing had been seen; later counts go on from the last ones.
  void Forget();
  void AddTo(Counts& sum) const;
  uint64_t samples() const { return samples_[0] + samples_[1]; }
  Counts counts() const;

 private:
  base::Nanos half_;
  std::array<Counts, 2> halves_{};  // [0]: the newer one
  std::array<uint64_t, 2> samples_{};
  Counts last_{};
  base::TimePoint half_began_{};
  bool begun_ = false;
};

// Of counts in buckets, in ns: the quantile, moved by so many standard deviations of the order statistic, for a bound
// of it. Within a bucket the samples are taken to lie evenly: the buckets' edges would move a median of 11 ms to 12.6,
// and one of 31 to 29.4. 0 without samples.
double Quantile(const LatencyWindow::Counts& counts, double q, double deviations);
uint64_t SumOf(const LatencyWindow::Counts& counts);
// What is in `all` and not in `part`, which is a part of it.
LatencyWindow::Counts Without(const LatencyWindow::Counts& all, const LatencyWindow::Counts& part);

}  // namespace sluice::upstream
