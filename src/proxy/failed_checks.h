// FailedChecks: how many signatures that turn out wrong may be checked for one connection. A wrong signature costs its
// sender nothing and a worker 30 to 400 us, so a connection has a budget of them, which time fills again.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace sluice::proxy {

// A value; thread safety: none.
class FailedChecks {
 public:
  // So many in a second, and at once after a pause.
  static constexpr int64_t kPerSecond = 400;

  // Whether another signature may be checked.
  bool May(base::TimePoint now) {
    if (left_ < kPerSecond) Fill(now);
    return left_ > 0;
  }
  // `checks` signatures were checked in vain.
  void Charge(uint32_t checks, base::TimePoint now) {
    if (left_ == kPerSecond) filled_ = now;
    left_ -= checks;
  }

 private:
  void Fill(base::TimePoint now) {
    constexpr base::Nanos kOne = base::Nanos(std::chrono::seconds(1)) / kPerSecond;
    const int64_t earned = (now - filled_) / kOne;
    if (earned <= 0) return;
    filled_ += earned * kOne;
    left_ = std::min(left_ + earned, kPerSecond);
  }

  int64_t left_ = kPerSecond;
  base::TimePoint filled_{};
};

}  // namespace sluice::proxy
