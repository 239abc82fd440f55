// Event: one task waits until another piece of code on the same worker says "look again". Auto-reset, one waiter.
//
// Not thread-safe: waiter and Set() are on one worker. Cancel-safe: a destroyed waiter is forgotten.
#pragma once

#include <coroutine>

#include "base/check.h"
#include "runtime/waker.h"

namespace sluice::sync {

class Event {
 public:
  void Set() {
    if (set_) return;
    set_ = true;
    if (waker_) {
      runtime::Waker waker = std::move(waker_);
      waker_ = runtime::Waker();
      waker.Wake();
    }
  }

  // Suspends until Set() has been called since the last Wait(), or the task is woken by another of its wakers: so wait in
  // a loop on the condition.
  auto Wait() {
    struct Awaiter {
      Event& event;
      bool await_ready() { return event.set_; }
      void await_suspend(std::coroutine_handle<> h) {
        SLUICE_DCHECK(!event.waker_);
        event.waker_ = runtime::Waker::ForCurrentTask(h);
      }
      void await_resume() {
        event.set_ = false;
        event.waker_ = runtime::Waker();
      }
    };
    return Awaiter{*this};
  }

 private:
  bool set_ = false;
  runtime::Waker waker_;
};

}  // namespace sluice::sync
