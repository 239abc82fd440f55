// Semaphore: every interleaving of giving, taking, waiting, leaving, breaking and destroying for two or three threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "support/interleave.h"
#include "unit/sync/semaphore_support.h"

namespace sluice::sync::test {
namespace {

// For two threads: every operation inside is a step, too.
struct StepMutex {
  void lock() {
    while (word.exchange(1) != 0) interleave::Yield();
  }
  void unlock() { word.store(0); }
  interleave::Atomic<uint32_t> word{0};
};

// For three: what happens inside is one step. Two that spin for a third could pass the turn to each other without end.
struct WholeMutex {
  void lock() {
    interleave::Point();
    slot = std::exchange(interleave::internal::t_slot, nullptr);
  }
  void unlock() { interleave::internal::t_slot = slot; }
  interleave::internal::Slot* slot = nullptr;
};

template <typename M>
struct StepTraits : RecordingTraits {
  template <typename T>
  using Atomic = interleave::Atomic<T>;
  using Mutex = M;
};

template <typename Mutex>
struct State {
  using Semaphore = BasicSemaphore<StepTraits<Mutex>>;
  using Permit = typename Semaphore::Permit;

  explicit State(int64_t units, int64_t capacity = 4) { semaphore.emplace(units, capacity); }
  void Ask(int number, int64_t units) { semaphore->Enqueue(waiters[number], units, RecordingWakeup(woken, number)); }
  int Wakes(int number) const { return static_cast<int>(std::count(woken.begin(), woken.end(), number)); }
  // Gives back what waiter `number` has, if it was granted.
  void End(int number, int64_t units) {
    if (waiters[number].outcome() != Outcome::kGranted) return;
    EXPECT_EQ(semaphore->Adopt(units).units(), units);
  }

