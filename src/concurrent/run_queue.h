// RunQueue: a bounded FIFO of pointers with one owner, which pushes and pops, and many thieves, which take half
// at once.
//
//            head_                       tail_
//              |                           |
//   slots_:  . A B C D E . . .             items are [head_, tail_), index modulo kCapacity
//
// Push (owner):     write slots_[tail_], then tail_ + 1. Never writes head_: no RMW.
// Pop (owner):      CAS head_ -> head_ + 1.
// Steal (thief):    read half of the slots, CAS head_ -> + n.
// TakeHalf (owner): the same CAS; the items that Push has no room for go to a queue without a bound.
//
// Owner and thieves meet on the same CAS, so the last item needs no special case (Go's and tokio's choice; Chase and
// Lev 2005 need a seq_cst handshake there instead).
//
// A thief may read a slot that the owner is overwriting: only after head_ moved past it, so the thief's CAS
// fails and the value is thrown away. Slots are atomics for that reason alone. Indices are 64 bits and never
// wrap: no ABA.
//
// head_: written by all through CAS.  tail_: written by the owner only.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace sluice::concurrent {

template <typename T, size_t kCapacity, template <typename> class Atomic = std::atomic>
class RunQueue {
  static_assert((kCapacity & (kCapacity - 1)) == 0, "a power of two");

 public:
  // `shared` false: there are no thieves (one worker), so popping needs no CAS.
  explicit RunQueue(bool shared = true) : shared_(shared) {}
  RunQueue(const RunQueue&) = delete;
  RunQueue& operator=(const RunQueue&) = delete;

  // Owner. False when full.
  bool Push(T* item) {
    const uint64_t tail = tail_.load(std::memory_order_relaxed);
    // Acquire pairs with the thief's CAS: its reads of the slots happened before we overwrite them.
    if (tail - head_.load(std::memory_order_acquire) >= kCapacity) return false;
    slots_[tail & kMask].store(item, std::memory_order_relaxed);
    // Publishes the slot; pairs with the acquire loads of tail_ in StealInto and Empty.
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }

  // Owner. Null when empty.
  T* Pop() {
    uint64_t head = head_.load(std::memory_order_relaxed);
    while (true) {
      if (head == tail_.load(std::memory_order_relaxed)) return nullptr;
      T* item = slots_[head & kMask].load(std::memory_order_relaxed);
      if (!shared_) {
        head_.store(head + 1, std::memory_order_relaxed);
        return item;
      }
      // Acquire on failure: nothing is read through it, but the retry must see the newer head.
      if (head_.compare_exchange_weak(head, head + 1, std::memory_order_acq_rel, std::memory_order_acquire))
        return item;
    }
  }

  // Owner, when Push said full: takes the older half out. `out` holds kCapacity / 2 pointers. Returns how
  // many.
  size_t TakeHalf(T** out) {
    uint64_t head = head_.load(std::memory_order_acquire);
    const uint64_t n = (tail_.load(std::memory_order_relaxed) - head) / 2;
    if (n == 0) return 0;
    for (uint64_t i = 0; i < n; ++i) out[i] = slots_[(head + i) & kMask].load(std::memory_order_relaxed);
    // A thief was faster: there is room now, the caller pushes again.
    if (!head_.compare_exchange_strong(head, head + n, std::memory_order_acq_rel, std::memory_order_relaxed)) return 0;
    return n;
  }

  // Called by the owner of `into`, a different queue that is at most half full. Moves the older half of this
  // there, except for the oldest, which is returned. Null: nothing to take.
  T* StealInto(RunQueue& into) {
    const uint64_t into_tail = into.tail_.load(std::memory_order_relaxed);
    uint64_t head = head_.load(std::memory_order_acquire);
    while (true) {
      // Acquire pairs with Push: the slots below tail_ are written.
      const uint64_t tail = tail_.load(std::memory_order_acquire);
      // tail_ may be newer than head_ by more than a lap if others took meanwhile: then the CAS would fail
      // anyhow.
      if (tail - head > kCapacity) {
        head = head_.load(std::memory_order_acquire);
        continue;
      }
      const uint64_t n = (tail - head) - (tail - head) / 2;  // rounded up: one item is worth taking
      if (n == 0) return nullptr;
      T* first = slots_[head & kMask].load(std::memory_order_relaxed);
      for (uint64_t i = 1; i < n; ++i) {
        T* item = slots_[(head + i) & kMask].load(std::memory_order_relaxed);
        into.slots_[(into_tail + i - 1) & kMask].store(item, std::memory_order_relaxed);
      }
      // Release orders our reads of the slots before the owner's reuse of them (acquire in Push); acquire on
      // failure for the next round's reads.
      if (!head_.compare_exchange_weak(head, head + n, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
      if (n > 1) into.tail_.store(into_tail + n - 1, std::memory_order_release);  // pairs as in Push
      return first;
    }
  }

  // Any thread; exact only for the owner of a queue without thieves.
  bool Empty() const { return SizeApprox() == 0; }
  size_t SizeApprox() const {
    const uint64_t head = head_.load(std::memory_order_acquire);
    const uint64_t tail = tail_.load(std::memory_order_acquire);
    return tail > head ? tail - head : 0;
  }

  static constexpr size_t capacity() { return kCapacity; }

 private:
  static constexpr uint64_t kMask = kCapacity - 1;

  const bool shared_;
  alignas(64) Atomic<uint64_t> head_{0};
  alignas(64) Atomic<uint64_t> tail_{0};
  Atomic<T*> slots_[kCapacity] = {};
};

}  // namespace sluice::concurrent
