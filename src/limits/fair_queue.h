// FairQueue: the order in which a limiter serves waiting calls: round robin over the flows (client connections)
// that have waiters, first come, first served within a flow. So a client that sends a hundred times as
// much waits for itself.
// docs/semaphore.md
//
//   this round   A: a1 a2 a3     <- its first waiter is next; then A goes to the next round
//                C: c1
//   next round   B: b2 b3        <- has been served in this round
//   idle         D               <- served in this round, no waiter now; kept until the round ends, <= kIdleMax
//
// A flow that begins to wait joins this round, unless it has been served in it already: then the next. Without
// that memory a modest client that asks again as soon as it was served would either wait for the whole of another
// client's turn or, put in front, keep out those with a queue. A round ends when a waiter is to be served and no
// flow of it is left; then idle flows are forgotten. If more go idle in a round than are remembered, newcomers
// join the next round: many short-lived clients cannot delay one.
//
// Bound: when `size_max` wait, a newcomer of a flow that even with it has fewer waiters than the longest flow
// displaces the newest waiter of that flow; else it is refused. Flows are kept by length, so the longest is found
// in O(1).
//
// Costs: all is O(1); a flow that begins to wait takes an entry of a hash table, from a small stock if there is
// one. Not thread-safe: under the limiter's semaphore's mutex. Where a node's flow is equal for two clients they
// share a turn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/intrusive_list.h"

namespace sluice::limits {

class FairQueue {
 private:
  struct ByTurn;
  struct ByLength;
  struct Flow;

 public:
  // Flows that wait for nothing any more but were served in this round. More are not remembered.
  static constexpr size_t kIdleMax = 64;

  class Node : public base::ListNode<Node> {
   public:
    // Whose call this is. Set before it waits.
    void set_flow(uint64_t flow) { key_ = flow; }
    uint64_t flow() const { return key_; }

   private:
    friend class FairQueue;
    uint64_t key_ = 0;
    Flow* flow_ = nullptr;  // while it waits
  };

  struct Admission {
    bool admitted = false;
    Node* displaced = nullptr;
  };

  FairQueue();
  ~FairQueue();
  FairQueue(const FairQueue&) = delete;
  FairQueue& operator=(const FairQueue&) = delete;

  // The contract is that of sync::SemaphoreFifo.
  size_t size() const { return size_; }
  Node* Front();
  void Pop(Node& front);
  void Remove(Node& node);
  Admission Admit(Node& newcomer, size_t size_max);

  // Waiters that are served before `last`, the newest of its flow, at most: in each round its flow has one turn, and so
  // has each other that waits.
  size_t Ahead(const Node& last) const;

  // Entries in the table, idle ones included.
  size_t flows() const { return flows_.size(); }

 private:
  struct Flow : base::ListNode<ByTurn>, base::ListNode<ByLength> {
    uint64_t key = 0;
    base::IntrusiveList<Node, Node> waiters;
    size_t length = 0;
    uint64_t served_round = 0;  // when it was last served
  };
  using Turn = base::IntrusiveList<Flow, ByTurn>;
  using Length = base::IntrusiveList<Flow, ByLength>;

  Flow& FindOrAdd(uint64_t key);
  void SetLength(Flow& flow, size_t length);
  void Unlink(Node& node);
  // `flow` has no waiter left.
  void Empty(Flow& flow);
  void Forget(Flow& flow);
  void EndRound();

  absl::flat_hash_map<uint64_t, std::unique_ptr<Flow>> flows_;
  Turn this_round_, next_round_, idle_;
  uint64_t round_ = 1;
  size_t idle_count_ = 0;
  bool idle_overflow_ = false;    // a flow served in this round has been forgotten
  std::deque<Length> by_length_;  // [n]: flows with n waiters; its size is what the longest ever had + 1
  size_t longest_ = 0;
  size_t size_ = 0;
  std::vector<std::unique_ptr<Flow>> stock_;
};

}  // namespace sluice::limits
