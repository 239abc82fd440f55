// The rules of SharedLock one by one, without threads: wake-ups are written down instead of run.
#include "sync/shared_lock_core.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>

#include "unit/sync/shared_lock_support.h"

namespace sluice::sync {
namespace {

using test::kExclusive;
using test::kShared;
using test::NotedLock;
using test::NotedWakeup;
using test::Request;
using Log = std::vector<int>;

TEST(SharedLockCore, SharedComeInTogetherAndAnExclusiveAlone) {
  NotedLock lock;
  Request a(lock, kShared, "a"), b(lock, kShared, "b");
  EXPECT_TRUE(a.held() && b.held());
  EXPECT_EQ(lock.Look().shared, 2u);
  EXPECT_EQ(Request(lock, kExclusive, "c", nullptr, 0, false).result.outcome, LockOutcome::kTimedOut);
  a.result.guard.Release();
  b.result.guard.Release();
  Request c(lock, kExclusive, "c");
  EXPECT_TRUE(c.held());
  EXPECT_FALSE(Request(lock, kShared, "d", nullptr, 0, false).held());
  EXPECT_FALSE(Request(lock, kExclusive, "d", nullptr, 0, false).held());
}

TEST(SharedLockCore, AWaiterWakesAsHolder) {
  NotedLock lock;
  Log log;
  Request a(lock, kExclusive, "a"), b(lock, kExclusive, "b", &log, 2);
  EXPECT_EQ(b.started, LockOutcome::kWaiting);
  a.result.guard.Release();
  EXPECT_EQ(log, Log{2});
  EXPECT_TRUE(lock.Look().exclusive);  // already b's
  EXPECT_FALSE(Request(lock, kShared, "x", nullptr, 0, false).held());
  EXPECT_EQ(b.Finish(), LockOutcome::kGranted);
}

TEST(SharedLockCore, ASharedOneJoinsTheGroupWhereverItStands) {
  NotedLock lock;
  Log log;
  Request holder(lock, kExclusive, "h");
  Request s1(lock, kShared, "s", &log, 1), e2(lock, kExclusive, "e", &log, 2), s3(lock, kShared, "s", &log, 3);
  EXPECT_EQ(lock.Look().groups, 2u);
  holder.result.guard.Release();
  EXPECT_EQ(log, (Log{1, 3}));  // 3 passed the exclusive: its group stood before it
}

// Trap 2: a newcomer may not slip into a group that is being granted.
TEST(SharedLockCore, ANewcomerAfterTheGroupWasGrantedWaitsBehindTheExclusive) {
  NotedLock lock;
  Log log;
  Request holder(lock, kExclusive, "h");
  Request s1(lock, kShared, "s", &log, 1), e2(lock, kExclusive, "e", &log, 2);
  holder.result.guard.Release();
  // 1 is granted and has not taken it up yet.
  Request s3(lock, kShared, "s", &log, 3);
  EXPECT_EQ(s3.started, LockOutcome::kWaiting);
  s1.Finish();
  s1.result.guard.Release();
  EXPECT_EQ(log, (Log{1, 2}));
  e2.Finish();
  e2.result.guard.Release();
  EXPECT_EQ(log, (Log{1, 2, 3}));
}

// Trap 2, inside of the granting itself: the first one told asks for another one.
TEST(SharedLockCore, AWakeUpThatAsksAtOnceFindsTheGroupClosed) {
  struct Asking {
    BasicSharedLock<Asking>* lock = nullptr;
    LockOutcome* seen = nullptr;
    using Mutex = std::mutex;
    using Wakeup = Asking;
    void Wake() {
      if (seen == nullptr) return;
      BasicSharedLock<Asking>::Waiter waiter;
      *seen = lock->Start(waiter, kShared, "newcomer", true, Asking{});
    }
  };
  BasicSharedLock<Asking> lock;
  LockOutcome seen = LockOutcome::kGranted;
  BasicSharedLock<Asking>::Waiter holder, sharer, exclusive;
  lock.Start(holder, kExclusive, "h", true, {});
  auto held = lock.Finish(holder);
  lock.Start(sharer, kShared, "s", true, Asking{&lock, &seen});
  lock.Start(exclusive, kExclusive, "e", true, {});
  held.guard.Release();
  EXPECT_EQ(seen, LockOutcome::kWaiting);
}

// Trap 1: A holds shared, B exclusive gives up, C shared behind B fits from then on.
TEST(SharedLockCore, WhenTheFrontGivesUpTheNextIsLookedAt) {
  for (LockOutcome why : {LockOutcome::kTimedOut, LockOutcome::kCancelled}) {
    NotedLock lock;
    Log log;
    Request a(lock, kShared, "drain"), b(lock, kExclusive, "reload", &log, 2), c(lock, kShared, "inspection", &log, 3);
    EXPECT_EQ(c.started, LockOutcome::kWaiting);
    NotedWakeup wakeup;
    EXPECT_TRUE(lock.Leave(b.waiter, why, &wakeup));
    EXPECT_EQ(wakeup.id, 2);
    EXPECT_EQ(log, Log{3});
    EXPECT_EQ(b.Finish(), why);
    EXPECT_EQ(b.result.blocker, "held by drain");
    EXPECT_EQ(c.Finish(), LockOutcome::kGranted);
  }
}

TEST(SharedLockCore, ADestroyedWaiterLeavesAndTheNextIsLookedAt) {
  NotedLock lock;
  Log log;
  Request a(lock, kShared, "a");
  auto b = std::make_unique<Request>(lock, kExclusive, "b", &log, 2);
  Request c(lock, kShared, "c", &log, 3);
  b.reset();
  EXPECT_EQ(log, Log{3});
}

TEST(SharedLockCore, WhatWasGrantedToADestroyedWaiterGoesOn) {
  NotedLock lock;
  Log log;
  auto a = std::make_unique<Request>(lock, kExclusive, "a");
  auto b = std::make_unique<Request>(lock, kExclusive, "b", &log, 2);
  Request c(lock, kExclusive, "c", &log, 3);
  a.reset();
  b.reset();  // granted, never taken up
  EXPECT_EQ(log, (Log{2, 3}));
}

TEST(SharedLockCore, TheLastOfAGroupThatLeavesTakesTheGroupAlong) {
  NotedLock lock;
  Log log;
  Request h(lock, kExclusive, "h"), s1(lock, kShared, "s", &log, 1), s2(lock, kShared, "s", &log, 2);
  Request e(lock, kExclusive, "e", &log, 3);
  EXPECT_TRUE(lock.Leave(s1.waiter, LockOutcome::kTimedOut));
  EXPECT_EQ(lock.Look().groups, 2u);
  EXPECT_TRUE(lock.Leave(s2.waiter, LockOutcome::kTimedOut));
  EXPECT_EQ(lock.Look().groups, 1u);
  Request s4(lock, kShared, "s", &log, 4);  // a new group, behind e now
  h.result.guard.Release();
  EXPECT_EQ(log, Log{3});
}

// Trap 3 and 70567db0f: earlier shared releases wake no waiter.
TEST(SharedLockCore, OnlyTheLastSharedReleaseGrants) {
  NotedLock lock;
  Log log;
  Request a(lock, kShared, "a"), b(lock, kShared, "b"), c(lock, kShared, "c"), e(lock, kExclusive, "e", &log, 9);
  a.result.guard.Release();
  b.result.guard.Release();
  EXPECT_TRUE(log.empty());
  c.result.guard.Release();
  EXPECT_EQ(log, Log{9});
}

// Trap 6: a group that was let go holds the lock, however slow its members are to notice.
TEST(SharedLockCore, ASlowSharerIsNotOvertakenByAnExclusive) {
  NotedLock lock;
  Log log;
  Request h(lock, kExclusive, "h"), slow(lock, kShared, "slow", &log, 1), quick(lock, kShared, "quick", &log, 2);
  Request e(lock, kExclusive, "e", &log, 3);
  h.result.guard.Release();
  quick.Finish();
  quick.result.guard.Release();
  EXPECT_EQ(log, (Log{1, 2}));  // not 3: slow is inside though it has not noticed
  slow.Finish();
  slow.result.guard.Release();
  EXPECT_EQ(log, (Log{1, 2, 3}));
}

TEST(SharedLockCore, DowngradeLetsTheGroupInFromAnyPlaceAndKeepsExclusivesOut) {
  NotedLock lock;
  Log log;
  Request h(lock, kExclusive, "h"), e(lock, kExclusive, "e", &log, 1), s(lock, kShared, "s", &log, 2);
  h.result.guard.Downgrade();
  EXPECT_EQ(log, Log{2});
  EXPECT_EQ(h.result.guard.mode(), kShared);
  Request s3(lock, kShared, "s", &log, 3);
  EXPECT_EQ(s3.started, LockOutcome::kWaiting);
  h.result.guard.Downgrade();  // shared now: it may not pull in another group
  EXPECT_EQ(log, Log{2});
  s.Finish();
  s.result.guard.Release();
  h.result.guard.Release();
  EXPECT_EQ(log, (Log{2, 1}));
}

TEST(SharedLockCore, RemovalEndsEveryWaiterInQueueOrderAndAllThatComeLater) {
  NotedLock lock;
  Log log;
  Request h(lock, kExclusive, "h");
  std::deque<Request> waiting;
  const LockMode modes[] = {kExclusive, kShared, kExclusive, kShared, kExclusive};
  for (int i = 0; i < 5; ++i) waiting.emplace_back(lock, modes[i], "w", &log, i);
  EXPECT_TRUE(lock.Remove(h.result.guard));
  EXPECT_FALSE(h.held());
  EXPECT_EQ(log, (Log{0, 1, 3, 2, 4}));
  for (Request& request : waiting) EXPECT_EQ(request.Finish(), LockOutcome::kRemoved);
  for (LockMode mode : {kShared, kExclusive}) {
    EXPECT_EQ(Request(lock, mode, "late").result.outcome, LockOutcome::kRemoved);
    EXPECT_EQ(Request(lock, mode, "late", nullptr, 0, false).result.outcome, LockOutcome::kRemoved);
  }
  const NotedLock::View view = lock.Look();
  EXPECT_TRUE(view.removed && !view.exclusive && view.shared == 0 && view.groups == 0);
}

TEST(SharedLockCore, OnlyAnExclusiveHolderRemoves) {
  NotedLock lock, other;
  Request s(lock, kShared, "s"), e(other, kExclusive, "e");
  EXPECT_FALSE(lock.Remove(s.result.guard));
  EXPECT_FALSE(lock.Remove(e.result.guard));
  NotedLock::Guard none;
  EXPECT_FALSE(lock.Remove(none));
  EXPECT_TRUE(s.held() && e.held());
  EXPECT_EQ(lock.Look().shared, 1u);
  EXPECT_FALSE(lock.removed());
  e.result.guard.Downgrade();
  EXPECT_FALSE(other.Remove(e.result.guard));
}

TEST(SharedLockCore, ALateLeaveChangesNothing) {
  NotedLock lock;
  Log log;
  Request a(lock, kExclusive, "a"), b(lock, kShared, "b", &log, 2);
  a.result.guard.Release();
  EXPECT_FALSE(lock.Leave(b.waiter, LockOutcome::kTimedOut));
  EXPECT_EQ(b.Finish(), LockOutcome::kGranted);
}

TEST(SharedLockCore, ARefusedRequestLearnsTheHolders) {
  NotedLock lock;
  Request a(lock, kShared, "inspection"), b(lock, kShared, "drain"), c(lock, kShared, "inspection");
  Request e(lock, kExclusive, "reload");
  Request late(lock, kShared, "change", nullptr, 0, false);
  EXPECT_EQ(late.result.blocker, "held by inspection (2), drain, next is reload");
  a.result.guard.Release();
  c.result.guard.Release();
  b.result.guard.Release();
  e.Finish();
  EXPECT_EQ(Request(lock, kShared, "change", nullptr, 0, false).result.blocker, "held by reload");
}

// An exclusive waits for at most the group that stood before it, however many sharers keep coming.
TEST(SharedLockCore, EndlessSharersCannotHoldUpAnExclusive) {
  NotedLock lock;
  Log log;
  std::deque<Request> sharers;
  sharers.emplace_back(lock, kExclusive, "h");
  sharers.emplace_back(lock, kShared, "s");  // opens a group before the exclusive
  Request e(lock, kExclusive, "e", &log, 1);
  int after = 0;
  while (log.empty()) {
    ASSERT_LT(++after, 10);
    sharers.emplace_back(lock, kShared, "s");  // one more before each release
    Request first(lock, kShared, "none", nullptr, 0, false);
    EXPECT_FALSE(first.held());  // never past the exclusive by itself
    Request& out = sharers.front();
    if (!out.held()) out.Finish();
    out.result.guard.Release();
    sharers.pop_front();
  }
  EXPECT_EQ(after, 3);  // the holder, the sharer of the group, and the one that joined it
}

TEST(SharedLockCore, GuardsMoveAndReleaseWhatTheyHeld) {
  NotedLock lock, other;
  Request a(lock, kExclusive, "a"), b(other, kShared, "b");
  NotedLock::Guard guard = std::move(a.result.guard);
  EXPECT_FALSE(a.held());
  guard = std::move(b.result.guard);
  EXPECT_FALSE(lock.Look().exclusive);
  EXPECT_EQ(other.Look().shared, 1u);
  guard = NotedLock::Guard();
  EXPECT_EQ(other.Look().shared, 0u);
}

TEST(SharedLockCoreDeathTest, HoldersOrWaitersLeftAtTheEndStopTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        auto lock = std::make_unique<NotedLock>();
        Request a(*lock, kShared, "a");
        lock.reset();
      },
      "CHECK failed");
}

#ifndef NDEBUG
TEST(SharedLockCoreDeathTest, ASecondRequestOfAHolderStopsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  NotedLock lock;
  int me = 0;
  NotedLock::Waiter first;
  lock.Start(first, kShared, "a", true, {}, &me);
  auto held = lock.Finish(first);
  EXPECT_DEATH(
      {
        NotedLock::Waiter second;
        lock.Start(second, kShared, "b", true, {}, &me);
      },
      "CHECK failed");
  held.guard.PassOn();
  NotedLock::Waiter second;
  EXPECT_EQ(lock.Start(second, kShared, "b", true, {}, &me), LockOutcome::kGranted);
}
#endif

}  // namespace
}  // namespace sluice::sync
