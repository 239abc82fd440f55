#include "concurrent/run_queue.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "base/random.h"
#include "support/interleave.h"

namespace sluice::concurrent {
namespace {

using Queue = RunQueue<int, 8>;

TEST(RunQueue, AgreesWithADequeOverManyRandomSteps) {
  constexpr uint64_t kSeed = 20261;
  SCOPED_TRACE(kSeed);
  base::Random random(kSeed);
  Queue queue;
  std::deque<int*> model;
  std::vector<int> items(16);
  for (int step = 0; step < 1'000'000; ++step) {
    int* item = &items[random.Below(items.size())];
    switch (random.Below(8)) {
      case 0:
      case 1:
      case 2: {
        const bool pushed = queue.Push(item);
        ASSERT_EQ(pushed, model.size() < Queue::capacity());
        if (pushed) model.push_back(item);
        break;
      }
      case 3:
      case 4: {
        int* popped = queue.Pop();
        ASSERT_EQ(popped, model.empty() ? nullptr : model.front());
        if (popped != nullptr) model.pop_front();
        break;
      }
      case 5: {
        int* out[Queue::capacity() / 2];
        const size_t n = queue.TakeHalf(out);
        ASSERT_EQ(n, model.size() / 2);
        for (size_t i = 0; i < n; ++i, model.pop_front()) ASSERT_EQ(out[i], model.front());
        break;
      }
      default: {
        Queue thief;
        int* first = queue.StealInto(thief);
        const size_t n = (model.size() + 1) / 2;
        ASSERT_EQ(first != nullptr, n > 0);
        ASSERT_EQ(thief.SizeApprox(), n > 0 ? n - 1 : 0);
        for (size_t i = 0; i < n; ++i, model.pop_front()) ASSERT_EQ(i == 0 ? first : thief.Pop(), model.front());
      }
    }
    ASSERT_EQ(queue.SizeApprox(), model.size());
  }
}

// One owner, k thieves, a tiny queue: each item comes out exactly once.
void StressWithThieves(int thieves, int items) {
  RunQueue<int, 4> queue;
  std::vector<int> values(items);
  std::vector<std::atomic<int>> seen(items);
  std::atomic<bool> stop{false};
  auto take = [&](int* item) { seen[item - values.data()].fetch_add(1, std::memory_order_relaxed); };
  std::vector<std::thread> threads;
  for (int t = 0; t < thieves; ++t) {
    threads.emplace_back([&] {
      RunQueue<int, 4> own;
      while (!stop.load(std::memory_order_acquire)) {
        if (int* item = queue.StealInto(own)) take(item);
        while (int* item = own.Pop()) take(item);
      }
    });
  }
  base::Random random(7);
  for (int i = 0; i < items; ++i) {
    while (!queue.Push(&values[i])) {
      int* half[2];
      const size_t n = queue.TakeHalf(half);
      for (size_t k = 0; k < n; ++k) take(half[k]);
    }
    if (random.Below(3) == 0) {
      if (int* item = queue.Pop()) take(item);
    }
  }
  while (int* item = queue.Pop()) take(item);
  stop.store(true, std::memory_order_release);
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < items; ++i) ASSERT_EQ(seen[i].load(), 1) << i;
}

TEST(RunQueue, OneThiefAndTheOwnerTakeEachItemOnce) { StressWithThieves(1, 300'000); }
TEST(RunQueue, ThreeThievesAndTheOwnerTakeEachItemOnce) { StressWithThieves(3, 300'000); }

// All interleavings around the last items: `before` in the queue, the owner pops and pushes, thieves steal.
struct Small {
  static constexpr int kItems = 6;
  using Q = RunQueue<int, 4, interleave::Atomic>;
  Q queue;
  Q loot[2];
  int values[kItems] = {};
  std::atomic<int> seen[kItems] = {};
  void Take(int* item) {
    if (item != nullptr) ++seen[item - values];
  }
  void TakeAll(Q& q) {
    while (int* item = q.Pop()) Take(item);
  }
};

TEST(RunQueue, EveryInterleavingAtTheLastItemHandsItOutOnce) {
  for (int before = 0; before <= 3; ++before) {
    const auto result = interleave::Explore(
        [before](interleave::Run& run) {
          auto s = std::make_shared<Small>();
          for (int i = 0; i < before; ++i) s->queue.Push(&s->values[i]);
          run.Thread([=] {
            s->Take(s->queue.Pop());
            s->queue.Push(&s->values[before]);
            s->Take(s->queue.Pop());
          });
          run.Thread([=] { s->Take(s->queue.StealInto(s->loot[0])); });
          run.Thread([=] { s->Take(s->queue.StealInto(s->loot[1])); });
          run.AtEnd([=] {
            for (auto* q : {&s->queue, &s->loot[0], &s->loot[1]}) s->TakeAll(*q);
            for (int i = 0; i <= before; ++i) ASSERT_EQ(s->seen[i], 1) << "item " << i << " of " << before;
          });
        },
        {.preemptions_max = 2});
    EXPECT_GT(result.schedules, 20u);
  }
}

TEST(RunQueue, EveryInterleavingOfOverflowAndTheftHandsEachItemOutOnce) {
  const auto result = interleave::Explore([](interleave::Run& run) {
    auto s = std::make_shared<Small>();
    for (int i = 0; i < 4; ++i) s->queue.Push(&s->values[i]);
    run.Thread([=] {  // the slots are reused while the thief reads them
      for (int i = 4; i < 6; ++i) {
        while (!s->queue.Push(&s->values[i])) {
          int* half[2];
          const size_t n = s->queue.TakeHalf(half);
          for (size_t k = 0; k < n; ++k) s->Take(half[k]);
        }
      }
      s->Take(s->queue.Pop());
    });
    run.Thread([=] { s->Take(s->queue.StealInto(s->loot[0])); });
    run.AtEnd([=] {
      s->TakeAll(s->queue);
      s->TakeAll(s->loot[0]);
      for (int i = 0; i < 6; ++i) ASSERT_EQ(s->seen[i], 1) << "item " << i;
    });
  });
  EXPECT_GT(result.schedules, 100u);
}

}  // namespace
}  // namespace sluice::concurrent
