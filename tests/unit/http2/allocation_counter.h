// Heap allocations of the process, counted through the global operator new: one replacement for the whole test program.
#pragma once

#include <cstdint>

namespace sluice::http2 {

// Always 0 under sanitizers, which bring their own operator new.
uint64_t AllocationsForTest();

}  // namespace sluice::http2
