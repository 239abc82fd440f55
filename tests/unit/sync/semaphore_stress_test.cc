// Semaphore: threads that take, wait, leave and give back at random; for the thread sanitizer, and for what it guards.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "runtime/runtime.h"
#include "runtime/yield.h"
#include "sync/semaphore.h"

namespace sluice::sync {
namespace {

// A wake-up that is only counted.
struct FlagWakeup {
  std::atomic<int>* flag = nullptr;
  void Wake() const {
    if (flag != nullptr) flag->fetch_add(1, std::memory_order_release);
  }
};
struct FlagTraits : SemaphoreTraits {
  using Wakeup = FlagWakeup;
};
using FlagSemaphore = BasicSemaphore<FlagTraits>;

// Both units guard plain data for a writer, one for a reader: a stale value read, or a writer that is not alone,
// are a race that the sanitizer sees. A waiting writer keeps a free unit from readers; when it leaves, the unit goes to
// them.
TEST(SemaphoreStress, AHolderSeesAllThatTheLastOneDid) {
#ifdef SLUICE_SANITIZED
  constexpr int kThreads = 4, kTimes = 5'000;
#else
  constexpr int kThreads = 4, kTimes = 20'000;
#endif
  FlagSemaphore semaphore(2);
  uint64_t guarded = 0;
  std::atomic<uint64_t> entered{0};
  std::atomic<int> wakes{0};  // not waited for: the outcome alone must order what the holders did
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<uint32_t>(t));
      for (int i = 0; i < kTimes; ++i) {
        const int64_t units = 1 + random() % 2;
        std::optional<FlagSemaphore::Permit> permit;
        if (random() % 2 == 0) permit = semaphore.TryAcquire(units);
        if (!permit) {
          FlagSemaphore::Waiter waiter;  // destroyed as soon as its outcome is seen
          semaphore.Enqueue(waiter, units, FlagWakeup{&wakes});
          const bool impatient = random() % 4 == 0;
          while (waiter.outcome() == SemaphoreOutcome::kWaiting) {
            if (impatient && semaphore.Cancel(waiter, SemaphoreOutcome::kTimedOut)) break;
            std::this_thread::yield();
          }
          if (waiter.outcome() == SemaphoreOutcome::kGranted) permit.emplace(semaphore.Adopt(units));
        }
        if (!permit) continue;
        if (units == 1) {
          EXPECT_LE(guarded, uint64_t{kThreads} * kTimes);
        } else {
          ++guarded;
          entered.fetch_add(1, std::memory_order_relaxed);
        }
        if (random() % 16 == 0) std::this_thread::yield();  // so that others have to wait
      }
    });
  }
  threads.clear();
  EXPECT_EQ(guarded, entered.load());
  EXPECT_EQ(semaphore.raw(), 2);
  EXPECT_EQ(semaphore.waiters(), 0u);
}

TEST(SemaphoreStress, SemaphoresDieUnderTheirPermitsAndBreaks) {
  constexpr int kRounds = 2'000, kThreads = 3;
  for (int round = 0; round < kRounds; ++round) {
    auto semaphore = std::make_unique<FlagSemaphore>(6);
    std::vector<FlagSemaphore::Permit> permits;
    for (int t = 0; t < kThreads; ++t) permits.push_back(*semaphore->TryAcquire(2));
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([permit = std::move(permits[t])]() mutable {
        std::optional<FlagSemaphore::Permit> part = permit.Split(1);
        part.reset();
        permit = FlagSemaphore::Permit();
      });
    }
    if (round % 2 == 0) semaphore->Break();
    semaphore.reset();
  }
}

// Tasks of several workers: those that may move wait without a bound, those that stay wait with a deadline.
TEST(SemaphoreStress, TasksOnSeveralWorkers) {
  constexpr int kTasks = 200, kTimes = 50;
  runtime::Runtime runtime({.workers = 3});
  Semaphore semaphore(2);
  std::atomic<int> inside{0}, finished{0};
  std::atomic<uint64_t> granted{0}, late{0};
  static auto run = [](Semaphore& semaphore, bool bounded, std::atomic<int>& inside, std::atomic<uint64_t>& granted,
                       std::atomic<uint64_t>& late, std::atomic<int>& finished) -> runtime::Task<> {
    for (int i = 0; i < kTimes; ++i) {
      base::TimePoint deadline = base::kNever;
      if (bounded) deadline = runtime::Worker::Current()->now() + std::chrono::milliseconds(1 + i % 3);
      base::Result<Permit> permit = co_await semaphore.Acquire(1, deadline);
      if (!permit.ok()) {
        EXPECT_EQ(permit.error().kind, base::ErrorKind::kDeadlineExceeded);
        late.fetch_add(1, std::memory_order_relaxed);
        continue;
      }
      EXPECT_LE(inside.fetch_add(1, std::memory_order_relaxed), 1);
      co_await runtime::Yield();
      inside.fetch_sub(1, std::memory_order_relaxed);
      granted.fetch_add(1, std::memory_order_relaxed);
    }
    finished.fetch_add(1, std::memory_order_release);
  };
  runtime.Start();
  for (int i = 0; i < kTasks; ++i) {
    const bool bounded = i % 2 == 0;
    runtime::Task<> task = run(semaphore, bounded, inside, granted, late, finished);
    if (bounded) {
      runtime.SpawnOn(runtime.worker(static_cast<size_t>(i) % runtime.size()), std::move(task));
    } else {
      runtime.Spawn(std::move(task));
    }
  }
  while (finished.load(std::memory_order_acquire) < kTasks) std::this_thread::yield();
  runtime.Shutdown();
  EXPECT_EQ(granted.load() + late.load(), uint64_t{kTasks} * kTimes);
  EXPECT_EQ(semaphore.raw(), 2);
  EXPECT_EQ(semaphore.waiters(), 0u);
}

}  // namespace
}  // namespace sluice::sync
