#include "sync/semaphore_core.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <vector>

#include "unit/sync/semaphore_support.h"

namespace sluice::sync::test {
namespace {

class SemaphoreCoreTest : public testing::Test {
 protected:
  void Make(int64_t units, int64_t capacity = -1, size_t waiters_max = 1000) {
    semaphore_.emplace(units, capacity < 0 ? units : capacity, waiters_max);
  }
  TestSemaphore& S() { return *semaphore_; }
  // Waiter `number` asks; its wake-up notes its number.
  Outcome Ask(int number, int64_t units) {
    return S().Enqueue(waiters_[number], units, RecordingWakeup(woken_, number));
  }
  Outcome At(int number) const { return waiters_[number].outcome(); }
  // Waiter `number` has finished its work.
  void End(int number, int64_t units) {
    ASSERT_EQ(At(number), Outcome::kGranted);
    waiters_[number].Reset();
    TestSemaphore::Permit permit = S().Adopt(units);
  }
  std::vector<int> Woken() { return std::exchange(woken_, {}); }

  std::vector<int> woken_;
  TestSemaphore::Waiter waiters_[8];
  std::optional<TestSemaphore> semaphore_;
};

using Order = std::vector<int>;

TEST_F(SemaphoreCoreTest, TakesWhileThereAreUnits) {
  Make(3);
  auto two = S().TryAcquire(2);
  ASSERT_TRUE(two);
  EXPECT_EQ(S().available(), 1);
  EXPECT_FALSE(S().TryAcquire(2));
  EXPECT_TRUE(S().TryAcquire(1));
  EXPECT_EQ(S().available(), 1);
  two.reset();
  EXPECT_EQ(S().available(), 3);
}

TEST_F(SemaphoreCoreTest, GrantsInTheOrderOfAsking) {
  Make(2);
  EXPECT_EQ(Ask(0, 2), Outcome::kGranted);
  for (int i = 1; i <= 3; ++i) EXPECT_EQ(Ask(i, 1), Outcome::kWaiting);
  End(0, 2);
  EXPECT_EQ(Woken(), (Order{1, 2}));
  End(2, 1);
  EXPECT_EQ(Woken(), (Order{3}));
  End(1, 1);
  End(3, 1);
  EXPECT_EQ(S().raw(), 2);
}

TEST_F(SemaphoreCoreTest, NoRequestBargesPastAWaiter) {
  Make(3);
  EXPECT_EQ(Ask(0, 2), Outcome::kGranted);
  EXPECT_EQ(Ask(1, 2), Outcome::kWaiting);
  EXPECT_EQ(S().available(), 1);
  EXPECT_FALSE(S().TryAcquire(1));  // there is one, but waiter 1 comes first
  EXPECT_FALSE(S().TryAcquire(0));
  EXPECT_EQ(Ask(2, 1), Outcome::kWaiting);
  End(0, 2);
  EXPECT_EQ(Woken(), (Order{1, 2}));
  End(1, 2);
  End(2, 1);
}

// Trap 1: three units are free, the first wants five and gives up, the second wants two.
TEST_F(SemaphoreCoreTest, WhenTheFirstGivesUpTheNextIsServed) {
  Make(5);
  EXPECT_EQ(Ask(0, 2), Outcome::kGranted);
  EXPECT_EQ(Ask(1, 5), Outcome::kWaiting);
  EXPECT_EQ(Ask(2, 2), Outcome::kWaiting);
  EXPECT_EQ(Ask(3, 1), Outcome::kWaiting);
  EXPECT_EQ(Ask(4, 1), Outcome::kWaiting);
  EXPECT_TRUE(S().Cancel(waiters_[1], Outcome::kTimedOut));
  EXPECT_EQ(Woken(), (Order{2, 3}));
  EXPECT_TRUE(S().Cancel(waiters_[4]));
  End(2, 2);
  End(3, 1);
  EXPECT_TRUE(S().TryAcquire(3));  // the queue is empty again: the fast path is open
  End(0, 2);
}

// Trap 2: it would block all waiters behind it for ever.
TEST_F(SemaphoreCoreTest, ARequestAboveTheCapacityFailsAtOnce) {
  Make(3);
  EXPECT_EQ(Ask(0, 3), Outcome::kGranted);
  EXPECT_EQ(Ask(1, 4), Outcome::kTooLarge);
  EXPECT_EQ(S().waiters(), 0u);
  EXPECT_EQ(Ask(2, 3), Outcome::kWaiting);
  End(0, 3);
  End(2, 3);
}

// Trap 4: the reason comes before the units, also for a request of none.
TEST_F(SemaphoreCoreTest, NothingSucceedsOnceBroken) {
  Make(3);
  S().Break(base::ErrorKind::kNotFound);
  EXPECT_EQ(Ask(0, 0), Outcome::kBroken);
  EXPECT_EQ(waiters_[0].reason(), base::ErrorKind::kNotFound);
  EXPECT_EQ(Ask(1, 9), Outcome::kBroken);  // checked before the capacity
  EXPECT_FALSE(S().TryAcquire(0));
  S().Signal(5);
  S().Consume(2);
  EXPECT_EQ(S().raw(), 0);
  S().Break(base::ErrorKind::kCancelled);  // sticky
  EXPECT_EQ(Ask(0, 1), Outcome::kBroken);
  EXPECT_EQ(waiters_[0].reason(), base::ErrorKind::kNotFound);
}

// Trap 6: each failure has its own outcome.
TEST_F(SemaphoreCoreTest, EveryEndOfAWaitHasItsName) {
  Make(1, 1, 4);
  EXPECT_EQ(Ask(0, 1), Outcome::kGranted);
  for (int i = 1; i <= 4; ++i) EXPECT_EQ(Ask(i, 1), Outcome::kWaiting);
  EXPECT_EQ(Ask(5, 1), Outcome::kQueueFull);
  EXPECT_TRUE(S().Cancel(waiters_[1], Outcome::kTimedOut));
  EXPECT_TRUE(S().Cancel(waiters_[3], Outcome::kCancelled));
  End(0, 1);
  S().Break(base::ErrorKind::kDraining);
  EXPECT_EQ(At(1), Outcome::kTimedOut);
  EXPECT_EQ(At(2), Outcome::kGranted);
  EXPECT_EQ(At(3), Outcome::kCancelled);
  EXPECT_EQ(At(4), Outcome::kBroken);
  EXPECT_EQ(waiters_[4].reason(), base::ErrorKind::kDraining);
  EXPECT_EQ(Woken(), (Order{2, 4}));  // waiters that left are not woken
  End(2, 1);
}

// Trap 7: a waiter that has left takes no room and does not count.
TEST_F(SemaphoreCoreTest, AWaiterThatLeftLeavesNoTombstone) {
  Make(1, 1, 2);
  EXPECT_EQ(Ask(0, 1), Outcome::kGranted);
  EXPECT_EQ(Ask(1, 1), Outcome::kWaiting);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(Ask(2, 1), Outcome::kWaiting);
    EXPECT_EQ(S().waiters(), 2u);
    EXPECT_TRUE(S().Cancel(waiters_[2]));
    EXPECT_EQ(S().waiters(), 1u);
  }
  End(0, 1);
  End(1, 1);
}

TEST_F(SemaphoreCoreTest, ACancelThatComesLateChangesNothing) {
  Make(1);
  EXPECT_EQ(Ask(0, 1), Outcome::kGranted);
  EXPECT_EQ(Ask(1, 1), Outcome::kWaiting);
  End(0, 1);
  EXPECT_FALSE(S().Cancel(waiters_[1], Outcome::kTimedOut));
  EXPECT_EQ(At(1), Outcome::kGranted);
  End(1, 1);
}

TEST_F(SemaphoreCoreTest, ConsumeMayGoBelowZeroAndGrantsWaitUntilItHasRecovered) {
  Make(2);
  S().Consume(3);
  EXPECT_EQ(S().raw(), -1);
  EXPECT_EQ(S().available(), 0);
  EXPECT_FALSE(S().TryAcquire(0));  // not even none
  EXPECT_EQ(Ask(0, 0), Outcome::kWaiting);
  EXPECT_EQ(Ask(1, 1), Outcome::kWaiting);
  S().Signal(1);
  EXPECT_EQ(Woken(), (Order{0}));
  S().Signal(2);
  EXPECT_EQ(Woken(), (Order{1}));
  End(0, 0);
  End(1, 1);
  EXPECT_EQ(S().raw(), 2);
}

TEST_F(SemaphoreCoreTest, AWaiterOfAllUnitsIsServedWhenTheHoldersHaveEnded) {
  Make(4);
  std::vector<TestSemaphore::Permit> holders;
  for (int i = 0; i < 4; ++i) holders.push_back(*S().TryAcquire(1));
  EXPECT_EQ(Ask(0, 4), Outcome::kWaiting);
  EXPECT_EQ(Ask(1, 1), Outcome::kWaiting);
  while (!holders.empty()) {
    EXPECT_EQ(At(0), Outcome::kWaiting);
    holders.pop_back();
  }
  EXPECT_EQ(Woken(), (Order{0}));
  End(0, 4);
  End(1, 1);
}

TEST_F(SemaphoreCoreTest, ALateCapacityFailsAWaiterInItsTurnAndServesTheNext) {
  TestCore core({.total = 4, .capacity = 4, .waiters_max = 10});
  TestCore::Waiter large, small;
  ASSERT_TRUE(core.TryTake(4));
  EXPECT_EQ(core.Enqueue(large, 3, RecordingWakeup(woken_, 1)), Outcome::kWaiting);
  EXPECT_EQ(core.Enqueue(small, 1, RecordingWakeup(woken_, 2)), Outcome::kWaiting);
  core.Configure({.total = 2, .capacity = 2, .waiters_max = 10});
  EXPECT_EQ(large.outcome(), Outcome::kTooLarge);
  EXPECT_EQ(core.raw(), -2);
  core.Give(4);
  EXPECT_EQ(small.outcome(), Outcome::kGranted);
  core.Give(1);
  EXPECT_EQ(core.raw(), 2);
}

TEST_F(SemaphoreCoreTest, LiftingTheLimitDismissesAllAndSetsItAgainCountsFromThenOn) {
  TestCore core({.total = 1, .capacity = 1, .waiters_max = 10});
  TestCore::Waiter waiters[3];
  ASSERT_TRUE(core.TryTake(1));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(core.Enqueue(waiters[i], 1, RecordingWakeup(woken_, i)), Outcome::kWaiting);
  }
  core.Configure({.total = 1, .capacity = 1, .waiters_max = 10, .open = true});
  EXPECT_EQ(Woken(), (Order{0, 1}));
  EXPECT_EQ(waiters[0].outcome(), Outcome::kDismissed);
  EXPECT_EQ(core.Enqueue(waiters[2], 1, {}), Outcome::kDismissed);
  core.Configure({.total = 2, .capacity = 2, .waiters_max = 10});
  EXPECT_EQ(core.raw(), 1);  // the first holder still counts
  core.Give(1);
}

