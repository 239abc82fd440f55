// Futex: sleep while a word has a value. For threads that may block (admin, tests); workers suspend tasks
// instead.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace sluice::base {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

// Returns when woken, when `word` is not `expected`, or for no reason: look at the condition again.
inline void FutexWait(const std::atomic<uint32_t>& word, uint32_t expected) {
  ::syscall(SYS_futex, reinterpret_cast<const uint32_t*>(&word), FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

// As FutexWait, for `nanos` (>= 0) at most.
inline void FutexWaitFor(const std::atomic<uint32_t>& word, uint32_t expected, int64_t nanos) {
  const timespec bound{nanos / 1'000'000'000, nanos % 1'000'000'000};
  ::syscall(SYS_futex, reinterpret_cast<const uint32_t*>(&word), FUTEX_WAIT_PRIVATE, expected, &bound, nullptr, 0);
}

// Wakes up to `count` waiters; returns how many.
inline int FutexWake(const std::atomic<uint32_t>& word, int count) {
  return static_cast<int>(
      ::syscall(SYS_futex, reinterpret_cast<const uint32_t*>(&word), FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0));
}

}  // namespace sluice::base
