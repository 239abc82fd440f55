// ServiceTimes: how long calls lately took from the moment the limits let them go until their answer began, by method.
//
// A call that waits at a limit with less time left than that would be executed in vain, so it is refused instead.
// Only answers count: a call that was refused, cancelled or late tells nothing of the service. The mean is geometric,
// because a few long calls must not stand for the many (the mean of a thousand calls of 1 ms and one of 10 s is 1 ms).
//
// A table of fixed size for one worker, written and read by it alone; methods that share a place take turns in it. An
// estimate is given only while it is fresh, so that one from another day refuses no call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace sluice::limits {

class ServiceTimes {
 public:
  static constexpr size_t kPlaces = 256;
  static constexpr uint32_t kSure = 8;  // answers before there is an estimate
  static constexpr base::Nanos kFresh = std::chrono::seconds(10);

  // A call of `key` (a hash of its cluster and method, well mixed) was answered after `time`.
  void Note(uint64_t key, base::Nanos time, base::TimePoint now);
  // The geometric mean of the last answers, about thirty; 0: not known.
  base::Nanos Of(uint64_t key, base::TimePoint now) const;

 private:
  struct Place {
    uint64_t key = 0;
    base::TimePoint noted{};
    float log2 = 0;  // of nanoseconds
    uint32_t answers = 0;
  };
  std::array<Place, kPlaces> places_{};
};

}  // namespace sluice::limits
