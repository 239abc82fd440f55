// Doze: the monitor's sleep while every worker is parked, and the wake-up by the first worker that leaves its park.
// Private to the runtime.
//
//   monitor                          a worker
//     word_ = 1                        park_ = kAwake
//     looks whether any is awake       looks at word_: 1 -> 0 and a wake-up
//     sleeps while word_ is 1
//
// Store buffering: with release and acquire both could look too early, the monitor would sleep beside a running worker
// and a task behind a long poll would wait for the poll's end. So all four steps are seq_cst. For a worker that finds
// the monitor awake this costs a load and a branch each time it was parked, on a line that is otherwise only read.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/futex.h"

namespace sluice::runtime {

// The seam for tests.
struct DozeSync {
  template <typename V>
  using Atomic = std::atomic<V>;
  static void Wait(const Atomic<uint32_t>& word, uint32_t seen) { base::FutexWait(word, seen); }
  static void Wake(const Atomic<uint32_t>& word) { base::FutexWake(word, 1); }
};

template <typename Sync = DozeSync>
class BasicDoze {
 public:
  // One thread, the monitor's. Blocks until End, or returns at once if `must_not()`, asked after the announcement, says
  // so: it looks at what the callers of End have changed before.
  template <typename MustNot>
  void Sleep(MustNot must_not) {
    word_.store(1, std::memory_order_seq_cst);
    if (must_not()) {
      word_.store(0, std::memory_order_relaxed);
      return;
    }
    while (word_.load(std::memory_order_acquire) != 0) Sync::Wait(word_, 1);
  }

  // Any thread, after it has changed what `must_not` looks at by a seq_cst store or read-modify-write.
  void End() {
    if (word_.load(std::memory_order_seq_cst) != 0) [[unlikely]]
      Wake();
  }

  // Stale at once.
  bool asleep() const { return word_.load(std::memory_order_relaxed) != 0; }

 private:
  __attribute__((noinline)) void Wake() {
    if (word_.exchange(0, std::memory_order_acq_rel) != 0) Sync::Wake(word_);
  }

  typename Sync::template Atomic<uint32_t> word_{0};
};

using Doze = BasicDoze<>;

}  // namespace sluice::runtime
