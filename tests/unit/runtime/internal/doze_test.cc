// Doze: the monitor never sleeps beside a worker that has left its park; every interleaving of the two (sequential
// consistency only), and the same with the real runtime.
#include "runtime/internal/doze.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <thread>

#include "runtime/runtime.h"
#include "support/interleave.h"

namespace sluice::runtime {
namespace {

struct StepDoze {
  template <typename V>
  using Atomic = interleave::Atomic<V>;
  static void Wait(const Atomic<uint32_t>& word, uint32_t seen) {
    while (word.load() == seen) interleave::Yield();
  }
  static void Wake(const Atomic<uint32_t>&) {}
};

// A sleep that misses the worker's end of parking lasts for ever: the explorer's CHECK stops the test.
TEST(Doze, TheMonitorNeverSleepsThroughAWorkersEndOfParking) {
  struct State {
    BasicDoze<StepDoze> doze;
    interleave::Atomic<bool> parked{true};
  };
  const auto result = interleave::Explore([](interleave::Run& run) {
    auto state = std::make_shared<State>();
    run.Thread([=] { state->doze.Sleep([&] { return !state->parked.load(); }); });
    run.Thread([=] {
      state->parked.exchange(false);
      state->doze.End();
    });
    run.AtEnd([=] { EXPECT_FALSE(state->doze.asleep()); });
  });
  EXPECT_GT(result.schedules, 5u);
}

TEST(Doze, WithoutAReasonToSleepItReturnsAtOnce) {
  Doze doze;
  doze.End();
  doze.Sleep([] { return true; });
  EXPECT_FALSE(doze.asleep());
}

RuntimeOptions Options(uint32_t workers) {
  RuntimeOptions options;
  options.workers = workers;
  options.blocking_threshold = std::chrono::milliseconds(5);
  return options;
}

void WaitUntilDozing(const Runtime& runtime) {
  while (!runtime.MonitorDozesForTest()) std::this_thread::yield();
}

// The monitor is awake, and so looks again within a period, before the first task after any idleness runs.
TEST(Monitor, TheFirstTaskAfterIdlenessFindsItAwake) {
  for (uint32_t workers : {1u, 2u}) {
    Runtime runtime(Options(workers));
    runtime.Start();
    for (int round = 0; round < 20; ++round) {
      WaitUntilDozing(runtime);
      std::atomic<bool> dozing{true};
      std::latch done(1);
      auto look = [](Runtime& r, std::atomic<bool>& d, std::latch& latch) -> Task<> {
        d = r.MonitorDozesForTest();
        latch.count_down();
        co_return;
      };
      runtime.SpawnOn(runtime.worker(round % workers), look(runtime, dozing, done));
      done.wait();
      EXPECT_FALSE(dozing);
    }
  }
}

// A free task behind a long poll: the poll ends only when the other worker has run the task, which it does only if the
// monitor wakes it. So this hangs if the monitor sleeps on.
TEST(Monitor, ATaskBehindTheFirstLongPollAfterIdlenessIsStolen) {
  Runtime runtime(Options(2));
  runtime.Start();
  for (int round = 0; round < 10; ++round) {
    WaitUntilDozing(runtime);
    std::atomic<bool> ran{false};
    std::latch done(1);
    auto once = [](std::atomic<bool>& r) -> Task<> {
      r = true;
      co_return;
    };
    auto hog = [once](Runtime& r, std::atomic<bool>& other, std::latch& latch) -> Task<> {
      r.Spawn(once(other));
      while (!other) std::this_thread::yield();
      latch.count_down();
      co_return;
    };
    runtime.SpawnOn(runtime.worker(0), hog(runtime, ran, done));
    done.wait();
  }
  EXPECT_GE(runtime.worker(1).stats().steals, 10u);
}

TEST(Monitor, ARuntimeIsShutDownWhileTheMonitorDozesOrIsAboutTo) {
  for (int round = 0; round < 50; ++round) {
    RuntimeOptions options = Options(2);
    options.blocking_threshold = std::chrono::milliseconds(1);
    Runtime runtime(options);
    runtime.Start();
    if (round % 2 == 0) WaitUntilDozing(runtime);
    runtime.Shutdown();
    EXPECT_FALSE(runtime.MonitorDozesForTest());
  }
}

}  // namespace
}  // namespace sluice::runtime
