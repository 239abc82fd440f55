// RateWindow: what became of the calls of the last ten buckets of time; RateMatch: two of them side by side; and
// Wilson's bounds of a rate. One thread at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "base/clock.h"

namespace sluice::upstream {

// Counts of calls. Sums of several endpoints' are sums of their fields.
struct CallCounts {
  // `sent`: whole requests, to which an answer is owed.
  uint32_t sent = 0, answered = 0, good = 0, bad = 0, soft = 0;
  uint32_t withdrawn = 0;    // of `sent`, by their clients, before a response
  uint32_t apart = 0;        // of `bad`, passed deadlines and lost connections: one event may bring many of them
  uint32_t unended = 0;      // begun with requests that had not ended: nothing is owed to these
  uint32_t ended_later = 0;  // of them, counted in `sent` since

  uint32_t ended() const { return good + bad + soft; }
  uint32_t failed() const { return bad + soft; }
  // That a response may be waited for. A call may be withdrawn in a later window than it was sent in.
  uint32_t asked() const { return sent > withdrawn ? sent - withdrawn : 0; }
  // With requests that have not ended, or never did: it is not seen when they go.
  uint32_t open() const { return unended > ended_later ? unended - ended_later : 0; }
  // Failures that neither the application, nor the deadlines that clients set, nor one lost connection account for. A
  // pass may read a failure's `apart` and not its `bad` yet.
  uint32_t plain() const { return bad > apart ? bad - apart : 0; }
  CallCounts& operator+=(const CallCounts& more) {
    sent += more.sent;
    answered += more.answered;
    good += more.good;
    bad += more.bad;
    soft += more.soft;
    withdrawn += more.withdrawn;
    apart += more.apart;
    unended += more.unended;
    ended_later += more.ended_later;
    return *this;
  }
  CallCounts operator-(const CallCounts& less) const {
    return {sent - less.sent,   answered - less.answered, good - less.good,
            bad - less.bad,     soft - less.soft,         withdrawn - less.withdrawn,
            apart - less.apart, unended - less.unended,   ended_later - less.ended_later};
  }
};

class RateWindow {
 public:
  static constexpr size_t kBuckets = 10;
  using Buckets = std::array<CallCounts, kBuckets>;  // the newest first; the same times for all windows of one length

  explicit RateWindow(base::Nanos bucket) : bucket_(bucket) {}
  void Add(const CallCounts& more, base::TimePoint now) {
    Turn(now);
    buckets_[at_] += more;
  }
  void Forget() { buckets_ = {}; }
  CallCounts sum() const {
    CallCounts all;
    for (const CallCounts& bucket : buckets_) all += bucket;
    return all;
  }
  // The one `back` before the newest, which is not over yet.
  const CallCounts& bucket(size_t back) const { return buckets_[(at_ + kBuckets - back) % kBuckets]; }
  void AddTo(Buckets& all) const {
    for (size_t back = 0; back < kBuckets; ++back) all[back] += bucket(back);
  }

 private:
  // Buckets whose time has passed are emptied.
  void Turn(base::TimePoint now) {
    for (size_t i = 0; i < kBuckets && now - began_ >= bucket_; ++i) {
      at_ = (at_ + 1) % kBuckets;
      buckets_[at_] = {};
      began_ += bucket_;
    }
    // A long pause: all are empty now. Buckets of all windows begin together.
    if (now - began_ >= bucket_) began_ = now - now.time_since_epoch() % bucket_;
  }

  base::Nanos bucket_;
  Buckets buckets_{};
  size_t at_ = 0;
  base::TimePoint began_{};
};

// An endpoint's calls beside those of the others at the same times: shares of calls change, as an endpoint warms or is
// left, and a failure that all share must not weigh more for the one that had more calls just then.
class RateMatch {
 public:
  // A bucket of its own calls, and of the others'. One in which either had none tells nothing.
  void Add(const CallCounts& own, const CallCounts& others) {
    if (own.ended() == 0 || others.ended() == 0) return;
    own_ += own;
    const double weight = own.ended(), per_call = weight / others.ended();
    failed_ += per_call * others.failed();
    plain_ += per_call * others.plain();
    spread_ += weight * per_call;
  }
  const CallCounts& own() const { return own_; }
  // The others' rates, each bucket weighted by its own calls in it; 0 without calls.
  double failed() const { return own_.ended() == 0 ? 0 : failed_ / own_.ended(); }
  double plain() const { return own_.ended() == 0 ? 0 : plain_ / own_.ended(); }
  // How many calls of the others these rates are as good as: all of them where the shares stayed the same.
  double others() const { return spread_ == 0 ? 0 : static_cast<double>(own_.ended()) * own_.ended() / spread_; }

 private:
  CallCounts own_;
  double failed_ = 0, plain_ = 0, spread_ = 0;
};

// Bounds of the true rate behind a rate of `p` in `size` calls, by Wilson's score interval at 99% (Wilson 1927): unlike
// p +- 2 sigma it holds for small n and for rates near 0 and 1.
struct RateBounds {
  double lower = 0, upper = 1;
};
inline RateBounds WilsonBounds(double p, double size) {
  if (size <= 0) return {};
  constexpr double kZ = 2.576;
  const double middle = p + kZ * kZ / (2 * size);
  const double spread = kZ * std::sqrt(p * (1 - p) / size + kZ * kZ / (4 * size * size));
  const double scale = 1 + kZ * kZ / size;
  return {std::max(0.0, (middle - spread) / scale), std::min(1.0, (middle + spread) / scale)};
}

}  // namespace sluice::upstream
