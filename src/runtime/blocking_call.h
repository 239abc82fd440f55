// BlockingCall: runs a function that may block on a helper thread while the task, not its worker, waits.
#pragma once

#include <coroutine>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "runtime/runtime.h"
#include "runtime/waker.h"
#include "runtime/worker.h"

namespace sluice::runtime {

// std::optional<R> result = co_await BlockingCall(fn);  R is what fn returns, not void. Empty: refused, since
// the helpers' queue is full or the runtime shuts down. Cancel-safe: if the task is destroyed meanwhile, fn
// still runs to its end, on what it owns itself, and its result is dropped on the worker.
template <typename Fn>
class BlockingCall {
  using R = std::invoke_result_t<Fn&>;
  struct State {
    Fn fn;
    std::optional<R> result;
    Waker waker;
  };

 public:
  explicit BlockingCall(Fn fn) : state_(std::make_shared<State>(State{std::move(fn), std::nullopt, Waker()})) {}
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> h) {
    state_->waker = Waker::ForCurrentTask(h);
    Worker& worker = *Worker::Current();
    // result is written by the helper and read after the wake, which is posted after it.
    const bool accepted = worker.runtime().Block(
        worker, [state = state_] { state->result.emplace(state->fn()); }, [state = state_] { state->waker.Wake(); });
    if (!accepted) state_->waker.Wake();
  }
  std::optional<R> await_resume() { return std::move(state_->result); }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace sluice::runtime
