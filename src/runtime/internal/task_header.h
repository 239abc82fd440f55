// TaskHeader: what the scheduler keeps of a spawned task. Private to the runtime.
//
// State word, two bits:
//
//              wake: +kNotified                    poll: = kRunning
//     00 idle ------------------> 01 scheduled ------------------------> 10 running --+ wake: +kNotified
//       ^                          ^      (in exactly one queue)            |    |    v
//       |                          +------------------------ 11 running + notified    |
//       |                            suspended: -kRunning, and queued again           |
//       +----------------------------------------------------------------------------+ suspended: -kRunning
//
//     kDone is set once, by the worker that polled it to its end or destroyed it; a wake after that changes
//     nothing.
//
// Transitions by kind:
//   kFree            every transition is one RMW on state_. A wake's RMW releases what the waker wrote, the poll's RMW
//                    acquires it; two RMWs on one word cannot miss each other, so "already scheduled, nothing
//                    to do" is safe where a plain load would not be.
//   kPinOnStart      as kPinned from its first poll on; before it has no waker, so no other thread can race.
//   kPinned          all transitions are made by the home worker, with plain loads and stores. Other threads only set
//                    wake_in_flight_ (one RMW) and send the header through the home's inbox; delivery clears
//                    the flag and wakes locally. So a task of one worker costs no RMW for its state.
//
// refs_: one for the task itself (dropped at kDone by the owner of the registry), one per Waker, one per
// message that is in an inbox or in the global queue. The last one frees the header; the frame goes at kDone.
#pragma once

#include <atomic>
#include <coroutine>
#include <cstdint>

#include "base/intrusive_list.h"
#include "runtime/frame_pool.h"
#include "runtime/mail.h"

namespace sluice::runtime {

class Runtime;
class Worker;

enum class TaskKind : uint8_t { kFree, kPinOnStart, kPinned };

class TaskHeader : public Message, public base::ListNode<TaskHeader> {
 public:
  static constexpr uint32_t kNotified = 1, kRunning = 2, kDone = 4;

  TaskHeader(Runtime& runtime, std::coroutine_handle<> root, TaskKind kind, Worker* home)
      : Message(Message::Kind::kTask), runtime_(runtime), root_(root), resume_point_(root), home_(home), kind_(kind) {}

  static void* operator new(size_t bytes) { return AllocateFrame(bytes); }
  static void operator delete(void* p, size_t bytes) { FreeFrame(p, bytes); }

  void Ref() { refs_.fetch_add(1, std::memory_order_relaxed); }
  // Release and acquire: all uses of the header happen before it is freed. The holder of the only reference need not
  // subtract: no other thread can add one.
  void Unref() {
    if (refs_.load(std::memory_order_acquire) == 1 || refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  bool pinned() const { return kind_ == TaskKind::kPinned; }
  // Any thread.
  void Wake();

 private:
  friend class Worker;  // and its Impl
  friend class Runtime;
  friend class Waker;
  friend TaskHeader& SuspendHere(std::coroutine_handle<> resume_point);

  std::atomic<uint32_t> state_{kNotified};
  std::atomic<uint32_t> refs_{1};
  std::atomic<bool> wake_in_flight_{false};  // kPinned only; set by any thread, cleared by home
  Runtime& runtime_;
  std::coroutine_handle<> root_;          // written by the polling worker; null at kDone
  std::coroutine_handle<> resume_point_;  // the polling worker
  TaskHeader* next_ = nullptr;            // in a worker's own FIFO; owner
  Worker* home_;                          // whose registry it is in, from the first poll on; pinned: where it runs
  bool started_ = false;                  // has been polled; travels with the task
  TaskKind kind_;                         // kPinOnStart becomes kPinned at the first poll
};

}  // namespace sluice::runtime
