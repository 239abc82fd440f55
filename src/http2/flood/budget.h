// FloodBudgets: budgets for what a peer may do that brings no call forward. Each fills with time, up to one second's
// worth, and with useful work; what work is and what things cost: charges.h.
//
//   spend:   one comparison and one subtraction; no time is looked at
//   refill:  only where a budget is used up: what the time and the work since its last refill have earned
//
// Over any time T a peer gets at most limit x (1 + T) and what its work has paid for. A late refill gives less than a
// bucket that is filled all the time, never more: what is earned above one second's worth is lost either way.
// Not thread-safe: a session's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "http2/options.h"

namespace sluice::http2 {

enum class Budget : uint8_t { kResets, kSettings, kPings, kWindowUpdates, kUselessFrames };
inline constexpr size_t kBudgets = 5;

class FloodBudgets {
 public:
  explicit FloodBudgets(const SessionOptions& options);

  // From here time counts. Once, when the peer's first frame has come.
  void Begin(base::TimePoint now);

  // Takes `cost` units. False: they are not there; Refill, and ask again.
  bool Spend(Budget budget, uint32_t cost) {
    State& state = states_[static_cast<size_t>(budget)];
    if (state.left < cost) return false;
    state.left -= cost;
    return true;
  }
  // `work`: units that useful work has paid for since the session's start, modulo 2^32.
  void Refill(Budget budget, uint32_t work, base::TimePoint now);
  uint32_t limit(Budget budget) const { return states_[static_cast<size_t>(budget)].limit; }

 private:
  struct State {
    uint32_t limit;
    uint32_t left;
    uint32_t work = 0;       // at the last refill
    uint32_t filled_ms = 0;  // up to when time has been paid out; modulo 2^32: 49 days
  };
  std::array<State, kBudgets> states_;
};

}  // namespace sluice::http2
