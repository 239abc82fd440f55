// WakeBatch: wake-ups on their way out of a mutex. They are moved in under it and called after it, so that no
// stranger's code runs under the mutex and nothing is allocated.
//
// Not thread-safe: one function's, on its stack.
#pragma once

#include <array>
#include <cstddef>
#include <utility>

namespace sluice::sync {

template <typename Wakeup, size_t kSize>
class WakeBatch {
 public:
  bool full() const { return size_ == kSize; }
  // Not while full.
  void Add(Wakeup&& wakeup) { wakeups_[size_++] = std::move(wakeup); }
  // Once, without the mutex.
  void WakeAll() {
    for (size_t i = 0; i < size_; ++i) wakeups_[i].Wake();
  }

 private:
  std::array<Wakeup, kSize> wakeups_;
  size_t size_ = 0;
};

}  // namespace sluice::sync
