#include "upstream/spill.h"

#include <algorithm>
#include <cmath>

namespace sluice::upstream {
namespace {

// Shares are quotients of sums of decimals.
constexpr double kRounding = 1e-9;

}  // namespace

Spill::Spill() {
  for (auto& until : until_) until.store(kAll, std::memory_order_relaxed);
}

void Spill::Level::Want(double target, base::TimePoint now) {
  const bool more = target >= spilled + kStep - kRounding || (target >= 1 && spilled < 1);
  const bool less = target <= spilled - kStep + kRounding || (target <= 0 && spilled > 0);
  if (!less) {
    lower_since = base::kNever;
    if (more) spilled = target;
    return;
  }
  if (lower_since == base::kNever) {
    lower_since = now;
    most = target;
  }
  most = std::max(most, target);
  if (now - lower_since < kHold) return;
  spilled = most;
  lower_since = base::kNever;
}

bool Spill::Update(const Weights& weights, const SpillOptions& options, base::TimePoint now) {
  std::array<double, kTiersMax> until{};
  double carried = 0;  // by this tier and those before it
  for (size_t id = 0; id < kTiersMax; ++id) {
    const Weight& weight = weights[id];
    if (weight.all <= 0) {
      levels_[id] = {};
    } else {
      levels_[id].Want(std::clamp(1 - weight.healthy / weight.all * (1 + options.headroom), 0.0, 1.0), now);
      carried += (1 - carried) * (1 - levels_[id].spilled);
    }
    until[id] = carried;
  }
  bool moved = false;
  for (size_t id = 0; id < kTiersMax; ++id) {
    // What is too much for all of them stays where it can be carried at all; with none in health the first one has it.
    const double share = carried <= kRounding ? 1 : until[id] / carried;
    const auto place = static_cast<uint32_t>(std::lround(share * kAll));
    if (until_[id].load(std::memory_order_relaxed) == place) continue;
    until_[id].store(place, std::memory_order_relaxed);
    moved = true;
  }
  return moved;
}

double Spill::ShareOf(size_t id) const {
  const uint32_t before = id == 0 ? 0 : until_[id - 1].load(std::memory_order_relaxed);
  const uint32_t until = until_[id].load(std::memory_order_relaxed);
  return until <= before ? 0 : static_cast<double>(until - before) / kAll;
}

}  // namespace sluice::upstream
