// ClockCache: every interleaving of a few calls on one entry (sequential consistency only). A step is an operation on a
// meta word or a sum; the destructor's audit ends every schedule.
#include <gtest/gtest.h>

#include "support/interleave.h"
#include "unit/cache/recorder.h"

namespace sluice::cache {
namespace {

using base::kNever;
using base::TimePoint;
constexpr TimePoint kNow{std::chrono::hours(1)}, kLater{std::chrono::hours(2)};

struct StepTraits {
  // Tags, displacements and times are hints and sums: stepping there would multiply the schedules.
  template <typename T>
  using Atomic = std::conditional_t<std::is_same_v<T, uint64_t>, interleave::Atomic<T>, std::atomic<T>>;
  static void OnSlowPath(SlowPath) {}
};
using StepCache = BasicClockCache<StepTraits>;

struct Value {
  bool freed = false;
};

// Two keys with one home slot, in a table of 8 slots.
constexpr Key128 kKey{1, (uint64_t{1} << 32) | 3}, kOther{1, (uint64_t{2} << 32) | 3};

struct State {
  StepCache cache{SmallOptions(8), &Deleted, this};
  Value values[8];
  int freed = 0;

  static void Deleted(void* value, Cause, void* context) {
    Value& one = *static_cast<Value*>(value);
    EXPECT_FALSE(one.freed);
    one.freed = true;
    ++static_cast<State*>(context)->freed;
  }
  Inserted Put(const Key128& key, int value, Priority priority = Priority::kLow, TimePoint expires = kNever,
               size_t charge = 10) {
    return cache.Insert(key, &values[value], charge, priority, expires, kNow);
  }
  // True for a hit. The value must not be freed while we hold it.
  bool Read(const Key128& key, TimePoint now = kNow, bool useful = true, bool erase = false) {
    StepCache::Handle handle = cache.Lookup(key, now);
    if (!handle) return false;
    Value& value = *static_cast<Value*>(handle.value());
    EXPECT_FALSE(value.freed);
    EXPECT_EQ(handle.key(), key);
    interleave::Point();
    EXPECT_FALSE(value.freed);
    cache.Release(handle, useful, erase);
    return true;
  }
};

using Setup = std::function<void(interleave::Run&, std::shared_ptr<State>)>;
uint64_t ExploreAll(int preemptions, const Setup& setup) {
  return interleave::Explore([&](interleave::Run& run) { setup(run, std::make_shared<State>()); },
                             {.preemptions_max = preemptions})
      .schedules;
}

TEST(ClockCacheInterleave, EraseBesideTwoReaders) {
  EXPECT_GT(ExploreAll(2,
                       [](auto& run, auto state) {
                         state->Put(kKey, 0);
                         run.Thread([=] { state->Read(kKey); });
                         run.Thread([=] { state->Read(kKey, kNow, false); });
                         run.Thread([=] { EXPECT_EQ(state->cache.Erase(kKey), 1u); });
                         run.AtEnd([=] {
                           EXPECT_EQ(state->freed, 1);  // by the last reference
                           EXPECT_FALSE(state->Read(kKey));
                           EXPECT_EQ(state->cache.usage(), 0u);
                         });
                       }),
            100u);
}

TEST(ClockCacheInterleave, TwoErasures) {
  EXPECT_GT(ExploreAll(3,
                       [](auto& run, auto state) {
                         state->Put(kKey, 0);
                         auto erased = std::make_shared<size_t>(0);
                         run.Thread([=] { *erased += state->cache.Erase(kKey); });
                         run.Thread([=] { *erased += state->cache.Erase(kKey); });
                         run.AtEnd([=] {
                           EXPECT_EQ(*erased, 1u);
                           EXPECT_EQ(state->freed, 1);
                         });
                       }),
            50u);
}

// Two holders of the last references both ask for the erase: the last one to give its reference back does it.
TEST(ClockCacheInterleave, EraseIfLastByBoth) {
  EXPECT_GT(ExploreAll(3,
                       [](auto& run, auto state) {
                         state->Put(kKey, 0);
                         StepCache::Handle a = state->cache.Lookup(kKey, kNow), b = state->cache.Lookup(kKey, kNow);
                         run.Thread([=] { state->cache.Release(a, true, true); });
                         run.Thread([=] { state->cache.Release(b, false, true); });
                         run.AtEnd([=] {
                           EXPECT_EQ(state->freed, 1);
                           EXPECT_FALSE(state->Read(kKey));
                         });
                       }),
            4u);
}

// Trap: a thread that gives its reference back first and then takes the slot by its counters may hit a successor with
// the same counters.
TEST(ClockCacheInterleave, EraseIfLastSparesTheSuccessor) {
  EXPECT_GT(ExploreAll(3,
                       [](auto& run, auto state) {
                         state->Put(kKey, 0, Priority::kLow);
                         StepCache::Handle handle = state->cache.Lookup(kKey, kNow);
                         auto inserted = std::make_shared<bool>(false);
                         run.Thread([=] { state->cache.Release(handle, true, true); });  // counters at 3 and 3
                         run.Thread([=] {
                           state->cache.Erase(kKey);
                           *inserted = state->Put(kKey, 1, Priority::kHigh) == Inserted::kInserted;  // so are these
                         });
                         run.AtEnd([=] {
                           EXPECT_TRUE(*inserted);
                           EXPECT_TRUE(state->Read(kKey));
                           EXPECT_TRUE(state->values[0].freed);
                         });
                       }),
            10u);
}

// Trap: a lookup that meets a slot that is Empty or in Construction must leave the counters, whose owner overwrites
// them.
TEST(ClockCacheInterleave, LookupBesideEraseAndInsertInTheSameSlot) {
  EXPECT_GT(ExploreAll(3,
                       [](auto& run, auto state) {
                         state->Put(kKey, 0);
                         run.Thread([=] { state->Read(kKey); });
                         run.Thread([=] {
                           state->cache.Erase(kKey);
                           state->Put(kKey, 1);
                         });
                         run.AtEnd([=] {
                           EXPECT_TRUE(state->Read(kKey));
                           EXPECT_EQ(state->freed, 1);
                         });
                       }),
            100u);
}

// A slot changes hands between the look at its tag and the reference: the other key's entry keeps its counters.
TEST(ClockCacheInterleave, LookupBesideASlotThatChangesItsKey) {
  EXPECT_GT(ExploreAll(3,
                       [](auto& run, auto state) {
                         state->Put(kKey, 0);
                         run.Thread([=] { state->Read(kKey); });
                         run.Thread([=] {
                           state->cache.Erase(kKey);
                           state->Put(kOther, 1);
                           state->cache.Erase(kOther);
                         });
                         run.AtEnd([=] { EXPECT_EQ(state->freed, 2); });
                       }),
            100u);
}

TEST(ClockCacheInterleave, TwoInsertsOfOneKey) {
  EXPECT_GT(ExploreAll(2,
                       [](auto& run, auto state) {
                         auto taken = std::make_shared<int>(0);
                         run.Thread([=] { *taken += state->Put(kKey, 0) == Inserted::kInserted; });
                         run.Thread([=] { *taken += state->Put(kKey, 1) == Inserted::kInserted; });
                         run.AtEnd([=] {
                           EXPECT_GE(*taken, 1);
                           EXPECT_TRUE(state->Read(kKey));
                           EXPECT_EQ(state->cache.entries(), static_cast<size_t>(*taken));
                           EXPECT_EQ(state->cache.Erase(kKey), static_cast<size_t>(*taken));  // both, if both
                           EXPECT_EQ(state->freed, *taken);
                         });
                       }),
            100u);
}

TEST(ClockCacheInterleave, TwoLookupsOfAnExpiredEntry) {
  EXPECT_GT(ExploreAll(3,
                       [](auto& run, auto state) {
                         state->Put(kKey, 0, Priority::kLow, kLater);
                         run.Thread([=] { EXPECT_FALSE(state->Read(kKey, kLater)); });
                         run.Thread([=] { EXPECT_FALSE(state->Read(kKey, kLater)); });
                         run.AtEnd([=] { EXPECT_EQ(state->freed, 1); });
                       }),
            20u);
}

// The hand takes the entry, or the reader does; never both.
TEST(ClockCacheInterleave, EvictionBesideAReader) {
  EXPECT_GT(ExploreAll(2,
                       [](auto& run, auto state) {
                         for (int i = 0; i < 6; ++i) {  // all slots that may be used; two go with one step of the hand
                           state->Put({1, (uint64_t{1} << 32) + static_cast<uint64_t>(i)}, i, Priority::kBottom);
                         }
                         const Key128 first{1, uint64_t{1} << 32};
                         run.Thread([=] { state->Read(first); });
                         run.Thread([=] { EXPECT_EQ(state->Put(kOther, 6), Inserted::kInserted); });
                         run.AtEnd([=] {
                           EXPECT_GE(state->freed, 1);
                           EXPECT_TRUE(state->Read(kOther));
                         });
                       }),
            100u);
}

// Strict: both want the room that one of them can have.
TEST(ClockCacheInterleave, TwoStrictInsertsForOneRoom) {
  struct Strict {
    static ClockCacheOptions Options() {
      ClockCacheOptions options = SmallOptions(8);
      options.strict = true;
      options.capacity = 80;
      options.entry_charge_expected = 14;
      return options;
    }
    StepCache cache{Options(), [](void*, Cause, void*) {}, nullptr};
    StepCache::Handle handles[8];
  };
  EXPECT_GT(interleave::Explore(
                [](interleave::Run& run) {
                  auto state = std::make_shared<Strict>();
                  auto put = [state](uint64_t i, StepCache::Handle* want) {
                    return state->cache.Insert({1, (i << 32) + i}, state.get(), 10, Priority::kLow, kNever, kNow,
                                               want) == Inserted::kInserted;
                  };
                  for (uint64_t i = 0; i < 7; ++i) EXPECT_TRUE(put(i, &state->handles[i]));
                  auto taken = std::make_shared<int>(0);
                  for (uint64_t i = 7; i < 9; ++i) {
                    run.Thread([=] {
                      *taken += put(i, nullptr);
                      EXPECT_LE(state->cache.usage(), 80u);
                    });
                  }
                  run.AtEnd([=] {
                    EXPECT_GE(*taken, 1);
                    EXPECT_EQ(state->cache.usage(), 80u);
                    for (int i = 0; i < 7; ++i) state->cache.Release(state->handles[i]);
                  });
                },
                {.preemptions_max = 2})
                .schedules,
            20u);
}

TEST(ClockCacheInterleave, EraseIfBesideAnErasureAndAReader) {
  EXPECT_GT(ExploreAll(2,
                       [](auto& run, auto state) {
                         state->Put(kKey, 0);
                         run.Thread([=] { state->Read(kKey); });
                         run.Thread([=] { state->cache.Erase(kKey); });
                         run.Thread([=] { state->cache.EraseIf([](const Key128&, void*) { return true; }); });
                         run.AtEnd([=] { EXPECT_EQ(state->freed, 1); });
                       }),
            100u);
}

// A purge that keeps everything meets a slot that becomes another entry's: what it took of none it gives back to none.
TEST(ClockCacheInterleave, EraseIfBesideASlotThatChangesItsEntry) {
  EXPECT_GT(ExploreAll(3,
                       [](auto& run, auto state) {
                         state->Put(kKey, 0);
                         run.Thread([=] { state->cache.EraseIf([](const Key128&, void*) { return false; }); });
                         run.Thread([=] {
                           state->cache.Erase(kKey);
                           EXPECT_EQ(state->Put(kOther, 1), Inserted::kInserted);
                         });
                         run.AtEnd([=] {
                           StepCache::Handle handle = state->cache.Lookup(kOther, kNow);
                           ASSERT_TRUE(handle);
                           const Meta meta(StepCache::MetaForTest(handle).load());
                           EXPECT_EQ(meta.references(), 1u);
                           state->cache.Release(handle);
                         });
                       }),
            20u);
}

}  // namespace
}  // namespace sluice::cache
