// ResumeNext: the one way from coroutine to coroutine. The handle is run by the worker's loop after the
// present one has suspended, on an empty stack.
#pragma once

#include <coroutine>

namespace sluice::runtime {

// Only inside a task of a worker, from await_suspend or final_suspend; at most once per suspension.
void ResumeNext(std::coroutine_handle<> next) noexcept;

}  // namespace sluice::runtime
