// LogLimit: bounds the log lines of one kind that peers, or an error that lasts, can cause, and reports how many were
// suppressed. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"

namespace sluice::base {

class LogLimit {
 public:
  // Lines about peers that misbehave: so many in kPeriod.
  static constexpr uint32_t kLines = 10;
  static constexpr Nanos kPeriod = std::chrono::seconds(1);

  // At most `lines` (>= 1) in `period`, which begins with the first line after the last one's end.
  LogLimit(uint32_t lines, Nanos period) : lines_max_(lines), period_(period) {}
  LogLimit() : LogLimit(kLines, kPeriod) {}

  // The suffix for one more line if it may be written now, else nothing.
  std::optional<std::string> Allow(TimePoint now) {
    if (!begun_ || now - *begun_ >= period_) {
      begun_ = now;
      lines_ = 0;
    }
    if (lines_ == lines_max_) {
      ++kept_back_;
      return std::nullopt;
    }
    ++lines_;
    if (kept_back_ == 0) return std::string();
    return " (and " + std::to_string(std::exchange(kept_back_, 0)) + " lines of this kind before it)";
  }

 private:
  uint32_t lines_max_;
  Nanos period_;
  std::optional<TimePoint> begun_;
  uint32_t lines_ = 0;
  uint64_t kept_back_ = 0;
};

}  // namespace sluice::base
