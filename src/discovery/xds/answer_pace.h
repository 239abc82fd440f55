// AnswerPace: when a response of one type may be answered. Some control planes (go-control-plane's SnapshotCache)
// answer a NACK with the refused resource at once; without a pause both sides do nothing else, thousands of times a
// second.
//
//   - what is new and accepted is acknowledged at once
//   - NACKs are kPause apart at least
//   - while a response brings what the one before it brought, the pause doubles, up to kPauseMax
// Control planes may send a type's next update only after its answer, so kPauseMax bounds what the pause delays good
// updates of that type by. Other types have a pace of their own. A value: it is told the time.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "base/clock.h"

namespace sluice::discovery {

class AnswerPace {
 public:
  static constexpr base::Nanos kPause = std::chrono::milliseconds(100);
  static constexpr base::Nanos kPauseMax = std::chrono::seconds(2);

  // A response has come at `now`. `refused`: it is answered by a NACK. `news`: it differs from the one before it.
  // Returns when the answer is to be sent, `now` at the earliest. A response that comes before that shares the answer.
  base::TimePoint Answer(bool refused, bool news, base::TimePoint now) {
    if (news) pause_ = kPause;
    if (news && !refused) return now;
    if (slowed_at_ && *slowed_at_ > now) return *slowed_at_;
    const base::TimePoint at = slowed_at_ ? std::max(now, base::DeadlineAfter(*slowed_at_, pause_)) : now;
    if (!news) pause_ = std::min(2 * pause_, kPauseMax);
    slowed_at_ = at;
    return at;
  }

 private:
  std::optional<base::TimePoint> slowed_at_;  // the last answer that refused, or repeated
  base::Nanos pause_ = kPause;
};

}  // namespace sluice::discovery
