// ConnectError: why a worker could not connect to an endpoint last, for the judge of health and its views.
//
// Thread safety: any thread. Written where a dial has failed, which then backs off; no call waits for it.
#pragma once

#include <mutex>
#include <string>
#include <utility>

#include "base/clock.h"

namespace sluice::upstream {

class ConnectError {
 public:
  struct Seen {
    std::string text;  // empty: no connect has failed
    base::TimePoint at{};
  };
  void Note(std::string text, base::TimePoint now) {
    std::lock_guard lock(mutex_);
    seen_ = {std::move(text), now};
  }
  Seen Last() const {
    std::lock_guard lock(mutex_);
    return seen_;
  }

 private:
  mutable std::mutex mutex_;
  Seen seen_;  // under mutex_
};

}  // namespace sluice::upstream
