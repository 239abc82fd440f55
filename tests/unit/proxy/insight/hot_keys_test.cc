// HotKeys: samples of several workers, what is forgotten, what is hidden, and reading while workers write.
#include "proxy/insight/hot_keys.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace sluice::proxy {
namespace {

using Mode = InsightOptions::HotKeys;
using std::chrono::seconds;

constexpr base::TimePoint kStart{std::chrono::hours(1)};

TEST(HotKeys, WorkersAreMergedAndClustersAreNot) {
  HotKeys keys(Mode::kShown, 2);
  for (int i = 0; i < 3; ++i) keys.Add("users", 1, "ann", kStart, 0);
  for (int i = 0; i < 4; ++i) keys.Add("users", 1, "ann", kStart, 1);
  keys.Add("users", 2, "bob", kStart, 1);
  keys.Add("carts", 1, "ann", kStart, 0);
  const auto seen = keys.Read(kStart + seconds(5));
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].cluster, "carts");
  EXPECT_EQ(seen[1].cluster, "users");
  EXPECT_EQ(seen[1].span, seconds(5));
  EXPECT_EQ(seen[1].keys.total, 8u);
  ASSERT_EQ(seen[1].keys.keys.size(), 2u);
  EXPECT_EQ(seen[1].keys.keys[0].text.view(), "ann");
  EXPECT_EQ(seen[1].keys.keys[0].count, 7u);
}

TEST(HotKeys, WhatIsOverIsForgottenAfterTwoPeriods) {
  HotKeys keys(Mode::kShown, 1);
  keys.Add("users", 1, "ann", kStart, 0);
  keys.Add("users", 2, "bob", kStart + HotKeys::kPeriod, 0);
  auto seen = keys.Read(kStart + HotKeys::kPeriod + seconds(1));
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].keys.total, 2u);
  EXPECT_EQ(seen[0].span, HotKeys::kPeriod + seconds(1));
  // Read after its time, though no sample has come since.
  seen = keys.Read(kStart + 2 * HotKeys::kPeriod);
  ASSERT_EQ(seen.size(), 1u);
  ASSERT_EQ(seen[0].keys.keys.size(), 1u);
  EXPECT_EQ(seen[0].keys.keys[0].text.view(), "bob");
  EXPECT_TRUE(keys.Read(kStart + 3 * HotKeys::kPeriod).empty());
  keys.Add("users", 3, "cid", kStart + 9 * HotKeys::kPeriod, 0);
  seen = keys.Read(kStart + 9 * HotKeys::kPeriod);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].keys.total, 1u);
}

TEST(HotKeys, HiddenKeysAreNotKept) {
  HotKeys keys(Mode::kHidden, 1);
  keys.Add("users", 17, "ann", kStart, 0);
  EXPECT_TRUE(keys.Read(kStart)[0].keys.keys[0].text.view().empty());
  const std::string tag = HotKeys::TagOf(17);
  EXPECT_EQ(tag.size(), 13u);
  EXPECT_EQ(tag, HotKeys::TagOf(17));
  EXPECT_NE(tag, HotKeys::TagOf(18));
}

TEST(HotKeys, MoreClustersThanItKeepsAreNotSampled) {
  HotKeys keys(Mode::kShown, 1);
  for (size_t i = 0; i < HotKeys::kClustersMax + 3; ++i) keys.Add("c" + std::to_string(i), 1, "k", kStart, 0);
  EXPECT_EQ(keys.Read(kStart).size(), HotKeys::kClustersMax);
  // Those without samples for two periods make room.
  keys.Add("late", 1, "k", kStart + 2 * HotKeys::kPeriod, 0);
  const auto seen = keys.Read(kStart + 2 * HotKeys::kPeriod);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].cluster, "late");
}

TEST(HotKeys, TheGapIsRandomAndAsLongAsItSaysOnAverage) {
  base::Random random(17);
  uint64_t sum = 0, ones = 0;
  constexpr int kGaps = 20'000;
  for (int i = 0; i < kGaps; ++i) {
    const uint32_t gap = HotKeys::NextGap(random);
    ASSERT_GE(gap, 1u);
    ASSERT_LT(gap, 2 * HotKeys::kGap);
    sum += gap;
    ones += gap == 1 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(sum) / kGaps, HotKeys::kGap, 1.5);
  EXPECT_GT(ones, 0u);
}

TEST(HotKeys, AReaderAndAWorkerAtTheSameTime) {
  HotKeys keys(Mode::kShown, 1);
  std::atomic<bool> done{false};
  std::thread reader([&] {
    bool last = false;
    while (!last) {
      last = done.load(std::memory_order_acquire);
      for (const HotKeys::Seen& seen : keys.Read(kStart)) {
        uint64_t sum = 0;
        for (const KeyCount& key : seen.keys.keys) sum += key.count;
        ASSERT_EQ(sum, seen.keys.total);
      }
    }
  });
  uint64_t asked = 0;
  for (; asked < 50'000; ++asked) keys.Add("users", asked % 100, "key", kStart, 0);
  done.store(true, std::memory_order_release);
  reader.join();
  keys.Add("users", 0, "key", kStart, 0);
  ++asked;
  // Samples that met the reader were let go, which may be all of them where it was held up by the system.
  const auto seen = keys.Read(kStart);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_LE(seen[0].keys.total, asked);
  EXPECT_GT(seen[0].keys.total, 0u);
}

}  // namespace
}  // namespace sluice::proxy
