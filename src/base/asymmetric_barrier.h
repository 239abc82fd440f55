// AsymmetricBarrier: a store-load barrier of which the rare side pays all (membarrier(2)) and the frequent
// side nothing.
//
// Store-buffering: A stores x and loads y, B stores y and loads x; without barriers both may miss the other's
// store. With Light() between A's two and Heavy() between B's two, at least one of them sees the other:
// Heavy() makes every running thread of the process pass a full barrier at some instruction, and Light()
// keeps A's compiler from crossing it.
//
// Available() is false where the kernel refuses (containers with old seccomp profiles) and in TSan builds,
// which model neither the system call nor fences: callers then use seq_cst read-modify-writes on both sides.
#pragma once

#include <atomic>

namespace sluice::base {

#if defined(__SANITIZE_THREAD__)
#define SLUICE_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SLUICE_TSAN 1
#endif
#endif
#ifndef SLUICE_TSAN
#define SLUICE_TSAN 0
#endif

class AsymmetricBarrier {
 public:
  // Whether Heavy() works in this process; asked of the kernel once. Never changes.
  static bool Available();
  // The frequent side: orders for the compiler alone.
  static void Light() { std::atomic_signal_fence(std::memory_order_seq_cst); }
  // The rare side, 0.3 us and more. Only where Available().
  static void Heavy();
};

}  // namespace sluice::base
