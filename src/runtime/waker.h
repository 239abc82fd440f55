// Waker: what a waiting task leaves behind, so that the event it waits for can make it run again.
//
// An awaitable does, in await_suspend(h):   waker_ = Waker::ForCurrentTask(h);   then registers itself somewhere.
//
// Wake() makes the task runnable once; more wakes before it runs are one. A wake before the suspension is complete is
// not lost (the task's state word: idle, scheduled, running, running + notified). Wakes may be spurious for the
// awaitable: it must re-check its own outcome in await_resume or be woken only by the one transition that ends it.
//
// Thread safety: Wake() from any thread, also after the task has ended (the header is counted). A pinned task is queued
// on its own worker, others on the waker's. Never call it holding a mutex.
#pragma once

#include <coroutine>
#include <utility>

namespace sluice::runtime {

class TaskHeader;

class Waker {
 public:
  Waker() = default;
  // The task running now on this worker, to be resumed at `resume_point`.
  static Waker ForCurrentTask(std::coroutine_handle<> resume_point);
  // The task running now, wherever it suspends next. For a task that asks for something before it knows whether it
  // must wait; a wake may then meet another suspension of the task, which must re-check its own condition (sync::Event
  // does not: its users loop).
  static Waker ForRunningTask();

  Waker(const Waker& other);
  Waker(Waker&& other) noexcept : task_(std::exchange(other.task_, nullptr)) {}
  Waker& operator=(Waker other) noexcept {
    std::swap(task_, other.task_);
    return *this;
  }
  ~Waker();

  explicit operator bool() const { return task_ != nullptr; }
  void Wake() const;

 private:
  explicit Waker(TaskHeader* task) : task_(task) {}
  TaskHeader* task_ = nullptr;
};

// The two halves of a wait that is over before its task is, on the task's own worker: what a Waker does, without a
// count. The task running now, to be resumed at `resume_point`; the reference is good until the task ends.
TaskHeader& SuspendHere(std::coroutine_handle<> resume_point);
// On the worker of the task, which has not ended. As Waker::Wake.
void WakeHere(TaskHeader& task);

}  // namespace sluice::runtime
