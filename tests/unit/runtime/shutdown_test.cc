// Shutdown with tasks in every state, and after each of its steps: what was spawned is run or destroyed, once.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/blocking_call.h"
#include "runtime/internal/blocking_pool.h"
#include "runtime/runtime.h"
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

// Counts how many are alive; notes where the last one died.
struct Census {
  std::atomic<int> alive{0};
  std::atomic<Worker*> died_on{nullptr};
};
struct Citizen {
  explicit Citizen(Census& c) : census(&c) { ++census->alive; }
  Citizen(Citizen&& other) noexcept : census(std::exchange(other.census, nullptr)) {}
  ~Citizen() {
    if (census == nullptr) return;
    census->died_on = Worker::Current();
    --census->alive;
  }
  Census* census;
};

Task<> WaitFor(sync::Event& event, Citizen) { co_await event.Wait(); }
Task<> SleepLong(Citizen) { co_await SleepUntil(Worker::Current()->now() + 1h); }
Task<> YieldForEver(Citizen) {
  while (true) co_await Yield();
}
Task<> InnerSleep(Citizen) { co_await SleepUntil(Worker::Current()->now() + 1h); }
Task<> Outer(Census& census, Citizen) { co_await InnerSleep(Citizen(census)); }

class ShutdownWith : public testing::TestWithParam<uint32_t> {};

TEST_P(ShutdownWith, TasksInEveryStateAreDestroyed) {
  Census census;
  for (int round = 0; round < 8; ++round) {
    sync::Event events[3];
    Runtime runtime(Workers(GetParam()));
    runtime.Start();
    for (int i = 0; i < 40; ++i) {
      Worker& worker = runtime.worker(i % GetParam());
      runtime.SpawnOn(worker, SleepLong(Citizen(census)));
      runtime.SpawnOn(worker, YieldForEver(Citizen(census)));
      runtime.SpawnOn(worker, Outer(census, Citizen(census)));
      runtime.Spawn(SleepLong(Citizen(census)));
      runtime.Spawn(YieldForEver(Citizen(census)));
      runtime.SpawnPinOnStart(YieldForEver(Citizen(census)));
      if (i < 3) runtime.SpawnOn(worker, WaitFor(events[i], Citizen(census)));
    }
    for (int i = 0; i < round; ++i) std::this_thread::yield();
    runtime.Shutdown();
    ASSERT_EQ(census.alive, 0) << "round " << round;
    ASSERT_EQ(runtime.LiveTasks(), 0u);
  }
}

TEST_P(ShutdownWith, APinnedTaskDiesOnItsOwnWorker) {
  Census census;
  Runtime runtime(Workers(GetParam()));
  runtime.Start();
  Worker& last = runtime.worker(GetParam() - 1);
  std::latch started(1);
  auto task = [](std::latch& latch, Citizen) -> Task<> {
    latch.count_down();
    co_await SleepUntil(Worker::Current()->now() + 1h);
  };
  runtime.SpawnOn(last, task(started, Citizen(census)));
  started.wait();
  runtime.Shutdown();
  EXPECT_EQ(census.died_on.load(), &last);
}

// Threads spawn, post and wake while the door closes: each spawn is run or destroyed, whatever its answer.
TEST_P(ShutdownWith, SpawnsAndPostsThatRaceWithItAreAllAccountedFor) {
  for (int round = 0; round < 15; ++round) {
    Census census;
    std::atomic<int> refused{0};
    Runtime runtime(Workers(GetParam()));
    runtime.Start();
    std::vector<std::thread> threads;
    std::latch go(4);
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        go.arrive_and_wait();
        for (int i = 0; i < 200; ++i) {
          Worker& worker = runtime.worker(i % GetParam());
          bool taken = true;
          if (t == 0) taken = runtime.Spawn(YieldForEver(Citizen(census)));
          if (t == 1) taken = runtime.SpawnOn(worker, SleepLong(Citizen(census)));
          if (t == 2) worker.Post([citizen = std::make_shared<Citizen>(census)] {});
          if (!taken) ++refused;
        }
      });
    }
    go.arrive_and_wait();
    for (int i = 0; i < round; ++i) std::this_thread::yield();
    runtime.Shutdown();
    for (std::thread& thread : threads) thread.join();
    EXPECT_FALSE(runtime.Spawn(SleepLong(Citizen(census))));
    ASSERT_EQ(census.alive, 0) << "round " << round << ", refused " << refused;
    ASSERT_EQ(runtime.LiveTasks(), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, ShutdownWith, testing::Values(1u, 2u, 5u));

