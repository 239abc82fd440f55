// Size classes of 64 bytes up to 4 KiB; each thread keeps a bounded free list per class. Larger frames, and
// all frames under a sanitizer (which would otherwise not see a use after free), go to the global heap.
#include "runtime/frame_pool.h"

#include <cstdint>
#include <new>

namespace sluice::runtime {
namespace {

constexpr size_t kClassBytes = 64;
constexpr size_t kClasses = 64;
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
size_t ClassOf(size_t bytes) { return (bytes - 1) / kClassBytes; }

}  // namespace

void* AllocateFrame(size_t bytes) {
  const size_t index = ClassOf(bytes);
  if (!kPooled || index >= kClasses) return ::operator new(bytes);
  FreeList& list = ThreadPool().classes[index];
  FreeFrameNode* node = list.first;
  if (node == nullptr) return ::operator new((index + 1) * kClassBytes);
  list.first = node->next;
  --list.count;
  return node;
}

void FreeFrame(void* frame, size_t bytes) noexcept {
  const size_t index = ClassOf(bytes);
  if (!kPooled || index >= kClasses) return ::operator delete(frame);
  Pool& pool = ThreadPool();
  FreeList& list = pool.classes[index];
  if (pool.closed || (list.count + 1) * (index + 1) * kClassBytes > kKeptBytesMax)
    return ::operator delete(frame);
  list.first = new (frame) FreeFrameNode{list.first};
  ++list.count;
}

}  // namespace sluice::runtime
