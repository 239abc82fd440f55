// RateWindow: what became of the calls of the last ten buckets of time; and Wilson's bounds of a rate. One thread at a
// time.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "base/clock.h"

namespace sluice::upstream {

// Counts of calls. Sums of several endpoints' are sums of their fields.
struct CallCounts {
  uint32_t sent = 0, answered = 0, good = 0, bad = 0, soft = 0;
  uint32_t apart = 0;  // of `bad`, passed deadlines and lost connections: one event may bring many of them

  uint32_t ended() const { return good + bad + soft; }
  uint32_t failed() const { return bad + soft; }
  // Failures that neither the application, nor the deadlines that clients set, nor one lost connection account for. A
  // pass may read a failure's `apart` and not its `bad` yet.
  uint32_t plain() const { return bad > apart ? bad - apart : 0; }
  CallCounts& operator+=(const CallCounts& more) {
    sent += more.sent;
    answered += more.answered;
    good += more.good;
    bad += more.bad;
    soft += more.soft;
    apart += more.apart;
    return *this;
  }
  CallCounts operator-(const CallCounts& less) const {
    return {sent - less.sent, answered - less.answered, good - less.good,
            bad - less.bad,   soft - less.soft,         apart - less.apart};
  }
};

class RateWindow {
 public:
  static constexpr size_t kBuckets = 10;

  explicit RateWindow(base::Nanos bucket) : bucket_(bucket) {}
  void Add(const CallCounts& more, base::TimePoint now) {
    Turn(now);
    buckets_[at_] += more;
  }
  void Forget() { buckets_ = {}; }
  // Of the newest `buckets`, the last of which is not over yet.
  CallCounts sum(size_t buckets = kBuckets) const {
    CallCounts all;
    for (size_t i = 0; i < buckets; ++i) all += buckets_[(at_ + kBuckets - i) % kBuckets];
    return all;
  }

 private:
  // Buckets whose time has passed are emptied.
  void Turn(base::TimePoint now) {
    for (size_t i = 0; i < kBuckets && now - began_ >= bucket_; ++i) {
      at_ = (at_ + 1) % kBuckets;
      buckets_[at_] = {};
      began_ += bucket_;
    }
    if (now - began_ >= bucket_) began_ = now;  // a long pause: all are empty now
  }

  base::Nanos bucket_;
  std::array<CallCounts, kBuckets> buckets_{};
  size_t at_ = 0;
  base::TimePoint began_{};
};

// Bounds of the true rate behind `hits` of `n`, by Wilson's score interval at 99% (Wilson 1927): unlike p +- 2 sigma it
// holds for small n and for rates near 0 and 1.
struct RateBounds {
  double lower = 0, upper = 1;
};
inline RateBounds WilsonBounds(uint32_t hits, uint32_t n) {
  if (n == 0) return {};
  constexpr double kZ = 2.576;
  const double size = n, p = hits / size;
  const double middle = p + kZ * kZ / (2 * size);
  const double spread = kZ * std::sqrt(p * (1 - p) / size + kZ * kZ / (4 * size * size));
  const double scale = 1 + kZ * kZ / size;
  return {std::max(0.0, (middle - spread) / scale), std::min(1.0, (middle + spread) / scale)};
}

}  // namespace sluice::upstream
