// Backoff: how long a task of discovery waits before it asks a server again that has failed. Doubled from kFirst to
// a bound, each with 20% jitter, so that the sidecars of a fleet do not come back to it in one moment.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "base/random.h"

namespace sluice::discovery {

class Backoff {
 public:
  static constexpr base::Nanos kFirst = std::chrono::milliseconds(250), kMax = std::chrono::seconds(15);

  // `max`: of a source whose servers can bear to be asked more often than each kMax.
  explicit Backoff(base::Nanos max = kMax) : max_(max) {}

  base::Nanos Next(base::Random& random) {
    const double jitter = 0.8 + 0.4 * random.Unit();
    const base::Nanos wait(static_cast<int64_t>(static_cast<double>(next_.count()) * jitter));
    next_ = std::min(2 * next_, max_);
    return wait;
  }
  // It has done its work.
  void Reset() { next_ = kFirst; }

 private:
  const base::Nanos max_;
  base::Nanos next_ = kFirst;
};

}  // namespace sluice::discovery
