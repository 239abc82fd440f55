// What the tests of SharedLock share: a lock whose wake-ups are written down, and a request that is easy to make.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "sync/shared_lock_core.h"

namespace sluice::sync::test {

// Records the wake-ups, in order. Wakes come outside the lock's mutex: Wake() may ask the lock.
struct NotedWakeup {
  std::vector<int>* log = nullptr;
  int id = 0;
  void Wake() {
    if (log != nullptr) log->push_back(id);
  }
};

struct NotedTraits {
  using Mutex = std::mutex;
  using Wakeup = NotedWakeup;
};

using NotedLock = BasicSharedLock<NotedTraits>;

inline constexpr LockMode kShared = LockMode::kShared;
inline constexpr LockMode kExclusive = LockMode::kExclusive;

// A request of one waiter: asks when made, unless told not to wait.
struct Request {
  Request(NotedLock& l, LockMode mode, std::string_view what, std::vector<int>* log = nullptr, int id = 0,
          bool may_wait = true)
      : lock(l) {
    started = lock.Start(waiter, mode, what, may_wait, NotedWakeup{log, id});
    if (started != LockOutcome::kWaiting) Finish();
  }
  // What became of it; kWaiting: it has been told nothing yet.
  LockOutcome Finish() {
    result = lock.Finish(waiter);
    return result.outcome;
  }
  bool held() const { return static_cast<bool>(result.guard); }

  NotedLock& lock;
  NotedLock::Waiter waiter;
  LockOutcome started;
  NotedLock::Result result;
};

}  // namespace sluice::sync::test
