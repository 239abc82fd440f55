// Yield: goes to the back of the queue, so that others get their turn. Not cancellable: it ends by itself.
#pragma once

#include <coroutine>

#include "runtime/waker.h"

namespace sluice::runtime {

// co_await Yield();  A wake while running: the scheduler queues the task again as soon as it has suspended,
// at the back and never in the slot.
inline auto Yield() {
  struct Awaiter {
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h) { Waker::ForCurrentTask(h).Wake(); }
    void await_resume() const noexcept {}
  };
  return Awaiter{};
}

}  // namespace sluice::runtime
