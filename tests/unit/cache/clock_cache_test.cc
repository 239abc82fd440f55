// ClockCache: what its calls promise, one thread at a time.
#include <gtest/gtest.h>

#include "unit/cache/recorder.h"

namespace sluice::cache {
namespace {

using base::kNever;
using base::TimePoint;
constexpr TimePoint kNow{std::chrono::hours(1)};
constexpr base::Nanos kTick{1};

// 64 slots, capacity 3840: an entry may have 480, and 38 entries of 100 fit.
struct Fixture {
  explicit Fixture(ClockCacheOptions options = SmallOptions(64)) : cache(options, &Recorder::Delete, &recorder) {}

  Inserted Put(uint64_t number, size_t charge = 100, Priority priority = Priority::kLow,
               ClockCache::Handle* want = nullptr) {
    return cache.Insert(KeyOf(number), ValueOf(number), charge, priority, kNever, kNow, want);
  }
  ClockCache::Handle Get(uint64_t number, TimePoint now = kNow) { return cache.Lookup(KeyOf(number), now); }
  bool Read(uint64_t number, bool useful = true) {
    ClockCache::Handle handle = Get(number);
    if (!handle) return false;
    EXPECT_EQ(NumberOf(handle.value()), number);
    cache.Release(handle, useful);
    return true;
  }

