// What the end of an attempt says of its endpoint's health.
#include "proxy/call/attempt.h"
#include "proxy/grpc_timeout.h"
#include "runtime/runtime.h"

namespace sluice::proxy {

using upstream::Cause;

// Whether the backend's timer for the call has run out. The timeout that it was sent is what remained when the stream
// was opened. The clock is read anew: the turn may have begun before the reset arrived.
bool Attempt::RanOut() const {
  if (exchange_.deadline == base::kNever) return false;
  const base::TimePoint now = exchange_.context.worker().runtime().clock().Now();
  return RanOutAtServer(now - opened_, exchange_.deadline - opened_);
}

// A cancellation shortly before is that deadline too: a busy host's timers do not fire in order.
bool Attempt::EndsByDeadline() const {
  if (exchange_.deadline == base::kNever) return false;
  const base::TimePoint now = exchange_.context.worker().runtime().clock().Now();
  return CancelledByServersTimer(now - opened_, exchange_.deadline - opened_);
}

// What the status of a response that is complete says of the endpoint's health: statuses that are the application's own
// business say nothing against it, and UNAVAILABLE with pushback is an overload that is handled.
Cause Attempt::StatusCause() const {
  switch (status_) {
    case GrpcCode::kUnavailable:
      return response_.Find("grpc-retry-pushback-ms") != nullptr ? Cause::kNone : Cause::kUnavailable;
    case GrpcCode::kInternal:
      return Cause::kInternal;
    case GrpcCode::kUnknown:
      return Cause::kUnknown;
    case GrpcCode::kCancelled:
      // Our client has not cancelled: the attempt would have ended then. The backend's timer for the call may have run
      // out just before ours.
      if (!EndsByDeadline()) return Cause::kCancelled;
      return has_trailers_ ? Cause::kNone : DeadlineCause();
    case GrpcCode::kDeadlineExceeded:
      return at_deadline_ ? DeadlineCause() : Cause::kNone;
    default:
      return Cause::kNone;
  }
}

// Of a deadline that passed without a response: none where calls take longer anyway, or the request had not ended.
Cause Attempt::DeadlineCause() const {
  return end_sent_ && pool_->IsLate(exchange_.deadline - opened_) ? Cause::kDeadline : Cause::kNone;
}

// The endpoint had at least half of the call's time, and its response has not begun; or it allows no call at all.
Cause Attempt::LateCause(base::TimePoint started) const {
  Cause cause = state_ == State::kSent ? DeadlineCause() : Cause::kNone;
  if (state_ == State::kConnecting && pool_ != nullptr && pool_->AllowsNone()) cause = Cause::kNoStream;
  return (exchange_.deadline - opened_) * 2 >= exchange_.deadline - started ? cause : Cause::kNone;
}

}  // namespace sluice::proxy
