// Idle: how many workers are parked and how many search for work, in one word. Private to the runtime.
//
//   word = parked * 2^32 + searching        searching >= 0 always; parked may be -1 for a moment: a waker may take a
//                                           worker off the count (WakeIfParked) before that has put itself on (Park)
//
// Everything is an RMW on this one word, and that is the whole ordering argument. A pusher publishes its task, then
// does an RMW here (TryClaim); a parking worker does its RMW (Park, StopSearching), then looks at the queues again. The
// two RMWs are ordered: if the pusher's is first, the parker's acquires it and the second look sees the task; if it is
// second, the pusher sees the parked worker and wakes it. With a load in place of the pusher's RMW both could miss each
// other (store buffering), which seq_cst would have to mend on the queues' own stores.
#pragma once

#include <atomic>
#include <cstdint>

namespace sluice::runtime {

class Idle {
 public:
  void Park() { word_.fetch_add(kParked, std::memory_order_acq_rel); }
  void Unpark() { word_.fetch_sub(kParked, std::memory_order_acq_rel); }

  // Soft limit: at most half of the workers search, so they do not fight over the same few queues.
  bool TryStartSearching(size_t workers) {
    if (Searching(word_.load(std::memory_order_relaxed)) * 2 >= static_cast<int64_t>(workers)) return false;
    StartSearching();
    return true;
  }
  void StartSearching() { word_.fetch_add(1, std::memory_order_acq_rel); }
  // True for the last searcher: if it found work, no searcher is left to notice more of it.
  bool StopSearching() { return Searching(word_.fetch_sub(1, std::memory_order_acq_rel)) == 1; }

  // For the publisher of work: true if a worker is to be woken as a searcher, which is then counted already.
  bool TryClaim() {
    // The RMW of the argument above, also when the answer is no.
    int64_t word = word_.fetch_add(0, std::memory_order_acq_rel);
    while (Searching(word) == 0 && Parked(word) > 0) {
      if (word_.compare_exchange_weak(word, word - kParked + 1, std::memory_order_acq_rel, std::memory_order_acquire)) {
        return true;
      }
    }
    return false;
  }
  void UndoClaim() { word_.fetch_add(kParked - 1, std::memory_order_acq_rel); }

  int64_t parked() const { return Parked(word_.load(std::memory_order_relaxed)); }

 private:
  static constexpr int64_t kParked = int64_t{1} << 32;
  static int64_t Searching(int64_t word) { return word & (kParked - 1); }
  static int64_t Parked(int64_t word) { return word >> 32; }

  alignas(64) std::atomic<int64_t> word_{0};
};

}  // namespace sluice::runtime
