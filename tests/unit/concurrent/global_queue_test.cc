// GlobalQueue: order, the closed mark, and the work that a take costs however many nodes wait.
#include "concurrent/global_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace sluice::concurrent {
namespace {

struct Numbered : MpscNode {
  int value = 0;
};

struct Chain {
  std::vector<Numbered> nodes;
  explicit Chain(int count, int first = 0) : nodes(static_cast<size_t>(count)) {
    for (int i = 0; i < count; ++i) nodes[static_cast<size_t>(i)].value = first + i;
  }
  void PushEach(GlobalQueue& queue) {
    for (Numbered& node : nodes) ASSERT_TRUE(queue.Push(node));
  }
  bool PushWhole(GlobalQueue& queue) {
    for (size_t i = 0; i + 1 < nodes.size(); ++i) nodes[i].mpsc_next = &nodes[i + 1];
    return queue.PushChain(nodes.front(), nodes.back(), nodes.size());
  }
};

std::vector<int> Values(MpscNode* node) {
  std::vector<int> values;
  for (; node != nullptr; node = node->mpsc_next) values.push_back(static_cast<Numbered*>(node)->value);
  return values;
}

TEST(GlobalQueue, TakesTheOldestFirstAFewAtATime) {
  GlobalQueue queue;
  Chain chain(5);
  EXPECT_TRUE(queue.Empty());
  EXPECT_EQ(queue.Take(3), nullptr);
  chain.PushEach(queue);
  EXPECT_EQ(Values(queue.Take(2)), (std::vector{0, 1}));
  EXPECT_FALSE(queue.Empty());
  EXPECT_EQ(Values(queue.Take(3)), (std::vector{2, 3, 4}));
  EXPECT_TRUE(queue.Empty());
  EXPECT_EQ(queue.Take(1), nullptr);
}

TEST(GlobalQueue, ANodePushedBetweenTwoTakesIsBehindThoseThatWaited) {
  GlobalQueue queue;
  Chain before(4), between(3, 4);
  EXPECT_TRUE(before.PushWhole(queue));
  EXPECT_EQ(Values(queue.Take(2)), (std::vector{0, 1}));
  EXPECT_TRUE(between.PushWhole(queue));
  EXPECT_EQ(Values(queue.Take(100)), (std::vector{2, 3, 4, 5, 6}));
}

TEST(GlobalQueue, ATakeOfAllLeavesItEmptyAndOpen) {
  GlobalQueue queue;
  Chain first(2), second(1, 2);
  first.PushEach(queue);
  EXPECT_EQ(Values(queue.TakeAll()), (std::vector{0, 1}));
  EXPECT_TRUE(queue.Empty());
  EXPECT_EQ(queue.TakeAll(), nullptr);
  second.PushEach(queue);
  EXPECT_EQ(Values(queue.TakeAll()), (std::vector{2}));
}

TEST(GlobalQueue, ClosedItReturnsWhatWasLeftAndRefusesAllPushes) {
  GlobalQueue queue;
  Chain left(3), late(2, 3);
  left.PushEach(queue);
  EXPECT_EQ(Values(queue.Close()), (std::vector{0, 1, 2}));
  EXPECT_FALSE(queue.Push(late.nodes[0]));
  EXPECT_FALSE(late.PushWhole(queue));
  EXPECT_TRUE(queue.Empty());
  EXPECT_EQ(queue.Take(1), nullptr);
  EXPECT_EQ(queue.Close(), nullptr);
}

// A node that counts every look at a link and every change of one.
struct CountedNode;
uint64_t touches = 0;
class CountedLink {
 public:
  CountedLink& operator=(CountedNode* node) {
    ++touches;
    node_ = node;
    return *this;
  }
  operator CountedNode*() const {
    ++touches;
    return node_;
  }

 private:
  CountedNode* node_ = nullptr;
};
struct CountedNode {
  CountedLink mpsc_next;
};

// The cost of a task that waits in the global queue must not grow with those that wait behind it.
TEST(GlobalQueue, ANodeIsTouchedAFewTimesHoweverManyWait) {
  constexpr size_t kBatch = 128;
  for (size_t count : {size_t{1'000}, size_t{12'500}, size_t{200'000}}) {
    BasicGlobalQueue<CountedNode> queue;
    std::vector<CountedNode> nodes(count);
    touches = 0;
    for (CountedNode& node : nodes) ASSERT_TRUE(queue.Push(node));
    size_t taken = 0;
    while (CountedNode* node = queue.Take(kBatch)) {
      for (; node != nullptr; node = node->mpsc_next) ++taken;
    }
    EXPECT_EQ(taken, count);
    EXPECT_LE(touches, 6 * count) << count << " nodes";
  }
}

// Producers, and takers of different appetite: each node comes out once, and a taker sees a producer's nodes in order.
TEST(GlobalQueue, EachNodeIsTakenOnceAndInItsProducersOrder) {
  constexpr int kProducers = 3, kTakers = 3, kEach = 20'000;
  GlobalQueue queue;
  std::vector<std::unique_ptr<Chain>> chains;
  for (int p = 0; p < kProducers; ++p) chains.push_back(std::make_unique<Chain>(kEach, p * kEach));
  std::atomic<int> taken = 0, disorder = 0;
  std::vector<std::atomic<int>> seen(kProducers * kEach);
  std::vector<std::thread> threads;
  for (auto& chain : chains) {
    threads.emplace_back([&queue, &chain] { chain->PushEach(queue); });
  }
  for (int t = 0; t < kTakers; ++t) {
    threads.emplace_back([&, t] {
      int last[kProducers] = {-1, -1, -1};
      while (taken.load() < kProducers * kEach) {
        MpscNode* node = queue.Take(static_cast<size_t>(1 + 50 * t));
        if (node == nullptr) std::this_thread::yield();
        for (; node != nullptr; node = node->mpsc_next) {
          const int value = static_cast<Numbered*>(node)->value;
          ++seen[static_cast<size_t>(value)];
          if (value <= std::exchange(last[value / kEach], value)) ++disorder;
          ++taken;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(disorder, 0);
  for (const auto& times : seen) ASSERT_EQ(times, 1);
  EXPECT_TRUE(queue.Empty());
}

// Close against pushes: every node is returned by Take or Close, or refused, and never both.
TEST(GlobalQueue, APushThatRacesWithCloseIsReturnedOrRefused) {
  for (int round = 0; round < 200; ++round) {
    constexpr int kEach = 100;
    GlobalQueue queue;
    Chain chains[2] = {Chain(kEach), Chain(kEach)};
    std::atomic<int> refused = 0, ready = 0;
    std::vector<std::thread> threads;
    for (Chain& chain : chains) {
      threads.emplace_back([&] {
        ++ready;
        for (Numbered& node : chain.nodes) refused += queue.Push(node) ? 0 : 1;
      });
    }
    while (ready.load() < 2) std::this_thread::yield();
    size_t returned = Values(queue.Take(10)).size();
    returned += Values(queue.Close()).size();
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(static_cast<int>(returned) + refused, 2 * kEach);
  }
}

}  // namespace
}  // namespace sluice::concurrent
