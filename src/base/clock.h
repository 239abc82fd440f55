// Time is a parameter: a steady point read once per loop turn, and a Clock that tests turn by hand.
#pragma once

#include <atomic>
#include <chrono>

namespace sluice::base {

using TimePoint = std::chrono::steady_clock::time_point;
using Nanos = std::chrono::nanoseconds;

// No deadline: later than every point a test or a process can reach.
inline constexpr TimePoint kNever = TimePoint::max();

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint Now() const = 0;
  static const Clock& Steady();  // std::chrono::steady_clock
};

// A clock that stands still until told. Thread-safe.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(TimePoint start = TimePoint(std::chrono::hours(1))) : now_(start.time_since_epoch().count()) {}
  TimePoint Now() const override { return TimePoint(TimePoint::duration(now_.load(std::memory_order_relaxed))); }
  void Advance(Nanos by) { now_.fetch_add(by.count(), std::memory_order_relaxed); }

 private:
  std::atomic<TimePoint::rep> now_;
};

// now + timeout, or kNever where that would pass the end of time.
inline TimePoint DeadlineAfter(TimePoint now, Nanos timeout) {
  if (timeout >= kNever - now) return kNever;
  return now + timeout;
}

}  // namespace sluice::base
