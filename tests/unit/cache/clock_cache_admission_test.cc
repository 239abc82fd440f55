// The doorkeeper, and what admission is worth: hit ratios on drawn traces, fixed seeds.
#include <gtest/gtest.h>

#include <cmath>
#include <list>
#include <unordered_map>

#include "base/random.h"
#include "cache/doorkeeper.h"
#include "unit/cache/recorder.h"

namespace sluice::cache {
namespace {

using base::kNever;
using base::TimePoint;
constexpr TimePoint kNow{std::chrono::hours(1)};

TEST(Doorkeeper, RemembersRecentKeys) {
  Doorkeeper<DefaultTraits> doorkeeper;
  doorkeeper.Init(1024);
  uint64_t again = 0, stale = 0;
  for (uint64_t i = 0; i < 10'000; ++i) {
    EXPECT_FALSE(doorkeeper.Note(KeyOf(i))) << i;  // by chance a stranger passes; with these keys none
    again += i >= 200 && doorkeeper.Note(KeyOf(i - 200));
    stale += i >= 5000 && doorkeeper.Note(KeyOf(i - 5000));
  }
  EXPECT_GT(again, 8'500u);  // the words fill unevenly
  EXPECT_LT(stale, 50u);
}

ClockCacheOptions Guarded(size_t slots) {
  ClockCacheOptions options = SmallOptions(slots);
  options.doorkeeper = true;
  return options;
}

TEST(ClockCacheAdmission, UnknownKeysEnterUntilTheShardIsFull) {
  Recorder recorder;
  ClockCache cache(Guarded(64), &Recorder::Delete, &recorder);
  auto put = [&](uint64_t i) { return cache.Insert(KeyOf(i), ValueOf(i), 100, Priority::kLow, kNever, kNow); };
  for (uint64_t i = 1; i <= 38; ++i) EXPECT_EQ(put(i), Inserted::kInserted);
  EXPECT_EQ(put(39), Inserted::kNotAdmitted);
  EXPECT_TRUE(recorder.freed.empty());  // the value is the caller's, and no entry was evicted for it
  EXPECT_EQ(cache.usage(), 3800u);
  EXPECT_EQ(put(39), Inserted::kInserted);  // known by now
  EXPECT_FALSE(recorder.freed.empty());
  EXPECT_EQ(cache.stats().not_admitted, 1u);
}

TEST(ClockCacheAdmission, AScanLeavesTheCacheAsItIs) {
  Recorder recorder;
  ClockCache cache(Guarded(1024), &Recorder::Delete, &recorder);
  uint64_t i = 0;
  while (cache.usage() + 100 <= cache.capacity()) {
    cache.Insert(KeyOf(i), ValueOf(i), 100, Priority::kLow, kNever, kNow);
    ++i;
  }
  for (uint64_t scan = 0; scan < 100'000; ++scan) {
    cache.Insert(KeyOf(1'000'000 + scan), ValueOf(1), 100, Priority::kLow, kNever, kNow);
  }
  // For strangers that were taken for others: once in 16000, and up to four go with one step of the hand.
  EXPECT_LE(recorder.freed.size(), 60u);
}

// Ranks with P(rank) ~ 1 / (rank + 1)^0.99; a share of `strangers` are keys that never come again.
std::vector<uint64_t> Trace(size_t keys, size_t length, double strangers) {
  std::vector<double> sums(keys);
  double sum = 0;
  for (size_t i = 0; i < keys; ++i) sums[i] = sum += 1 / std::pow(static_cast<double>(i + 1), 0.99);
  base::Random random(4242);
  std::vector<uint64_t> trace(length);
  for (size_t i = 0; i < length; ++i) {
    const double unit = random.Unit() * sum;
    trace[i] = random.Unit() < strangers
                   ? keys + i
                   : static_cast<uint64_t>(std::upper_bound(sums.begin(), sums.end(), unit) - sums.begin());
  }
  return trace;
}

double ClockRatio(const std::vector<uint64_t>& trace, size_t entries, bool doorkeeper) {
  ClockCacheOptions options;
  options.capacity = entries * 100;
  options.entry_charge_expected = 100;
  options.doorkeeper = doorkeeper;
  Recorder recorder;
  ClockCache cache(options, &Recorder::Delete, &recorder);
  size_t hits = 0;
  for (uint64_t id : trace) {
    if (ClockCache::Handle handle = cache.Lookup(KeyOf(id), kNow)) {
      cache.Release(handle);
      ++hits;
    } else {
      cache.Insert(KeyOf(id), ValueOf(id), 100, Priority::kLow, kNever, kNow);
    }
  }
  return static_cast<double>(hits) / static_cast<double>(trace.size());
}

double LruRatio(const std::vector<uint64_t>& trace, size_t entries) {
  std::list<uint64_t> list;
  std::unordered_map<uint64_t, std::list<uint64_t>::iterator> map;
  size_t hits = 0;
  for (uint64_t id : trace) {
    if (auto found = map.find(id); found != map.end()) {
      list.splice(list.begin(), list, found->second);
      ++hits;
      continue;
    }
    if (map.size() == entries) {
      map.erase(list.back());
      list.pop_back();
    }
    list.push_front(id);
    map[id] = list.begin();
  }
  return static_cast<double>(hits) / static_cast<double>(trace.size());
}

TEST(ClockCacheAdmission, MissesNoMoreThanLruAndOnePoint) {
  const std::vector<uint64_t> trace = Trace(50'000, 400'000, 0);
  for (size_t entries : {500, 5000}) {
    EXPECT_GE(ClockRatio(trace, entries, false), LruRatio(trace, entries) - 0.01);
    EXPECT_GE(ClockRatio(trace, entries, true), LruRatio(trace, entries));
  }
}

TEST(ClockCacheAdmission, HitsFourPointsMoreThanLruBesideAScan) {
  const std::vector<uint64_t> trace = Trace(50'000, 400'000, 0.25);
  for (size_t entries : {500, 5000}) {
    EXPECT_GE(ClockRatio(trace, entries, true), LruRatio(trace, entries) + 0.04);
  }
}

}  // namespace
}  // namespace sluice::cache
