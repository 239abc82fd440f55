// The scheduler under load: wakes across workers, theft, fairness, depth. Nothing here depends on how long things take.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

#include "base/random.h"
#include "runtime/runtime.h"
#include "runtime/yield.h"

namespace sluice::runtime {
namespace {

#ifdef SLUICE_SANITIZED
constexpr int kScale = 10;
#else
constexpr int kScale = 1;
#endif

RuntimeOptions Workers(uint32_t n) {
  RuntimeOptions options;
  options.workers = n;
  return options;
}

// A thread-safe auto-reset event: the smallest thing that wakes across workers.
class Signal {
 public:
  void Set() {
    // Release: what the setter did before; acquire: the waiter's waker.
    if (state_.exchange(kSet, std::memory_order_acq_rel) == kWaiting) {
      Waker waker = std::move(waker_);
      waker_ = Waker();
      waker.Wake();
    }
  }
  auto Wait() {
    struct Awaiter {
      Signal& signal;
      bool await_ready() { return false; }
      void await_suspend(std::coroutine_handle<> h) {
        signal.waker_ = Waker::ForCurrentTask(h);
        int expected = kEmpty;
        if (!signal.state_.compare_exchange_strong(expected, kWaiting, std::memory_order_acq_rel)) {
          Waker waker = std::move(signal.waker_);
          signal.waker_ = Waker();
          waker.Wake();  // before the suspension is complete
        }
      }
      void await_resume() { signal.state_.store(kEmpty, std::memory_order_release); }
    };
    return Awaiter{*this};
  }

