// SharedLock allocates nothing while it holds its mutex: counted by a mutex that looks at malloc when it is locked and
// unlocked. One thread, so the count is exact.
#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <optional>

#include "support/malloc_counter.h"
#include "sync/shared_lock_core.h"

namespace sluice::sync {
namespace {

#ifndef SLUICE_SANITIZED  // sanitizers bring their own malloc

uint64_t allocations_inside = 0;

struct AllocationMutex {
  void lock() {
    mutex.lock();
    at_lock = test::MallocsForTest();
  }
  void unlock() {
    allocations_inside += test::MallocsForTest() - at_lock;
    mutex.unlock();
  }
  std::mutex mutex;
  uint64_t at_lock = 0;
};

struct Traits {
  using Mutex = AllocationMutex;
  struct Wakeup {
    void Wake() {}
  };
};
using CountedLock = BasicSharedLock<Traits>;
using Waiter = CountedLock::Waiter;

// Longer than what std::string keeps in itself.
constexpr std::string_view kPurposes[] = {"inspection of all endpoints", "change of the endpoints",
                                          "drain of removed ones", "reload of the configuration",
                                          "preview of what it would be"};

TEST(SharedLockAllocations, NoneUnderTheMutexHoweverAWaitEnds) {
  allocations_inside = 0;
  {
    CountedLock lock;
    std::optional<CountedLock::Result> holders[4];
    for (int i = 0; i < 4; ++i) {
      Waiter waiter;
      ASSERT_EQ(lock.Start(waiter, LockMode::kShared, kPurposes[i], true, {}), LockOutcome::kGranted);
      holders[i] = lock.Finish(waiter);
    }
    Waiter timed_out, cancelled, next, refused;
    ASSERT_EQ(lock.Start(next, LockMode::kExclusive, kPurposes[4], true, {}), LockOutcome::kWaiting);
    ASSERT_EQ(lock.Start(timed_out, LockMode::kExclusive, kPurposes[3], true, {}), LockOutcome::kWaiting);
    ASSERT_EQ(lock.Start(cancelled, LockMode::kShared, kPurposes[0], true, {}), LockOutcome::kWaiting);
    {
      Waiter destroyed;
      ASSERT_EQ(lock.Start(destroyed, LockMode::kShared, kPurposes[1], true, {}), LockOutcome::kWaiting);
    }
    ASSERT_TRUE(lock.Leave(timed_out, LockOutcome::kTimedOut));
    ASSERT_TRUE(lock.Leave(cancelled, LockOutcome::kCancelled));
    ASSERT_EQ(lock.Start(refused, LockMode::kShared, kPurposes[2], false, {}), LockOutcome::kTimedOut);
    const std::string expected =
        "held by inspection of all endpoints, change of the endpoints, drain of removed ones, "
        "reload of the configuration, next is preview of what it would be";
    EXPECT_EQ(lock.Finish(timed_out).blocker, expected);
    EXPECT_EQ(lock.Finish(cancelled).blocker, expected);
    EXPECT_EQ(lock.Finish(refused).blocker, expected);
    EXPECT_EQ(lock.Look().blocker, expected);
    for (auto& holder : holders) holder.reset();
    CountedLock::Result last = lock.Finish(next);
    EXPECT_EQ(last.outcome, LockOutcome::kGranted);
    EXPECT_TRUE(lock.Remove(last.guard));
  }
  EXPECT_EQ(allocations_inside, 0u);
}

#endif

// More purposes than are kept: the rest is not named.
TEST(SharedLockAllocations, TooManyPurposesToNameAreOthers) {
  LockBlocker blocker;
  const std::string_view names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};
  for (std::string_view name : names) blocker.Add({name, name == "a" ? size_t{2} : size_t{1}});
  blocker.SetNext("z");
  EXPECT_EQ(blocker.ToString(), "held by a (2), b, c, d, e, f, g, h and others, next is z");
}

}  // namespace
}  // namespace sluice::sync
