// GlobalQueue: an unbounded intrusive FIFO that any thread may push to and any thread may take from, a few at a time.
//
//   oldest_ -> ... -> newest_ -> null      under mutex_; size_ repeats the length for looks without it
//
// A push appends and a take cuts from the front, so each node is touched once by its push and once by its take,
// however many wait. Chosen over a lock-free list: a Treiber stack (mpsc_queue.h) yields its nodes newest first, so a
// taker of a few would reverse all of them each time, and the order would break at every put-back. The critical section
// is a handful of instructions for a push and a walk over the nodes that are taken for a take.
//
// Closed is for good: the mutex orders every push against Close, so a node is either returned by Close or refused.
//
// Orders: the mutex publishes the nodes. size_ carries no payload; it is seq_cst because a pusher next reads whether a
// taker is parked, while a taker announces that it parks and next reads size_: with release and acquire both could miss
// each other (store buffering) and the node would wait for ever (runtime/internal/park.cc).
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>

#include "concurrent/mpsc_queue.h"

namespace sluice::concurrent {

// `Node` has a member mpsc_next: a node is in one queue at a time, this one or an MpscQueue. `Mutex`: the seam for
// tests. Any thread, all of it; blocks only on the mutex.
template <typename Node = MpscNode, typename Mutex = std::mutex>
class BasicGlobalQueue {
 public:
  BasicGlobalQueue() = default;
  BasicGlobalQueue(const BasicGlobalQueue&) = delete;
  BasicGlobalQueue& operator=(const BasicGlobalQueue&) = delete;

  // False, and nothing changed, once closed.
  bool Push(Node& node) { return PushChain(node, node, 1); }

  // `oldest` -> ... -> `newest`, `count` nodes linked by mpsc_next; they stay together. False, and nothing changed but
  // the last link, once closed.
  bool PushChain(Node& oldest, Node& newest, size_t count) {
    newest.mpsc_next = nullptr;
    std::lock_guard lock(mutex_);
    if (closed_) return false;
    if (newest_ == nullptr) {
      oldest_ = &oldest;
    } else {
      newest_->mpsc_next = &oldest;
    }
    newest_ = &newest;
    SetSize(size_.load(std::memory_order_relaxed) + count);
    return true;
  }

  // The oldest nodes, at most `max` (> 0), oldest first, linked by mpsc_next; null when empty or closed.
  Node* Take(size_t max) {
    // A look without the mutex: most find nothing. One that comes too early is the parking handshake's to mend.
    if (size_.load(std::memory_order_relaxed) == 0) return nullptr;
    std::lock_guard lock(mutex_);
    Node* const first = oldest_;
    if (first == nullptr) return nullptr;
    Node* last = first;
    size_t taken = 1;
    Node* rest = last->mpsc_next;
    for (; taken < max && rest != nullptr; ++taken) {
      last = rest;
      rest = last->mpsc_next;
    }
    last->mpsc_next = nullptr;
    oldest_ = rest;
    if (rest == nullptr) newest_ = nullptr;
    SetSize(size_.load(std::memory_order_relaxed) - taken);
    return first;
  }

  // All nodes, oldest first.
  Node* TakeAll() {
    std::lock_guard lock(mutex_);
    return TakeAllLocked();
  }

  // Refuses all later pushes; returns what was left, oldest first.
  Node* Close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    return TakeAllLocked();
  }

  // Stale at once. seq_cst: the taker's half of the pair named above.
  bool Empty() const { return size_.load(std::memory_order_seq_cst) == 0; }

 private:
  Node* TakeAllLocked() {
    Node* const first = oldest_;
    oldest_ = newest_ = nullptr;
    SetSize(0);
    return first;
  }
  // Under the mutex, so no read-modify-write is needed. seq_cst: the pusher's half.
  void SetSize(size_t size) { size_.store(size, std::memory_order_seq_cst); }

  // Read by every worker that looks for work, written when there is some: a line of its own.
  alignas(64) std::atomic<size_t> size_{0};
  alignas(64) Mutex mutex_;
  // Under mutex_:
  Node* oldest_ = nullptr;
  Node* newest_ = nullptr;
  bool closed_ = false;
};

using GlobalQueue = BasicGlobalQueue<>;

}  // namespace sluice::concurrent