 private:
  enum { kEmpty, kWaiting, kSet };
  std::atomic<int> state_{kEmpty};
  Waker waker_;
};

Task<> Player(Signal& mine, Signal& other, int rounds, std::latch& done) {
  for (int i = 0; i < rounds; ++i) {
    co_await mine.Wait();
    other.Set();
  }
  done.count_down();
}

// Each hand-over finds the other worker parked, or about to park: the window where a wake-up can be lost.
TEST(SchedulerStress, AMillionHandOversBetweenTwoParkingWorkersLoseNoWake) {
  Runtime runtime(Workers(2));
  runtime.Start();
  const int rounds = 500'000 / kScale / (kScale > 1 ? 5 : 1);
  Signal a, b;
  std::latch done(2);
  runtime.SpawnOn(runtime.worker(0), Player(a, b, rounds, done));
  runtime.SpawnOn(runtime.worker(1), Player(b, a, rounds, done));
  a.Set();
  done.wait();
}

TEST(SchedulerStress, FreeTasksThatWakeEachOtherOnAnyWorkerLoseNoWake) {
  for (uint32_t workers : {1u, 2u, 4u}) {
    Runtime runtime(Workers(workers));
    runtime.Start();
    constexpr int kPairs = 50;
    const int rounds = 4000 / kScale;
    std::vector<Signal> signals(2 * kPairs);
    std::latch done(2 * kPairs);
    for (int p = 0; p < kPairs; ++p) {
      runtime.Spawn(Player(signals[2 * p], signals[2 * p + 1], rounds, done));
      runtime.Spawn(Player(signals[2 * p + 1], signals[2 * p], rounds, done));
      signals[2 * p].Set();
    }
    done.wait();
    runtime.Shutdown();
    EXPECT_EQ(runtime.LiveTasks(), 0u);
  }
}

TEST(SchedulerStress, AThreadOutsideOfThePoolMayWakeAndSpawn) {
  Runtime runtime(Workers(2));
  runtime.Start();
  const int rounds = 20'000 / kScale;
  Signal ping, unused;
  std::latch done(2);
  std::atomic<int> ran{0};
  auto once = [](std::atomic<int>& n) -> Task<> {
    ++n;
    co_return;
  };
  // Waits once a round for the outside thread, which waits for nothing: wakes meet every state of the task.
  auto listener = [](Signal& signal, std::atomic<bool>& stop, std::latch& latch) -> Task<> {
    while (!stop.load()) co_await signal.Wait();
    latch.count_down();
  };
  std::atomic<bool> stop{false};
  runtime.Spawn(listener(ping, stop, done));
  runtime.SpawnOn(runtime.worker(1), listener(unused, stop, done));
  for (int i = 0; i < rounds; ++i) {
    ping.Set();
    unused.Set();
    if (i % 8 == 0) runtime.Spawn(once(ran));
  }
  stop = true;
  ping.Set();
  unused.Set();
  done.wait();
  while (ran != (rounds + 7) / 8) std::this_thread::yield();
}

Task<> Grow(Runtime& runtime, int depth, std::atomic<int>& leaves) {
  if (depth == 0) {
    ++leaves;
    co_return;
  }
  for (int i = 0; i < 4; ++i) {
    runtime.Spawn(Grow(runtime, depth - 1, leaves));
    if (i == 1) co_await Yield();
  }
}

TEST(SchedulerStress, ATreeOfSpawnsThatOverflowsTheQueuesRunsEachTaskOnce) {
  for (uint32_t workers : {1u, 2u, 5u}) {
    Runtime runtime(Workers(workers));
    runtime.Start();
    constexpr int kDepth = 8;
    std::atomic<int> leaves{0};
    runtime.Spawn(Grow(runtime, kDepth, leaves));
    while (runtime.LiveTasks() != 0) std::this_thread::yield();
    EXPECT_EQ(leaves, 65536);
  }
}

Task<int> Immediate(int i) { co_return i & 1; }

Task<> AwaitMany(int n, int64_t& sum) {
  for (int i = 0; i < n; ++i) sum += co_await Immediate(i);
}

TEST(SchedulerStress, TenMillionSynchronousCompletionsInARowKeepTheStackFlat) {
  Runtime runtime(Workers(1));
  int64_t sum = 0;
  const int n = 10'000'000 / kScale;
  runtime.SpawnOn(runtime.worker(0), AwaitMany(n, sum));
  runtime.worker(0).RunUntilIdleForTest();
  EXPECT_EQ(sum, n / 2);
}

Task<int> Nested(int depth) {
  if (depth == 0) co_return 0;
  co_return 1 + co_await Nested(depth - 1);
}

Task<> AwaitNested(int depth, int& out) { out = co_await Nested(depth); }

TEST(SchedulerStress, AChainOfAwaitsAHundredThousandDeepUnwindsOnAFlatStack) {
  Runtime runtime(Workers(1));
  int out = 0;
  runtime.SpawnOn(runtime.worker(0), AwaitNested(100'000, out));
  runtime.worker(0).RunUntilIdleForTest();
  EXPECT_EQ(out, 100'000);
}

// Two free tasks that wake each other through the slot, beside one that counts.
TEST(SchedulerStress, APingPongPairLeavesACounterAFifthOfThePolls) {
  Runtime runtime(Workers(1));
  Worker& worker = runtime.worker(0);
  struct Counts {
    std::atomic<bool> stop{false};
    int pings = 0;
    int counted = 0;
  } counts;
  Signal a, b;
  auto player = [](Signal& mine, Signal& other, Counts& c) -> Task<> {
    while (c.pings < 30'000) {
      co_await mine.Wait();
      ++c.pings;
      other.Set();
    }
    c.stop = true;
  };
  auto counter = [](Counts& c) -> Task<> {
    while (!c.stop) {
      ++c.counted;
      co_await Yield();
    }
  };
  {
    Worker::ScopedCurrentForTest current(worker);
    runtime.Spawn(player(a, b, counts));
    runtime.Spawn(player(b, a, counts));
    runtime.Spawn(counter(counts));
  }
  a.Set();
  worker.RunUntilIdleForTest();
  EXPECT_GE(counts.counted, (counts.counted + counts.pings) / 5);
  EXPECT_GE(counts.pings, 30'000);
}

// One worker stays in one poll until other workers have run all that it had queued: it ends only if others steal.
TEST(SchedulerStress, TheQueueBehindALongPollIsDrainedByOthers) {
  for (int queued : {100, 1}) {
    Runtime runtime(Workers(2));
    runtime.Start();
    std::atomic<int> ran{0};
    std::latch done(1);
    auto once = [](std::atomic<int>& n) -> Task<> {
      ++n;
      co_return;
    };
    auto hog = [once](Runtime& r, int n, std::atomic<int>& count, std::latch& latch) -> Task<> {
      for (int i = 0; i < n; ++i) r.SpawnPinOnStart(once(count));
      while (count != n) std::this_thread::yield();
      latch.count_down();
      co_return;
    };
    runtime.SpawnOn(runtime.worker(0), hog(runtime, queued, ran, done));
    done.wait();
    EXPECT_GT(runtime.worker(1).stats().steals, 0u);
  }
}

// Three polls that end only together. A push wakes one searcher; it is that one's business to wake the next.
TEST(SchedulerStress, TheLastSearcherThatFindsWorkWakesAnother) {
  RuntimeOptions options = Workers(3);
  options.blocking_threshold = std::chrono::milliseconds(0);  // no monitor to help
  Runtime runtime(options);
  runtime.Start();
  for (uint32_t i : {1u, 2u}) {
    while (runtime.worker(i).stats().parks == 0) std::this_thread::yield();
  }
  std::atomic<int> running{0};
  auto meet = [](std::atomic<int>& n) -> Task<> {
    ++n;
    while (n < 2) std::this_thread::yield();
    co_return;
  };
  auto hog = [meet](Runtime& r, std::atomic<int>& n) -> Task<> {
    for (int i = 0; i < 8; ++i) r.SpawnPinOnStart(meet(n));
    while (n < 2) std::this_thread::yield();
    co_return;
  };
  runtime.SpawnOn(runtime.worker(0), hog(runtime, running));
  while (runtime.LiveTasks() != 0) std::this_thread::yield();
  EXPECT_EQ(running, 8);
}

TEST(SchedulerStress, ATaskInTheSlotBehindALongPollIsStolen) {
  Runtime runtime(Workers(2));
  runtime.Start();
  Signal signal;
  std::atomic<bool> ran{false};
  std::latch waiting(1), done(1);
  auto sleeper = [](Signal& s, std::latch& w, std::atomic<bool>& r) -> Task<> {
    w.count_down();
    co_await s.Wait();
    r = true;
  };
  auto hog = [](Signal& s, std::atomic<bool>& r, std::latch& latch) -> Task<> {
    s.Set();  // puts the sleeper into this worker's slot
    while (!r) std::this_thread::yield();
    latch.count_down();
    co_return;
  };
  runtime.Spawn(sleeper(signal, waiting, ran));
  waiting.wait();
  runtime.SpawnOn(runtime.worker(0), hog(signal, ran, done));
  done.wait();
}

// The monitor counts a worker that does not come back while work waits behind it, once.
TEST(SchedulerStress, AStuckWorkerWithWorkQueuedIsCountedOnce) {
  RuntimeOptions options = Workers(1);
  options.blocking_threshold = std::chrono::milliseconds(2);
  Runtime runtime(options);
  runtime.Start();
  std::latch done(2);
  auto other = [](std::latch& latch) -> Task<> {
    latch.count_down();
    co_return;
  };
  auto hog = [other](Runtime& r, std::latch& latch) -> Task<> {
    Worker& worker = *Worker::Current();
    r.SpawnOn(worker, other(latch));
    while (worker.stats().blocked == 0) std::this_thread::yield();
    latch.count_down();
    co_return;
  };
  runtime.SpawnOn(runtime.worker(0), hog(runtime, done));
  done.wait();
  EXPECT_GE(runtime.worker(0).stats().blocked, 1u);
}

}  // namespace
}  // namespace sluice::runtime
