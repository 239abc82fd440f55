// SpaceSaving against exact counts: the bounds that the paper promises hold for streams of any skew, also merged.
#include "proxy/insight/space_saving.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <random>

#include "base/random.h"

namespace sluice::proxy {
namespace {

using Exact = std::map<uint64_t, uint64_t>;

uint64_t Seed() {
  static const uint64_t seed = std::random_device()();
  static const bool printed = std::printf("seed %llu\n", static_cast<unsigned long long>(seed)) > 0;
  EXPECT_TRUE(printed);
  return seed;
}

// A key of [0, keys): the larger `skew`, the more of the small ones.
uint64_t Draw(base::Random& random, uint64_t keys, double skew) {
  return static_cast<uint64_t>(std::pow(random.Unit(), skew) * static_cast<double>(keys));
}

void ExpectBounds(const KeySummary& summary, const Exact& exact, uint64_t total) {
  EXPECT_EQ(summary.total, total);
  std::map<uint64_t, KeyCount> kept;
  uint64_t before = UINT64_MAX;
  for (const KeyCount& key : summary.keys) {
    EXPECT_LE(key.count, before);
    before = key.count;
    EXPECT_TRUE(kept.emplace(key.key, key).second);
    const auto real = exact.find(key.key);
    const uint64_t came = real == exact.end() ? 0 : real->second;
    EXPECT_LE(came, key.count) << key.key;
    EXPECT_LE(key.error, key.count);
    EXPECT_GE(came, key.count - key.error) << key.key;
  }
  for (const auto& [key, came] : exact) {
    EXPECT_TRUE(kept.contains(key) || came <= summary.floor) << key << " came " << came;
  }
}

TEST(SpaceSaving, CountsExactlyWhileThereIsACounterForEachKey) {
  SpaceSaving keys(3);
  for (const uint64_t key : {7u, 8u, 7u, 9u, 7u, 8u}) keys.Add(key, std::to_string(key));
  const KeySummary summary = keys.Read();
  ASSERT_EQ(summary.keys.size(), 3u);
  EXPECT_EQ(summary.keys[0].text.view(), "7");
  EXPECT_EQ(summary.keys[0].count, 3u);
  EXPECT_EQ(summary.keys[1].count, 2u);
  for (const KeyCount& key : summary.keys) EXPECT_EQ(key.error, 0u);
  EXPECT_EQ(summary.total, 6u);
}

TEST(SpaceSaving, ANewKeyTakesTheSmallestCounterOver) {
  SpaceSaving keys(2);
  for (const uint64_t key : {1u, 1u, 1u, 2u, 3u}) keys.Add(key, std::to_string(key));
  const KeySummary summary = keys.Read();
  ASSERT_EQ(summary.keys.size(), 2u);
  EXPECT_EQ(summary.keys[1].text.view(), "3");
  EXPECT_EQ(summary.keys[1].count, 2u);
  EXPECT_EQ(summary.keys[1].error, 1u);
  EXPECT_EQ(summary.floor, 2u);
}

TEST(SpaceSaving, ALongKeyIsCutAndSaysSo) {
  SpaceSaving keys(1);
  keys.Add(1, std::string(KeyText::kBytesMax, 'a'));
  EXPECT_FALSE(keys.Read().keys[0].text.cut);
  keys.Add(2, std::string(KeyText::kBytesMax + 1, 'b'));
  EXPECT_TRUE(keys.Read().keys[0].text.cut);
  EXPECT_EQ(keys.Read().keys[0].text.view(), std::string(KeyText::kBytesMax, 'b'));
}

TEST(SpaceSavingModel, TheBoundsHoldForStreamsOfAnySkew) {
  base::Random random(Seed());
  for (int round = 0; round < 60; ++round) {
    const size_t counters = 1 + random.Below(64);
    const uint64_t universe = 1 + random.Below(1000), length = random.Below(5000);
    const double skew = 1 + random.Unit() * 5;
    SpaceSaving keys(counters);
    Exact exact;
    for (uint64_t i = 0; i < length; ++i) {
      const uint64_t key = Draw(random, universe, skew);
      ++exact[key];
      keys.Add(key, "");
    }
    const KeySummary summary = keys.Read();
    ExpectBounds(summary, exact, length);
    // What makes a key hot: one that came more often than n / k has a counter, and no error is larger than that.
    EXPECT_LE(summary.floor * counters, length);
    for (const KeyCount& key : summary.keys) EXPECT_LE(key.error * counters, length);
    for (const auto& [key, came] : exact) {
      const bool kept =
          std::any_of(summary.keys.begin(), summary.keys.end(), [&](const auto& k) { return k.key == key; });
      EXPECT_TRUE(kept || came * counters <= length) << key << " came " << came;
    }
  }
}

TEST(SpaceSavingModel, TheBoundsHoldForMergedSummaries) {
  base::Random random(Seed() + 1);
  for (int round = 0; round < 60; ++round) {
    Exact exact;
    uint64_t total = 0;
    std::vector<KeySummary> parts;
    const size_t count = 1 + random.Below(6), keys_max = 1 + random.Below(40);
    for (size_t part = 0; part < count; ++part) {
      SpaceSaving keys(1 + random.Below(32));
      const uint64_t length = random.Below(2000), shift = random.Below(50);
      for (uint64_t i = 0; i < length; ++i) {
        const uint64_t key = shift + Draw(random, 300, 3);
        ++exact[key];
        keys.Add(key, "");
      }
      total += length;
      parts.push_back(keys.Read());
    }
    const KeySummary merged = KeySummary::Merge(parts, keys_max);
    EXPECT_LE(merged.keys.size(), keys_max);
    ExpectBounds(merged, exact, total);
  }
}

}  // namespace
}  // namespace sluice::proxy
