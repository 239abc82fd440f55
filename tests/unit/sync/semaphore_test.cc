#include "sync/semaphore.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/runtime.h"
#include "support/manual_worker.h"

namespace sluice::sync {
namespace {

using base::ErrorKind;
using runtime::CancelSource;
using runtime::CancelToken;
using runtime::Task;
using std::chrono::milliseconds;

class SemaphoreTest : public testing::Test {
 protected:
  struct Ask {
    int units = 1;
    base::TimePoint deadline = base::kNever;
    CancelToken token = {};
  };
  // A task that asks and keeps what it gets; results_[number] is set when it has its answer.
  struct Asker {
    bool done = false;
    ErrorKind error = ErrorKind::kInternal;
    std::optional<Permit> permit;
  };
  static Task<> Run(Semaphore& semaphore, Ask ask, Asker& asker, int number, std::vector<int>& order) {
    base::Result<Permit> result = co_await semaphore.Acquire(ask.units, ask.deadline, ask.token);
    asker.done = true;
    order.push_back(number);
    if (result.ok()) {
      asker.permit.emplace(std::move(*result));
    } else {
      asker.error = result.error().kind;
    }
  }
  Asker& Spawn(Semaphore& semaphore, Ask ask) {
    askers_.push_back(std::make_unique<Asker>());
    worker_.runtime.SpawnOn(worker_.worker,
                            Run(semaphore, ask, *askers_.back(), static_cast<int>(askers_.size()) - 1, order_));
    worker_.Run();
    return *askers_.back();
  }
  base::TimePoint In(milliseconds time) { return worker_.clock.Now() + time; }
  void Pass(milliseconds time) {
    worker_.clock.Advance(time);
    worker_.Run();
  }

