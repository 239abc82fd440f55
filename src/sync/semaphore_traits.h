// How a wait for a semaphore ends, and the seam at which tests and limiters change one: atomics, mutex, wake-up,
// order.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "runtime/waker.h"
#include "sync/semaphore_fifo.h"

namespace sluice::sync {

enum class SemaphoreOutcome : uint8_t {
  kNone,       // has not asked
  kWaiting,    // in the queue
  kGranted,    // has its units
  kTimedOut,   // left: its deadline
  kCancelled,  // left: its owner wanted it no more
  kBroken,     // the semaphore was broken; the reason is with the waiter
  kTooLarge,   // asked for more than the capacity
  kQueueFull,  // was not let in: as many wait as may wait
  kDisplaced,  // made room for another by the queue's policy
  kDismissed,  // the limit was lifted (SemaphoreLimits::open): goes on, has no units
};

struct SemaphoreLimits {
  int64_t total;       // units in all, held ones included
  int64_t capacity;    // the largest request that is ever met
  size_t waiters_max;  // length of the queue; waiters that are queued already stay
  bool open = false;   // no limit: a request for a place in the queue is dismissed
};

struct SemaphoreTraits {
  template <typename T>
  using Atomic = std::atomic<T>;
  using Mutex = std::mutex;
  using Wakeup = runtime::Waker;
  using Queue = SemaphoreFifo;
};

}  // namespace sluice::sync