TEST(Shutdown, ARuntimeThatWasNeverStartedDestroysWhatWasSpawned) {
  Census census;
  {
    Runtime runtime(Workers(3));
    runtime.Spawn(SleepLong(Citizen(census)));
    runtime.SpawnOn(runtime.worker(2), SleepLong(Citizen(census)));
    runtime.SpawnOn(runtime.worker(1), SleepLong(Citizen(census)));
    runtime.worker(1).RunUntilIdleForTest();
    runtime.worker(2).Post([citizen = std::make_shared<Citizen>(census)] {});
    EXPECT_EQ(census.alive, 4);
    runtime.Shutdown();
    runtime.Shutdown();
    EXPECT_EQ(census.alive, 0);
    EXPECT_EQ(runtime.LiveTasks(), 0u);
  }
  EXPECT_EQ(census.alive, 0);
}

TEST(Shutdown, AFunctionPostedAfterItIsDestroyedUnrun) {
  Census census;
  Runtime runtime(Workers(2));
  runtime.Start();
  runtime.Shutdown();
  bool ran = false;
  runtime.worker(0).Post([&ran, citizen = std::make_shared<Citizen>(census)] { ran = true; });
  EXPECT_FALSE(ran);
  EXPECT_EQ(census.alive, 0);
}

// A destructor that spawns, posts, wakes and asks for hooks while everything goes down.
TEST(Shutdown, ADestructorMayStillUseTheScheduler) {
  struct Hook : TurnHook {
    void OnTurnEnd() override { ADD_FAILURE(); }
  };
  struct Meddler {
    Runtime& runtime;
    sync::Event& event;
    Hook& hook;
    Census& census;
    ~Meddler() {
      event.Set();
      Worker::Current()->AtTurnEnd(hook);
      Worker::Current()->Post([citizen = std::make_shared<Citizen>(census)] { ADD_FAILURE(); });
      EXPECT_FALSE(runtime.Spawn(SleepLong(Citizen(census))));
      EXPECT_FALSE(runtime.SpawnOn(*Worker::Current(), SleepLong(Citizen(census))));
      EXPECT_FALSE(runtime.Block(
          *Worker::Current(), [] {}, [citizen = std::make_shared<Citizen>(census)] {}));
    }
  };
  Census census;
  sync::Event event;
  Hook hook;
  std::latch started(2);
  auto waiter = [](sync::Event& e, std::latch& l) -> Task<> {
    l.count_down();
    co_await e.Wait();
    ADD_FAILURE();
  };
  auto meddle = [](std::unique_ptr<Meddler> meddler, std::latch& l) -> Task<> {
    l.count_down();
    co_await SleepUntil(Worker::Current()->now() + 1h);
  };
  Runtime runtime(Workers(2));
  runtime.Start();
  runtime.SpawnOn(runtime.worker(1),
                  meddle(std::unique_ptr<Meddler>(new Meddler{runtime, event, hook, census}), started));
  runtime.SpawnOn(runtime.worker(1), waiter(event, started));
  started.wait();
  runtime.Shutdown();
  EXPECT_EQ(census.alive, 0);
  EXPECT_EQ(runtime.LiveTasks(), 0u);
}

