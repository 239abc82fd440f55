// Memory for a table of slots: aligned to cache lines, and in huge pages where the table is large enough to gain by it.
#pragma once

#include <cstddef>

namespace sluice::cache {

// Uninitialised. A random access to a table of megabytes otherwise misses the TLB as well as the cache.
void* AllocateSlots(size_t bytes);
void FreeSlots(void* memory, size_t bytes);

}  // namespace sluice::cache