TEST_F(SemaphoreCoreTest, WakesOfAnyNumberComeInBatchesAndInOrder) {
  constexpr int kMany = 100'000;
  auto waiters = std::make_unique<TestSemaphore::Waiter[]>(kMany);
  TestSemaphore semaphore(1, 1);
  auto holder = semaphore.TryAcquire(1);
  for (int i = 0; i < kMany; ++i) {
    ASSERT_EQ(semaphore.Enqueue(waiters[i], 1, RecordingWakeup(woken_, i)), Outcome::kWaiting);
  }
  semaphore.Break();
  Order all(kMany);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(woken_, all);
  EXPECT_EQ(semaphore.waiters(), 0u);
  holder.reset();
  EXPECT_EQ(semaphore.raw(), 0);
}

TEST_F(SemaphoreCoreTest, NothingIsAllocatedForAWaiter) {
#ifndef SLUICE_SANITIZED
  constexpr int kMany = 1000;
  auto waiters = std::make_unique<TestSemaphore::Waiter[]>(kMany);
  woken_.reserve(kMany);
  TestSemaphore semaphore(1, 1);
  auto holder = semaphore.TryAcquire(1);
  const size_t before = mallinfo2().uordblks;
  for (int i = 0; i < kMany; ++i) {
    ASSERT_EQ(semaphore.Enqueue(waiters[i], 1, RecordingWakeup(woken_, i)), Outcome::kWaiting);
  }
  EXPECT_EQ(mallinfo2().uordblks, before);
  semaphore.Break();
  EXPECT_EQ(mallinfo2().uordblks, before);
  EXPECT_EQ(woken_.size(), static_cast<size_t>(kMany));
#endif
}

