#include "cache/slot_memory.h"

#include <sys/mman.h>

#include <new>

namespace sluice::cache {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kHugePage = 2 << 20;

size_t AlignmentFor(size_t bytes) { return bytes >= kHugePage ? kHugePage : kLine; }

}  // namespace

void* AllocateSlots(size_t bytes) {
  void* memory = ::operator new(bytes, std::align_val_t(AlignmentFor(bytes)));
  // A wish: where the kernel has no huge pages the table is as good, only slower.
  if (bytes >= kHugePage) madvise(memory, bytes, MADV_HUGEPAGE);
  return memory;
}

void FreeSlots(void* memory, size_t bytes) { ::operator delete(memory, std::align_val_t(AlignmentFor(bytes))); }

}  // namespace sluice::cache
