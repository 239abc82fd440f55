// ReturnRate: how often units of a limit come back while calls wait for them, and so how long a wait will be.
//
// A moving mean of the time between two returns, written by the thread that returns one; updates that race lose one. A
// return that took very long counts for less, so that one pause of the service does not stand for its speed.
//
// Any thread, all of it, without a read-modify-write that others wait for. Nothing suspends.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace sluice::limits {

class ReturnRate {
 public:
  static constexpr std::chrono::milliseconds kUnknown{10}, kMin{1}, kMax{10'000};
  // What an empty queue has learnt is news for so long.
  static constexpr base::Nanos kFresh = std::chrono::seconds(1);
  // Returns that must have been seen before a call is refused because of their mean.
  static constexpr uint32_t kSure = 4;

  // A unit came back while calls wait. kNever: the time is not known, nothing is noted.
  void Note(base::TimePoint now);
  // The queue is empty: units returned from now on tell nothing about waiting.
  void Pause() { last_.store(0, std::memory_order_relaxed); }
  // A hint for retry_after: how long until `units` more have come back. kUnknown until something has been seen.
  std::chrono::milliseconds TimeFor(size_t units) const;
  // The same, to refuse by: none unless enough was seen, of the present queue or lately.
  std::optional<base::Nanos> WaitFor(size_t units, base::TimePoint now) const;

 private:
  std::atomic<int64_t> last_{0};      // nanoseconds of the clock; 0: none in this queue
  std::atomic<int64_t> noted_{0};     // the last one of any queue
  std::atomic<int64_t> mean_{-1};     // nanoseconds; -1: none yet
  std::atomic<uint32_t> samples_{0};  // in mean_ since it began anew
};

}  // namespace sluice::limits
