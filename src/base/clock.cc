#include "base/clock.h"

namespace sluice::base {

const Clock& Clock::Steady() {
  class SteadyClock final : public Clock {
   public:
    TimePoint Now() const override { return std::chrono::steady_clock::now(); }
  };
  static const SteadyClock clock;
  return clock;
}

}  // namespace sluice::base
