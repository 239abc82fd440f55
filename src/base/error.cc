#include "base/error.h"

namespace sluice::base {

std::string_view Reason(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInternal:
      return "internal";
    case ErrorKind::kInvalidArgument:
      return "invalid_argument";
    case ErrorKind::kNotFound:
      return "not_found";
    case ErrorKind::kConflict:
      return "conflict";
    case ErrorKind::kIo:
      return "io";
    case ErrorKind::kNoRoute:
      return "no_route";
    case ErrorKind::kNoEndpoint:
      return "no_endpoint";
    case ErrorKind::kConnectFailed:
      return "connect_failed";
    case ErrorKind::kConnectTimeout:
      return "connect_timeout";
    case ErrorKind::kConnectionLost:
      return "connection_lost";
    case ErrorKind::kPoisonCall:
      return "poison_call";
    case ErrorKind::kConnectionEnded:
      return "connection_ended";
    case ErrorKind::kPendingTimeout:
      return "pending_timeout";
    case ErrorKind::kUpstreamReset:
      return "upstream_reset";
    case ErrorKind::kUpstreamRefused:
      return "upstream_refused";
    case ErrorKind::kUpstreamProtocol:
      return "upstream_protocol";
    case ErrorKind::kUpstreamNoStatus:
      return "upstream_no_status";
    case ErrorKind::kDeadlineExceeded:
      return "deadline";
    case ErrorKind::kCancelled:
      return "cancelled";
    case ErrorKind::kQueueFull:
      return "queue_full";
    case ErrorKind::kDraining:
      return "draining";
    case ErrorKind::kMalformedRequest:
      return "malformed_request";
    case ErrorKind::kTooLarge:
      return "too_large";
    case ErrorKind::kBusy:
      return "busy";
    case ErrorKind::kRemoved:
      return "removed";
    case ErrorKind::kUpstreamCancelled:
      return "upstream_cancelled";
    case ErrorKind::kUpstreamOverloaded:
      return "upstream_overloaded";
    case ErrorKind::kRateLimited:
      return "rate_limited";
    case ErrorKind::kConcurrencyLimited:
      return "concurrency_limited";
    case ErrorKind::kQueueTime:
      return "queue_time";
    case ErrorKind::kDeadlineTooNear:
      return "deadline_too_near";
    case ErrorKind::kTooManyClients:
      return "too_many_clients";
    case ErrorKind::kUpstreamStalled:
      return "upstream_stalled";
    case ErrorKind::kTryTimeout:
      return "try_timeout";
    case ErrorKind::kMemoryLimited:
      return "memory_limited";
    case ErrorKind::kAccessDenied:
      return "access_denied";
    case ErrorKind::kJwtMissing:
      return "jwt_missing";
    case ErrorKind::kJwtInvalid:
      return "jwt_invalid";
    case ErrorKind::kFaultInjected:
      return "fault_injected";
    case ErrorKind::kLoop:
      return "loop";
  }
  return "internal";
}

std::string_view ToString(ErrorSource source) {
  switch (source) {
    case ErrorSource::kProxy:
      return "proxy";
    case ErrorSource::kDownstream:
      return "downstream";
    case ErrorSource::kUpstream:
      return "upstream";
  }
  return "proxy";
}

std::string Error::ToString() const {
  std::string out(Reason(kind));
  out += " (";
  out += base::ToString(source);
  out += ')';
  if (!detail.empty()) {
    out += ": ";
    out += detail;
  }
  return out;
}

}  // namespace sluice::base
