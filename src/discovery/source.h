// Source: gives a cluster's list, again and again. It says what it hears; whether that is believed, and when, is the
// keeper's (list_keeper.h).
//
// A source is made, used and destroyed on one worker, by the task that asks it. It never blocks that worker: what
// blocks is done by runtime::BlockingCall.
#pragma once

#include <string>
#include <variant>

#include "base/clock.h"
#include "discovery/list.h"
#include "runtime/task.h"

namespace sluice::discovery {

// A source that watches still has the list that it gave last.
struct Unchanged {};
// Nothing new, a list, why there is none, or that nothing has changed.
using Answer = std::variant<std::monostate, List, std::string, Unchanged>;

class Source {
 public:
  virtual ~Source() = default;
  // Suspends until there is an answer, at most until `until` or until its bell rings for another reason (nothing new).
  // The first one asks at once. It is the newest answer: it is not called while lists are merged, and what has come
  // meanwhile is one answer. Cancel-safe.
  virtual runtime::Task<Answer> Next(base::TimePoint until) = 0;
  // The next Next asks anew and answers, though nothing tells of a change.
  virtual void Ask() = 0;
  // Calls fail to reach an endpoint of its list: it is looked at soon, whether that has changed.
  virtual void Hurry() = 0;
};

}  // namespace sluice::discovery
