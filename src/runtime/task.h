// Task<T>: a lazy coroutine. It starts when awaited or spawned, is awaited at most once, and owns its frame.
//
// Frames come from a per-thread pool (frame_pool.h). Exceptions do not cross tasks: an escaping one ends the process.
// Nothing resumes a coroutine on top of another's stack: an awaitable's await_suspend returns void, and the next handle
// goes to the worker's loop (ResumeNext), so the stack stays flat in every build (docs/dependencies.md, "What the
// versions force on us").
#pragma once

#include <coroutine>
#include <cstddef>
#include <optional>
#include <utility>

#include "base/check.h"
#include "runtime/frame_pool.h"
#include "runtime/resume.h"

namespace sluice::runtime {

template <typename T = void>
class Task;

namespace internal {

struct PromiseBase {
  std::coroutine_handle<> continuation;  // the awaiting coroutine; null for a spawned root

  static void* operator new(size_t bytes) { return AllocateFrame(bytes); }
  static void operator delete(void* frame, size_t bytes) { FreeFrame(frame, bytes); }

  std::suspend_always initial_suspend() noexcept { return {}; }
  struct FinalAwaiter {
    bool await_ready() noexcept { return false; }
    template <typename P>
    void await_suspend(std::coroutine_handle<P> h) noexcept {
      if (h.promise().continuation) ResumeNext(h.promise().continuation);
    }
    void await_resume() noexcept {}
  };
  FinalAwaiter final_suspend() noexcept { return {}; }
  void unhandled_exception() noexcept { base::CheckFailed("no exception leaves a task", __FILE__, __LINE__); }
};

template <typename T>
struct Promise : PromiseBase {
  std::optional<T> value;
  Task<T> get_return_object();
  template <typename U>
  void return_value(U&& v) {
    value.emplace(std::forward<U>(v));
  }
  T Take() { return std::move(*value); }
};

template <>
struct Promise<void> : PromiseBase {
  Task<void> get_return_object();
  void return_void() {}
  void Take() {}
};

}  // namespace internal

template <typename T>
class [[nodiscard]] Task {
 public:
  using promise_type = internal::Promise<T>;
  using Handle = std::coroutine_handle<promise_type>;

  Task() = default;
  explicit Task(Handle handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Task() {
    if (handle_) handle_.destroy();
  }

  // Starts the task in the awaiting task and suspends it until the result is there.
  auto operator co_await() && noexcept {
    struct Awaiter {
      Handle handle;
      bool await_ready() noexcept { return false; }
      void await_suspend(std::coroutine_handle<> h) noexcept {
        handle.promise().continuation = h;
        ResumeNext(handle);
      }
      T await_resume() { return handle.promise().Take(); }
    };
    return Awaiter{handle_};
  }

  // For the scheduler: gives up the frame.
  Handle Release() { return std::exchange(handle_, nullptr); }

 private:
  Handle handle_;
};

namespace internal {
template <typename T>
Task<T> Promise<T>::get_return_object() {
  return Task<T>(std::coroutine_handle<Promise<T>>::from_promise(*this));
}
inline Task<void> Promise<void>::get_return_object() {
  return Task<void>(std::coroutine_handle<Promise<void>>::from_promise(*this));
}
}  // namespace internal

}  // namespace sluice::runtime
