#include "http2/connection/time_bounds.h"

#include <algorithm>
#include <utility>

namespace sluice::http2 {

using base::TimePoint;

namespace {

// `from` + `wait`; never for a wait of 0 (no bound) or where it has not begun.
TimePoint After(TimePoint from, base::Nanos wait) {
  return wait.count() == 0 || from == base::kNever ? base::kNever : base::DeadlineAfter(from, wait);
}

}  // namespace

void TimeBounds::Start(TimePoint now, base::Nanos delay, double age_share) {
  const bool delayed = delay.count() > 0;
  if (delayed) delayed_until_ = base::DeadlineAfter(now, delay);
  // Until we listen, silence is not the peer's fault.
  last_heard_ = idle_since_ = pending_since_ = delayed ? delayed_until_ : now;
  const auto age = std::chrono::duration<double, std::milli>(life_.age_max) * age_share;
  age_ = std::chrono::duration_cast<base::Nanos>(age);
  age_at_ = After(now, age_);
}

void TimeBounds::StartAnew(TimePoint now) {
  idle_since_ = now;
  age_at_ = After(now, age_);
}

TimePoint TimeBounds::Pending(uint64_t pending, TimePoint now) {
  pending_ = pending;
  if (pending == 0) return base::kNever;
  pending_since_ = now;
  return After(now, life_.headers_timeout);
}

TimePoint TimeBounds::Blocked(TimePoint now) {
  if (blocked_since_ != base::kNever) return base::kNever;  // said before
  blocked_since_ = now;
  return After(now, life_.send_timeout);
}

TimePoint TimeBounds::Queued(TimePoint now) {
  if (unread_sweep_at_ != base::kNever) return base::kNever;
  return unread_sweep_at_ = After(now, base::Nanos(life_.stall_timeout) / sweeps_);
}

TimePoint TimeBounds::HasStreams(TimePoint now) {
  if (!std::exchange(silence_unwatched_, false)) return base::kNever;
  return silent_sweep_at_ = After(now, base::Nanos(life_.body_timeout) / sweeps_);
}

void TimeBounds::Retire(TimePoint now) {
  retired_ = true;
  age_at_ = base::DeadlineAfter(now, life_.age_grace);
}

TimePoint TimeBounds::KeepaliveDue() const {
  if (ping_sent_) return After(std::max(last_heard_, ping_at_), keepalive_.timeout);
  const bool repeats = only_answer_ && keepalive_.interval.count() != 0 && keepalive_.repeat > keepalive_.interval;
  return After(last_heard_, repeats ? keepalive_.repeat : keepalive_.interval);
}

TimePoint TimeBounds::Next(TimePoint now, size_t busy_streams) const {
  TimePoint next =
      std::min({KeepaliveDue(), unread_sweep_at_, silent_sweep_at_, age_at_, delayed_until_, drain_answer_by_});
  if (pending_ != 0) next = std::min(next, After(pending_since_, life_.headers_timeout));
  next = std::min(next, After(blocked_since_, life_.send_timeout));
  if (!retired_) next = std::min(next, After(busy_streams == 0 ? idle_since_ : now, life_.idle_timeout));
  return next;
}

TimeBounds::Act TimeBounds::Due(TimePoint now, const Situation& situation) {
  if (now >= delayed_until_) {
    delayed_until_ = base::kNever;
    return Act::kRead;
  }
  if (pending_ != 0 && now >= After(pending_since_, life_.headers_timeout)) {
    if (situation.listening) return Act::kEndHeaders;
    pending_since_ = now;  // it is our side that does not read
  }
  if (now >= After(blocked_since_, life_.send_timeout)) return Act::kEndSend;
  if (now >= age_at_) return retired_ ? Act::kEndAge : Act::kRetire;
  const bool idle = situation.open_streams <= situation.background_streams;
  if (!retired_ && idle && now >= After(idle_since_, life_.idle_timeout)) return Act::kEndIdle;
  if (const Act act = DueForSilence(now, situation); act != Act::kNothing) return act;
  return DueForStreams(now);
}

// Nothing of the peer's has come, or not the answer to a drain's PING. While we do not read, that is not its fault.
TimeBounds::Act TimeBounds::DueForSilence(TimePoint now, const Situation& situation) {
  if (keepalive_.interval.count() != 0 && now >= KeepaliveDue()) {
    if (situation.paused) {
      last_heard_ = now;
    } else if (ping_sent_) {
      return Act::kEndDeaf;
    } else if (situation.server || situation.open_streams > 0) {
      ping_sent_ = true;
      ping_at_ = now;
      return Act::kPing;
    } else {
      // gRPC servers count pings on connections without calls as abuse, so a client only asks where it waits for
      // something.
      last_heard_ = now;
    }
  }
  if (now < drain_answer_by_) return Act::kNothing;
  if (situation.paused || delayed()) {
    drain_answer_by_ = now + kDrainAnswer;
    return Act::kNothing;
  }
  drain_answer_by_ = base::kNever;
  return Act::kBindDrain;
}

TimeBounds::Act TimeBounds::DueForStreams(TimePoint now) {
  if (now >= unread_sweep_at_) {
    unread_sweep_at_ = base::kNever;
    return Act::kSweepUnread;
  }
  if (now >= silent_sweep_at_) {
    silent_sweep_at_ = base::kNever;
    silence_unwatched_ = true;
    return Act::kSweepSilent;
  }
  return Act::kNothing;
}

}  // namespace sluice::http2
