// interleave: runs every interleaving of a few small threads, one instrumented operation at a time.
//
// The threads of a test run in lock step: each operation of an interleave::Atomic is a scheduling point at
// which the explorer decides which thread goes on. Schedules are explored depth first; a schedule may take the
// processor away from a thread that could have gone on at most `preemptions_max` times (Musuvathi and Qadeer
// 2007: most bugs need two).
//
// This explores sequential consistency only: it finds wrong algorithms, not wrong memory orders. Those are
// the business of TSan and of the stress tests.
//
//   interleave::Result result = interleave::Explore([](interleave::Run& run) {
//     auto state = std::make_shared<State>();                      // fresh for every schedule
//     run.Thread([=] { state->queue.Push(1); });
//     run.Thread([=] { state->queue.Pop(); });
//     run.AtEnd([=] { EXPECT_TRUE(state->queue.Empty()); });       // after all threads, on the test's thread
//   });
//   EXPECT_GT(result.schedules, 10u);
//
// A thread that would spin for ever must call interleave::Yield() in its loop: it is not scheduled again
// until another thread has made a step. A loop that no thread ends is reported by CHECK after kStepsMax steps.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/check.h"

namespace sluice::interleave {

class Run;

// A sanitizer finds no race in threads that go in lock step, and makes each schedule several times as long: one
// preemption less there.
#ifdef SLUICE_SANITIZED
inline constexpr int kPreemptionsMax = 2;
#else
inline constexpr int kPreemptionsMax = 3;
#endif

struct Options {
  int preemptions_max = kPreemptionsMax;
  uint64_t schedules_max = 2'000'000;  // fate: CHECK fails, the test is too large
};

struct Result {
  uint64_t schedules = 0;
};

namespace internal {

inline constexpr uint64_t kStepsMax = 100'000;

// The present thread's place in the run; null outside of one, where instrumented operations are plain.
struct Slot {
  Run* run;
  size_t index;
};
inline thread_local Slot* t_slot = nullptr;

// One decision: which threads could go, and which one did.
struct Choice {
  std::vector<size_t> candidates;
  size_t taken = 0;
};

}  // namespace internal

class Run {
 public:
  void Thread(std::function<void()> body) { bodies_.push_back(std::move(body)); }
  void AtEnd(std::function<void()> check) { check_ = std::move(check); }

  // The instrumented operations call this before they act.
  void Step(size_t index, bool yield) {
    std::unique_lock lock(mutex_);
    yielded_[index] = yield;
    PassOn(index);
    turn_.wait(lock, [&] { return running_ == index; });
    for (size_t i = 0; i < yielded_.size(); ++i) {
      if (i != index) yielded_[i] = false;  // this thread makes a step now
    }
  }

 private:
  friend Result Explore(const std::function<void(Run&)>&, Options);
  static constexpr size_t kNone = SIZE_MAX;

  Run(std::vector<internal::Choice>& trail, int preemptions_max) : trail_(trail), preemptions_left_(preemptions_max) {}

  void Execute() {
    alive_.assign(bodies_.size(), true);
    yielded_.assign(bodies_.size(), false);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < bodies_.size(); ++i) {
      threads.emplace_back([this, i] {
        internal::Slot slot{this, i};
        {
          std::unique_lock lock(mutex_);
          turn_.wait(lock, [&] { return running_ == i; });
        }
        internal::t_slot = &slot;
        bodies_[i]();
        internal::t_slot = nullptr;
        std::unique_lock lock(mutex_);
        alive_[i] = false;
        PassOn(i);
      });
    }
    {
      std::unique_lock lock(mutex_);
      PassOn(kNone);
    }
    for (std::thread& thread : threads) thread.join();
    if (check_) check_();
  }

  // Under mutex_: chooses the thread that runs next. `from` has reached a scheduling point, or its end.
  void PassOn(size_t from) {
    SLUICE_CHECK(++steps_ < internal::kStepsMax);
    std::vector<size_t> candidates;
    const bool can_stay = from != kNone && alive_[from] && !yielded_[from];
    if (can_stay) candidates.push_back(from);
    if (!can_stay || preemptions_left_ > 0) {
      for (size_t i = 0; i < alive_.size(); ++i) {
        if (i != from && alive_[i] && !yielded_[i]) candidates.push_back(i);
      }
    }
    if (candidates.empty()) {  // all that live have yielded to each other
      for (size_t i = 0; i < alive_.size(); ++i) {
        if (alive_[i]) candidates.push_back(i);
      }
    }
    if (candidates.empty()) {
      running_ = kNone;
      return;
    }
    if (depth_ == trail_.size()) trail_.push_back(internal::Choice{candidates, 0});
    internal::Choice& choice = trail_[depth_++];
    SLUICE_CHECK(choice.candidates == candidates);  // the test is deterministic
    running_ = choice.candidates[choice.taken];
    if (can_stay && running_ != from) --preemptions_left_;
    turn_.notify_all();
  }

  std::vector<internal::Choice>& trail_;
  std::vector<std::function<void()>> bodies_;
  std::function<void()> check_;

  std::mutex mutex_;
  std::condition_variable turn_;
  // Under mutex_:
  size_t running_ = kNone;
  size_t depth_ = 0;
  uint64_t steps_ = 0;
  int preemptions_left_;
  std::vector<bool> alive_, yielded_;
};

// Runs `setup` and its threads once for every schedule.
inline Result Explore(const std::function<void(Run&)>& setup, Options options = {}) {
  std::vector<internal::Choice> trail;
  Result result;
  while (true) {
    SLUICE_CHECK(++result.schedules <= options.schedules_max);
    {
      Run run(trail, options.preemptions_max);
      setup(run);
      run.Execute();
    }
    while (!trail.empty() && trail.back().taken + 1 == trail.back().candidates.size()) trail.pop_back();
    if (trail.empty()) return result;
    ++trail.back().taken;
  }
}

inline void Point(bool yield = false) {
  if (internal::Slot* slot = internal::t_slot) slot->run->Step(slot->index, yield);
}
inline void Yield() { Point(true); }

// Like std::atomic; every operation is a scheduling point. A weak CAS never fails spuriously.
template <typename T>
class Atomic {
 public:
  constexpr Atomic() = default;
  constexpr Atomic(T value) : value_(value) {}  // NOLINT: as std::atomic
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;

  T load(std::memory_order = std::memory_order_seq_cst) const {
    Point();
    return value_.load();
  }
  void store(T value, std::memory_order = std::memory_order_seq_cst) {
    Point();
    value_.store(value);
  }
  T exchange(T value, std::memory_order = std::memory_order_seq_cst) {
    Point();
    return value_.exchange(value);
  }
  template <typename... Orders>
  bool compare_exchange_strong(T& expected, T desired, Orders...) {
    Point();
    return value_.compare_exchange_strong(expected, desired);
  }
  template <typename... Orders>
  bool compare_exchange_weak(T& expected, T desired, Orders...) {
    return compare_exchange_strong(expected, desired);
  }
  T fetch_add(T by, std::memory_order = std::memory_order_seq_cst) {
    Point();
    return value_.fetch_add(by);
  }
  T fetch_sub(T by, std::memory_order = std::memory_order_seq_cst) {
    Point();
    return value_.fetch_sub(by);
  }
  T fetch_or(T bits, std::memory_order = std::memory_order_seq_cst) {
    Point();
    return value_.fetch_or(bits);
  }
  T fetch_and(T bits, std::memory_order = std::memory_order_seq_cst) {
    Point();
    return value_.fetch_and(bits);
  }

 private:
  std::atomic<T> value_{};
};

}  // namespace sluice::interleave
