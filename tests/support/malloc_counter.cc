// Counts heap allocations by replacing malloc with a call of glibc's own under its other name.
#include "support/malloc_counter.h"

#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace {
// Relaxed: counts, nothing is published with them.
std::atomic<uint64_t> mallocs{0};
std::atomic<int64_t> heap_bytes{0};
}  // namespace

#if defined(__GLIBC__) && !defined(SLUICE_SANITIZED)
namespace {
int64_t BytesOf(void* memory) {
  return memory == nullptr ? 0 : static_cast<int64_t>(malloc_usable_size(memory) + sizeof(size_t));
}
void* Counted(void* memory) {
  mallocs.fetch_add(1, std::memory_order_relaxed);
  heap_bytes.fetch_add(BytesOf(memory), std::memory_order_relaxed);
  return memory;
}
}  // namespace

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);

void* malloc(size_t bytes) { return Counted(__libc_malloc(bytes)); }
void* calloc(size_t count, size_t bytes) { return Counted(__libc_calloc(count, bytes)); }
void* realloc(void* memory, size_t bytes) {
  const int64_t before = BytesOf(memory);
  void* moved = __libc_realloc(memory, bytes);
  if (moved != nullptr || bytes == 0) heap_bytes.fetch_sub(before, std::memory_order_relaxed);
  return Counted(moved);
}
void* aligned_alloc(size_t alignment, size_t bytes) { return Counted(__libc_memalign(alignment, bytes)); }
int posix_memalign(void** out, size_t alignment, size_t bytes) {
  *out = Counted(__libc_memalign(alignment, bytes));
  return *out == nullptr ? ENOMEM : 0;
}
void free(void* memory) {
  heap_bytes.fetch_sub(BytesOf(memory), std::memory_order_relaxed);
  __libc_free(memory);
}
}
#endif

namespace sluice::test {

uint64_t MallocsForTest() { return mallocs.load(std::memory_order_relaxed); }
int64_t HeapBytesForTest() { return heap_bytes.load(std::memory_order_relaxed); }

}  // namespace sluice::test
