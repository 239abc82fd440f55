// SharedLock as tasks and threads use it.
#include "sync/shared_lock.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/random.h"
#include "runtime/runtime.h"
#include "support/manual_worker.h"

namespace sluice::sync {
namespace {

using base::kNever;
using runtime::Task;
using std::chrono::milliseconds;
using std::chrono::seconds;

#ifdef SLUICE_SANITIZED
constexpr int kScale = 10;
#else
constexpr int kScale = 1;
#endif

class SharedLockTest : public testing::Test {
 public:
  struct Outcome {
    LockOutcome outcome = LockOutcome::kWaiting;
    std::string blocker;
    SharedLock::Guard guard;
  };
  static Task<> Acquire(SharedLock& lock, LockMode mode, std::string_view what, base::TimePoint deadline, Outcome& out,
                        runtime::CancelToken token = {}) {
    SharedLock::Result result = co_await lock.Acquire(mode, what, deadline, token);
    result.guard.PassOn();
    out = {result.outcome, std::move(result.blocker), std::move(result.guard)};
  }
  void Spawn(Task<> task) {
    ASSERT_TRUE(time.runtime.SpawnOn(time.worker, std::move(task)));
    time.Run();
  }
  base::TimePoint In(base::Nanos wait) { return time.clock.Now() + wait; }
  void Advance(base::Nanos by) {
    time.clock.Advance(by);
    time.Run();
  }

