// Shutdown: every task that was spawned is destroyed on a worker, and every message is freed.
//
// The steps, each on all workers before the next begins on any (Runtime::Impl::RunWorker):
//   0. Runtime::Shutdown refuses spawns, ends the blocking helpers, tells the workers to stop and wakes them.
//   1. No task runs any more. Timers are disarmed and hooks forgotten; queues are emptied; tasks that never began are
//      destroyed (there is no waker of theirs). From now on a wake queues nothing.
//   2. Tasks that began are destroyed, each on the worker it first ran on. Their destructors may wake or unregister
//      other tasks' waits: those headers are all still there.
//   3. Inboxes are closed, what is left in them is freed.
//   4. Threads are joined, the global queue is closed and freed.
// Reactors have no step: an FdWatch is told by turns only, and may be unwatched until the Runtime is destroyed.
#include "runtime/internal/runtime_impl.h"
#include "runtime/internal/worker_impl.h"

namespace sluice::runtime {

void Worker::Impl::StopTimersAndQueues() {
  draining_ = true;
  // A free task's timer may be on another worker's wheel than the one that destroys the task.
  self_.timers_->Clear();
  while (hooks_.PopFront() != nullptr || io_hooks_.PopFront() != nullptr) {
  }
  while (TaskHeader* task = PopFifo()) DestroyQueued(*task);
  while (TaskHeader* task = run_queue_.Pop()) DestroyQueued(*task);
  if (TaskHeader* task = TakeSlot()) DestroyQueued(*task);
  if (self_.index_ == 0) self_.runtime_.impl_->DrainGlobal(*this, /*close=*/false);
}

// Out of a queue. One that has begun is in a registry.
void Worker::Impl::DestroyQueued(TaskHeader& task) {
  if (!task.started_) DestroyTask(task);
}

void Worker::Impl::DestroyTask(TaskHeader& task) {
  task.state_.exchange(TaskHeader::kDone, std::memory_order_acq_rel);
  if (task.root_) {
    std::exchange(task.root_, nullptr).destroy();
    CountFinished();
  }
  task.Unref();
}

void Worker::Impl::DestroyTasks() {
  while (TaskHeader* task = registry_.PopFront()) DestroyTask(*task);
}

void Worker::Impl::CloseInbox() {
  concurrent::MpscNode* node = inbox_.Close();
  while (node != nullptr) {
    Message& message = *static_cast<Message*>(node);
    node = node->mpsc_next;
    if (message.kind == Message::Kind::kFunction) {
      delete static_cast<FunctionMessage*>(&message);
      continue;
    }
    if (message.kind == Message::Kind::kMail) {
      static_cast<Mail&>(message).OnDropped();
      continue;
    }
    TaskHeader& task = static_cast<TaskHeader&>(message);
    if (task.kind_ != TaskKind::kFree && !task.started_) {
      DestroyTask(task);
    } else {
      task.Unref();  // the message's: a wake, or a free task that finished elsewhere
    }
  }
}

void Runtime::Impl::DrainGlobal(Worker::Impl& worker, bool close) {
  concurrent::MpscNode* node = close ? global.Close() : global.TakeAll();
  while (node != nullptr) {
    TaskHeader& task = *static_cast<TaskHeader*>(static_cast<Message*>(node));
    node = node->mpsc_next;
    worker.DestroyQueued(task);
    task.Unref();  // the message's
  }
}

}  // namespace sluice::runtime
