#include "sync/event.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "runtime/runtime.h"
#include "runtime/yield.h"

namespace sluice::sync {
namespace {

using runtime::Runtime;
using runtime::Task;
using runtime::Worker;

class EventTest : public testing::Test {
 protected:
  Runtime runtime_{{.workers = 1}};
  Worker& worker_ = runtime_.worker(0);
  Worker::ScopedCurrentForTest current_{worker_};
  Event event_;
  int passed_ = 0;

  static Task<> Pass(Event& event, int times, int& passed) {
    for (int i = 0; i < times; ++i) {
      co_await event.Wait();
      ++passed;
    }
  }
  void Run() { worker_.RunUntilIdleForTest(); }
};

TEST_F(EventTest, AWaiterSuspendsUntilSet) {
  runtime_.SpawnOn(worker_, Pass(event_, 1, passed_));
  Run();
  EXPECT_EQ(passed_, 0);
  event_.Set();
  EXPECT_EQ(passed_, 0);  // nothing runs on top of the setter's stack
  Run();
  EXPECT_EQ(passed_, 1);
  EXPECT_EQ(runtime_.LiveTasks(), 0u);
}

TEST_F(EventTest, ASetBeforeTheWaitIsNotLost) {
  event_.Set();
  runtime_.SpawnOn(worker_, Pass(event_, 1, passed_));
  Run();
  EXPECT_EQ(passed_, 1);
}

TEST_F(EventTest, SeveralSetsBeforeTheWaiterRunsAreOne) {
  runtime_.SpawnOn(worker_, Pass(event_, 2, passed_));
  Run();
  event_.Set();
  event_.Set();
  event_.Set();
  Run();
  EXPECT_EQ(passed_, 1);
  event_.Set();
  Run();
  EXPECT_EQ(passed_, 2);
}

TEST_F(EventTest, ADestroyedWaiterIsForgotten) {
  auto runtime = std::make_unique<Runtime>(runtime::RuntimeOptions{.workers = 1});
  runtime->SpawnOn(runtime->worker(0), Pass(event_, 1, passed_));
  runtime->worker(0).RunUntilIdleForTest();
  {
    // On another thread: this one stands for a worker.
    std::jthread closer([&] { runtime->Shutdown(); });
  }
  EXPECT_EQ(runtime->LiveTasks(), 0u);
  event_.Set();
  EXPECT_EQ(passed_, 0);
}

}  // namespace
}  // namespace sluice::sync
