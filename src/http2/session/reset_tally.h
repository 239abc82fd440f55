// ResetTally: how many streams a client's session has reset lately. Servers bound that for each connection, and end one
// that goes beyond (CVE-2023-44487), with the calls of all callers that share it: docs/http2.md,
// "Deadlines and resets".
//
// A plain value; time is a parameter, and does not go back.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace sluice::http2 {

class ResetTally {
 public:
  // One of them is forgotten in this time: below what servers allow in the long run (nghttp2 33 a second, Netty 200 in
  // 30 s).
  static constexpr base::Nanos kForgotten = std::chrono::milliseconds(333);

  void Add() { ++newest_; }
  // The resets since the last Tick count as of `now`: a session has no clock.
  void Tick(base::TimePoint now) {
    if (newest_ > 0) [[unlikely]]
      Take(now);
  }
  // A cheap upper bound of Count: nothing is forgotten since the last Tick that had resets.
  uint32_t count() const { return count_ + newest_; }
  uint32_t Count(base::TimePoint now) const { return Left(Over(now)) + newest_; }

 private:
  void Take(base::TimePoint now) {
    const int64_t over = Over(now);
    at_ = over >= count_ ? now : at_ + over * kForgotten;
    count_ = Left(over) + newest_;
    newest_ = 0;
  }
  int64_t Over(base::TimePoint now) const { return now <= at_ ? 0 : (now - at_) / kForgotten; }
  uint32_t Left(int64_t over) const { return count_ - static_cast<uint32_t>(std::min<int64_t>(count_, over)); }

  uint32_t newest_ = 0;
  uint32_t count_ = 0;
  base::TimePoint at_{};  // since then none was forgotten
};

}  // namespace sluice::http2