TEST(Shutdown, FunctionsThatWaitInTheInboxAreDestroyedAfterTheTasksOnTheirWorker) {
  Census tasks, functions;
  Runtime runtime(Workers(2));
  runtime.SpawnOn(runtime.worker(0), SleepLong(Citizen(tasks)));
  runtime.worker(0).RunUntilIdleForTest();
  struct Last {
    Census& tasks;
    Citizen citizen;
    Last(Census& t, Citizen c) : tasks(t), citizen(std::move(c)) {}
    ~Last() { EXPECT_EQ(tasks.alive, 0); }
  };
  runtime.worker(0).Post([last = std::make_shared<Last>(tasks, Citizen(functions))] { ADD_FAILURE(); });
  runtime.Shutdown();
  EXPECT_EQ(functions.alive, 0);
  EXPECT_EQ(functions.died_on.load(), &runtime.worker(0));
}

TEST(Shutdown, TheHelpersFinishTheFunctionThatRunsAndDropTheOthers) {
  Census census;
  Runtime runtime(Workers(1));
  Worker& worker = runtime.worker(0);
  BlockingPool pool(1);
  std::latch running(1), release(1);
  std::atomic<int> ran{0}, done{0};
  ASSERT_TRUE(pool.Submit(
      worker,
      [&] {
        running.count_down();
        release.wait();
        ++ran;
      },
      [&done, citizen = std::make_shared<Citizen>(census)] { ++done; }));
  running.wait();
  ASSERT_TRUE(pool.Submit(
      worker, [&] { ++ran; }, [&done, citizen = std::make_shared<Citizen>(census)] { ++done; }));
  std::thread closer([&] { pool.Close(); });
  while (!pool.closed()) std::this_thread::yield();
  EXPECT_FALSE(pool.Submit(
      worker, [] {}, [] {}));
  release.count_down();
  closer.join();
  worker.RunUntilIdleForTest();
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(census.alive, 0);
  EXPECT_EQ(census.died_on.load(), &worker);
}

TEST(Shutdown, ATaskThatWaitsForABlockingFunctionIsDestroyedAndTheFunctionEndsByItself) {
  Census census;
  auto state = std::make_shared<std::atomic<bool>>(false);
  std::latch running(1);
  auto call = [](std::shared_ptr<std::atomic<bool>> s, std::latch& l, Citizen) -> Task<> {
    auto fn = [s, &l] {
      l.count_down();
      *s = true;
      return 1;
    };
    BlockingCall blocking(std::move(fn));
    co_await blocking;
  };
  Runtime runtime(Workers(1));
  runtime.Start();
  runtime.SpawnOn(runtime.worker(0), call(state, running, Citizen(census)));
  running.wait();
  runtime.Shutdown();
  EXPECT_TRUE(*state);
  EXPECT_EQ(census.alive, 0);
}

// Wakers outlive their task, on this and on other threads.
TEST(Waker, WakingATaskThatHasEndedDoesNothing) {
  Waker kept;
  auto keep = [](Waker& out) -> Task<> {
    struct Keep {
      Waker& out;
      bool await_ready() { return false; }
      void await_suspend(std::coroutine_handle<> h) {
        out = Waker::ForCurrentTask(h);
        out.Wake();
      }
      void await_resume() {}
    };
    co_await Keep{out};
  };
  Runtime runtime(Workers(2));
  runtime.Start();
  runtime.SpawnOn(runtime.worker(0), keep(kept));
  while (runtime.LiveTasks() != 0) std::this_thread::yield();
  Waker copy = kept;
  kept.Wake();
  copy.Wake();
  std::latch woken(1);
  runtime.worker(0).Post([&] {
    kept.Wake();
    woken.count_down();
  });
  woken.wait();
  runtime.Shutdown();
  copy.Wake();
  EXPECT_EQ(runtime.LiveTasks(), 0u);
}

}  // namespace
}  // namespace sluice::runtime
