// Buckets are within 25%, inclusive above, and quantiles fall into the right one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "metrics/registry.h"

namespace sluice::metrics {
namespace {

TEST(Histogram, BoundsGrowAndAreInclusive) {
  for (size_t i = 0; i + 1 < Histogram::kBuckets; ++i) {
    const uint64_t bound = Histogram::UpperBound(i);
    EXPECT_EQ(Histogram::BucketOf(bound), i);
    EXPECT_EQ(Histogram::BucketOf(bound + 1), i + 1);
    if (i + 2 < Histogram::kBuckets) {
      EXPECT_LE(double(Histogram::UpperBound(i + 1)), 1.25 * double(bound));
    }
  }
  EXPECT_EQ(Histogram::UpperBound(0), 1'024u);
  EXPECT_EQ(Histogram::UpperBound(1), 1'280u);
  EXPECT_EQ(Histogram::UpperBound(Histogram::kBuckets - 2), uint64_t{1} << 40);
  EXPECT_EQ(Histogram::BucketOf(0), 0u);
  EXPECT_EQ(Histogram::BucketOf(UINT64_MAX), Histogram::kBuckets - 1);
}

TEST(Histogram, QuantileIsTheUpperBoundOfTheBucketOfThatRank) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  Registry registry(2);
  Histogram* histogram = registry.AddHistogram("h", "H.", 1);
  std::vector<uint64_t> values(1 + random() % 5'000);
  for (uint64_t& value : values) {
    value = random() >> (20 + random() % 44);
    histogram->Observe(random() % 3, value);
  }
  std::sort(values.begin(), values.end());
  const Histogram::Snapshot snapshot = histogram->Read();
  EXPECT_EQ(snapshot.count, values.size());
  for (double q : {0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto rank = static_cast<size_t>(std::ceil(q * double(values.size())));
    const uint64_t exact = values[rank - 1];
    EXPECT_EQ(snapshot.Quantile(q), std::min(Histogram::UpperBound(Histogram::BucketOf(exact)), values.back())) << q;
  }
  EXPECT_EQ(snapshot.Quantile(0), Histogram::UpperBound(Histogram::BucketOf(values.front())));
}

// A bucket's bound may be above all that is in it: deadlines of 2 s had a p99 of 2.15 s.
TEST(Histogram, NoQuantileIsAboveTheLargestValue) {
  Registry registry(2);
  Histogram* histogram = registry.AddHistogram("h", "H.", 1);
  constexpr uint64_t kDeadline = 2'000'000'000;
  for (int i = 0; i < 100; ++i) histogram->Observe(i % 2, kDeadline - static_cast<uint64_t>(i));
  Histogram::Snapshot snapshot = histogram->Read();
  EXPECT_GT(Histogram::UpperBound(Histogram::BucketOf(kDeadline)), kDeadline);
  EXPECT_EQ(snapshot.max, kDeadline);
  EXPECT_EQ(snapshot.Quantile(0.99), kDeadline);
  EXPECT_EQ(snapshot.Quantile(1), kDeadline);

  Histogram* other = registry.AddHistogram("o", "O.", 1);
  other->Observe(registry.shared_slot(), 5'000'000'000);
  other->Observe(registry.shared_slot(), 10);
  snapshot.Add(other->Read());
  EXPECT_EQ(snapshot.max, 5'000'000'000u);
  EXPECT_EQ(snapshot.Quantile(0.5), Histogram::UpperBound(Histogram::BucketOf(kDeadline))) << "a larger one is known";

  other->Add(histogram->Read());
  EXPECT_EQ(other->Read().max, 5'000'000'000u);
  Histogram::Snapshot old = histogram->Read();
  old.max = 0;  // of a process that does not tell it
  Histogram* after = registry.AddHistogram("a", "A.", 1);
  after->Add(old);
  EXPECT_EQ(after->Read().Quantile(1), Histogram::UpperBound(Histogram::BucketOf(kDeadline)));
}

TEST(Histogram, WithoutObservationsHasQuantileZero) {
  Registry registry(1);
  EXPECT_EQ(registry.AddHistogram("h", "H.", 1)->Read().Quantile(0.5), 0u);
}

}  // namespace
}  // namespace sluice::metrics
