#include "limits/fair_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace sluice::limits {
namespace {

constexpr size_t kNoBound = 1'000'000;

class FairQueueTest : public testing::Test {
 protected:
  struct Call : FairQueue::Node {
    std::string name;
  };
  // "a2": flow a, call 2.
  FairQueue::Admission Admit(const std::string& name, size_t size_max = kNoBound) {
    Call& call = calls_.emplace_back();
    call.name = name;
    call.set_flow(static_cast<uint64_t>(name[0]));
    return queue_.Admit(call, size_max);
  }
  void AdmitAll(const std::vector<std::string>& names) {
    for (const std::string& name : names) EXPECT_TRUE(Admit(name).admitted);
  }
  static std::string Name(FairQueue::Node* node) { return node == nullptr ? "" : static_cast<Call*>(node)->name; }
  std::string Serve() {
    FairQueue::Node* front = queue_.Front();
    if (front != nullptr) queue_.Pop(*front);
    return Name(front);
  }
  std::string Serve(int times) {
    std::string served;
    for (int i = 0; i < times; ++i) served += (i == 0 ? "" : " ") + Serve();
    return served;
  }
  void Leave(const std::string& name) {
    for (Call& call : calls_) {
      if (call.name == name) queue_.Remove(call);
    }
  }

  std::list<Call> calls_;
  FairQueue queue_;
};

TEST_F(FairQueueTest, OneFlowIsServedInItsOrder) {
  AdmitAll({"a1", "a2", "a3"});
  EXPECT_EQ(Serve(4), "a1 a2 a3 ");
}

TEST_F(FairQueueTest, FlowsTakeTurns) {
  AdmitAll({"a1", "a2", "a3", "a4", "b1", "b2", "c1"});
  EXPECT_EQ(Serve(7), "a1 b1 c1 a2 b2 a3 a4");
}

TEST_F(FairQueueTest, ALeavingWaiterCostsItsFlowNoTurn) {
  AdmitAll({"a1", "a2", "b1", "b2", "c1"});
  Leave("a1");
  Leave("c1");
  EXPECT_EQ(queue_.size(), 3u);
  EXPECT_EQ(Serve(3), "a2 b1 b2");
  EXPECT_EQ(queue_.Front(), nullptr);
}

// One call at a time against a long queue: every second turn, and never two in a row.
TEST_F(FairQueueTest, AFlowThatComesAgainAfterItsTurnWaitsForTheOthersOnce) {
  AdmitAll({"a1", "a2", "a3", "a4", "b1"});
  EXPECT_EQ(Serve(2), "a1 b1");
  AdmitAll({"b2"});  // has been served in this round
  EXPECT_EQ(Serve(2), "a2 b2");
  EXPECT_EQ(Serve(), "a3");
  AdmitAll({"b3"});  // a was served in this round, b was not
  EXPECT_EQ(Serve(2), "b3 a4");
}

// Flows that each have one call and come again at once do not keep out one with a queue.
TEST_F(FairQueueTest, ManyModestFlowsDoNotStarveALongOne) {
  AdmitAll({"z1", "z2", "z3", "a0", "b0", "c0", "d0"});
  int served[128] = {};
  for (int i = 0; i < 10; ++i) {
    const std::string name = Serve();
    ++served[static_cast<int>(name[0])];
    if (name[0] != 'z') Admit(name.substr(0, 1) + std::to_string(i + 1));
  }
  EXPECT_EQ(served[static_cast<int>('z')], 2);
  for (char flow : {'a', 'b', 'c', 'd'}) EXPECT_EQ(served[static_cast<int>(flow)], 2) << flow;
}

// Nor do flows that are new each time: where more are served than are remembered, newcomers join the next round.
TEST_F(FairQueueTest, ManyShortLivedFlowsDoNotStarveALongOne) {
  std::vector<std::unique_ptr<FairQueue::Node>> nodes;
  uint64_t next_flow = 1000;
  auto admit = [&](uint64_t flow) {
    nodes.push_back(std::make_unique<FairQueue::Node>());
    nodes.back()->set_flow(flow);
    EXPECT_TRUE(queue_.Admit(*nodes.back(), kNoBound).admitted);
  };
  for (int i = 0; i < 10; ++i) admit(1);
  admit(next_flow++);
  int longs = 0;
  for (int i = 0; i < 10 * (static_cast<int>(FairQueue::kIdleMax) + 4); ++i) {
    FairQueue::Node* front = queue_.Front();
    ASSERT_NE(front, nullptr);
    if (front->flow() == 1) ++longs;
    queue_.Pop(*front);
    admit(next_flow++);
  }
  EXPECT_GE(longs, 9);
  while (FairQueue::Node* front = queue_.Front()) queue_.Pop(*front);
}

// A flow that could not be remembered counts for one round: then newcomers join the present round again.
TEST_F(FairQueueTest, WhatIsForgottenCountsUntilTheRoundEnds) {
  AdmitAll({"a1", "a2", "a3"});
  std::list<FairQueue::Node> others;
  for (size_t i = 0; i <= FairQueue::kIdleMax; ++i) {
    others.emplace_back().set_flow(1000 + i);
    ASSERT_TRUE(queue_.Admit(others.back(), kNoBound).admitted);
  }
  EXPECT_EQ(Serve(), "a1");
  while (queue_.Front()->flow() >= 1000) queue_.Pop(*queue_.Front());  // one more than is remembered
  AdmitAll({"b1"});
  EXPECT_EQ(Serve(), "a2");  // a new round, which b waited for
  EXPECT_EQ(queue_.flows(), 2u);
  AdmitAll({"c1", "c2"});
  EXPECT_EQ(Serve(4), "b1 c1 a3 c2");
}

TEST_F(FairQueueTest, AFullQueueRefusesTheLongestFlowAndMakesRoomForOthers) {
  AdmitAll({"a1", "a2", "a3", "b1"});
  EXPECT_FALSE(Admit("a4", 4).admitted);
  FairQueue::Admission admission = Admit("c1", 4);
  EXPECT_TRUE(admission.admitted);
  EXPECT_EQ(Name(admission.displaced), "a3");
  EXPECT_FALSE(Admit("b2", 4).admitted);  // would be as long as the longest: nothing would be gained
  EXPECT_EQ(queue_.size(), 4u);
  EXPECT_EQ(Serve(4), "a1 b1 c1 a2");
}

TEST_F(FairQueueTest, AQueueOfNoneRefusesAll) {
  EXPECT_FALSE(Admit("a1", 0).admitted);
  EXPECT_EQ(queue_.size(), 0u);
  EXPECT_EQ(queue_.flows(), 0u);
}

TEST_F(FairQueueTest, NoMemoryOfFlowsThatDoNotWait) {
  for (int round = 0; round < 3; ++round) {
    std::list<FairQueue::Node> nodes;
    for (int i = 0; i < 1000; ++i) {
      nodes.emplace_back().set_flow(static_cast<uint64_t>(i));
      ASSERT_TRUE(queue_.Admit(nodes.back(), kNoBound).admitted);
    }
    EXPECT_EQ(queue_.flows(), 1000u);
    while (queue_.size() > 1) {
      queue_.Pop(*queue_.Front());
      ASSERT_LE(queue_.flows(), queue_.size() + FairQueue::kIdleMax);
    }
    queue_.Remove(*queue_.Front());
    EXPECT_EQ(queue_.flows(), 0u);
  }
}

// A reference that is slow and plain: flows in vectors, all looked through each time.
class Reference {
 public:
  std::optional<int> Admit(int call, uint64_t flow, size_t max, bool& admitted) {
    std::optional<int> displaced;
    admitted = true;
    if (size() >= max) {
      size_t longest = 0;
      for (auto& [key, calls] : flows_) longest = std::max(longest, calls.size());
      if (flows_[flow].size() + 1 >= longest) {
        admitted = false;
        return displaced;
      }
      displaced = -1;  // one of the longest flows; which is the queue's choice
    }
    flows_[flow].push_back(call);
    return displaced;
  }
  bool IsNewestOfALongest(int call, uint64_t flow) {
    size_t longest = 0;
    for (auto& [key, calls] : flows_) longest = std::max(longest, calls.size());
    return flows_[flow].size() == longest && flows_[flow].back() == call;
  }
  bool IsOldestOfItsFlow(int call, uint64_t flow) { return !flows_[flow].empty() && flows_[flow].front() == call; }
  void Erase(int call, uint64_t flow) { std::erase(flows_[flow], call); }
  size_t size() {
    size_t size = 0;
    for (auto& [key, calls] : flows_) size += calls.size();
    return size;
  }

