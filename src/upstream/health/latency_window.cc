#include "upstream/health/latency_window.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sluice::upstream {

void LatencyWindow::Take(const Counts& counts, base::TimePoint now) {
  if (!begun_) {
    begun_ = true;
    last_ = counts;
    half_began_ = now;
    return;
  }
  if (now - half_began_ >= half_) {
    halves_[1] = halves_[0];
    samples_[1] = samples_[0];
    halves_[0] = {};
    samples_[0] = 0;
    half_began_ = now;
  }
  for (size_t i = 0; i < kBuckets; ++i) {
    const uint32_t more = counts[i] - last_[i];
    halves_[0][i] += more;
    samples_[0] += more;
  }
  last_ = counts;
}

void LatencyWindow::Forget() {
  halves_ = {};
  samples_ = {};
}

void LatencyWindow::AddTo(Counts& sum) const {
  for (size_t i = 0; i < kBuckets; ++i) sum[i] += halves_[0][i] + halves_[1][i];
}

LatencyWindow::Counts LatencyWindow::counts() const {
  Counts sum{};
  AddTo(sum);
  return sum;
}

namespace {

// The rank of the quantile, moved by so many standard deviations of a binomial count.
double Rank(uint64_t n, double q, double deviations) {
  const double size = static_cast<double>(n);
  return std::clamp(q * size + deviations * std::sqrt(size * q * (1 - q)), 0.0, size - 1);
}

}  // namespace

uint64_t SumOf(const LatencyWindow::Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), uint64_t{0});
}

double Quantile(const LatencyWindow::Counts& counts, double q, double deviations) {
  const uint64_t n = SumOf(counts);
  if (n == 0) return 0;
  double left = Rank(n, q, deviations) + 0.5;
  size_t bucket = 0;
  while (left > counts[bucket]) left -= static_cast<double>(counts[bucket++]);
  const double from = bucket == 0 ? 0 : static_cast<double>(metrics::Histogram::UpperBound(bucket - 1));
  const auto to = static_cast<double>(metrics::Histogram::UpperBound(bucket));
  return from + (to - from) * left / static_cast<double>(counts[bucket]);
}

LatencyWindow::Counts Without(const LatencyWindow::Counts& all, const LatencyWindow::Counts& part) {
  LatencyWindow::Counts rest{};
  for (size_t i = 0; i < rest.size(); ++i) rest[i] = all[i] - part[i];
  return rest;
}

}  // namespace sluice::upstream
