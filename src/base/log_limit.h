// LogLimit: bounds the lines that peers can make us log, and says how many were kept back. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"

namespace sluice::base {

class LogLimit {
 public:
  static constexpr uint32_t kLinesPerSecond = 10;

  // Whether one more line may be written now; if so, what to put at its end.
  std::optional<std::string> Allow(TimePoint now) {
    if (now - begun_ >= std::chrono::seconds(1)) {
      begun_ = now;
      lines_ = 0;
    }
    if (lines_ == kLinesPerSecond) {
      ++kept_back_;
      return std::nullopt;
    }
    ++lines_;
    if (kept_back_ == 0) return std::string();
    std::string note = " (and " + std::to_string(kept_back_) + " lines of this kind before it)";
    kept_back_ = 0;
    return note;
  }

 private:
  TimePoint begun_{};
  uint32_t lines_ = 0;
  uint64_t kept_back_ = 0;
};

}  // namespace sluice::base
