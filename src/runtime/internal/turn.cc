// The worker's loop.
#include <algorithm>

#include "runtime/internal/runtime_impl.h"
#include "runtime/internal/worker_impl.h"

namespace sluice::runtime {

void Worker::Impl::Loop() {
  const std::atomic<bool>& stopping = self_.runtime_.impl_->stopping;
  // Acquire: `accepting` is false from here on (Shutdown stores it first).
  while (!stopping.load(std::memory_order_acquire)) Turn(true);
}

bool Worker::Impl::Turn(bool may_wait) {
  const base::TimePoint before = self_.now_;
  const uint64_t tasks_before = tasks_run_.load(std::memory_order_relaxed);
  notified_this_turn_ = false;
  base::Nanos timeout(0);
  const bool had_work = HasOwnWork() || reactor_.HasWork();
  if (!had_work && may_wait) timeout = PrepareToWait();

  // The wait is timed only where that is of use: where calls can be moved away from a busy worker.
  const bool waits = timeout.count() > 0 && shared_;
  const base::TimePoint wait_from = waits ? clock_.Now() : before;
  size_t done = reactor_.Turn(timeout, self_.now_);
  if (waits) Bump(idle_nanos_, static_cast<uint64_t>((self_.now_ - wait_from).count()));
  if (park_.load(std::memory_order_relaxed) != kAwake) EndWait();
  if (searching_) Search();
  done += DrainInbox();
  done += self_.timers_->Advance(self_.now_);
  RunIoHooks();
  RunTasks();
  RunHooks();

  if (run_queue_.Empty()) {
    if (behind_.load(std::memory_order_relaxed)) behind_.store(false, std::memory_order_relaxed);
  } else {
    NotifyIfBehind(true);
  }
  Bump(turns_);
  Bump(polls_);
  const uint64_t tasks = tasks_run_.load(std::memory_order_relaxed) - tasks_before;
  if (had_work && tasks > 0) TuneForeignInterval(self_.now_ - before, tasks);
  return done > 0 || tasks > 0 || had_work;
}

// Turns do not time their tasks; the distance between two busy turns over the tasks of one is good enough.
void Worker::Impl::TuneForeignInterval(base::Nanos turn, uint64_t tasks) {
  task_nanos_ += (turn.count() / static_cast<int64_t>(tasks) - task_nanos_) / 8;
  const int64_t interval = kForeignInterval.count() / std::max<int64_t>(task_nanos_, 1);
  foreign_interval_ = static_cast<uint32_t>(std::clamp<int64_t>(interval, kForeignTasksMin, kForeignTasksMax));
}

void Worker::Impl::RunTasks() {
  for (uint32_t run = 0; run < kTurnBudget; ++run) {
    TaskHeader* task = NextTask();
    if (task == nullptr) return;
    RunTask(*task);
    // Once in a while, and only with stealable work and an idle worker to take it, look at the clock.
    if (shared_ && (run & 15) == 15 && !notified_this_turn_ && !run_queue_.Empty() &&
        self_.runtime_.impl_->idle.parked() > 0) {
      NotifyIfBehind(clock_.Now() - self_.now_ > kBehindAge);
    }
  }
}

// Polls: resumes the task and whatever it hands on to, one after the other on this stack, until it suspends or ends.
void Worker::Impl::RunTask(TaskHeader& task) {
  const bool free_task = task.kind_ == TaskKind::kFree;
  if (free_task) {
    // Acquires what wakers wrote before their fetch_or; a wake from here on is a new one.
    task.state_.exchange(TaskHeader::kRunning, std::memory_order_acq_rel);
  } else {
    task.state_.store(TaskHeader::kRunning, std::memory_order_relaxed);
  }
  if (!task.started_) {
    task.started_ = true;
    task.home_ = &self_;
    if (!free_task) task.kind_ = TaskKind::kPinned;
    registry_.PushBack(task);
  }
  context_->current = &task;
  std::coroutine_handle<> next = task.resume_point_;
  do {
    context_->next = nullptr;
    next.resume();
    next = context_->next;
  } while (next);
  context_->current = nullptr;
  Bump(polls_);
  Bump(tasks_run_);
  if (task.root_.done()) return Finish(task);
  if (free_task) {
    // Release: the next poll, maybe on another worker, sees all we did. After it another worker may have the task.
    const uint32_t state = task.state_.fetch_and(~TaskHeader::kRunning, std::memory_order_acq_rel);
    if ((state & TaskHeader::kNotified) != 0) PushStealable(task);
  } else {
    const uint32_t state = task.state_.load(std::memory_order_relaxed);
    task.state_.store(state & ~TaskHeader::kRunning, std::memory_order_relaxed);
    if ((state & TaskHeader::kNotified) != 0) PushFifo(task);
  }
}

void Worker::Impl::Finish(TaskHeader& task) {
  if (task.kind_ == TaskKind::kFree) {
    task.state_.exchange(TaskHeader::kDone, std::memory_order_acq_rel);
  } else {
    task.state_.store(TaskHeader::kDone, std::memory_order_relaxed);  // only this worker looks at it
  }
  std::exchange(task.root_, nullptr).destroy();
  CountFinished();
  if (task.home_ == &self_) {
    task.Unlink();
    task.Unref();
    return;
  }
  task.Ref();  // the message's
  // There is no hurry. Inboxes close after the last task has run.
  SLUICE_CHECK(task.home_->impl_->Send(task, /*wake=*/false));
}

void Worker::Impl::RunIoHooks() {
  if (io_hooks_.empty()) return;
  base::IntrusiveList<IoHook, IoHook> due;
  due.Splice(io_hooks_);
  while (IoHook* hook = due.PopFront()) hook->OnIoEnd();
}

void Worker::Impl::RunHooks() {
  for (int round = 0; round < kHookRoundsMax && !hooks_.empty(); ++round) {
    base::IntrusiveList<TurnHook, TurnHook> due;
    due.Splice(hooks_);
    while (TurnHook* hook = due.PopFront()) hook->OnTurnEnd();
  }
}

}  // namespace sluice::runtime