  SharedLock lock;
  test::ManualWorker time;
  runtime::Worker::ScopedCurrentForTest current{time.worker};
};

TEST_F(SharedLockTest, ATaskWaitsItsTurn) {
  Outcome a, b, c;
  Spawn(Acquire(lock, LockMode::kExclusive, "a", kNever, a));
  Spawn(Acquire(lock, LockMode::kShared, "b", kNever, b));
  Spawn(Acquire(lock, LockMode::kShared, "c", In(seconds(1)), c));
  EXPECT_EQ(a.outcome, LockOutcome::kGranted);
  EXPECT_EQ(b.outcome, LockOutcome::kWaiting);
  a.guard.Release();
  EXPECT_EQ(b.outcome, LockOutcome::kWaiting);  // nothing runs on top of the releaser's stack
  time.Run();
  EXPECT_EQ(b.outcome, LockOutcome::kGranted);
  EXPECT_EQ(c.outcome, LockOutcome::kGranted);
  Advance(seconds(2));  // its timer has gone
  EXPECT_EQ(c.outcome, LockOutcome::kGranted);
}

TEST_F(SharedLockTest, ATaskThatTimesOutLearnsTheHolders) {
  Outcome a, b, c;
  Spawn(Acquire(lock, LockMode::kShared, "inspection", kNever, a));
  Spawn(Acquire(lock, LockMode::kExclusive, "reload", In(milliseconds(400)), b));
  Spawn(Acquire(lock, LockMode::kShared, "drain", In(seconds(5)), c));
  Advance(milliseconds(399));
  EXPECT_EQ(b.outcome, LockOutcome::kWaiting);
  Advance(milliseconds(2));
  EXPECT_EQ(b.outcome, LockOutcome::kTimedOut);
  EXPECT_EQ(b.blocker, "held by inspection");
  EXPECT_EQ(c.outcome, LockOutcome::kGranted);  // trap 1
}

TEST_F(SharedLockTest, TimeoutsBelowAMillisecondNeverQueue) {
  Outcome a, b, c, free;
  Spawn(Acquire(lock, LockMode::kExclusive, "a", kNever, a));
  Spawn(Acquire(lock, LockMode::kShared, "b", In(base::Nanos(999'999)), b));
  EXPECT_EQ(b.outcome, LockOutcome::kTimedOut);
  Spawn(Acquire(lock, LockMode::kShared, "c", In(milliseconds(1)), c));
  EXPECT_EQ(c.outcome, LockOutcome::kWaiting);
  a.guard.Release();
  Advance(milliseconds(2));
  c.guard.Release();
  Spawn(Acquire(lock, LockMode::kExclusive, "d", In(-seconds(1)), free));
  EXPECT_EQ(free.outcome, LockOutcome::kGranted);  // free: no question of waiting
}

TEST_F(SharedLockTest, ACancelledTaskLeavesTheQueue) {
  runtime::CancelSource source;
  Outcome a, b, c, late;
  Spawn(Acquire(lock, LockMode::kShared, "a", kNever, a));
  Spawn(Acquire(lock, LockMode::kExclusive, "b", kNever, b, source.token()));
  Spawn(Acquire(lock, LockMode::kShared, "c", kNever, c));
  source.Cancel();
  time.Run();
  EXPECT_EQ(b.outcome, LockOutcome::kCancelled);
  EXPECT_EQ(c.outcome, LockOutcome::kGranted);
  Spawn(Acquire(lock, LockMode::kShared, "late", kNever, late, source.token()));
  EXPECT_EQ(late.outcome, LockOutcome::kCancelled);  // though it is free
}

TEST_F(SharedLockTest, ADestroyedTaskLeavesTheQueueAndHandsOnWhatItWasGranted) {
  Outcome a, b, c;
  Spawn(Acquire(lock, LockMode::kExclusive, "a", kNever, a));
  Spawn(Acquire(lock, LockMode::kExclusive, "b", kNever, b));
  Spawn(Acquire(lock, LockMode::kShared, "c", kNever, c));
  a.guard.Release();  // b is granted and does not run any more
  std::jthread([&] { time.runtime.Shutdown(); }).join();
  EXPECT_EQ(b.outcome, LockOutcome::kWaiting);
  EXPECT_FALSE(lock.Look().exclusive);
  EXPECT_EQ(lock.Look().shared, 0u);
  EXPECT_EQ(lock.Look().groups, 0u);
}

TEST_F(SharedLockTest, ARemovalEndsTenThousandTasksInOrder) {
  constexpr int kTasks = 10'000;
  std::vector<int> order;
  auto wait = [](SharedLock& lock, LockMode mode, int id, std::vector<int>& order) -> Task<> {
    SharedLock::Result result = co_await lock.Acquire(mode, "w");
    EXPECT_EQ(result.outcome, LockOutcome::kRemoved);
    order.push_back(id);
  };
  SharedLock::Result held = lock.AcquireBlocking(LockMode::kExclusive, "a", kNever);
  for (int i = 0; i < kTasks; ++i) {
    time.runtime.SpawnOn(time.worker, wait(lock, i == 0 ? LockMode::kShared : LockMode::kExclusive, i, order));
  }
  time.Run();
  EXPECT_TRUE(lock.Remove(held.guard));
  EXPECT_TRUE(order.empty());  // no continuation ran inside
  time.Run();
  EXPECT_EQ(order.size(), static_cast<size_t>(kTasks));
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(SharedLockThread, AThreadTimesOutAndLearnsTheHolders) {
  SharedLock lock;
  SharedLock::Result held = lock.AcquireBlocking(LockMode::kExclusive, "reload", kNever);
  held.guard.PassOn();
  // Trap 5: a wait of milliseconds neither spins nor lasts for ever; trap 4: its outcome is looked at first.
  const base::TimePoint soon = base::Clock::Steady().Now() + milliseconds(5);
  SharedLock::Result late = lock.AcquireBlocking(LockMode::kShared, "inspection", soon);
  EXPECT_EQ(late.outcome, LockOutcome::kTimedOut);
  EXPECT_EQ(late.blocker, "held by reload");
  EXPECT_GE(base::Clock::Steady().Now(), soon);
  SharedLock::Result remove = lock.RemoveBlocking("removal", base::Clock::Steady().Now() + milliseconds(2));
  EXPECT_EQ(remove.outcome, LockOutcome::kTimedOut);
  EXPECT_FALSE(lock.removed());
  EXPECT_TRUE(held.guard);
}

TEST(SharedLockThread, AThreadWaitsForATaskAndATaskForAThread) {
  runtime::Runtime runtime(runtime::RuntimeOptions{.workers = 1});
  runtime.Start();
  SharedLock lock;
  int value = 0;
  constexpr int kTurns = 2000 / kScale;
  auto work = [](SharedLock& lock, int& value, int turns) -> Task<> {
    for (int i = 0; i < turns; ++i) {
      SharedLock::Result held = co_await lock.Acquire(LockMode::kExclusive, "task");
      ++value;
    }
  };
  runtime.SpawnOn(runtime.worker(0), work(lock, value, kTurns));
  for (int i = 0; i < kTurns; ++i) {
    SharedLock::Result held = lock.AcquireBlocking(LockMode::kExclusive, "thread", kNever);
    ++value;
  }
  while (runtime.LiveTasks() > 0) std::this_thread::yield();
  EXPECT_EQ(value, 2 * kTurns);
}

TEST(SharedLockThread, RemovalWakesThreadsThatSleep) {
  SharedLock lock;
  SharedLock::Result held = lock.AcquireBlocking(LockMode::kExclusive, "a", kNever);
  std::vector<std::jthread> threads;
  std::atomic<int> removed{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      auto result = lock.AcquireBlocking(i % 2 == 0 ? LockMode::kShared : LockMode::kExclusive, "w", kNever);
      removed += result.outcome == LockOutcome::kRemoved;
    });
  }
  while (lock.Look().groups < 5) std::this_thread::yield();
  EXPECT_TRUE(lock.Remove(held.guard));
  threads.clear();
  EXPECT_EQ(removed.load(), 8);
  EXPECT_EQ(lock.RemoveBlocking("again", kNever).outcome, LockOutcome::kRemoved);
}

// Threads in every mode with short timeouts; then one removes. For TSan, and for lost wake-ups: a hang.
TEST(SharedLockThread, Stress) {
  constexpr int kTurns = 20'000 / kScale;
  SharedLock lock;
  int guarded = 0;  // plain: the lock is what orders it
  std::atomic<int> writes{0};
  std::vector<std::jthread> threads;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    threads.emplace_back([&, seed] {
      base::Random random(seed);
      for (int i = 0; i < kTurns; ++i) {
        const bool exclusive = random.Below(3) == 0;
        const base::TimePoint deadline =
            random.Below(4) == 0 ? kNever : base::Clock::Steady().Now() + milliseconds(random.Below(3));
        auto held = lock.AcquireBlocking(exclusive ? LockMode::kExclusive : LockMode::kShared, "stress", deadline);
        if (held.outcome != LockOutcome::kGranted) continue;
        if (random.Below(8) == 0) std::this_thread::yield();
        if (exclusive) {
          ++guarded;
          ++writes;
          if (random.Below(4) == 0) {
            held.guard.Downgrade();
            EXPECT_GE(guarded, 1);
          }
        } else {
          EXPECT_GE(guarded, 0);
        }
      }
    });
  }
  threads.clear();
  EXPECT_EQ(guarded, writes.load());
  EXPECT_EQ(lock.RemoveBlocking("end", kNever).outcome, LockOutcome::kGranted);
}

}  // namespace
}  // namespace sluice::sync