TEST_F(SemaphoreCoreTest, ManyLeaveInRandomOrder) {
  constexpr int kMany = 100'000;
  auto waiters = std::make_unique<TestSemaphore::Waiter[]>(kMany);
  TestSemaphore semaphore(1, 1);
  auto holder = semaphore.TryAcquire(1);
  for (int i = 0; i < kMany; ++i) {
    ASSERT_EQ(semaphore.Enqueue(waiters[i], 1, RecordingWakeup(woken_, i)), Outcome::kWaiting);
  }
  Order order(kMany);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(7));
  const int last = order.back();
  order.pop_back();
  for (int i : order) ASSERT_TRUE(semaphore.Cancel(waiters[i]));
  EXPECT_EQ(semaphore.waiters(), 1u);
  holder.reset();
  EXPECT_EQ(woken_, (Order{last}));
  EXPECT_EQ(semaphore.Adopt(1).units(), 1);
}

TEST_F(SemaphoreCoreTest, DestroyingItFailsItsWaiters) {
  Make(1);
  auto holder = S().TryAcquire(1);
  EXPECT_EQ(Ask(0, 1), Outcome::kWaiting);
  semaphore_.reset();
  EXPECT_EQ(At(0), Outcome::kBroken);
  EXPECT_EQ(waiters_[0].reason(), base::ErrorKind::kDraining);
  EXPECT_EQ(Woken(), (Order{0}));
  holder.reset();  // frees the state; the leak check of the sanitized build sees if not
}

