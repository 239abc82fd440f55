// SemaphoreFifo: the order in which a semaphore's waiters are served, here strictly first come, first served. The
// seam at which a limiter puts another order (limits/fair_queue.h).
//
// A queue is only touched under its semaphore's mutex. Every operation is O(1) and allocates nothing here.
#pragma once

#include <cstddef>

#include "base/intrusive_list.h"

namespace sluice::sync {

class SemaphoreFifo {
 public:
  class Node : public base::ListNode<Node> {};

  struct Admission {
    bool admitted = false;
    Node* displaced = nullptr;  // had to leave the queue for the newcomer; has been removed
  };

  size_t size() const { return size_; }
  // Whose turn it is, or null.
  Node* Front() { return list_.front(); }
  // Front() has been served, or failed in its turn.
  void Pop(Node& front) { Remove(front); }
  // Leaves from wherever it is.
  void Remove(Node& node) {
    node.Unlink();
    --size_;
  }
  // Puts a newcomer in its place, or refuses it: `size_max` wait already.
  Admission Admit(Node& newcomer, size_t size_max) {
    if (size_ >= size_max) return {};
    list_.PushBack(newcomer);
    ++size_;
    return {.admitted = true};
  }

 private:
  base::IntrusiveList<Node, Node> list_;
  size_t size_ = 0;
};

}  // namespace sluice::sync
