// MpscQueue: an intrusive lock-free list that any thread may push to and one thread takes whole, in FIFO
// order.
//
//   head_ -> newest -> ... -> oldest -> null       head_ == closed mark: no more pushes
//
// Push:      one CAS on head_ (Treiber 1986). No single pop, hence no ABA: nodes leave only all at once.
// TakeAll:   one exchange with null, then the chain is reversed, privately.
// Close:     one exchange with the closed mark. A push comes either before it (and is returned) or after (and is
//            refused): that one word decides whether an item is handled or handed back, also during shutdown.
//
// Costs: takers touch all taken nodes twice (reversal). Several takers are safe too (each gets a disjoint
// batch).
#pragma once

#include <atomic>

namespace sluice::concurrent {

struct MpscNode {
  MpscNode* mpsc_next = nullptr;
};

template <template <typename> class Atomic = std::atomic>
class BasicMpscQueue {
 public:
  BasicMpscQueue() = default;
  BasicMpscQueue(const BasicMpscQueue&) = delete;
  BasicMpscQueue& operator=(const BasicMpscQueue&) = delete;

  // Any thread. False, and nothing changed, once closed.
  bool Push(MpscNode& node) {
    MpscNode* head = head_.load(std::memory_order_relaxed);
    do {
      if (head == ClosedMark()) return false;
      node.mpsc_next = head;
      // Release publishes the node, pairs with the acquire in TakeAll. seq_cst because a pusher next reads
      // whether the taker is parked while the taker announces parking and next reads head_: with
      // release/acquire both could miss the other (store buffering) and the item would wait for ever.
    } while (!head_.compare_exchange_weak(head, &node, std::memory_order_seq_cst, std::memory_order_relaxed));
    return true;
  }

  // Oldest first, linked by mpsc_next; null when empty (or closed).
  MpscNode* TakeAll() {
    MpscNode* head = head_.load(std::memory_order_relaxed);
    do {
      if (head == nullptr || head == ClosedMark()) return nullptr;
    } while (!head_.compare_exchange_weak(head, nullptr, std::memory_order_acquire, std::memory_order_relaxed));
    return Reverse(head);
  }

  // Refuses all later pushes; returns what was left, oldest first.
  MpscNode* Close() {
    MpscNode* head = head_.exchange(ClosedMark(), std::memory_order_acq_rel);
    return head == ClosedMark() ? nullptr : Reverse(head);
  }

  // seq_cst: the taker's half of the store-buffering pair in Push.
  bool Empty() const {
    MpscNode* head = head_.load(std::memory_order_seq_cst);
    return head == nullptr || head == ClosedMark();
  }

 private:
  static MpscNode* ClosedMark() {
    static constinit MpscNode mark;
    return &mark;
  }
  static MpscNode* Reverse(MpscNode* node) {
    MpscNode* reversed = nullptr;
    while (node != nullptr) {
      MpscNode* next = node->mpsc_next;
      node->mpsc_next = reversed;
      reversed = node;
      node = next;
    }
    return reversed;
  }

  alignas(64) Atomic<MpscNode*> head_{nullptr};
};

using MpscQueue = BasicMpscQueue<>;

}  // namespace sluice::concurrent
