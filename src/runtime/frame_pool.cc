// Size classes of 16 bytes up to 4 KiB; each thread keeps a bounded free list per class. Larger frames, and
// all frames under a sanitizer (which would otherwise not see a use after free), go to the global heap.
#include "runtime/frame_pool.h"

#include <cstdint>
#include <new>

#include "base/memory_budget.h"

namespace sluice::runtime {
namespace {

// Class i has 16 i + 8 bytes: with its own word, glibc's malloc hands out multiples of 16, so that nothing is lost in
// it.
constexpr size_t kClassStep = 16;
constexpr size_t kClasses = 256;
constexpr size_t BytesOf(size_t index) { return index * kClassStep + 8; }
// Per thread and class. Bounds what a burst of calls leaves behind; enough for a thousand calls under way at once.
constexpr size_t kKeptBytesMax = 1024 * 1024;
constexpr uint32_t KeptMax(size_t index) { return static_cast<uint32_t>(kKeptBytesMax / BytesOf(index)); }

struct FreeFrameNode {
  FreeFrameNode* next;
};

struct FreeList {
  FreeFrameNode* first = nullptr;
  uint32_t room = 0;  // frames that it takes further; 0 where the pool is closed
};

struct Pool {
  FreeList classes[kClasses];
  bool closed = false;
  base::MemoryBudget::Share held;  // taken from the heap, free lists included

  Pool() {
    for (size_t i = 0; i < kClasses; ++i) classes[i].room = KeptMax(i);
  }
  void Trim() {
    for (size_t i = 0; i < kClasses; ++i) {
      while (FreeFrameNode* node = classes[i].first) {
        classes[i].first = node->next;
        held.Count(-static_cast<int64_t>(BytesOf(i)));
        ::operator delete(node);
      }
      classes[i].room = closed ? 0 : KeptMax(i);
    }
    held.Flush();
  }
  ~Pool() {
    closed = true;  // a frame freed by a later thread-local destructor goes to the heap
    Trim();
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

// From the heap, or back to it.
void CountHeap(Pool& pool, int64_t bytes) {
  if (pool.closed) return base::MemoryBudget::Add(bytes);
  pool.held.Count(bytes);
}

// 0-based class of a size; kClasses or more: not pooled.
size_t ClassOf(size_t bytes) { return (bytes + 7) / kClassStep; }

}  // namespace

void* AllocateFrame(size_t bytes) {
  const size_t index = ClassOf(bytes);
  Pool& pool = ThreadPool();
  if (!kPooled || index >= kClasses) {
    CountHeap(pool, static_cast<int64_t>(bytes));
    return ::operator new(bytes);
  }
  FreeList& list = pool.classes[index];
  FreeFrameNode* node = list.first;
  if (node == nullptr) {
    CountHeap(pool, static_cast<int64_t>(BytesOf(index)));
    return ::operator new(BytesOf(index));
  }
  list.first = node->next;
  ++list.room;
  return node;
}

void FreeFrame(void* frame, size_t bytes) noexcept {
  const size_t index = ClassOf(bytes);
  Pool& pool = ThreadPool();
  if (!kPooled || index >= kClasses) {
    CountHeap(pool, -static_cast<int64_t>(bytes));
    return ::operator delete(frame);
  }
  FreeList& list = pool.classes[index];
  if (list.room == 0) {
    CountHeap(pool, -static_cast<int64_t>(BytesOf(index)));
    return ::operator delete(frame);
  }
  list.first = new (frame) FreeFrameNode{list.first};
  --list.room;
}

void TrimFrames() { ThreadPool().Trim(); }

}  // namespace sluice::runtime
