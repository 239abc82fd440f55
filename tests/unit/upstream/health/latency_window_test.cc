// Quantiles of the latency window, from counts in buckets.
#include "upstream/health/latency_window.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "metrics/registry.h"

namespace sluice::upstream {
namespace {

using Counts = LatencyWindow::Counts;

void Add(Counts& counts, double nanos) { ++counts[metrics::Histogram::BucketOf(static_cast<uint64_t>(nanos))]; }

TEST(Quantile, WithoutSamplesIsZero) { EXPECT_EQ(Quantile(Counts{}, 0.5, 0), 0); }

TEST(Quantile, OfOneSampleIsInItsBucket) {
  for (const double nanos : {1e6, 5e6, 11e6, 31e6, 2e9}) {
    Counts counts{};
    Add(counts, nanos);
    for (const double deviations : {-3.3, 0.0, 3.3}) {
      EXPECT_NEAR(Quantile(counts, 0.5, deviations), nanos, 0.34 * nanos) << deviations;
    }
  }
}

// By the buckets' edges alone it would be up to a fifth away.
TEST(Quantile, OfManySamplesIsNearTheTrueOne) {
  std::mt19937_64 random(1);
  for (const double middle : {1e6, 11e6, 12.5e6, 31e6, 400e6}) {
    std::uniform_real_distribution<double> spread(0.8 * middle, 1.2 * middle);
    Counts counts{};
    for (int i = 0; i < 4000; ++i) Add(counts, spread(random));
    EXPECT_NEAR(Quantile(counts, 0.5, 0), middle, 0.03 * middle);
    EXPECT_NEAR(Quantile(counts, 0.99, 0), 1.196 * middle, 0.15 * middle);
  }
}

TEST(Quantile, ABoundIsFartherAwayOfFewerSamples) {
  std::mt19937_64 random(2);
  std::lognormal_distribution<double> spread(std::log(10e6), 0.5);
  double before = 1e18;
  Counts counts{};
  for (const int n : {30, 300, 3000}) {
    while (SumOf(counts) < static_cast<uint64_t>(n)) Add(counts, spread(random));
    const double lower = Quantile(counts, 0.5, -3.3), upper = Quantile(counts, 0.5, 3.3);
    EXPECT_LT(lower, 10e6) << n;
    EXPECT_GT(upper, 10e6) << n;
    EXPECT_LT(upper - lower, before);
    before = upper - lower;
  }
}

}  // namespace
}  // namespace sluice::upstream
