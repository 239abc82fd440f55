// Timeline: what is to happen outside of the proxy, in the order of time; at one time, in the order it was planned.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace sluice::chaos {

class Timeline {
 public:
  explicit Timeline(base::ManualClock& clock) : clock_(clock) {}

  base::TimePoint now() const { return clock_.Now(); }
  void After(base::Nanos delay, std::function<void()> what) { At(now() + delay, std::move(what)); }
  void At(base::TimePoint when, std::function<void()> what) {
    events_.push_back({when, next_++, std::move(what)});
    std::push_heap(events_.begin(), events_.end(), Later);
  }
  // kNever: nothing is planned.
  base::TimePoint Next() const { return events_.empty() ? base::kNever : events_.front().when; }
  // What is due first, if it is due by now. Events may plan others.
  bool RunOne() {
    if (Next() > now()) return false;
    std::pop_heap(events_.begin(), events_.end(), Later);
    const std::function<void()> what = std::move(events_.back().what);
    events_.pop_back();
    ++done_;
    what();
    return true;
  }
  uint64_t done() const { return done_; }

 private:
  struct Event {
    base::TimePoint when;
    uint64_t number;
    std::function<void()> what;
  };
  static bool Later(const Event& a, const Event& b) {
    return std::pair(a.when, a.number) > std::pair(b.when, b.number);
  }

  base::ManualClock& clock_;
  std::vector<Event> events_;  // a heap
  uint64_t next_ = 0, done_ = 0;
};

}  // namespace sluice::chaos
