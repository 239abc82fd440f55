#include "http2/flood/budget.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace sluice::http2 {
namespace {

uint32_t Milliseconds(base::TimePoint now) {
  return static_cast<uint32_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count());
}

}  // namespace

FloodBudgets::FloodBudgets(const SessionOptions& options)
    : states_{State{options.resets_per_second, options.resets_per_second},
              State{options.settings_per_second, options.settings_per_second},
              State{options.pings_per_second, options.pings_per_second},
              State{options.window_updates_per_second, options.window_updates_per_second},
              State{options.useless_frames_per_second, options.useless_frames_per_second}} {}

void FloodBudgets::Begin(base::TimePoint now) {
  for (State& state : states_) state.filled_ms = Milliseconds(now);
}

void FloodBudgets::Refill(Budget budget, uint32_t work, base::TimePoint now) {
  State& state = states_[static_cast<size_t>(budget)];
  const uint64_t elapsed_ms = Milliseconds(now) - state.filled_ms;
  const uint64_t by_time = elapsed_ms * state.limit / 1000;
  // What is not enough for a unit yet stays due.
  state.filled_ms += static_cast<uint32_t>(by_time * 1000 / state.limit);
  const uint64_t left = state.left + by_time + (work - std::exchange(state.work, work));
  state.left = static_cast<uint32_t>(std::min<uint64_t>(left, state.limit));
}

}  // namespace sluice::http2
