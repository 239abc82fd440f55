#include "proxy/downstream/spread_drain.h"

#include <algorithm>

namespace sluice::proxy {

void SpreadDrain::Begin(base::Nanos over) {
  begun_ = worker_.now();
  over_ = over;
  all_ = told_ = 0;
  for (DownstreamConnection* c = connections_.front(); c != nullptr; c = connections_.Next(*c)) ++all_;
  OnTimer(begun_);
}

// One that was told goes to the end of the list, so the next one is always in front. Where some have closed meanwhile
// it comes round to those that were told, for which Drain does nothing.
void SpreadDrain::OnTimer(base::TimePoint now) {
  const double passed = over_.count() > 0 ? static_cast<double>((now - begun_).count()) / over_.count() : 1;
  const size_t due = std::min(all_, 1 + static_cast<size_t>(passed * static_cast<double>(all_)));
  for (; told_ < due; ++told_) {
    DownstreamConnection* const next = connections_.PopFront();
    if (next == nullptr) return;
    connections_.PushBack(*next);
    next->Drain();
  }
  if (told_ < all_)
    worker_.timers().Arm(*this, now + std::max<base::Nanos>(kPauseMin, over_ / static_cast<int64_t>(all_)));
}

}  // namespace sluice::proxy
