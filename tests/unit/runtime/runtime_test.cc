#include "runtime/runtime.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <latch>
#include <thread>

#include "runtime/blocking_call.h"
#include "runtime/fd_watch.h"
#include "runtime/sleep.h"
#include "runtime/yield.h"
#include "sync/event.h"

namespace sluice::runtime {
namespace {

using namespace std::chrono_literals;

RuntimeOptions Workers(uint32_t n) {
  RuntimeOptions options;
  options.workers = n;
  return options;
}

Task<int> Add(int a, int b) { co_return a + b; }

Task<> AddInto(int& out) {
  out = co_await Add(1, 2);
  out += co_await Add(10, 20);
}

TEST(Runtime, ATaskAwaitsOthersAndGetsTheirResults) {
  Runtime runtime(Workers(1));
  int out = 0;
  ASSERT_TRUE(runtime.SpawnOn(runtime.worker(0), AddInto(out)));
  EXPECT_EQ(runtime.LiveTasks(), 1u);
  EXPECT_EQ(runtime.worker(0).RunUntilIdleForTest(), 1u);
  EXPECT_EQ(out, 33);
  EXPECT_EQ(runtime.LiveTasks(), 0u);
}

Task<> CountDown(std::latch& latch) {
  co_await Yield();
  latch.count_down();
}

TEST(Runtime, TasksOfEveryKindSpawnedFromOutsideRun) {
  for (uint32_t workers : {1u, 2u, 4u}) {
    Runtime runtime(Workers(workers));
    runtime.Start();
    constexpr int kTasks = 1000;
    std::latch latch(3 * kTasks);
    for (int i = 0; i < kTasks; ++i) {
      ASSERT_TRUE(runtime.Spawn(CountDown(latch)));
      ASSERT_TRUE(runtime.SpawnPinOnStart(CountDown(latch)));
      ASSERT_TRUE(runtime.SpawnOn(runtime.worker(i % workers), CountDown(latch)));
    }
    latch.wait();
    runtime.Shutdown();
    EXPECT_EQ(runtime.LiveTasks(), 0u);
  }
}

Task<> StayOn(Worker& expected, int rounds, std::atomic<int>& wrong, std::latch& latch) {
  for (int i = 0; i < rounds; ++i) {
    if (Worker::Current() != &expected) ++wrong;
    co_await Yield();
    if (i % 16 == 0) co_await SleepUntil(Worker::Current()->now() + 1ms);
  }
  latch.count_down();
}

TEST(Runtime, APinnedTaskIsOnItsWorkerAfterEveryAwait) {
  Runtime runtime(Workers(3));
  runtime.Start();
  std::atomic<int> wrong = 0;
  std::latch latch(30);
  for (int i = 0; i < 30; ++i) {
    runtime.SpawnOn(runtime.worker(i % 3), StayOn(runtime.worker(i % 3), 100, wrong, latch));
  }
  latch.wait();
  EXPECT_EQ(wrong, 0);
}

Task<> StayWhereItStarted(int rounds, std::atomic<int>& wrong, std::latch& latch) {
  Worker* first = Worker::Current();
  for (int i = 0; i < rounds; ++i) {
    co_await Yield();
    if (Worker::Current() != first) ++wrong;
  }
  latch.count_down();
}

Task<> SpawnMany(Runtime& runtime, int n, std::atomic<int>& wrong, std::latch& latch) {
  for (int i = 0; i < n; ++i) runtime.SpawnPinOnStart(StayWhereItStarted(50, wrong, latch));
  co_return;
}

TEST(Runtime, ATaskPinnedOnStartStaysWhereItFirstRan) {
  Runtime runtime(Workers(4));
  runtime.Start();
  std::atomic<int> wrong = 0;
  constexpr int kTasks = 2000;  // more than a run queue holds
  std::latch latch(kTasks);
  runtime.SpawnOn(runtime.worker(0), SpawnMany(runtime, kTasks, wrong, latch));
  latch.wait();
  EXPECT_EQ(wrong, 0);
}

TEST(Runtime, APostedFunctionRunsOnItsWorker) {
  Runtime runtime(Workers(2));
  runtime.Start();
  std::latch latch(2);
  std::atomic<bool> right[2] = {};
  for (uint32_t i = 0; i < 2; ++i) {
    runtime.worker(i).Post([&, i] {
      right[i] = Worker::Current() == &runtime.worker(i);
      latch.count_down();
    });
  }
  latch.wait();
  EXPECT_TRUE(right[0] && right[1]);
}

TEST(Runtime, AHandlerOfTheReactorRunsOnItsWorkerAndItsTasksInTheSameTurn) {
  Runtime runtime(Workers(1));
  Worker& worker = runtime.worker(0);
  int ran = 0;
  uint64_t turn_of_handler = 99, turn_of_task = 98;
  auto task = [](int& count, uint64_t& turn) -> Task<> {
    ++count;
    turn = Worker::Current()->stats().turns;
    co_return;
  };
  struct Handler final : FdWatch {
    void OnEdge(uint32_t) override { on_edge(); }
    void OnRequeued() override {}
    std::function<void()> on_edge;
  } handler;
  handler.on_edge = [&] {
    EXPECT_EQ(Worker::Current(), &worker);
    turn_of_handler = worker.stats().turns;
    runtime.SpawnOn(worker, task(ran, turn_of_task));
  };
  const int ready = ::eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
  ASSERT_EQ(worker.Watch(ready, EPOLLIN, handler), 0);
  worker.RunUntilIdleForTest();
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(turn_of_handler, turn_of_task);
  worker.Unwatch(ready, handler);
  ::close(ready);
}

struct CountingHook : TurnHook {
  int ran = 0;
  int again = 0;
  Worker* worker = nullptr;
  void OnTurnEnd() override {
    ++ran;
    if (again-- > 0) worker->AtTurnEnd(*this);
  }
};

TEST(Runtime, AHookRunsOnceATurnHoweverOftenItIsAskedFor) {
  Runtime runtime(Workers(1));
  Worker& worker = runtime.worker(0);
  CountingHook hook;
  hook.worker = &worker;
  auto ask = [](CountingHook& h) -> Task<> {
    for (int i = 0; i < 3; ++i) Worker::Current()->AtTurnEnd(h);
    co_return;
  };
  for (int i = 0; i < 5; ++i) runtime.SpawnOn(worker, ask(hook));
  worker.RunUntilIdleForTest();
  EXPECT_EQ(hook.ran, 0 + 1);
}

TEST(Runtime, AHookThatAsksAgainCannotHoldTheWorker) {
  Runtime runtime(Workers(1));
  Worker& worker = runtime.worker(0);
  CountingHook hook;
  hook.worker = &worker;
  hook.again = 100;
  worker.AtTurnEnd(hook);
  const uint64_t turns = worker.stats().turns;
  worker.RunUntilIdleForTest();
  EXPECT_EQ(hook.ran, 101);
  EXPECT_GT(worker.stats().turns - turns, 20u);
}

Task<> Sleeper(base::TimePoint when, bool& done) {
  co_await SleepUntil(when);
  done = true;
}

TEST(Runtime, ASleeperWakesWhenTheClockSaysSoAndNotBefore) {
  base::ManualClock clock;
  Runtime runtime(Workers(1), clock);
  bool done = false;
  runtime.SpawnOn(runtime.worker(0), Sleeper(clock.Now() + 10ms, done));
  runtime.worker(0).RunUntilIdleForTest();
  clock.Advance(9ms);
  runtime.worker(0).RunUntilIdleForTest();
  EXPECT_FALSE(done);
  clock.Advance(1ms);
  runtime.worker(0).RunUntilIdleForTest();
  EXPECT_TRUE(done);
}

TEST(Runtime, AParkedWorkerWakesForItsTimer) {
  Runtime runtime(Workers(2));
  runtime.Start();
  std::latch latch(1);
  auto sleep = [](std::latch& l) -> Task<> {
    const auto until = Worker::Current()->now() + 20ms;
    co_await SleepUntil(until);
    EXPECT_GE(base::Clock::Steady().Now(), until);
    l.count_down();
  };
  runtime.SpawnOn(runtime.worker(1), sleep(latch));
  latch.wait();
}

Task<> CallBlocking(std::optional<int>& out, std::latch& latch) {
  out = co_await BlockingCall([] { return 7; });
  latch.count_down();
}

TEST(Runtime, ABlockingCallRunsOnAHelperAndResumesTheTask) {
  Runtime runtime(Workers(1));
  runtime.Start();
  std::optional<int> out;
  std::latch latch(1);
  runtime.Spawn(CallBlocking(out, latch));
  latch.wait();
  EXPECT_EQ(out, 7);
}

TEST(Runtime, AWorkerThatSleepsUsesNoCpu) {
  Runtime runtime(Workers(2));
  runtime.Start();
  std::latch latch(1);
  auto sleep = [](std::latch& l) -> Task<> {
    co_await SleepUntil(Worker::Current()->now() + 300ms);
    l.count_down();
  };
  runtime.SpawnOn(runtime.worker(0), sleep(latch));
  latch.wait();
  EXPECT_LT(runtime.worker(0).stats().turns, 50u);
  EXPECT_LT(runtime.worker(1).stats().turns, 50u);
}

}  // namespace
}  // namespace sluice::runtime
