// Worker: one thread of the M:N scheduler, with its queues, timers, reactor and end-of-turn hooks.
//
// One turn of the loop: ask the reactor, waiting only when nothing is queued; take the time; run the I/O handlers that
// are ready; deliver the inbox; expire timers; run the hooks of the I/O's end; run tasks up to the turn's budget, among
// them those the steps before made runnable; run the end-of-turn hooks (connections flush here). So a turn costs one
// epoll_wait and one reading of the clock, and what arrived is answered in the same turn. docs/scheduler.md has the
// whole picture.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/intrusive_list.h"
#include "base/random.h"
#include "runtime/mail.h"

namespace sluice::runtime {

class Runtime;
class FdWatch;
class TimerWheel;
class TaskHeader;

// Called once at the end of the current turn. Owner worker only. The destructor unlinks.
class TurnHook : public base::ListNode<TurnHook> {
 public:
  virtual void OnTurnEnd() = 0;

 protected:
  ~TurnHook() = default;
};

// Called once in a turn, when its I/O handlers, messages and timers have been handled and no task has run yet. Owner
// worker only. The destructor unlinks.
class IoHook : public base::ListNode<IoHook> {
 public:
  virtual void OnIoEnd() = 0;

 protected:
  ~IoHook() = default;
};

class Worker {
 public:
  // The worker this thread is, or null outside of the pool. Never inlined: clang 14 keeps a thread-local's address
  // over a suspension (LLVM issue 47179). Ask again after every co_await of a task that is not pinned.
  static Worker* Current();

  uint32_t index() const { return index_; }
  Runtime& runtime() const { return runtime_; }
  // The time of this turn; steady between two turns. Owner only.
  base::TimePoint now() const { return now_; }
  TimerWheel& timers() { return *timers_; }
  base::Random& random() { return random_; }
  // Watches `fd` for `events` of epoll(7), edge-triggered; what it is ready for already is an edge. Returns 0, or
  // errno: out of memory or of watches. Owner only, as are the next three.
  int Watch(int fd, uint32_t events, FdWatch& watch);
  // Watches for other events from now on; what it is ready for already is an edge. Costs a system call.
  void Rewatch(int fd, uint32_t events, FdWatch& watch);
  // Nothing is told any more. Before `fd` is closed.
  void Unwatch(int fd, FdWatch& watch);
  // OnRequeued next turn, which will not wait; once, however often it is asked for.
  void RequeueNextTurn(FdWatch& watch);

  // Registers `hook` for the end of this turn; a no-op if it is registered. Owner only.
  void AtTurnEnd(TurnHook& hook);
  // Registers `hook` for the end of this turn's I/O, or of the next one's if that is over; a no-op if it is registered.
  // Owner only.
  void AtIoEnd(IoHook& hook);

  // Runs `fn` on this worker, soon. Any thread, any time until the runtime's shutdown; after it `fn` is
  // destroyed unrun. Allocates: for control work, not for the path of a call.
  void Post(std::function<void()> fn);
  // Delivers `mail` on this worker, soon; wakes it if it is parked. Any thread; allocates nothing. False after the
  // runtime's shutdown: the mail is still the caller's.
  bool Send(Mail& mail);

  // CPU time this worker's thread has used; zero before it runs and after it has ended. Any thread; a system call.
  base::Nanos CpuTime() const;

  // Observations, any thread: relaxed counters.
  struct Stats {
    uint64_t turns = 0, tasks_run = 0, steals = 0, parks = 0, blocked = 0;
    uint64_t idle_nanos = 0;  // spent waiting; with one worker not measured
  };
  Stats stats() const;

  // Makes the calling thread this worker while it lives. For tests of a runtime that was never started.
  class ScopedCurrentForTest;
  // Turns the loop on the calling thread until nothing is queued and no handler is ready; never waits. Timers
  // expire by the runtime's clock. For tests of a runtime that was never started. Returns how many tasks were
  // polled.
  uint64_t RunUntilIdleForTest();

  ~Worker();

 private:
  friend class Runtime;
  friend class Monitor;
  friend class TaskHeader;
  struct Impl;
  Worker(Runtime& runtime, uint32_t index, const base::Clock& clock, bool shared);

  Runtime& runtime_;
  uint32_t index_;
  base::TimePoint now_;
  base::Random random_;
  std::unique_ptr<TimerWheel> timers_;
  std::unique_ptr<Impl> impl_;
};

class Worker::ScopedCurrentForTest {
 public:
  explicit ScopedCurrentForTest(Worker& worker);
  ~ScopedCurrentForTest();
  ScopedCurrentForTest(const ScopedCurrentForTest&) = delete;
  ScopedCurrentForTest& operator=(const ScopedCurrentForTest&) = delete;

 private:
  Worker* previous_;
};

}  // namespace sluice::runtime
