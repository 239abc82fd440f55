#include "base/slice.h"

#include <array>
#include <cstdlib>
#include <new>

namespace sluice::base {
namespace {

// Free lists of one thread, per size class. Bounded: at most kKept blocks a class, so at most 2.6 MiB a thread.
constexpr std::array<size_t, 3> kClasses = {4096, 65536, 262144};
constexpr size_t kKept = 8;

std::atomic<int64_t> live_bytes{0};

struct FreeLists {
  std::array<std::array<void*, kKept>, kClasses.size()> blocks;
  std::array<size_t, kClasses.size()> count{};
  ~FreeLists();
};
thread_local bool lists_alive = true;  // trivially destructible: still readable after the lists are gone
thread_local FreeLists lists;

FreeLists::~FreeLists() {
  lists_alive = false;
  for (size_t c = 0; c < kClasses.size(); ++c) {
    for (size_t i = 0; i < count[c]; ++i) std::free(blocks[c][i]);
  }
}

int ClassOf(size_t bytes) {
  for (size_t c = 0; c < kClasses.size(); ++c) {
    if (bytes <= kClasses[c]) return static_cast<int>(c);
  }
  return -1;
}

}  // namespace

// Not inlined into coroutines: it reads thread-locals (docs/scheduler.md, "Thread-locals").
__attribute__((noinline)) Block* Block::New(size_t capacity) {
  size_t bytes = capacity + sizeof(Block);
  int c = bytes > kClasses[0] / 2 ? ClassOf(bytes) : -1;
  void* memory = nullptr;
  if (c >= 0) {
    bytes = kClasses[c];
    if (lists_alive && lists.count[c] > 0) memory = lists.blocks[c][--lists.count[c]];
  }
  if (memory == nullptr) {
    memory = std::malloc(bytes);
    if (memory == nullptr) throw std::bad_alloc();
  }
  live_bytes.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  return new (memory) Block(bytes - sizeof(Block));
}

__attribute__((noinline)) void Block::Free(Block* block) {
  size_t bytes = block->capacity_ + sizeof(Block);
  live_bytes.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  block->~Block();
  int c = bytes > kClasses[0] / 2 ? ClassOf(bytes) : -1;
  if (c >= 0 && kClasses[c] == bytes && lists_alive && lists.count[c] < kKept) {
    lists.blocks[c][lists.count[c]++] = block;
    return;
  }
  std::free(block);
}

size_t Block::LiveBytes() { return static_cast<size_t>(live_bytes.load(std::memory_order_relaxed)); }

Slice Slice::Copy(const void* data, size_t size) {
  if (size == 0) return Slice();
  Block* block = Block::New(size);
  std::memcpy(block->data(), data, size);
  Slice slice;
  slice.block_ = block;  // takes over the first reference
  slice.data_ = block->data();
  slice.size_ = size;
  return slice;
}

}  // namespace sluice::base
