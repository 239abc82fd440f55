#include "concurrent/mpsc_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "support/interleave.h"

namespace sluice::concurrent {
namespace {

struct Item : MpscNode {
  int producer = 0;
  int number = 0;
};

TEST(MpscQueue, ItemsComeOutInTheOrderTheyWentIn) {
  MpscQueue queue;
  Item items[3];
  EXPECT_TRUE(queue.Empty());
  for (Item& item : items) EXPECT_TRUE(queue.Push(item));
  EXPECT_FALSE(queue.Empty());
  MpscNode* node = queue.TakeAll();
  for (Item& item : items) {
    ASSERT_EQ(node, &item);
    node = node->mpsc_next;
  }
  EXPECT_EQ(node, nullptr);
  EXPECT_EQ(queue.TakeAll(), nullptr);
}

TEST(MpscQueue, AClosedQueueRefusesAndGivesBackWhatItHeld) {
  MpscQueue queue;
  Item before, after;
  EXPECT_TRUE(queue.Push(before));
  EXPECT_EQ(queue.Close(), &before);
  EXPECT_FALSE(queue.Push(after));
  EXPECT_EQ(after.mpsc_next, nullptr);
  EXPECT_TRUE(queue.Empty());
  EXPECT_EQ(queue.TakeAll(), nullptr);
  EXPECT_EQ(queue.Close(), nullptr);
}

TEST(MpscQueue, ManyProducersKeepTheirOwnOrderAndLoseNothing) {
  constexpr int kProducers = 3, kItems = 100'000;
  MpscQueue queue;
  std::vector<std::vector<Item>> items(kProducers);
  std::vector<std::thread> producers;
  for (int p = 0; p < kProducers; ++p) {
    items[p] = std::vector<Item>(kItems);
    producers.emplace_back([&, p] {
      for (int i = 0; i < kItems; ++i) {
        items[p][i].producer = p;
        items[p][i].number = i;
        ASSERT_TRUE(queue.Push(items[p][i]));
      }
    });
  }
  int next[kProducers] = {};
  for (int taken = 0; taken < kProducers * kItems;) {
    for (MpscNode* node = queue.TakeAll(); node != nullptr; node = node->mpsc_next, ++taken) {
      const Item& item = *static_cast<Item*>(node);
      ASSERT_EQ(item.number, next[item.producer]++);
    }
  }
  for (std::thread& producer : producers) producer.join();
  EXPECT_TRUE(queue.Empty());
}

TEST(MpscQueue, EveryInterleavingOfPushTakeAndCloseAccountsForEachItem) {
  struct State {
    BasicMpscQueue<interleave::Atomic> queue;
    Item items[4];
    int taken[4] = {};
    bool refused[4] = {};
    void Count(MpscNode* node) {
      for (; node != nullptr; node = node->mpsc_next) ++taken[static_cast<Item*>(node) - items];
    }
  };
  const auto result = interleave::Explore(
      [](interleave::Run& run) {
        auto s = std::make_shared<State>();
        for (int t : {0, 2}) {
          run.Thread([=] {
            for (int i : {t, t + 1}) s->refused[i] = !s->queue.Push(s->items[i]);
          });
        }
        run.Thread([=] {
          s->Count(s->queue.TakeAll());
          s->Count(s->queue.Close());
        });
        run.AtEnd([=] {
          for (int i = 0; i < 4; ++i) ASSERT_EQ(s->taken[i] + (s->refused[i] ? 1 : 0), 1) << "item " << i;
        });
      },
      {.preemptions_max = 2});
  EXPECT_GT(result.schedules, 100u);
}

// The parking handshake of the runtime, in small: announce, look again, sleep; against push, then look for the sleeper.
TEST(MpscQueue, EveryInterleavingOfParkingAndSendingLeavesNoItemBehindASleeper) {
  struct State {
    BasicMpscQueue<interleave::Atomic> queue;
    interleave::Atomic<uint32_t> parked{0};
    std::atomic<int> wakes{0};
    std::atomic<bool> slept{false};
    Item items[2];
  };
  const auto result = interleave::Explore(
      [](interleave::Run& run) {
        auto s = std::make_shared<State>();
        for (int t = 0; t < 2; ++t) {
          run.Thread([=] {
            s->queue.Push(s->items[t]);
            uint32_t expected = 1;
            if (s->parked.load() == 1 && s->parked.compare_exchange_strong(expected, 2)) ++s->wakes;
          });
        }
        run.Thread([=] {
          s->queue.TakeAll();
          s->parked.store(1);
          if (!s->queue.Empty()) {
            s->parked.exchange(0);
            s->queue.TakeAll();
          } else {
            s->slept = true;
          }
        });
        run.AtEnd([=] {
          if (s->slept && !s->queue.Empty()) {
            ASSERT_EQ(s->wakes, 1);
          }
          ASSERT_LE(s->wakes, 1);
        });
      },
      {.preemptions_max = 2});
  EXPECT_GT(result.schedules, 100u);
}

}  // namespace
}  // namespace sluice::concurrent
