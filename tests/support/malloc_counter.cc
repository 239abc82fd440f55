// Counts heap allocations by replacing malloc with a call of glibc's own under its other name.
#include "support/malloc_counter.h"

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace {
std::atomic<uint64_t> mallocs{0};
}  // namespace

#if defined(__GLIBC__) && !defined(SLUICE_SANITIZED)
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

// Relaxed: a count, nothing is published with it.
void* malloc(size_t bytes) {
  mallocs.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  mallocs.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, size_t bytes) {
  mallocs.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(memory, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  mallocs.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** out, size_t alignment, size_t bytes) {
  mallocs.fetch_add(1, std::memory_order_relaxed);
  *out = __libc_memalign(alignment, bytes);
  return *out == nullptr ? ENOMEM : 0;
}
}
#endif

namespace sluice::test {

uint64_t MallocsForTest() { return mallocs.load(std::memory_order_relaxed); }

}  // namespace sluice::test
