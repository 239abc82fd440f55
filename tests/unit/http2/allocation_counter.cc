// Counts heap allocations by replacing operator new: one replacement a program, so it has a file of its own.
#include "unit/http2/allocation_counter.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<uint64_t> allocations{0};
}  // namespace

#ifndef SLUICE_SANITIZED
void* operator new(size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);  // a count, nothing is published with it
  if (void* memory = std::malloc(bytes)) return memory;
  std::abort();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
#endif

namespace sluice::http2 {

uint64_t AllocationsForTest() { return allocations.load(std::memory_order_relaxed); }

}  // namespace sluice::http2
