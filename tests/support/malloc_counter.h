// Heap allocations of the whole process, libraries included: malloc itself is replaced, in the test programs that link
// malloc_counter.cc.
#pragma once

#include <cstdint>

namespace sluice::test {

// Calls of malloc, calloc, realloc and aligned_alloc so far, operator new's among them. Always 0 under sanitizers,
// which bring their own.
uint64_t MallocsForTest();
// Bytes of the heap in use, each piece with glibc's own word of it. Always 0 under sanitizers.
int64_t HeapBytesForTest();

}  // namespace sluice::test
