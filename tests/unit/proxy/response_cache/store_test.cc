// Store: a capacity that is raised or lowered by a reload takes effect, and what is stored stays.
#include "proxy/response_cache/store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "unit/proxy/response_cache/response_cache_support.h"

namespace sluice::proxy {
namespace {

using test::CacheFixture;
using Kind = ResponseCache::Found::Kind;

CacheOptions WithCapacity(size_t bytes) {
  CacheOptions options = CacheFixture::Defaults();
  options.capacity_bytes = bytes;
  return options;
}

size_t StoreMany(CacheFixture& f, int count) {
  for (int i = 0; i < count; ++i) f.Store(f.Key(std::to_string(i)));
  return f.cache.stats().entries;
}

// Entries of some 500 bytes where 4 KiB are expected: the table is full long before the bytes are.
TEST(CacheStore, ARaisedCapacityHoldsMoreEntries) {
  CacheFixture f(WithCapacity(1 << 20));
  const size_t few = StoreMany(f, 3000);
  EXPECT_LT(few, 600u);
  f.cache.Configure(WithCapacity(16 << 20));
  EXPECT_EQ(f.cache.stats().entries, few) << "what is stored stays";
  EXPECT_EQ(f.cache.stats().capacity_bytes, size_t{16} << 20);
  EXPECT_EQ(StoreMany(f, 3000), 3000u);
  EXPECT_EQ(f.KindOf(f.Key("0")), Kind::kFresh);
  EXPECT_EQ(f.Text(f.Key("2999")), "hello");
}

TEST(CacheStore, ALoweredCapacityEvictsAndARaisedOneAgainHasTheFirstTable) {
  CacheFixture f(WithCapacity(16 << 20));
  EXPECT_EQ(StoreMany(f, 3000), 3000u);
  f.cache.Configure(WithCapacity(1 << 20));
  EXPECT_LT(f.cache.stats().entries, 600u);
  EXPECT_LE(f.cache.stats().usage_bytes, size_t{1} << 20);
  f.cache.Configure(WithCapacity(16 << 20));
  EXPECT_LT(f.cache.stats().entries, 600u) << "what was evicted must not come back";
  EXPECT_EQ(StoreMany(f, 3000), 3000u);
}

TEST(CacheStore, WhatIsPurgedDoesNotComeBackWithAnotherTable) {
  CacheFixture f(WithCapacity(1 << 20));
  f.Store(f.Key("a"));
  f.cache.Configure(WithCapacity(16 << 20));
  EXPECT_EQ(f.cache.Purge({}), 1u);
  f.cache.Configure(WithCapacity(1 << 20));
  EXPECT_EQ(f.KindOf(f.Key("a")), Kind::kMiss);
  EXPECT_EQ(f.cache.stats().entries, 0u);
}

TEST(CacheStore, AResponseThatWasStoredAnewMovesAsTheNewOne) {
  CacheFixture f(WithCapacity(1 << 20));
  f.Store(f.Key("a"), {.message = "old"});
  f.clock.Advance(std::chrono::seconds(11));
  f.Store(f.Key("a"), {.message = "new"});
  f.cache.Configure(WithCapacity(16 << 20));
  EXPECT_EQ(f.Text(f.Key("a")), "new");
  EXPECT_EQ(f.cache.stats().entries, 1u);
}

TEST(CacheStore, EvictionsForWantOfSlotsAreToldApartFromThoseForBytes) {
  CacheFixture f(WithCapacity(1 << 20));
  StoreMany(f, 3000);
  const std::string small = f.registry.RenderPrometheus();
  EXPECT_NE(small.find("sluice_cache_evictions_total{cause=\"capacity\"} 0\n"), small.npos);
  EXPECT_EQ(small.find("sluice_cache_evictions_total{cause=\"slots\"} 0\n"), small.npos);
  CacheFixture g(WithCapacity(1 << 20));
  for (int i = 0; i < 200; ++i) g.Store(g.Key(std::to_string(i)), {.message = std::string(16 << 10, 'x')});
  const std::string large = g.registry.RenderPrometheus();
  EXPECT_EQ(large.find("sluice_cache_evictions_total{cause=\"capacity\"} 0\n"), large.npos);
  EXPECT_NE(large.find("sluice_cache_evictions_total{cause=\"slots\"} 0\n"), large.npos);
}

// Threads look up and store while the table changes; each answer is of its key.
TEST(CacheStore, TheTableChangesUnderLoad) {
  CacheFixture f(WithCapacity(1 << 20));
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&f, &over, t] {
      for (int i = 0; !over; i = (i + 1) % 500) {
        const std::string name = std::to_string(t * 1000 + i);
        const CacheKey key = f.Key(name);
        const auto found = f.Look(key);
        if (found.kind == Kind::kFresh)
          ASSERT_EQ(CacheFixture::TextOf(found.response), name);
        else
          f.Store(key, {.message = name});
      }
    });
  }
  for (int round = 0; round < 20; ++round) f.cache.Configure(WithCapacity(round % 2 == 0 ? 8 << 20 : 1 << 20));
  over = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace sluice::proxy
