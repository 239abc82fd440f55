// Size classes of 16 bytes up to 4 KiB; each thread keeps a bounded free list per class. Larger frames, and
// all frames under a sanitizer (which would otherwise not see a use after free), go to the global heap.
#include "runtime/frame_pool.h"

#include <cstdint>
#include <new>

namespace sluice::runtime {
namespace {

// Class i has 16 i + 8 bytes: with its own word, glibc's malloc hands out multiples of 16, so that nothing is lost in it.
constexpr size_t kClassStep = 16;
constexpr size_t kClasses = 256;
constexpr size_t BytesOf(size_t index) { return index * kClassStep + 8; }
// Per thread and class. Bounds what a burst of calls leaves behind; enough for a thousand calls under way at once.
constexpr size_t kKeptBytesMax = 1024 * 1024;

struct FreeFrameNode {
  FreeFrameNode* next;
};

struct FreeList {
  FreeFrameNode* first = nullptr;
  uint32_t count = 0;
};

struct Pool {
  FreeList classes[kClasses];
  bool closed = false;
  ~Pool() {
    closed = true;  // a frame freed by a later thread-local destructor goes to the heap
    for (FreeList& list : classes) {
      while (FreeFrameNode* node = list.first) {
        list.first = node->next;
        ::operator delete(node);
      }
    }
  }
};

constexpr bool kPooled =
#ifdef SLUICE_SANITIZED
    false;
#else
    true;
#endif

[[gnu::noinline]] Pool& ThreadPool() {
  static thread_local Pool pool;
  asm volatile("");
  return pool;
}

// 0-based class of a size; kClasses or more: not pooled.
size_t ClassOf(size_t bytes) { return (bytes + 7) / kClassStep; }

}  // namespace

void* AllocateFrame(size_t bytes) {
  const size_t index = ClassOf(bytes);
  if (!kPooled || index >= kClasses) return ::operator new(bytes);
  FreeList& list = ThreadPool().classes[index];
  FreeFrameNode* node = list.first;
  if (node == nullptr) return ::operator new(BytesOf(index));
  list.first = node->next;
  --list.count;
  return node;
}

void FreeFrame(void* frame, size_t bytes) noexcept {
  const size_t index = ClassOf(bytes);
  if (!kPooled || index >= kClasses) return ::operator delete(frame);
  Pool& pool = ThreadPool();
  FreeList& list = pool.classes[index];
  if (pool.closed || (list.count + 1) * BytesOf(index) > kKeptBytesMax)
    return ::operator delete(frame);
  list.first = new (frame) FreeFrameNode{list.first};
  ++list.count;
}

}  // namespace sluice::runtime