  std::vector<int> woken;  // one thread runs at a time
  std::optional<Semaphore> semaphore;
  typename Semaphore::Waiter waiters[3];
  std::optional<Permit> permit;
  bool left = false;
};

using Two = std::shared_ptr<State<StepMutex>>;
using Three = std::shared_ptr<State<WholeMutex>>;

template <typename StatePtr, typename Setup>
uint64_t Explore(int64_t units, const Setup& setup) {
  auto explore = [&](interleave::Run& run) { setup(run, std::make_shared<typename StatePtr::element_type>(units)); };
  return interleave::Explore(explore, {.preemptions_max = 3}).schedules;
}

// The lost wake-up: the unit comes back while the waiter is on its way into the queue.
TEST(SemaphoreInterleave, AReturnedUnitMeetsAnArrivingRequest) {
  const uint64_t schedules = Explore<Two>(1, [](interleave::Run& run, Two state) {
    state->permit = state->semaphore->TryAcquire(1);
    run.Thread([=] { state->permit.reset(); });
    run.Thread([=] { state->Ask(0, 1); });
    run.AtEnd([=] {
      EXPECT_EQ(state->waiters[0].outcome(), Outcome::kGranted);
      EXPECT_LE(state->Wakes(0), 1);
      state->End(0, 1);
      EXPECT_EQ(state->semaphore->raw(), 1);
      EXPECT_TRUE(state->semaphore->TryAcquire(1));  // the bit is cleared again
    });
  });
  EXPECT_GT(schedules, 30u);
}

// A signal, the timeout of the first, and a third that asks; after all of it the second must not sleep beside free
// units.
TEST(SemaphoreInterleave, SignalTimeoutOfTheFirstAndAThird) {
  const uint64_t schedules = Explore<Three>(1, [](interleave::Run& run, Three state) {
    state->Ask(0, 4);
    state->Ask(1, 2);
    run.Thread([=] { state->semaphore->Signal(1); });
    run.Thread([=] { state->left = state->semaphore->Cancel(state->waiters[0], Outcome::kTimedOut); });
    run.Thread([=] { state->Ask(2, 1); });
    run.AtEnd([=] {
      EXPECT_TRUE(state->left);
      EXPECT_EQ(state->waiters[1].outcome(), Outcome::kGranted);
      EXPECT_EQ(state->waiters[2].outcome(), Outcome::kWaiting);  // 2 units, the second had both
      EXPECT_EQ(state->Wakes(0), 0);
      EXPECT_EQ(state->Wakes(1), 1);
      state->End(1, 2);
      EXPECT_EQ(state->waiters[2].outcome(), Outcome::kGranted);
      state->End(2, 1);
      EXPECT_EQ(state->semaphore->raw(), 2);
    });
  });
  EXPECT_GT(schedules, 100u);
}

TEST(SemaphoreInterleave, AGrantAndATimeoutOfOneWaiterHaveOneWinner) {
  int granted = 0, timed_out = 0;
  Explore<Two>(1, [&](interleave::Run& run, Two state) {
    state->permit = state->semaphore->TryAcquire(1);
    state->Ask(0, 1);
    run.Thread([=] { state->permit.reset(); });
    run.Thread([=] { state->left = state->semaphore->Cancel(state->waiters[0], Outcome::kTimedOut); });
    run.AtEnd([=, &granted, &timed_out] {
      const Outcome outcome = state->waiters[0].outcome();
      EXPECT_EQ(outcome, state->left ? Outcome::kTimedOut : Outcome::kGranted);
      EXPECT_EQ(state->Wakes(0), state->left ? 0 : 1);
      ++(state->left ? timed_out : granted);
      state->End(0, 1);
      EXPECT_EQ(state->semaphore->raw(), 1);
    });
  });
  EXPECT_GT(granted, 0);
  EXPECT_GT(timed_out, 0);
}

TEST(SemaphoreInterleave, TakersAndGiversLoseNoUnit) {
  Explore<Two>(2, [](interleave::Run& run, Two state) {
    for (int i = 0; i < 3; ++i) {
      run.Thread([=] {
        std::optional<Two::element_type::Permit> permit = state->semaphore->TryAcquire(1);
        EXPECT_GE(state->semaphore->raw(), 0);
      });
    }
    run.AtEnd([=] { EXPECT_EQ(state->semaphore->raw(), 2); });
  });
}

TEST(SemaphoreInterleave, ABreakEndsEveryWaitOnceAndNothingSucceedsAfterIt) {
  Explore<Three>(1, [](interleave::Run& run, Three state) {
    state->permit = state->semaphore->TryAcquire(1);
    state->Ask(0, 1);
    run.Thread([=] { state->semaphore->Break(); });
    run.Thread([=] { state->permit.reset(); });
    run.Thread([=] { state->Ask(1, 1); });
    run.AtEnd([=] {
      const Outcome first = state->waiters[0].outcome(), second = state->waiters[1].outcome();
      EXPECT_TRUE(first == Outcome::kBroken || first == Outcome::kGranted);
      EXPECT_EQ(second, Outcome::kBroken);  // the only unit is the first's
      EXPECT_EQ(state->Wakes(0), 1);
      EXPECT_LE(state->Wakes(1), 1);
      EXPECT_EQ(state->semaphore->waiters(), 0u);
      EXPECT_EQ(state->semaphore->held(), first == Outcome::kGranted ? 1 : 0);
      state->End(0, 1);
      EXPECT_EQ(state->semaphore->held(), 0);
    });
  });
}

TEST(SemaphoreInterleave, ABreakAndAUnitThatComesBack) {
  Explore<Two>(1, [](interleave::Run& run, Two state) {
    state->permit = state->semaphore->TryAcquire(1);
    run.Thread([=] { state->semaphore->Break(); });
    run.Thread([=] { state->permit.reset(); });
    run.AtEnd([=] {
      EXPECT_EQ(state->semaphore->held(), 0);
      EXPECT_EQ(state->semaphore->raw(), 0);
    });
  });
}

TEST(SemaphoreInterleave, ThePermitOrTheSemaphoreGoesLast) {
  Explore<Two>(1, [](interleave::Run& run, Two state) {
    state->permit = state->semaphore->TryAcquire(1);
    run.Thread([=] { state->semaphore.reset(); });
    run.Thread([=] { state->permit.reset(); });
  });
}

// The state is freed once, by the last user; a sanitized build sees if not.
TEST(SemaphoreInterleave, APermitOrTheSemaphoreGoesLast) {
  const uint64_t schedules = Explore<Three>(3, [](interleave::Run& run, Three state) {
    state->permit = state->semaphore->TryAcquire(3);
    auto part = std::make_shared<std::optional<Three::element_type::Permit>>(state->permit->Split(1));
    state->Ask(0, 2);
    run.Thread([=] { state->permit.reset(); });
    run.Thread([=] { part->reset(); });
    run.Thread([=] {
      state->semaphore->Cancel(state->waiters[0]);
      const bool granted = state->waiters[0].outcome() == Outcome::kGranted;
      std::optional<Three::element_type::Permit> got;
      if (granted) got.emplace(state->semaphore->Adopt(2));
      state->semaphore.reset();
    });
    run.AtEnd([=] { EXPECT_NE(state->waiters[0].outcome(), Outcome::kWaiting); });
  });
  EXPECT_GT(schedules, 30u);
}

}  // namespace
}  // namespace sluice::sync::test
