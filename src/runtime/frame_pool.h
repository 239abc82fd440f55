// Coroutine frames from per-thread free lists by size class; a frame freed on another thread joins that
// thread's list.
#pragma once

#include <cstddef>

namespace sluice::runtime {

void* AllocateFrame(size_t bytes);
void FreeFrame(void* frame, size_t bytes) noexcept;
// Gives back to the heap what this thread keeps for later.
void TrimFrames();

}  // namespace sluice::runtime
