// SharedLock: every interleaving of a few small threads. Here every section under the mutex, and every wake-up outside
// of it, is a step; sequential consistency only.
#include <gtest/gtest.h>

#include <memory>

#include "support/interleave.h"
#include "sync/shared_lock_core.h"
#include "unit/sync/shared_lock_support.h"

namespace sluice::sync {
namespace {

using test::kExclusive;
using test::kShared;

// A section has no scheduling point inside, so it is one step and the mutex is never found taken.
class StepMutex {
 public:
  void lock() {
    interleave::Point();
    EXPECT_FALSE(held_);
    held_ = true;
  }
  void unlock() { held_ = false; }

 private:
  bool held_ = false;
};

struct Party;
// Goes on with the party on the waker's thread, outside of the mutex: no thread waits in a loop, so every schedule
// ends.
struct StepWakeup {
  Party* party = nullptr;
  void Wake();
};

struct StepTraits {
  using Mutex = StepMutex;
  using Wakeup = StepWakeup;
};
using StepLock = BasicSharedLock<StepTraits>;

struct State;
struct Party {
  State* state = nullptr;
  StepLock::Waiter waiter;
  void (*then)(State&, StepLock::Result&) = nullptr;  // holding it
  void GoOn();
};

struct State {
  StepLock lock;
  Party parties[3];
  // Plain: one thread runs at a time, so an overlap shows.
  int shared = 0, exclusive = 0, removed = 0, timed_out = 0, granted = 0;

  void Ask(size_t i, LockMode mode, bool hurry, void (*then)(State&, StepLock::Result&)) {
    Party& party = parties[i];
    party.state = this;
    party.then = then;
    if (lock.Start(party.waiter, mode, "x", true, StepWakeup{&party}) != LockOutcome::kWaiting) return party.GoOn();
    // Gives up as soon as it can; too late: it is told, or has been.
    if (hurry && lock.Leave(party.waiter, LockOutcome::kTimedOut)) party.GoOn();
  }
  void Inside(const StepLock::Result& result) {
    int& mine = result.guard.mode() == kShared ? shared : exclusive;
    ++mine;
    interleave::Point();
    EXPECT_TRUE(exclusive == 0 || (exclusive == 1 && shared == 0));
    --mine;
  }
};

void StepWakeup::Wake() {
  interleave::Point();
  if (party != nullptr) party->GoOn();
}

void Party::GoOn() {
  StepLock::Result result = state->lock.Finish(waiter);
  state->removed += result.outcome == LockOutcome::kRemoved;
  state->timed_out += result.outcome == LockOutcome::kTimedOut;
  state->granted += result.outcome == LockOutcome::kGranted;
  ASSERT_EQ(static_cast<bool>(result.guard), result.outcome == LockOutcome::kGranted);
  if (result.guard) then(*state, result);
}

using Body = void (*)(State&, size_t);
void ExploreAll(std::vector<Body> bodies, void (*at_end)(State&)) {
  auto result = interleave::Explore([&](interleave::Run& run) {
    auto state = std::make_shared<State>();
    for (size_t i = 0; i < bodies.size(); ++i) run.Thread([=] { bodies[i](*state, i); });
    run.AtEnd([=] {
      const StepLock::View view = state->lock.Look();
      EXPECT_FALSE(view.exclusive || view.shared > 0 || view.groups > 0);
      EXPECT_EQ(state->granted + state->removed + state->timed_out, 3);  // one end each: no wake-up was lost
      at_end(*state);
    });
  });
  EXPECT_GT(result.schedules, 50u);
}

void Use(State& state, StepLock::Result& result) { state.Inside(result); }
void Share(State& state, size_t i) { state.Ask(i, kShared, false, Use); }
void Exclude(State& state, size_t i) { state.Ask(i, kExclusive, false, Use); }
void HurryExclusive(State& state, size_t i) { state.Ask(i, kExclusive, true, Use); }
void HurryShared(State& state, size_t i) { state.Ask(i, kShared, true, Use); }

TEST(SharedLockInterleave, HoldersExcludeEachOtherAndEachIsServed) {
  ExploreAll({Share, Exclude, Share}, [](State& state) { EXPECT_EQ(state.granted, 3); });
  ExploreAll({Exclude, Exclude, Share}, [](State& state) { EXPECT_EQ(state.granted, 3); });
}

// Trap 1 at every point: timeout of the front, release, and a shared request behind it.
TEST(SharedLockInterleave, AFrontThatTimesOutLosesNoWaiterBehindIt) {
  ExploreAll({Share, HurryExclusive, Share}, [](State& state) { EXPECT_GE(state.granted, 2); });
  ExploreAll({Exclude, HurryShared, Exclude}, [](State& state) { EXPECT_GE(state.granted, 2); });
}

TEST(SharedLockInterleave, ADowngradeLetsSharersInAndKeepsExclusivesOut) {
  auto downgrade = [](State& state, size_t i) {
    state.Ask(i, kExclusive, false, [](State& inside, StepLock::Result& result) {
      inside.Inside(result);
      result.guard.Downgrade();
      inside.Inside(result);
    });
  };
  ExploreAll({downgrade, Share, Exclude}, [](State& state) { EXPECT_EQ(state.granted, 3); });
}

TEST(SharedLockInterleave, ARemovalEndsPresentAndLaterRequests) {
  auto remove = [](State& state, size_t i) {
    state.Ask(i, kExclusive, false,
              [](State& inside, StepLock::Result& result) { EXPECT_TRUE(inside.lock.Remove(result.guard)); });
  };
  ExploreAll({remove, Share, HurryExclusive}, [](State& state) { EXPECT_TRUE(state.lock.removed()); });
}

}  // namespace
}  // namespace sluice::sync
