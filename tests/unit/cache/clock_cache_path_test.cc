// ClockCache: an insert that finds no place, because the holes in its path move behind it while it searches.
#include <gtest/gtest.h>

#include <functional>
#include <type_traits>

#include "unit/cache/recorder.h"

namespace sluice::cache {
namespace {

using base::kNever;
using base::TimePoint;
constexpr TimePoint kNow{std::chrono::hours(1)};

// Called when an insert has passed a slot, with how many it has passed.
std::function<void(int)> g_passed;
int g_count = 0;

// Displacements are the only words of 32 bits that the table adds to.
class PassedSlot : public std::atomic<uint32_t> {
 public:
  using std::atomic<uint32_t>::atomic;
  uint32_t fetch_add(uint32_t by, std::memory_order order) {
    const uint32_t before = std::atomic<uint32_t>::fetch_add(by, order);
    if (g_passed) g_passed(++g_count);
    return before;
  }
};
struct PathTraits {
  template <typename T>
  using Atomic = std::conditional_t<std::is_same_v<T, uint32_t>, PassedSlot, std::atomic<T>>;
  static void OnSlowPath(SlowPath) {}
};
using PathCache = BasicClockCache<PathTraits>;

// Homes are the low bits; the step is one.
Key128 Home(uint64_t slot, uint64_t number = 0) { return {0, ((number + 1) << 32) | slot}; }

TEST(ClockCachePath, AnInsertThatFindsNoPlaceLeavesThePathAsItWas) {
  for (bool wanted : {false, true}) {
    Recorder recorder;
    PathCache cache(SmallOptions(8), &Recorder::Delete, &recorder);
    auto put = [&](const Key128& key, PathCache::Handle* want = nullptr) {
      return cache.Insert(key, ValueOf(key.lo), 10, Priority::kLow, kNever, kNow, want);
    };
    for (uint64_t slot = 0; slot < 5; ++slot) ASSERT_EQ(put(Home(slot)), Inserted::kInserted);
    // Three slots are free before it; when it has passed five, these are taken, and the first three are free.
    g_count = 0;
    g_passed = [&](int passed) {
      if (passed != 5) return;
      g_passed = nullptr;
      for (uint64_t slot = 0; slot < 3; ++slot) EXPECT_EQ(cache.Erase(Home(slot)), 1u);
      for (uint64_t slot = 5; slot < 8; ++slot) EXPECT_EQ(put(Home(slot)), Inserted::kInserted);
    };
    PathCache::Handle handle;
    const Key128 late = Home(0, 7);
    EXPECT_EQ(put(late, wanted ? &handle : nullptr), wanted ? Inserted::kStandalone : Inserted::kFull);
    EXPECT_EQ(g_passed, nullptr);
    EXPECT_FALSE(cache.Lookup(late, kNow));
    EXPECT_EQ(cache.entries(), 5u);
    EXPECT_EQ(cache.usage(), wanted ? 60u : 50u);
    if (wanted) {
      EXPECT_EQ(handle.value(), ValueOf(late.lo));
      cache.Release(handle);
      EXPECT_TRUE(recorder.Has(late.lo, Cause::kReleased));
    }
    EXPECT_EQ(cache.usage(), 50u);
    EXPECT_EQ(put(late), Inserted::kInserted);  // next time there is a place
  }                                             // the audit: no displacement is left
}

}  // namespace
}  // namespace sluice::cache
