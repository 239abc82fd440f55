// ClockCache: sixteen threads on eight slots, for the sanitizers: values are on the heap, freed by the deleter, and
// say whose they are. Switches are forced at every slow path, and at random.
#include <gtest/gtest.h>

#include <barrier>
#include <thread>

#include "base/random.h"
#include "unit/cache/recorder.h"

namespace sluice::cache {
namespace {

using base::kNever;
using base::TimePoint;
constexpr TimePoint kStart{std::chrono::hours(1)};

struct YieldTraits {
  template <typename T>
  using Atomic = std::atomic<T>;
  static void OnSlowPath(SlowPath) { std::this_thread::yield(); }
};
using YieldCache = BasicClockCache<YieldTraits>;

// Plain fields: a read without a reference, or after it, races with the deleter.
struct Value {
  Key128 key;
  uint64_t check;
};
constexpr uint64_t kCheck = 0x5ca1ab1e;

struct Totals {
  std::atomic<uint64_t> taken{0}, freed{0}, hits{0};
};

void Free(void* value, Cause, void* context) {
  Value* one = static_cast<Value*>(value);
  EXPECT_EQ(one->check, kCheck);
  one->check = 0;
  delete one;
  static_cast<Totals*>(context)->freed.fetch_add(1, std::memory_order_relaxed);
}

struct Setting {
  const char* name;
  bool strict;
  bool doorkeeper;
  uint64_t keys;
  uint64_t places;  // home slots of all keys
};

class ClockCacheStress : public testing::TestWithParam<Setting> {};

TEST_P(ClockCacheStress, SixteenThreadsOnEightSlots) {
  const Setting setting = GetParam();
  constexpr int kThreads = 16, kSteps = 6000;
  Totals totals;
  {
    ClockCacheOptions options = SmallOptions(8);
    options.strict = setting.strict;
    options.doorkeeper = setting.doorkeeper;
    YieldCache cache(options, &Free, &totals);
    std::atomic<int64_t> time{0};
    std::barrier start(kThreads);
    auto work = [&](uint64_t seed) {
      base::Random random(seed);
      start.arrive_and_wait();
      for (int step = 0; step < kSteps; ++step) {
        const uint64_t id = random.Below(setting.keys);
        const Key128 key{id, (id << 32) | id % setting.places};  // the last keys share a place, never a tag
        const TimePoint now = kStart + base::Nanos(time.load(std::memory_order_relaxed));
        switch (random.Below(8)) {
          case 0:
          case 1:
          case 2: {
            YieldCache::Handle handle = cache.Lookup(key, now);
            if (!handle) break;
            totals.hits.fetch_add(1, std::memory_order_relaxed);
            Value* value = static_cast<Value*>(handle.value());
            EXPECT_EQ(value->key, key);
            if (random.Below(4) == 0) std::this_thread::yield();
            EXPECT_EQ(value->check, kCheck);
            cache.Release(handle, random.Below(2) == 0, random.Below(4) == 0);
            break;
          }
          case 3:
          case 4:
          case 5: {
            auto value = std::make_unique<Value>(Value{key, kCheck});
            YieldCache::Handle want;
            const bool wanted = random.Below(2) == 0;
            const TimePoint expires = random.Below(2) == 0 ? kNever : now + base::Nanos(random.Below(50));
            const Inserted outcome =
                cache.Insert(key, value.get(), 1 + random.Below(60), static_cast<Priority>(random.Below(3)), expires,
                             now, wanted ? &want : nullptr);
            if (outcome == Inserted::kInserted || outcome == Inserted::kStandalone) {
              totals.taken.fetch_add(1, std::memory_order_relaxed);
              (void)value.release();
            }
            if (want) {
              EXPECT_EQ(static_cast<Value*>(want.value())->check, kCheck);
              cache.Release(want, true, random.Below(4) == 0);
            }
            break;
          }
          case 6:
            cache.Erase(key);
            break;
          default:
            time.fetch_add(1, std::memory_order_relaxed);
            if (random.Below(20) == 0) {
              cache.EraseIf([](const Key128& key, void* value) {
                EXPECT_EQ(static_cast<Value*>(value)->key, key);
                return key.hi % 2 == 0;
              });
            }
        }
        if (setting.strict) {
          EXPECT_LE(cache.usage(), options.capacity);
        }
      }
    };
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < kThreads; ++i) threads.emplace_back(work, 1000 + i);
    for (std::thread& thread : threads) thread.join();
    // A single thread finds all that it inserts.
    cache.EraseIf([](const Key128&, void*) { return true; });
    EXPECT_EQ(cache.usage(), 0u);
    EXPECT_EQ(cache.entries(), 0u);
    auto value = std::make_unique<Value>(Value{{1, 2}, kCheck});
    ASSERT_EQ(cache.Insert({1, 2}, value.get(), 60, Priority::kLow, kNever, kStart), Inserted::kInserted);
    (void)value.release();
    totals.taken.fetch_add(1, std::memory_order_relaxed);
    YieldCache::Handle handle = cache.Lookup({1, 2}, kStart);
    EXPECT_TRUE(handle);
    cache.Release(handle);
  }
  EXPECT_EQ(totals.freed.load(), totals.taken.load());
  EXPECT_GT(totals.hits.load(), 100u);
}

INSTANTIATE_TEST_SUITE_P(Settings, ClockCacheStress,
                         testing::Values(Setting{"OnePlace", false, false, 12, 1},
                                         Setting{"Strict", true, false, 12, 3}, Setting{"FewKeys", false, false, 2, 2},
                                         Setting{"Doorkeeper", true, true, 40, 8}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace sluice::cache