 private:
  std::map<uint64_t, std::vector<int>> flows_;
};

TEST_F(FairQueueTest, AgreesWithAPlainModel) {
  std::mt19937 random(20261);
  constexpr int kCalls = 24;
  std::vector<FairQueue::Node> nodes(kCalls);
  std::vector<bool> waits(kCalls);
  Reference reference;
  for (int step = 0; step < 300'000; ++step) {
    const int call = static_cast<int>(random() % kCalls);
    FairQueue::Node& node = nodes[static_cast<size_t>(call)];
    const int what = static_cast<int>(random() % 8);
    if (what == 0) {
      if (waits[call]) {
        queue_.Remove(node);
        reference.Erase(call, node.flow());
        waits[call] = false;
      }
    } else if (what < 5) {
      if (waits[call]) continue;
      node.set_flow(std::min<uint64_t>(random() % 8, random() % 8));
      const size_t max = 12 + random() % 2;
      bool admitted;
      const bool displaces = reference.Admit(call, node.flow(), max, admitted).has_value();
      const FairQueue::Admission admission = queue_.Admit(node, max);
      ASSERT_EQ(admission.admitted, admitted);
      ASSERT_EQ(admission.displaced != nullptr, displaces);
      waits[call] = admitted;
      if (displaces) {
        const int displaced = static_cast<int>(admission.displaced - nodes.data());
        ASSERT_TRUE(reference.IsNewestOfALongest(displaced, nodes[displaced].flow()));
        reference.Erase(displaced, nodes[displaced].flow());
        waits[displaced] = false;
      }
    } else if (FairQueue::Node* front = queue_.Front()) {
      const int served = static_cast<int>(front - nodes.data());
      ASSERT_TRUE(reference.IsOldestOfItsFlow(served, front->flow()));
      queue_.Pop(*front);
      reference.Erase(served, front->flow());
      waits[served] = false;
    }
    ASSERT_EQ(queue_.size(), reference.size());
    ASSERT_EQ(queue_.Front() == nullptr, queue_.size() == 0);
  }
}

}  // namespace
}  // namespace sluice::limits
