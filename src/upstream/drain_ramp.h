// DrainRamp: how an endpoint that is drained over a time gives its keys away: it takes a share of them that falls to 0.
// A value of the list; time is a parameter.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace sluice::upstream {

struct DrainRamp {
  using Milliseconds = std::chrono::duration<uint32_t, std::milli>;
  static constexpr std::chrono::milliseconds kOverMax = std::chrono::hours(24);

  base::TimePoint from{};
  Milliseconds over{0};  // 0: there is no ramp, the share is 0 at once; at most kOverMax
  float share = 1;       // at `from`

  bool gradual() const { return over.count() > 0; }
  // 0..1. Before `from`, by a clock that was read earlier, that of the beginning.
  double ShareAt(base::TimePoint now) const {
    if (!gradual() || now - from >= over) return 0;
    if (now <= from) return share;
    return share * (1 - static_cast<double>((now - from).count()) / static_cast<double>(base::Nanos(over).count()));
  }
  bool operator==(const DrainRamp&) const = default;
};

}  // namespace sluice::upstream
