// Options of limiters: how fast calls may start, how many may be under way, how many may wait. Parsed by config,
// with the ranges in option_table.h; changed by the admin RPC; documented in config/reference.yaml.
#pragma once

#include <chrono>
#include <cstdint>

namespace sluice::limits {

// How long a call may wait at a limit; a call that has waited so long is refused. Short enough that a full queue is no
// latency, long enough for a burst.
inline constexpr std::chrono::milliseconds kQueueTime{200};

struct RateOptions {
  // Calls a second. 0: no limit.
  double rate = 0;
  // Calls that may start at once after a pause.
  uint32_t burst = 100;
  // A call's token comes back only when the call has ended, so calls that hang slow down new ones. What may be under
  // way is then at most `burst`, which should be at least 2 x rate x latency (docs/token-bucket.md).
  bool capped = false;
  // Calls that may wait for a token; the next is refused.
  uint32_t queue_max = 1024;
  // How long each of them may wait; a call whose token would come later is refused at once. 0: up to its deadline.
  std::chrono::milliseconds queue_time = kQueueTime;
  bool enabled() const { return rate > 0; }
  bool operator==(const RateOptions&) const = default;
};

struct ConcurrencyOptions {
  // Calls under way at once. 0: no limit.
  uint32_t max = 0;
  // Calls that may wait for one of them to end; the next is refused.
  uint32_t queue_max = 1024;
  // How long each of them may wait. 0: up to its deadline.
  std::chrono::milliseconds queue_time = kQueueTime;
  bool enabled() const { return max > 0; }
  bool operator==(const ConcurrencyOptions&) const = default;
};

}  // namespace sluice::limits
