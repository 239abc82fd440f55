// Event: one task waits until another piece of code on the same worker says "look again". Auto-reset, one waiter.
//
// Not thread-safe: waiter and Set() are on one worker. Cancel-safe: a destroyed waiter is forgotten. Outlives its
// waiter.
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
    if (waiter_ != nullptr) runtime::WakeHere(*waiter_);
  }

  // Suspends until Set() has been called since the last Wait(), or the task is woken by another of its wakers: so wait
  // in a loop on the condition.
  auto Wait() {
    // It lives in the waiting task's frame, so the task is there as long as it is: no count.
    struct Awaiter {
      explicit Awaiter(Event& e) : event(e) {}
      Awaiter(const Awaiter&) = delete;
      Awaiter& operator=(const Awaiter&) = delete;
      ~Awaiter() {
        if (suspended) event.waiter_ = nullptr;
      }
      bool await_ready() { return event.set_; }
      void await_suspend(std::coroutine_handle<> h) {
        SLUICE_DCHECK(event.waiter_ == nullptr);
        event.waiter_ = &runtime::SuspendHere(h);
        suspended = true;
      }
      void await_resume() { event.set_ = false; }

      Event& event;
      bool suspended = false;
    };
    return Awaiter(*this);
  }

 private:
  bool set_ = false;
  runtime::TaskHeader* waiter_ = nullptr;  // while its Awaiter lives
};

}  // namespace sluice::sync
