// SharedLock against a sequential reference that spells the rules in the plainest way: a million random steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <list>
#include <memory>

#include "base/random.h"
#include "sync/shared_lock_core.h"
#include "unit/sync/shared_lock_support.h"

namespace sluice::sync {
namespace {

using test::kExclusive;
using test::kShared;
using test::NotedLock;
using test::NotedWakeup;

// Groups as they are written in the rules: a deque of lists of ids. No hand-over tricks, no intrusive lists.
class Model {
 public:
  struct Group {
    LockMode mode;
    std::vector<int> members;
  };

  LockOutcome Ask(int id, LockMode mode, bool may_wait) {
    if (removed) return LockOutcome::kRemoved;
    if (queue.empty() && Fits(mode)) {
      Enter(id, mode);
      return LockOutcome::kGranted;
    }
    if (!may_wait) return LockOutcome::kTimedOut;
    if (mode == kShared) {
      for (Group& group : queue) {
        if (group.mode == kShared) {
          group.members.push_back(id);
          return LockOutcome::kWaiting;
        }
      }
    }
    queue.push_back({mode, {id}});
    return LockOutcome::kWaiting;
  }
  void Leave(int id) {
    for (auto group = queue.begin(); group != queue.end(); ++group) {
      if (std::erase(group->members, id) == 0) continue;
      if (group->members.empty()) queue.erase(group);
      break;
    }
    Grant();
  }
  void Release(int id) {
    if (exclusive == id) exclusive = -1;
    std::erase(shared, id);
    Grant();
  }
  void Downgrade(int id) {
    if (exclusive != id) return;
    exclusive = -1;
    shared.push_back(id);
    for (auto group = queue.begin(); group != queue.end(); ++group) {
      if (group->mode != kShared) continue;
      Group first = std::move(*group);
      queue.erase(group);
      queue.push_front(std::move(first));
      break;
    }
    Grant();
  }
  void Remove() {
    removed = true;
    exclusive = -1;
    for (const Group& group : queue) woken.insert(woken.end(), group.members.begin(), group.members.end());
    queue.clear();
  }
  bool Fits(LockMode mode) const { return exclusive < 0 && (mode == kShared || shared.empty()); }

  std::vector<int> woken;  // in order
  std::deque<Group> queue;
  int exclusive = -1;
  std::vector<int> shared;
  bool removed = false;

 private:
  void Enter(int id, LockMode mode) {
    if (mode == kExclusive) {
      exclusive = id;
    } else {
      shared.push_back(id);
    }
  }
  void Grant() {
    while (!queue.empty() && Fits(queue.front().mode)) {
      Group group = std::move(queue.front());
      queue.pop_front();
      for (int id : group.members) Enter(id, group.mode);
      woken.insert(woken.end(), group.members.begin(), group.members.end());
    }
  }
};

struct Party {
  int id;
  std::unique_ptr<NotedLock::Waiter> waiter;  // until it has been told
  NotedLock::Guard guard;
};

// One lock from its creation to its removal, or for `steps`. Returns the steps made.
int RunLife(base::Random& random, int steps) {
  auto lock = std::make_unique<NotedLock>();
  Model model;
  std::vector<int> log;
  std::list<Party> waiting, holding;
  int next = 0, step = 0;
  auto pick = [&](std::list<Party>& from) {
    return std::next(from.begin(), static_cast<long>(random.Below(from.size())));
  };
  for (; step < steps && !model.removed; ++step) {
    const uint64_t dice = random.Below(100);
    if (dice < 40 && waiting.size() + holding.size() < 12) {
      const LockMode mode = random.Below(3) == 0 ? kExclusive : kShared;
      const bool may_wait = random.Below(8) != 0;
      Party party{next++, std::make_unique<NotedLock::Waiter>(), {}};
      const LockOutcome outcome = lock->Start(*party.waiter, mode, "x", may_wait, NotedWakeup{&log, party.id});
      EXPECT_EQ(outcome, model.Ask(party.id, mode, may_wait));
      if (outcome == LockOutcome::kWaiting) {
        waiting.push_back(std::move(party));
      } else {
        party.guard = lock->Finish(*party.waiter).guard;
        if (party.guard) holding.push_back(std::move(party));
      }
    } else if (dice < 55 && !waiting.empty()) {
      auto party = pick(waiting);
      model.Leave(party->id);
      if (random.Below(4) == 0) {
        party->waiter.reset();  // its frame was destroyed
      } else {
        EXPECT_TRUE(lock->Leave(*party->waiter, LockOutcome::kTimedOut));
        EXPECT_EQ(lock->Finish(*party->waiter).outcome, LockOutcome::kTimedOut);
      }
      waiting.erase(party);
    } else if (dice < 63 && !holding.empty()) {
      auto party = pick(holding);
      model.Downgrade(party->id);
      party->guard.Downgrade();
    } else if (dice < 64 && !holding.empty() && random.Below(10) == 0) {
      auto party = pick(holding);
      const bool exclusive = model.exclusive == party->id;
      if (exclusive) model.Remove();
      EXPECT_EQ(lock->Remove(party->guard), exclusive);
      if (exclusive) holding.erase(party);
    } else if (!holding.empty()) {
      auto party = pick(holding);
      model.Release(party->id);
      holding.erase(party);
    }
    EXPECT_EQ(log, model.woken);
    for (int id : log) {
      auto party = std::find_if(waiting.begin(), waiting.end(), [&](const Party& p) { return p.id == id; });
      if (party == waiting.end()) return ADD_FAILURE() << "woken and not waiting: " << id, step;
      NotedLock::Result result = lock->Finish(*party->waiter);
      EXPECT_EQ(result.outcome, model.removed ? LockOutcome::kRemoved : LockOutcome::kGranted);
      party->guard = std::move(result.guard);
      if (party->guard) {
        holding.splice(holding.end(), waiting, party);
      } else {
        waiting.erase(party);
      }
    }
    log.clear();
    model.woken.clear();
    const NotedLock::View view = lock->Look();
    EXPECT_EQ(view.exclusive, model.exclusive >= 0);
    EXPECT_EQ(view.shared, model.shared.size());
    EXPECT_EQ(view.groups, model.queue.size());
    EXPECT_EQ(view.removed, model.removed);
    EXPECT_FALSE(view.front_fits);
    EXPECT_LE(view.groups, 1 + view.exclusive_waiting);
    EXPECT_FALSE(view.exclusive && view.shared > 0);
    if (::testing::Test::HasFailure()) return step;
  }
  EXPECT_TRUE(!model.removed || (waiting.empty() && holding.empty()));
  waiting.clear();
  holding.clear();
  return step + 1;
}

TEST(SharedLockModel, AMillionRandomStepsFollowTheRules) {
#ifdef SLUICE_SANITIZED
  constexpr int kSteps = 200'000;
#else
  constexpr int kSteps = 1'000'000;
#endif
  constexpr uint64_t kSeed = 20240521;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  base::Random random(kSeed);
  int lives = 0;
  for (int steps = 0; steps < kSteps; ++lives) {
    steps += RunLife(random, kSteps - steps);
    ASSERT_FALSE(HasFailure()) << "life " << lives << ", step " << steps;
  }
  EXPECT_GT(lives, 20);  // removals took part
}

}  // namespace
}  // namespace sluice::sync