// A mutex that knows whether the state it is in is still there.
struct CountedMutex : std::mutex {
  static inline int alive = 0;
  CountedMutex() { ++alive; }
  ~CountedMutex() { --alive; }
  void lock() {
    EXPECT_EQ(alive, 1);
    std::mutex::lock();
  }
};
struct CallingTraits : SemaphoreTraits {
  using Mutex = CountedMutex;
  struct Wakeup {
    std::function<void()>* call = nullptr;
    void Wake() const {
      if (call != nullptr) (*call)();
    }
  };
};

// More are granted than one batch tells. While the first are being told they end, and the semaphore goes.
TEST_F(SemaphoreCoreTest, AThreadBetweenTwoBatchesKeepsTheState) {
  using Calling = BasicSemaphore<CallingTraits>;
  constexpr int kBatch = static_cast<int>(Calling::Core::kWakeBatch), kMany = kBatch + 4;
  auto semaphore = std::make_unique<Calling>(kMany);
  auto all = semaphore->TryAcquire(kMany);
  std::function<void()> on_wake = [&] {
    if (semaphore == nullptr) return;
    std::vector<Calling::Permit> granted;
    for (int i = 0; i < kBatch; ++i) granted.push_back(semaphore->Adopt(1));
    semaphore.reset();  // fails the remaining waiters
  };
  Calling::Waiter waiters[kMany];
  for (auto& waiter : waiters) ASSERT_EQ(semaphore->Enqueue(waiter, 1, {&on_wake}), Outcome::kWaiting);
  all.reset();
  for (int i = 0; i < kMany; ++i) EXPECT_EQ(waiters[i].outcome(), i < kBatch ? Outcome::kGranted : Outcome::kBroken);
  EXPECT_EQ(CountedMutex::alive, 0);
}

using SemaphoreCoreDeathTest = SemaphoreCoreTest;

TEST_F(SemaphoreCoreDeathTest, AdoptingWhatWasNotGrantedStopsTheProcess) {
  Make(4);
  EXPECT_DEATH(S().Adopt(5), "unadopted");
  auto permit = S().TryAcquire(2);
  EXPECT_DEATH(S().Adopt(1), "unadopted");  // held, but by the permit
  EXPECT_EQ(Ask(0, 2), Outcome::kGranted);
  EXPECT_DEATH(S().Adopt(3), "unadopted");
  EXPECT_DEATH(S().Adopt(-1), "unadopted");
  {
    TestSemaphore::Permit one = S().Adopt(1), other = S().Adopt(1);
    EXPECT_DEATH(S().Adopt(1), "unadopted");
  }
  EXPECT_EQ(S().held(), 2);
}

// Through the queue, and after the semaphore was broken.
TEST_F(SemaphoreCoreDeathTest, WhatAWaiterWasGrantedIsAdoptedOnce) {
  Make(1);
  auto permit = S().TryAcquire(1);
  EXPECT_EQ(Ask(0, 1), Outcome::kWaiting);
  permit.reset();
  S().Break(base::ErrorKind::kDraining);
  EXPECT_EQ(S().Adopt(1).units(), 1);
  EXPECT_DEATH(S().Adopt(1), "unadopted");
  EXPECT_EQ(S().held(), 0);
}

TEST_F(SemaphoreCoreDeathTest, ASemaphoreThatGotBackMoreThanItGaveStopsTheProcessWhenItEnds) {
  TestCore core({.total = 1, .capacity = 1, .waiters_max = 1});
  core.Give(1);
  EXPECT_DEATH(core.Break(base::ErrorKind::kDraining), "held_");
  EXPECT_TRUE(core.TryTake(1));
}

TEST_F(SemaphoreCoreDeathTest, AnOverflowOfTheCountStopsTheProcess) {
  Make(TestCore::kUnitsMax);
  EXPECT_DEATH(S().Signal(1), "count");
}

TEST_F(SemaphoreCoreDeathTest, AUnitThatIsMissingAtTheEndStopsTheProcess) {
  EXPECT_DEATH(
      {
        TestCore core({.total = 1, .capacity = 1, .waiters_max = 1});
        core.TryTake(1);
      },
      "HeldLocked");
}

TEST_F(SemaphoreCoreDeathTest, AWaiterMayNotBeDestroyedWhileItWaits) {
  Make(0, 1);
  EXPECT_DEATH(
      {
        TestSemaphore::Waiter waiter;
        S().Enqueue(waiter, 1, {});
      },
      "kWaiting");
}

}  // namespace
}  // namespace sluice::sync::test
