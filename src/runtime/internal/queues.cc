// A worker's queues: what goes where, and in which order tasks come out.
#include "runtime/internal/runtime_impl.h"
#include "runtime/internal/worker_impl.h"

namespace sluice::runtime {

void Worker::Impl::PushFifo(TaskHeader& task) {
  if (draining_) return;
  task.next_ = nullptr;
  (fifo_last_ == nullptr ? fifo_first_ : fifo_last_->next_) = &task;
  fifo_last_ = &task;
  Bump(fifo_size_);
}

TaskHeader* Worker::Impl::PopFifo() {
  TaskHeader* task = fifo_first_;
  if (task == nullptr) return nullptr;
  fifo_first_ = task->next_;
  if (fifo_first_ == nullptr) fifo_last_ = nullptr;
  Bump(fifo_size_, uint64_t{0} - 1);
  return task;
}

void Worker::Impl::PushStealable(TaskHeader& task) {
  if (draining_) return;
  while (!run_queue_.Push(&task)) Overflow();
  NotifyIfBehind(run_queue_.SizeApprox() > kBehindTasks);
}

// The older half goes to the global queue: others are behind too or they would have stolen it.
void Worker::Impl::Overflow() {
  TaskHeader* half[kRunQueueMax / 2];
  const size_t n = run_queue_.TakeHalf(half);
  if (n == 0) return;
  for (size_t i = 0; i < n; ++i) {
    half[i]->Ref();  // the message's
    if (i + 1 < n) half[i]->mpsc_next = half[i + 1];
  }
  // Closed only after all workers have left their loops.
  SLUICE_CHECK(self_.runtime_.impl_->global.PushChain(*half[0], *half[n - 1], n));
}

void Worker::Impl::PushSlot(TaskHeader& task) {
  if (draining_) return;
  TaskHeader* previous;
  if (shared_) {
    previous = slot_.exchange(&task, std::memory_order_acq_rel);  // pairs with the thief's exchange in StealFrom
  } else {
    previous = slot_.load(std::memory_order_relaxed);
    slot_.store(&task, std::memory_order_relaxed);
  }
  if (previous != nullptr) PushStealable(*previous);
}

TaskHeader* Worker::Impl::TakeSlot() {
  TaskHeader* task = slot_.load(std::memory_order_relaxed);
  if (task == nullptr) return nullptr;
  if (shared_) return slot_.exchange(nullptr, std::memory_order_acq_rel);  // a thief may have been faster
  slot_.store(nullptr, std::memory_order_relaxed);
  return task;
}

bool Worker::Impl::HasOwnWork() const {
  return fifo_first_ != nullptr || !run_queue_.Empty() || slot_.load(std::memory_order_relaxed) != nullptr ||
         !hooks_.empty() || !io_hooks_.empty();
}

TaskHeader* Worker::Impl::NextTask() {
  if (--until_foreign_ == 0) {
    until_foreign_ = foreign_interval_;
    DrainInbox();
    TakeGlobal();
  }
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (TaskHeader* task = TakeSlot()) {
      if (++slot_runs_ <= kSlotRunsMax) return task;
      PushStealable(*task);  // two tasks that wake each other would keep all others waiting
    }
    slot_runs_ = 0;
    // One of each in turn: calls in progress and calls that have not begun both move on.
    fifo_next_ = !fifo_next_;
    TaskHeader* task = fifo_next_ ? PopFifo() : run_queue_.Pop();
    if (task == nullptr) task = fifo_next_ ? run_queue_.Pop() : PopFifo();
    if (task != nullptr) return task;
    const bool delivered = DrainInbox();
    if (!TakeGlobal() && !delivered) return nullptr;
  }
  return nullptr;
}

bool Worker::Impl::DrainInbox() {
  concurrent::MpscNode* node = inbox_.TakeAll();
  if (node == nullptr) return false;
  while (node != nullptr) {
    Message& message = *static_cast<Message*>(node);
    node = node->mpsc_next;  // the message may be sent again, or die, below
    if (message.kind == Message::Kind::kFunction) {
      std::unique_ptr<FunctionMessage> function(static_cast<FunctionMessage*>(&message));
      function->fn();
    } else if (message.kind == Message::Kind::kMail) {
      static_cast<Mail&>(message).OnDelivered();
    } else {
      DeliverTask(static_cast<TaskHeader&>(message));
    }
  }
  return true;
}

void Worker::Impl::DeliverTask(TaskHeader& task) {
  if (task.kind_ == TaskKind::kFree) {  // finished elsewhere; comes home to leave the registry
    task.Unlink();
    task.Unref();
    task.Unref();               // the message's
  } else if (!task.started_) {  // SpawnOn from another thread
    PushFifo(task);
  } else {
    // Acquires what the waker wrote; a wake after this sends a new message.
    task.wake_in_flight_.exchange(false, std::memory_order_acq_rel);
    WakePinned(task);
    task.Unref();
  }
}

// Takes as many as half of the run queue holds; the rest stays for the others, in its order.
bool Worker::Impl::TakeGlobal() {
  if (run_queue_.SizeApprox() >= kRunQueueMax / 2) return false;
  concurrent::MpscNode* node = self_.runtime_.impl_->global.Take(kRunQueueMax / 2);
  if (node == nullptr) return false;
  while (node != nullptr) {
    TaskHeader& task = *static_cast<TaskHeader*>(static_cast<Message*>(node));
    node = node->mpsc_next;  // the task may run elsewhere, and be queued again, from the push on
    SLUICE_CHECK(run_queue_.Push(&task));
    task.Unref();  // the message's; the task's own remains
  }
  NotifyIfBehind(run_queue_.SizeApprox() > kBehindTasks);
  return true;
}

// Any thread. False: closed, the message is still the caller's.
bool Worker::Impl::Send(Message& message, bool wake) {
  if (!inbox_.Push(message)) return false;
  if (wake) WakeIfParked();
  return true;
}

}  // namespace sluice::runtime
