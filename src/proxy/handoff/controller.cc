#include "proxy/handoff/controller.h"

#include <algorithm>

namespace sluice::proxy {

void HandoffController::Update(const Sample& sample) {
  const double load = sample.busy / (1 - kMovedPart * sample.moved);
  const bool was_active = active_;
  const Marks& marks = sample.burst >= kBurst ? kBusyInBursts : kBusy;
  active_ = load >= (active_ ? marks.active : marks.idle);
  if (!active_) return;
  const double targets = static_cast<double>(shares_.size());
  double sum = 0;
  for (size_t t = 0; t < shares_.size(); ++t) {
    const double difference = sample.own_cpu - sample.cpu[t];
    if (!was_active) {
      // The first guess, where it has nothing to go by: most of what makes the difference.
      shares_[t] = 0.7 * std::max(0.0, difference) / std::max(sample.own_cpu, 0.1) / targets;
      rest_[t] = 0;
    } else {
      shares_[t] = std::clamp(shares_[t] + kGain * difference / std::max(sample.own_cpu + sample.cpu[t], 0.1) / targets,
                              0.0, 1.0);
    }
    sum += shares_[t];
  }
  if (sum > 1) {
    for (double& share : shares_) share /= sum;
  }
}

void HandoffController::Plan(uint32_t calls, std::span<uint32_t> out) {
  // All to one: half a batch costs each side as many system calls as a whole one.
  std::fill(out.begin(), out.end(), 0u);
  if (calls < kCallsMin) return;
  size_t most = 0;
  for (size_t t = 0; t < shares_.size(); ++t) {
    rest_[t] += shares_[t] * calls;
    if (rest_[t] > rest_[most]) most = t;
  }
  if (rest_[most] * 2 < calls) return;
  out[most] = calls;
  rest_[most] -= calls;
}

}  // namespace sluice::proxy
