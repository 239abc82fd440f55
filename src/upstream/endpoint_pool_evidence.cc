// What the end of a call says against its endpoint's health.
#include <utility>

#include "upstream/endpoint_pool.h"
#include "upstream/health/latency_window.h"

namespace sluice::upstream {

void EndpointPool::CountFailure(Cause cause, uint64_t key) {
  const base::TimePoint now = context_.worker.now();
  FailingKeys& keys = endpoint_->load().failing_keys(context_.worker.index());
  // A connection that ends is one failure, however many calls are on it: all of them hear it in one turn. The key that
  // carries failures with it may be that of any of them.
  if (cause == Cause::kLost && std::exchange(lost_at_, now) == now) return keys.Remember(key, endpoint_.get(), now);
  if (!keys.Counts(key, endpoint_.get(), evidence_, now)) return;
  if (IsSoft(cause))
    cell_.Soft(cause);
  else
    cell_.Bad(cause);
}

bool EndpointPool::IsLate(base::Nanos time) const {
  constexpr uint64_t kSamplesMin = 20;
  constexpr double kTimes = 2;  // the median
  LatencyWindow::Counts counts{};
  for (size_t i = 0; i < counts.size(); ++i) counts[i] = cell_.first_byte[i].load(std::memory_order_relaxed);
  return SumOf(counts) < kSamplesMin || static_cast<double>(time.count()) >= kTimes * Quantile(counts, 0.5, 0);
}

}  // namespace sluice::upstream
