#include "base/slice.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <vector>

#include "base/memory_budget.h"

namespace sluice::base {
namespace {

// Free lists of one thread, by capacity. Bounded: at most kKept blocks a class, so at most 2.7 MiB a thread.
constexpr std::array<size_t, 4> kClasses = {4096, 16384, 65536, 262144};
constexpr size_t kKept = 8;

struct ThreadBlocks;

// Every thread that has allocated blocks, for LiveBytes. Leaked: threads may end after static destructors.
struct Threads {
  std::mutex mutex;
  std::vector<const ThreadBlocks*> alive;  // under mutex
  std::atomic<int64_t> ended{0};           // what threads that are gone had counted, and frees during a thread's end
};
Threads& AllThreads() {
  static Threads* threads = new Threads;
  return *threads;
}

struct ThreadBlocks {
  std::array<std::array<void*, kKept>, kClasses.size()> blocks;
  std::array<size_t, kClasses.size()> count{};
  // Allocated minus freed by this thread; negative where others allocate. Written by its thread alone, so
  // counting costs no write that another thread sees.
  std::atomic<int64_t> live{0};
  MemoryBudget::Share held;  // taken from the heap, free lists included

  ThreadBlocks();
  ~ThreadBlocks();
};
thread_local bool blocks_alive = true;  // trivially destructible: still readable after the lists are gone
thread_local ThreadBlocks thread_blocks;

ThreadBlocks::ThreadBlocks() {
  Threads& threads = AllThreads();
  std::lock_guard lock(threads.mutex);
  threads.alive.push_back(this);
}

ThreadBlocks::~ThreadBlocks() {
  blocks_alive = false;
  for (size_t c = 0; c < kClasses.size(); ++c) {
    for (size_t i = 0; i < count[c]; ++i) std::free(blocks[c][i]);
    held.Count(-static_cast<int64_t>(count[c] * (sizeof(Block) + kClasses[c])));
  }
  held.Flush();
  Threads& threads = AllThreads();
  std::lock_guard lock(threads.mutex);
  std::erase(threads.alive, this);
  threads.ended.fetch_add(live.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

void CountLive(int64_t bytes) {
  if (blocks_alive) [[likely]] {
    std::atomic<int64_t>& live = thread_blocks.live;
    live.store(live.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  } else {
    AllThreads().ended.fetch_add(bytes, std::memory_order_relaxed);
  }
}

// From the heap, or back to it.
void CountHeap(int64_t bytes) {
  if (blocks_alive) [[likely]] {
    thread_blocks.held.Count(bytes);
  } else {
    MemoryBudget::Add(bytes);
  }
}

// The class for this capacity, if one wastes less than half; else -1, and the block is as large as asked.
int ClassOf(size_t capacity) {
  for (size_t c = 0; c < kClasses.size(); ++c) {
    if (capacity <= kClasses[c]) return capacity > kClasses[c] / 2 ? static_cast<int>(c) : -1;
  }
  return -1;
}

}  // namespace

// Not inlined into coroutines: it reads thread-locals (docs/scheduler.md, "Thread-locals").
__attribute__((noinline)) Block* Block::New(size_t capacity) {
  int c = ClassOf(capacity);
  void* memory = nullptr;
  if (c >= 0) {
    capacity = kClasses[c];
    if (blocks_alive && thread_blocks.count[c] > 0) memory = thread_blocks.blocks[c][--thread_blocks.count[c]];
  }
  if (memory == nullptr) {
    memory = std::malloc(sizeof(Block) + capacity);
    if (memory == nullptr) throw std::bad_alloc();
    CountHeap(static_cast<int64_t>(sizeof(Block) + capacity));
  }
  CountLive(static_cast<int64_t>(sizeof(Block) + capacity));
  return new (memory) Block(capacity);
}

__attribute__((noinline)) void Block::Free(Block* block) {
  size_t capacity = block->capacity_;
  CountLive(-static_cast<int64_t>(sizeof(Block) + capacity));
  block->~Block();
  int c = ClassOf(capacity);
  if (c >= 0 && kClasses[c] == capacity && blocks_alive && thread_blocks.count[c] < kKept) {
    thread_blocks.blocks[c][thread_blocks.count[c]++] = block;
    return;
  }
  CountHeap(-static_cast<int64_t>(sizeof(Block) + capacity));
  std::free(block);
}

__attribute__((noinline)) void Block::TrimSpares() {
  if (!blocks_alive) return;
  for (size_t c = 0; c < kClasses.size(); ++c) {
    CountHeap(-static_cast<int64_t>(thread_blocks.count[c] * (sizeof(Block) + kClasses[c])));
    while (thread_blocks.count[c] > 0) std::free(thread_blocks.blocks[c][--thread_blocks.count[c]]);
  }
  thread_blocks.held.Flush();
}

size_t Block::LiveBytes() {
  Threads& threads = AllThreads();
  std::lock_guard lock(threads.mutex);
  int64_t sum = threads.ended.load(std::memory_order_relaxed);
  for (const ThreadBlocks* thread : threads.alive) sum += thread->live.load(std::memory_order_relaxed);
  // A block that passes between threads while we add up may be counted freed and not yet allocated.
  return static_cast<size_t>(std::max<int64_t>(sum, 0));
}

Slice Slice::Copy(const void* data, size_t size) {
  if (size == 0) return Slice();
  Slice slice = Uninitialized(size);
  std::memcpy(slice.block_->data(), data, size);
  return slice;
}

Slice Slice::Uninitialized(size_t size) {
  Block* block = Block::New(size);
  Slice slice;
  slice.block_ = block;  // takes over the first reference
  slice.data_ = block->data();
  slice.size_ = size;
  return slice;
}

}  // namespace sluice::base
