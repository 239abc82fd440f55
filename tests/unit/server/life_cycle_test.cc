// LifeCycle: what ends a server, when, and what it says of itself meanwhile.
#include "server/life_cycle.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace sluice::server {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kLong = std::chrono::hours(1);

// A control thread that waits for the end.
class Control {
 public:
  explicit Control(LifeCycle& life)
      : life_(life), thread_([this] {
          life_.WaitForEnd(milliseconds(1), [this] { polls.fetch_add(1); });
          ended = true;
          life_.SetStopped();
        }) {}
  ~Control() {
    life_.SetStarted(true);
    life_.Stop();
    thread_.join();
  }
  // Returns after the control thread has found that nothing ends the server now.
  void AwaitPoll() {
    const int seen = polls;
    while (polls < seen + 2) std::this_thread::yield();
  }

  std::thread::id id() const { return thread_.get_id(); }

  std::atomic<int> polls{0};
  std::atomic<bool> ended{false};

 private:
  LifeCycle& life_;
  std::thread thread_;
};

TEST(LifeCycle, IsReadyFromAGoodStartToADrainOrStop) {
  LifeCycle life;
  EXPECT_FALSE(life.ready());
  life.SetStarted(true);
  EXPECT_TRUE(life.ready());
  EXPECT_FALSE(life.draining());
  EXPECT_TRUE(life.BeginDrain(kLong, 1));
  EXPECT_FALSE(life.ready());
  EXPECT_TRUE(life.draining());
  EXPECT_FALSE(life.BeginDrain(kLong, 1));
  life.Stop();
  EXPECT_TRUE(life.draining());

  LifeCycle stopped;
  stopped.SetStarted(true);
  stopped.Stop();
  EXPECT_FALSE(stopped.ready());
  EXPECT_FALSE(stopped.BeginDrain(kLong, 1));
  EXPECT_FALSE(stopped.draining());

  LifeCycle failed;
  failed.SetStarted(false);
  EXPECT_FALSE(failed.ready());
}

TEST(LifeCycle, AStopWaitsForTheEndOfTheStart) {
  LifeCycle life;
  Control control(life);
  life.Stop();
  control.AwaitPoll();
  EXPECT_FALSE(control.ended);
  EXPECT_FALSE(life.WaitStopped(milliseconds(0)));
  life.SetStarted(true);
  EXPECT_FALSE(life.ready());
  EXPECT_TRUE(life.WaitStopped(kLong));
}

TEST(LifeCycle, ADrainEndsWhenAllPartsHaveDrainedAndPollsUntilThen) {
  LifeCycle life;
  Control control(life);
  life.SetStarted(true);
  ASSERT_TRUE(life.BeginDrain(kLong, 2));
  life.PartDrained();
  control.AwaitPoll();
  EXPECT_FALSE(control.ended);
  life.PartDrained();
  EXPECT_TRUE(life.WaitStopped(kLong));
}

TEST(LifeCycle, ADrainEndsWithItsTimeout) {
  LifeCycle life;
  Control control(life);
  life.SetStarted(true);
  ASSERT_TRUE(life.BeginDrain(milliseconds(5), 1));
  EXPECT_TRUE(life.WaitStopped(kLong));
}

TEST(LifeCycle, WhatIsCalledRunsInTheControlThreadOnceWhileItServesAndWhileItDrains) {
  LifeCycle life;
  Control control(life);
  std::atomic<int> calls{0};
  const auto call_and_wait = [&] {
    const int wanted = calls + 1;
    life.Call([&] {
      EXPECT_EQ(std::this_thread::get_id(), control.id());
      EXPECT_FALSE(life.ready() && life.draining()) << "it may ask: no lock is held";
      calls.fetch_add(1);
    });
    while (calls < wanted) std::this_thread::yield();
  };
  life.SetStarted(true);
  call_and_wait();
  ASSERT_TRUE(life.BeginDrain(kLong, 1));
  call_and_wait();
  control.AwaitPoll();
  EXPECT_EQ(calls, 2);
  EXPECT_FALSE(control.ended);
}

TEST(LifeCycle, WhatIsCalledLaterRunsWhenItsTimeHasCome) {
  LifeCycle life;
  Control control(life);
  life.SetStarted(true);
  ASSERT_TRUE(life.BeginDrain(kLong, 1));
  std::atomic<int> early{0}, late{0};
  life.Call([&] { late.fetch_add(1); }, kLong);
  const LifeCycle::Clock::time_point begun = LifeCycle::Clock::now();
  life.Call(
      [&] {
        EXPECT_GE(LifeCycle::Clock::now() - begun, milliseconds(5));
        early.fetch_add(1);
      },
      milliseconds(5));
  while (early == 0) std::this_thread::yield();
  control.AwaitPoll();
  EXPECT_EQ(early, 1);
  EXPECT_EQ(late, 0);
  EXPECT_FALSE(control.ended);
}

// A period that is longer than the delay does not hold the call back.
TEST(LifeCycle, WhatIsCalledLaterDoesNotWaitForThePeriod) {
  LifeCycle life;
  life.SetStarted(true);
  std::atomic<int> polls{0};
  std::thread control([&] { life.WaitForEnd(kLong, [&] { polls.fetch_add(1); }); });
  life.Call([&] { life.Stop(); }, milliseconds(5));
  control.join();
  EXPECT_EQ(polls, 0);
}

// As the end of a withdrawal does: the listeners stop, and the workers drain behind that.
TEST(LifeCycle, WhatIsCalledMayEndTheDrain) {
  LifeCycle life;
  Control control(life);
  life.SetStarted(true);
  ASSERT_TRUE(life.BeginDrain(kLong, 1));
  life.Call([&] { life.PartDrained(); });
  EXPECT_TRUE(life.WaitStopped(kLong));
}

TEST(LifeCycle, AStopEndsADrain) {
  LifeCycle life;
  Control control(life);
  life.SetStarted(true);
  ASSERT_TRUE(life.BeginDrain(kLong, 1));
  control.AwaitPoll();
  EXPECT_FALSE(control.ended);
  life.Stop();
  EXPECT_TRUE(life.WaitStopped(kLong));
}

}  // namespace
}  // namespace sluice::server
