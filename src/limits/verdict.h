// Verdict: what a limiter tells a call that asks to go, and why it refuses. One form for all limiters, so that the path
// of a call walks over them in one loop.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "base/clock.h"

namespace sluice::limits {

enum class Refusal : uint8_t {
  kNone,
  kQueueFull,  // as many wait as may wait, or a waiter of a client with more waiters made room for another's
  kQueueTime,  // it has waited as long as a call may, or the predicted wait is longer
  kTooLate,    // its deadline would pass in the queue, or leave too little for the service
  kTableFull,  // per client key: no room to keep another key's bucket
  kDebt,       // per client key: its bucket began with the debt of keys that made room, which is not yet paid
  kClosed,     // the limiter was taken away or broken
};
std::string_view ToString(Refusal refusal);

struct Verdict {
  enum class Kind : uint8_t { kGo, kWait, kRefused } kind = Kind::kGo;
  Refusal refusal = Refusal::kNone;
  // kWait: ask again (Poll) at this time even without a wake-up. kNever: only when woken.
  base::TimePoint check_at = base::kNever;
  // kRefused: when a retry may succeed, as far as the limiter can tell. At least 0.
  std::chrono::milliseconds retry_after{0};

  static Verdict Go() { return {}; }
  static Verdict Wait(base::TimePoint check_at) { return {Kind::kWait, Refusal::kNone, check_at, {}}; }
  static Verdict Refused(Refusal why, std::chrono::milliseconds retry_after) {
    return {Kind::kRefused, why, base::kNever, retry_after};
  }
};

}  // namespace sluice::limits