  Recorder recorder;
  ClockCache cache;
};

ClockCacheOptions Strict(size_t slots = 64) {
  ClockCacheOptions options = SmallOptions(slots);
  options.strict = true;
  return options;
}

TEST(ClockCache, FindsWhatWasInserted) {
  Fixture f;
  EXPECT_FALSE(f.Get(1));
  EXPECT_EQ(f.Put(1), Inserted::kInserted);
  ClockCache::Handle handle = f.Get(1);
  ASSERT_TRUE(handle);
  EXPECT_EQ(NumberOf(handle.value()), 1u);
  EXPECT_EQ(handle.key(), KeyOf(1));
  EXPECT_EQ(handle.charge(), 100u);
  f.cache.Release(handle);
  EXPECT_FALSE(f.Get(2));
  EXPECT_EQ(f.cache.usage(), 100u);
  EXPECT_EQ(f.cache.entries(), 1u);
}

TEST(ClockCache, BothHalvesOfTheKeyAreCompared) {
  Fixture f;
  const Key128 key = KeyOf(1);
  f.Put(1);
  EXPECT_FALSE(f.cache.Lookup({key.hi ^ (uint64_t{1} << 57), key.lo}, kNow));
  EXPECT_FALSE(f.cache.Lookup({key.hi, key.lo ^ (uint64_t{1} << 31)}, kNow));
  EXPECT_FALSE(f.cache.Lookup({key.hi, key.lo ^ (uint64_t{1} << 63)}, kNow));
}

TEST(ClockCache, APresentKeyKeepsItsValueAndItsOwner) {
  Fixture f;
  f.Put(1);
  ClockCache::Handle want;
  EXPECT_EQ(f.cache.Insert(KeyOf(1), ValueOf(2), 100, Priority::kLow, kNever, kNow, &want), Inserted::kPresent);
  EXPECT_FALSE(want);
  EXPECT_TRUE(f.recorder.freed.empty());  // the new value is still the caller's
  EXPECT_TRUE(f.Read(1));
  EXPECT_EQ(f.cache.usage(), 100u);
  EXPECT_EQ(f.cache.entries(), 1u);
}

// What the insert has passed on its way is put back; the audit at the end counts it.
TEST(ClockCache, APresentKeyFurtherOnLeavesThePathAsItWas) {
  Fixture f;
  const Key128 first{1, 5}, second{1, 5 + (uint64_t{1} << 40)};  // one home slot
  for (const Key128& key : {first, second}) f.cache.Insert(key, ValueOf(1), 100, Priority::kLow, kNever, kNow);
  EXPECT_EQ(f.cache.Insert(second, ValueOf(2), 100, Priority::kLow, kNever, kNow), Inserted::kPresent);
  EXPECT_EQ(f.cache.usage(), 200u);
}

TEST(ClockCache, AWantedHandlePinsTheNewEntry) {
  Fixture f;
  ClockCache::Handle handle;
  EXPECT_EQ(f.Put(1, 100, Priority::kLow, &handle), Inserted::kInserted);
  ASSERT_TRUE(handle);
  EXPECT_EQ(f.cache.Erase(KeyOf(1)), 1u);
  EXPECT_FALSE(f.Get(1));
  EXPECT_EQ(NumberOf(handle.value()), 1u);
  EXPECT_TRUE(f.recorder.freed.empty());
  f.cache.Release(handle);
  EXPECT_TRUE(f.recorder.Has(1, Cause::kErased));
  EXPECT_EQ(f.cache.usage(), 0u);
}

TEST(ClockCache, EraseFreesAnEntryWithoutReadersAtOnce) {
  Fixture f;
  f.Put(1);
  EXPECT_EQ(f.cache.Erase(KeyOf(1)), 1u);
  EXPECT_TRUE(f.recorder.Has(1, Cause::kErased));
  EXPECT_EQ(f.cache.Erase(KeyOf(1)), 0u);
  EXPECT_EQ(f.cache.entries(), 0u);
}

// A second entry of a key comes about past a hole in its path. Erase must find both.
TEST(ClockCache, EraseFindsEveryDuplicate) {
  Fixture f;
  const Key128 first{1, 5}, second{1, 5 + (uint64_t{1} << 40)};  // one home slot
  f.cache.Insert(first, ValueOf(1), 100, Priority::kLow, kNever, kNow);
  f.cache.Insert(second, ValueOf(2), 100, Priority::kLow, kNever, kNow);  // passes the first
  f.cache.Erase(first);                                                   // the hole
  EXPECT_EQ(f.cache.Insert(second, ValueOf(3), 100, Priority::kLow, kNever, kNow), Inserted::kInserted);
  EXPECT_EQ(f.cache.Erase(second), 2u);
  EXPECT_FALSE(f.cache.Lookup(second, kNow));
  EXPECT_EQ(f.cache.entries(), 0u);
}

TEST(ClockCache, AnEntryIsGoodUntilJustBeforeItExpires) {
  Fixture f;
  const TimePoint expires = kNow + std::chrono::seconds(1);
  f.cache.Insert(KeyOf(1), ValueOf(1), 100, Priority::kLow, expires, kNow);
  ClockCache::Handle handle = f.Get(1, expires - kTick);
  ASSERT_TRUE(handle);
  f.cache.Release(handle);
  EXPECT_FALSE(f.Get(1, expires));
  EXPECT_TRUE(f.recorder.Has(1, Cause::kExpired));
  EXPECT_EQ(f.cache.usage(), 0u);
}

TEST(ClockCache, AnExpiredEntryThatIsBeingReadStaysForItsReader) {
  Fixture f;
  f.cache.Insert(KeyOf(1), ValueOf(1), 100, Priority::kLow, kNow + kTick, kNow);
  ClockCache::Handle handle = f.Get(1);
  EXPECT_FALSE(f.Get(1, kNow + kTick));
  EXPECT_EQ(NumberOf(handle.value()), 1u);
  f.cache.Release(handle);
  EXPECT_TRUE(f.recorder.Has(1, Cause::kExpired));
}

TEST(ClockCache, AnExpiredEntryDoesNotKeepItsSuccessorOut) {
  Fixture f;
  f.cache.Insert(KeyOf(1), ValueOf(1), 100, Priority::kLow, kNow + kTick, kNow);
  EXPECT_EQ(f.cache.Insert(KeyOf(1), ValueOf(2), 100, Priority::kLow, kNever, kNow + kTick), Inserted::kInserted);
  EXPECT_TRUE(f.recorder.Has(1, Cause::kExpired));
  ClockCache::Handle handle = f.Get(1, kNow + kTick);
  ASSERT_TRUE(handle);
  EXPECT_EQ(NumberOf(handle.value()), 2u);
  f.cache.Release(handle);
}

TEST(ClockCache, AnEntryExpiredOnArrivalStaysOut) {
  Fixture f;
  EXPECT_EQ(f.cache.Insert(KeyOf(1), ValueOf(1), 100, Priority::kLow, kNow, kNow), Inserted::kNotAdmitted);
  EXPECT_EQ(f.cache.entries(), 0u);
}

// Eviction takes the expired first, whatever their countdown is.
TEST(ClockCache, TheHandTakesTheExpiredAtOnce) {
  Fixture f;
  const TimePoint later = kNow + std::chrono::seconds(1);
  for (uint64_t i = 1; i <= 38; ++i) {
    f.cache.Insert(KeyOf(i), ValueOf(i), 100, i == 20 ? Priority::kHigh : Priority::kBottom, i == 20 ? later : kNever,
                   kNow);
  }
  for (uint64_t i = 100; i < 101; ++i) f.cache.Insert(KeyOf(i), ValueOf(i), 100, Priority::kLow, kNever, later);
  ASSERT_EQ(f.recorder.freed.size(), 1u);
  EXPECT_TRUE(f.recorder.Has(20, Cause::kExpired));
}

TEST(ClockCache, AnEighthOfAShardIsTheMost) {
  Fixture f;
  EXPECT_EQ(f.cache.entry_charge_max(), 480u);
  EXPECT_EQ(f.Put(1, 481), Inserted::kTooLarge);
  EXPECT_EQ(f.Put(1, 480), Inserted::kInserted);
  f.cache.SetCapacity(2000);
  EXPECT_EQ(f.Put(2, 251), Inserted::kTooLarge);
}

TEST(ClockCache, UsageStaysAtTheCapacity) {
  Fixture f;
  for (uint64_t i = 1; i <= 1000; ++i) {
    EXPECT_EQ(f.Put(i, 1 + i % 300), Inserted::kInserted);
    EXPECT_LE(f.cache.usage(), f.cache.capacity());
    EXPECT_LE(f.cache.entries(), 64u * 84 / 100);
  }
}

TEST(ClockCache, LowPrioritiesGoFirst) {
  Fixture f;
  for (uint64_t i = 1; i <= 36; ++i)
    f.Put(i, 100, i <= 12 ? Priority::kHigh : i <= 24 ? Priority::kLow : Priority::kBottom);
  auto left = [&](uint64_t from) {
    size_t count = 0;
    for (uint64_t i = from; i < from + 12; ++i) count += !f.recorder.Has(i);
    return count;
  };
  uint64_t next = 1000;
  while (left(25) != 0) f.Put(next++, 100, Priority::kHigh);
  EXPECT_EQ(left(13), 12u);
  EXPECT_EQ(left(1), 12u);
  while (left(13) != 0) f.Put(next++, 100, Priority::kHigh);
  EXPECT_EQ(left(1), 12u);
}

TEST(ClockCache, EntriesThatAreReadOutliveTheOthers) {
  Fixture f;
  for (uint64_t i = 1; i <= 36; ++i) f.Put(i, 100, Priority::kBottom);
  for (uint64_t next = 1000; next < 1200; ++next) {
    for (uint64_t i = 1; i <= 6; ++i) EXPECT_TRUE(f.Read(i));
    f.Put(next, 100, Priority::kBottom);
  }
  for (uint64_t i = 7; i <= 36; ++i) EXPECT_TRUE(f.recorder.Has(i, Cause::kEvicted)) << i;
}

// A read that is not useful leaves the countdown as it was.
TEST(ClockCache, AUselessReadDoesNotKeepAnEntry) {
  Fixture f;
  for (uint64_t i = 1; i <= 38; ++i) f.Put(i, 100, Priority::kBottom);
  for (uint64_t next = 1000; next < 1100; ++next) {
    f.Read(1, false);
    f.Put(next, 100, Priority::kBottom);
  }
  EXPECT_TRUE(f.recorder.Has(1, Cause::kEvicted));
}

// Trap: three rounds bring a countdown of 3 to zero, and take nothing.
TEST(ClockCache, AStrictInsertFindsRoomWhereAllHaveThreeRoundsLeft) {
  Fixture f(Strict());
  uint64_t next = 1;
  while (f.cache.usage() + 100 <= f.cache.capacity()) f.Put(next++, 100, Priority::kHigh);
  EXPECT_EQ(f.Put(next), Inserted::kInserted);
  EXPECT_GE(f.recorder.freed.size(), 1u);  // the hand moves four slots at a time
}

TEST(ClockCache, StrictRefusesWhatDoesNotFitBesideThePinned) {
  Fixture f(Strict());
  std::vector<ClockCache::Handle> handles;
  uint64_t next = 1;
  while (f.cache.usage() + 100 <= f.cache.capacity()) f.Put(next++, 100, Priority::kLow, &handles.emplace_back());
  const size_t usage = f.cache.usage(), entries = f.cache.entries();
  ClockCache::Handle want;
  EXPECT_EQ(f.Put(next, 100, Priority::kLow, &want), Inserted::kFull);
  EXPECT_FALSE(want);
  EXPECT_EQ(f.cache.usage(), usage);
  EXPECT_EQ(f.cache.entries(), entries);
  f.cache.Release(handles.back());
  EXPECT_EQ(f.Put(next), Inserted::kInserted);
  handles.pop_back();
  for (ClockCache::Handle handle : handles) f.cache.Release(handle);
}

// Strict and lowered: the insert pays the whole difference or is refused; usage does not rise meanwhile.
TEST(ClockCache, ALoweredCapacityIsPaidByTheNextInsert) {
  for (bool strict : {true, false}) {
    ClockCacheOptions options = SmallOptions(64);
    options.strict = strict;
    Fixture f(options);
    for (uint64_t i = 1; i <= 38; ++i) f.Put(i);
    f.cache.SetCapacity(1600);
    EXPECT_EQ(f.cache.usage(), 3800u);
    EXPECT_EQ(f.Put(100), Inserted::kInserted);
    if (!strict) {  // bit by bit
      EXPECT_LT(f.cache.usage(), 3800u);
      for (uint64_t i = 101; i < 200; ++i) f.Put(i);
    }
    EXPECT_LE(f.cache.usage(), 1600u);
    EXPECT_GE(f.cache.usage(), 1300u);
  }
}

TEST(ClockCache, WithoutASlotAWantedEntryStandsAlone) {
  ClockCacheOptions options = SmallOptions(8);
  options.capacity = 10000;  // bytes enough, slots not
  options.entry_charge_expected = 2000;
  Fixture f(options);
  std::vector<ClockCache::Handle> handles(7);
  for (uint64_t i = 1; i <= 6; ++i) EXPECT_EQ(f.Put(i, 100, Priority::kLow, &handles[i - 1]), Inserted::kInserted);
  EXPECT_EQ(f.Put(7), Inserted::kFull);
  EXPECT_EQ(f.Put(7, 100, Priority::kLow, &handles[6]), Inserted::kStandalone);
  EXPECT_EQ(f.cache.usage(), 700u);
  EXPECT_EQ(f.cache.entries(), 6u);
  EXPECT_FALSE(f.Get(7));
  EXPECT_EQ(NumberOf(handles[6].value()), 7u);
  f.cache.Release(handles[6], false, true);
  EXPECT_TRUE(f.recorder.Has(7, Cause::kReleased));
  for (uint64_t i = 0; i < 6; ++i) f.cache.Release(handles[i]);
  EXPECT_EQ(f.cache.usage(), 600u);
  EXPECT_GT(f.cache.stats().evicted_for_slots, 0u);
}

TEST(ClockCache, EraseIfLastErasesOnlyTheLast) {
  Fixture f;
  f.Put(1);
  ClockCache::Handle a = f.Get(1), b = f.Get(1);
  f.cache.Release(a, true, true);
  EXPECT_TRUE(f.recorder.freed.empty());
  EXPECT_TRUE(f.Read(1));
  f.cache.Release(b, false, true);
  EXPECT_TRUE(f.recorder.Has(1, Cause::kErased));
  EXPECT_FALSE(f.Get(1));
}

TEST(ClockCache, EraseIfVisitsEachVisibleEntryOnce) {
  Fixture f;
  for (uint64_t i = 1; i <= 30; ++i) f.Put(i);
  f.cache.Erase(KeyOf(30));
  std::vector<uint64_t> seen;
  EXPECT_EQ(f.cache.EraseIf([&](const Key128& key, void* value) {
    EXPECT_EQ(key, KeyOf(NumberOf(value)));
    EXPECT_TRUE(f.Read(NumberOf(value)));  // it may call the cache
    seen.push_back(NumberOf(value));
    return NumberOf(value) % 2 == 0;
  }),
            14u);
  std::sort(seen.begin(), seen.end());
  ASSERT_EQ(seen.size(), 29u);
  EXPECT_TRUE(std::unique(seen.begin(), seen.end()) == seen.end());
  EXPECT_FALSE(f.Get(2));
  EXPECT_TRUE(f.Read(3));
  EXPECT_EQ(f.cache.entries(), 15u);
}

TEST(ClockCache, TheEndFreesEveryValueOnce) {
  Recorder recorder;
  {
    ClockCache cache(SmallOptions(64), &Recorder::Delete, &recorder);
    for (uint64_t i = 1; i <= 10; ++i) {
      cache.Insert(KeyOf(i), ValueOf(i), 100, Priority::kLow, kNever, kNow);
    }
  }
  ASSERT_EQ(recorder.freed.size(), 10u);
  for (uint64_t i = 1; i <= 10; ++i) EXPECT_TRUE(recorder.Has(i, Cause::kDestroyed));
}

TEST(ClockCacheDeathTest, AHandleMayNotOutliveTheCache) {
  auto leak = [] {
    Recorder recorder;
    ClockCache cache(SmallOptions(64), &Recorder::Delete, &recorder);
    cache.Insert(KeyOf(1), ValueOf(1), 100, Priority::kLow, kNever, kNow);
    (void)cache.Lookup(KeyOf(1), kNow);
  };
  EXPECT_DEATH(leak(), "references");
}

TEST(ClockCache, ADeleterMayCallTheCache) {
  struct Context {
    ClockCache* cache = nullptr;
    size_t calls = 0;
  } context;
  auto deleter = [](void* value, Cause cause, void* ptr) {
    auto& c = *static_cast<Context*>(ptr);
    ++c.calls;
    if (cause == Cause::kDestroyed) return;
    EXPECT_FALSE(c.cache->Lookup(KeyOf(NumberOf(value)), kNow));
    if (c.calls % 16 != 0) {  // else one eviction leads to the next for ever
      c.cache->Insert(KeyOf(NumberOf(value) + 1000000), value, 50, Priority::kLow, kNever, kNow);
    }
  };
  ClockCache cache(SmallOptions(64), deleter, &context);
  context.cache = &cache;
  for (uint64_t i = 1; i <= 1000; ++i) cache.Insert(KeyOf(i), ValueOf(i), 100, Priority::kLow, kNever, kNow);
  cache.EraseIf([](const Key128&, void*) { return true; });
  EXPECT_GT(context.calls, 1000u);
}

TEST(ClockCache, ShardsAreChosenByCapacity) {
  auto shards = [](size_t capacity, uint32_t wanted) {
    ClockCacheOptions options;
    options.capacity = capacity;
    options.shards = wanted;
    options.entry_charge_expected = 1 << 20;
    Recorder recorder;
    return ClockCache(options, &Recorder::Delete, &recorder).shards();
  };
  EXPECT_EQ(shards(1 << 20, 0), 1u);
  EXPECT_EQ(shards(100 << 20, 0), 2u);
  EXPECT_EQ(shards(size_t{64} << 30, 0), 64u);
  EXPECT_EQ(shards(64 << 20, 5), 8u);
}

TEST(ClockCache, ManyShardsAreOneCache) {
  ClockCacheOptions options = SmallOptions(1024);
  options.shards = 8;
  Fixture f(options);
  for (uint64_t i = 1; i <= 300; ++i) EXPECT_EQ(f.Put(i), Inserted::kInserted);
  for (uint64_t i = 1; i <= 300; ++i) EXPECT_TRUE(f.Read(i));
  EXPECT_EQ(f.cache.usage(), 30000u);
  size_t seen = 0;
  f.cache.EraseIf([&](const Key128&, void*) { return ++seen % 2 == 0; });
  EXPECT_EQ(seen, 300u);
  EXPECT_EQ(f.cache.entries(), 150u);
}

}  // namespace
}  // namespace sluice::cache
