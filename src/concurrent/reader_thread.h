// ReaderThread: this thread's identity and the shared-slot reads it is inside of. For DoublyBufferedData's
// self-deadlock check only; kept out of line, since it reads thread-locals (clang 14 caches their address
// across a suspension).
#pragma once

#include <cstdint>

namespace sluice::concurrent {

// A read in progress through a shared slot: a list through the stack of the reading thread.
struct SharedRead {
  const void* data = nullptr;
  SharedRead* outer = nullptr;
};

class ReaderThread {
 public:
  // A number no other thread of this process has or will have. Never 0.
  static uint64_t Token();
  // Whether `address` lies in the stack of this thread. False also where the system does not say where that is.
  static bool OnThisStack(uint64_t address);
  static void Push(SharedRead& read);
  // Removes `read`, which is the innermost one.
  static void Pop(SharedRead& read);
  // Whether this thread is inside of a shared-slot read of `data`.
  static bool Reads(const void* data);
};

}  // namespace sluice::concurrent
