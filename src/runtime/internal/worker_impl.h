// Worker::Impl: the queues and counters of one worker. Private to the runtime; the picture is in docs/scheduler.md.
//
//   other threads --> inbox_ --+             woken free task --> slot_ --+  (at most 3 in a row)
//                              v                                         v
//   own pinned tasks ------> fifo_  --- one by one, in turn with --- run_queue_ ---> RunTask
//                                                                        |  ^
//                                   thieves (half at once) <-------------+  +--- global queue (overflow, spawns
//                                                                                from outside of the pool)
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "concurrent/mpsc_queue.h"
#include "concurrent/run_queue.h"
#include "runtime/internal/context.h"
#include "runtime/internal/doze.h"
#include "runtime/internal/reactor.h"
#include "runtime/internal/task_header.h"
#include "runtime/timer_wheel.h"
#include "runtime/worker.h"

namespace sluice::runtime {

// Functions sent by Post.
struct FunctionMessage : Message {
  explicit FunctionMessage(std::function<void()> f) : Message(Kind::kFunction), fn(std::move(f)) {}
  std::function<void()> fn;
};

struct Worker::Impl {
  // Stealable tasks a worker holds; half of them go to the global queue when there is no room.
  static constexpr size_t kRunQueueMax = 256;
  // Tasks polled in one turn before the hooks run and the reactor is asked again.
  static constexpr uint32_t kTurnBudget = 128;
  // A stealable queue longer than this at a push means the worker is behind: see NotifyIfBehind.
  static constexpr size_t kBehindTasks = 4;
  // A worker whose turn has lasted this long with stealable work left is behind too.
  static constexpr base::Nanos kBehindAge = std::chrono::microseconds(100);
  static constexpr uint32_t kSlotRunsMax = 3;
  // How often inbox and global queue are looked at within a turn: so many tasks that it is about every 200 us.
  static constexpr base::Nanos kForeignInterval = std::chrono::microseconds(200);
  static constexpr uint32_t kForeignTasksMin = 2, kForeignTasksMax = 61;
  // A slot is stolen only if its owner has been in one poll for longer than this.
  static constexpr base::Nanos kSlotStealAge = std::chrono::microseconds(50);
  // Hooks may queue hooks: so many rounds in one turn, the rest in the next.
  static constexpr int kHookRoundsMax = 4;

  enum Park : uint32_t { kAwake, kParked, kWoken, kWokenToSearch };

  Impl(Worker& worker, const base::Clock& clock, bool shared);

  // turn.cc
  bool Turn(bool may_wait);  // true if it did anything
  void RunTasks();
  TaskHeader* NextTask();
  void RunTask(TaskHeader& task);
  void Finish(TaskHeader& task);
  void RunHooks();
  void RunIoHooks();
  void TuneForeignInterval(base::Nanos turn, uint64_t tasks);
  void Loop();

  // queues.cc: owner only, except Send
  void PushFifo(TaskHeader& task);
  TaskHeader* PopFifo();
  void PushStealable(TaskHeader& task);
  void PushSlot(TaskHeader& task);
  TaskHeader* TakeSlot();
  void Overflow();
  bool DrainInbox();
  void DeliverTask(TaskHeader& task);
  void WakePinned(TaskHeader& task);
  bool TakeGlobal();
  bool HasOwnWork() const;
  bool Send(Message& message, bool wake);

  // park.cc
  base::Nanos PrepareToWait();
  void EndWait();
  bool Search();
  TaskHeader* StealFrom(Impl& victim);
  bool ForeignWork() const;
  bool Stealable() const { return behind_.load(std::memory_order_acquire) && !run_queue_.Empty(); }
  void NotifyIfBehind(bool behind);
  void WakeIfParked();

  // stop.cc, in this order on every worker, with a barrier after each
  void StopTimersAndQueues();
  void DestroyTasks();
  void CloseInbox();
  void DestroyTask(TaskHeader& task);
  void DestroyQueued(TaskHeader& task);

  static void Bump(std::atomic<uint64_t>& counter, uint64_t by = 1) {  // single writer: no RMW
    counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
  // Release: pairs with LiveTasks.
  void CountFinished() { finished_.store(finished_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

  Worker& self_;
  const base::Clock& clock_;
  const bool shared_;                 // there are other workers
  Doze& doze_;                        // the monitor's, to be ended whenever this worker leaves its park
  ThreadContext* context_ = nullptr;  // of the thread that runs this worker
  Reactor reactor_;

  // Owner only.
  TaskHeader* fifo_first_ = nullptr;
  TaskHeader* fifo_last_ = nullptr;
  base::IntrusiveList<TaskHeader, TaskHeader> registry_;  // tasks first polled here and not finished
  base::IntrusiveList<TurnHook, TurnHook> hooks_;
  base::IntrusiveList<IoHook, IoHook> io_hooks_;
  uint32_t slot_runs_ = 0;
  uint32_t until_foreign_ = kForeignTasksMax;
  uint32_t foreign_interval_ = kForeignTasksMax;
  int64_t task_nanos_ = 1000;  // moving average
  bool fifo_next_ = true;
  bool searching_ = false;
  bool notified_this_turn_ = false;
  bool draining_ = false;  // shutdown: nothing is queued any more
  struct SlotSighting {
    uint64_t polls = 0;
    base::TimePoint since;
  };
  std::vector<SlotSighting> sightings_;  // per victim
  bool slot_seen_ = false;

  // Owner pushes and pops, others steal.
  concurrent::RunQueue<TaskHeader, kRunQueueMax> run_queue_;
  // Owner puts, owner and thieves exchange it away.
  std::atomic<TaskHeader*> slot_{nullptr};
  // Set by the owner (and the monitor), cleared by the owner when the queue is empty. Thieves leave the queue of a
  // worker that is not behind alone: it will have run those few tasks before another core is awake.
  std::atomic<bool> behind_{false};
  // Pushed to by any thread, taken by the owner.
  concurrent::MpscQueue inbox_;
  // Owner: kAwake <-> kParked. Others: kParked -> kWoken or kWokenToSearch, then exactly one Reactor::Wake.
  alignas(64) std::atomic<uint32_t> park_{kAwake};

  // Written by the owner, read by any thread.
  alignas(64) std::atomic<uint64_t> polls_{0};  // task polls and turns: the monitor's sign of life
  std::atomic<uint64_t> fifo_size_{0};
  std::atomic<uint64_t> turns_{0}, tasks_run_{0}, steals_{0}, parks_{0};
  std::atomic<uint64_t> spawned_{0}, finished_{0};
  std::atomic<uint64_t> idle_nanos_{0};
  std::atomic<uint64_t> blocked_{0};  // written by the monitor only
  // The thread's CPU clock (clockid_t), set by it when it starts, and whether it may be read.
  std::atomic<int> cpu_clock_{0};
  std::atomic<bool> has_cpu_clock_{false};
};

}  // namespace sluice::runtime
