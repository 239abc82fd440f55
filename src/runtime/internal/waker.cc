// Waker: the transitions that another thread or another task asks for.
#include "runtime/waker.h"

#include "runtime/internal/runtime_impl.h"
#include "runtime/internal/task_header.h"

namespace sluice::runtime {

Waker Waker::ForCurrentTask(std::coroutine_handle<> resume_point) {
  TaskHeader* task = Context().current;
  SLUICE_CHECK(task != nullptr);
  task->resume_point_ = resume_point;
  task->Ref();
  return Waker(task);
}

TaskHeader& SuspendHere(std::coroutine_handle<> resume_point) {
  TaskHeader* task = Context().current;
  SLUICE_CHECK(task != nullptr);
  task->resume_point_ = resume_point;
  return *task;
}

void WakeHere(TaskHeader& task) { task.Wake(); }

Waker Waker::ForRunningTask() {
  TaskHeader* task = Context().current;
  SLUICE_CHECK(task != nullptr);
  task->Ref();
  return Waker(task);
}

Waker::Waker(const Waker& other) : task_(other.task_) {
  if (task_ != nullptr) task_->Ref();
}

Waker::~Waker() {
  if (task_ != nullptr) task_->Unref();
}

void Waker::Wake() const {
  if (task_ != nullptr) task_->Wake();
}

void TaskHeader::Wake() {
  Worker* here = Context().worker;
  if (pinned()) {
    if (here == home_) return home_->impl_->WakePinned(*this);
    // Releases what the waker wrote to the delivery that clears the flag. Set already: that delivery is still to come.
    if (wake_in_flight_.exchange(true, std::memory_order_acq_rel)) return;
    Ref();
    if (!home_->impl_->Send(*this, /*wake=*/true)) Unref();
    return;
  }
  // Releases what the waker wrote to the poll's exchange, in every case: also if there is nothing to queue.
  const uint32_t state = state_.fetch_or(kNotified, std::memory_order_acq_rel);
  if (state != 0) return;  // queued, running (its worker will queue it) or done
  if (here == nullptr || &here->runtime_ != &runtime_) {
    runtime_.impl_->Inject(*this);
  } else if (Context().current != nullptr) {
    here->impl_->PushSlot(*this);
  } else {
    here->impl_->PushStealable(*this);
  }
}

void Worker::Impl::WakePinned(TaskHeader& task) {
  const uint32_t state = task.state_.load(std::memory_order_relaxed);
  if ((state & (TaskHeader::kNotified | TaskHeader::kDone)) != 0) return;
  task.state_.store(state | TaskHeader::kNotified, std::memory_order_relaxed);
  if ((state & TaskHeader::kRunning) == 0) PushFifo(task);
}

}  // namespace sluice::runtime
