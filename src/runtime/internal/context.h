// ThreadContext: what a worker's thread knows of itself. Private to the runtime.
//
// Only reached through Context(), which is never inlined: clang 14 keeps the address of a thread-local over the
// suspension of a coroutine, which may come back on another thread (LLVM issue 47179).
#pragma once

#include <coroutine>

namespace sluice::runtime {

class TaskHeader;
class Worker;

struct ThreadContext {
  Worker* worker = nullptr;       // null outside of the pool
  TaskHeader* current = nullptr;  // the task being polled, if any
  std::coroutine_handle<> next;   // what the poll resumes after the present suspension
};

ThreadContext& Context();

}  // namespace sluice::runtime
