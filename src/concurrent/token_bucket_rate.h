// TokenRate: how many tokens a span of time is worth, in binary fixed point: nothing rounds away, nothing overflows.
//
// A rate is a count of 2^-40 tokens a nanosecond. What has come due up to instant t is floor(rate * t); a span is worth
// the difference of its two ends. So the sum over any chain of spans is the worth of the whole: floor never adds up to
// a lost or a gained token (the remainder is in the ends), however many spans there are, and no division is needed.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/clock.h"

namespace sluice::concurrent {

// Stateless; any thread; never suspends.
class TokenRate {
 public:
  // Tokens a second, at most: an hour's worth stays below 2^63.
  static constexpr double kMax = 9223372036854775808.0 / 3600;
  // A span is worth at most this, however long it was.
  static constexpr uint64_t kWorthMax = uint64_t{1} << 62;

  static bool Valid(double tokens_per_second) { return tokens_per_second >= 0 && tokens_per_second <= kMax; }

  // 0 only for 0: a rate too small to be told from 0 becomes the smallest there is (0.001 tokens a second).
  static uint64_t Encode(double tokens_per_second) {
    const auto bits = static_cast<uint64_t>(std::llround(std::ldexp(tokens_per_second / 1e9, kFractionBits)));
    return bits == 0 && tokens_per_second > 0 ? 1 : bits;
  }
  static double Decode(uint64_t rate) { return std::ldexp(static_cast<double>(rate), -kFractionBits) * 1e9; }

  // Nanoseconds of the steady clock. Before its zero counts as zero.
  static uint64_t Instant(base::TimePoint at) {
    const auto count = at.time_since_epoch().count();
    return count < 0 ? 0 : static_cast<uint64_t>(count);
  }

  // Tokens of the span (from, to], to >= from.
  static uint64_t Worth(uint64_t rate, uint64_t from, uint64_t to) {
    const Wide worth = Due(rate, to) - Due(rate, from);
    return worth < kWorthMax ? static_cast<uint64_t>(worth) : kWorthMax;
  }

  // The first instant at which the span from `from` is worth `tokens` (at most kWorthMax): never early, and at most a
  // nanosecond late. kNever at rate 0, and past the end of time.
  static base::TimePoint When(uint64_t rate, uint64_t from, uint64_t tokens) {
    if (tokens == 0) return Point(from);
    if (rate == 0) return base::kNever;
    const Wide target = (Due(rate, from) + tokens) << kFractionBits;  // below 2^124 + 2^102
    const Wide instant = (target + rate - 1) / rate;
    return instant < kInstantMax ? Point(static_cast<uint64_t>(instant)) : base::kNever;
  }

 private:
  __extension__ typedef unsigned __int128 Wide;
  static constexpr int kFractionBits = 40;  // kMax becomes 2.8 * 10^18 < 2^62; 1000 tokens a second err by 10^-6
  static constexpr uint64_t kInstantMax = uint64_t{1} << 63;

  static Wide Due(uint64_t rate, uint64_t instant) { return (Wide{rate} * instant) >> kFractionBits; }
  static base::TimePoint Point(uint64_t instant) {
    return base::TimePoint(base::TimePoint::duration(static_cast<base::TimePoint::rep>(instant)));
  }
};

}  // namespace sluice::concurrent