  test::ManualWorker worker_;
  runtime::Worker::ScopedCurrentForTest current_{worker_.worker};
  std::vector<std::unique_ptr<Asker>> askers_;
  std::vector<int> order_;
};

TEST_F(SemaphoreTest, ATaskWaitsForItsUnits) {
  Semaphore semaphore(2);
  Asker& first = Spawn(semaphore, {.units = 2});
  Asker& second = Spawn(semaphore, {.units = 1});
  EXPECT_TRUE(first.permit);
  EXPECT_FALSE(second.done);
  first.permit.reset();
  EXPECT_FALSE(second.done);  // nothing runs on the giver's stack
  worker_.Run();
  EXPECT_TRUE(second.permit);
  EXPECT_EQ(semaphore.available(), 1);
}

TEST_F(SemaphoreTest, TasksOfOneWorkerResumeInTheOrderOfAsking) {
  Semaphore semaphore(1);
  Permit permit = *semaphore.TryAcquire(1);
  for (int i = 0; i < 40; ++i) Spawn(semaphore, {.units = 0});
  semaphore.Consume(1);
  permit = Permit();
  worker_.Run();
  ASSERT_EQ(order_.size(), 40u);
  EXPECT_TRUE(std::is_sorted(order_.begin(), order_.end()));
}

TEST_F(SemaphoreTest, ADeadlineEndsTheWaitAndTheNextGoesOn) {
  Semaphore semaphore(5);
  Permit held = *semaphore.TryAcquire(2);
  Asker& large = Spawn(semaphore, {.units = 5, .deadline = In(milliseconds(10))});
  Asker& small = Spawn(semaphore, {.units = 2, .deadline = In(milliseconds(50))});
  Pass(milliseconds(9));
  EXPECT_FALSE(large.done);
  Pass(milliseconds(2));
  EXPECT_TRUE(large.done);
  EXPECT_EQ(large.error, ErrorKind::kDeadlineExceeded);
  EXPECT_TRUE(small.permit);
  Pass(milliseconds(100));  // its timer is disarmed
  EXPECT_TRUE(small.permit);
}

// Trap 3: units are free, but the result is not wanted any more.
TEST_F(SemaphoreTest, ALateOrCancelledRequestFailsThoughUnitsAreFree) {
  Semaphore semaphore(5);
  CancelSource cancel;
  cancel.Cancel();
  EXPECT_EQ(Spawn(semaphore, {.token = cancel.token()}).error, ErrorKind::kCancelled);
  EXPECT_EQ(Spawn(semaphore, {.deadline = In(milliseconds(0))}).error, ErrorKind::kDeadlineExceeded);
  EXPECT_EQ(Spawn(semaphore, {.deadline = In(milliseconds(-5))}).error, ErrorKind::kDeadlineExceeded);
  EXPECT_EQ(semaphore.available(), 5);
}

// Traps 2, 4, 6.
TEST_F(SemaphoreTest, ErrorsAreCheckedInOrderAndHaveTheirKind) {
  Semaphore semaphore(1);
  CancelSource cancel;
  cancel.Cancel();
  EXPECT_EQ(Spawn(semaphore, {.units = 2}).error, ErrorKind::kInvalidArgument);
  EXPECT_EQ(Spawn(semaphore, {.units = 2, .token = cancel.token()}).error, ErrorKind::kCancelled);
  semaphore.Break(ErrorKind::kNotFound);
  EXPECT_EQ(Spawn(semaphore, {.units = 0}).error, ErrorKind::kNotFound);
  EXPECT_EQ(Spawn(semaphore, {.units = 2, .token = cancel.token()}).error, ErrorKind::kNotFound);

  Semaphore bounded(0, 1, 1);
  Asker& waiting = Spawn(bounded, {});
  EXPECT_EQ(Spawn(bounded, {}).error, ErrorKind::kQueueFull);
  EXPECT_FALSE(waiting.done);
}

TEST_F(SemaphoreTest, ACancelEndsTheWait) {
  Semaphore semaphore(0, 1);
  CancelSource cancel;
  Asker& asker = Spawn(semaphore, {.deadline = In(milliseconds(10)), .token = cancel.token()});
  cancel.Cancel();
  EXPECT_FALSE(asker.done);
  worker_.Run();
  EXPECT_EQ(asker.error, ErrorKind::kCancelled);
  EXPECT_EQ(semaphore.waiters(), 0u);
  Pass(milliseconds(20));
}

TEST_F(SemaphoreTest, AGrantBeforeTheCancelStands) {
  Semaphore semaphore(0, 1);
  CancelSource cancel;
  Asker& asker = Spawn(semaphore, {.deadline = In(milliseconds(10)), .token = cancel.token()});
  semaphore.Signal(1);
  cancel.Cancel();
  Pass(milliseconds(20));
  EXPECT_TRUE(asker.permit);
}

TEST_F(SemaphoreTest, ABreakFailsAllWaitersAndRunsNoContinuationInside) {
  constexpr int kMany = 100'000;
  Semaphore semaphore(0, 1);
  askers_.reserve(kMany);
  for (int i = 0; i < kMany; ++i) {
    askers_.push_back(std::make_unique<Asker>());
    worker_.runtime.SpawnOn(worker_.worker, Run(semaphore, {}, *askers_.back(), i, order_));
  }
  worker_.Run();
  EXPECT_EQ(semaphore.waiters(), size_t{kMany});
  semaphore.Break(ErrorKind::kDraining);
  EXPECT_TRUE(order_.empty());
  worker_.Run();
  ASSERT_EQ(order_.size(), size_t{kMany});
  EXPECT_TRUE(std::is_sorted(order_.begin(), order_.end()));
  for (const auto& asker : askers_) ASSERT_EQ(asker->error, ErrorKind::kDraining);
}

TEST_F(SemaphoreTest, AWaiterMayOutliveTheSemaphore) {
  auto semaphore = std::make_unique<Semaphore>(1);
  Asker& holder = Spawn(*semaphore, {});
  Asker& asker = Spawn(*semaphore, {.deadline = In(milliseconds(10))});
  semaphore.reset();
  worker_.Run();
  EXPECT_EQ(asker.error, ErrorKind::kDraining);
  holder.permit.reset();
}

TEST_F(SemaphoreTest, ADestroyedWaitLeavesTheQueueAndHandsOnWhatItWasGranted) {
  Semaphore semaphore(1);
  Permit held = *semaphore.TryAcquire(1);
  {
    test::ManualWorker other;
    Asker waiting, granted;
    std::vector<int> order;
    other.runtime.SpawnOn(other.worker, Run(semaphore, {.deadline = In(milliseconds(5))}, granted, 0, order));
    other.runtime.SpawnOn(other.worker, Run(semaphore, {.deadline = In(milliseconds(5))}, waiting, 1, order));
    {
      runtime::Worker::ScopedCurrentForTest current(other.worker);
      other.Run();
    }
    EXPECT_EQ(semaphore.waiters(), 2u);
    held = Permit();  // grants the first, which never runs again
    EXPECT_EQ(semaphore.waiters(), 1u);
    std::jthread closer([&] { other.runtime.Shutdown(); });  // this thread stands for a worker
    closer.join();
    EXPECT_TRUE(order.empty());
  }
  EXPECT_EQ(semaphore.waiters(), 0u);
  EXPECT_EQ(semaphore.available(), 1);
}

}  // namespace
}  // namespace sluice::sync
