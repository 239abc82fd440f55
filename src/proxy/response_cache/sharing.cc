#include "proxy/response_cache/sharing.h"

namespace sluice::proxy::fetch_sharing {

using base::ErrorKind;

namespace {

// Whether any other call would have met it in its place. No default: a new kind has to be put in its place.
bool MeetsAll(const base::Error& cause) {
  if (cause.source == base::ErrorSource::kDownstream) return false;
  switch (cause.kind) {
    // The service's state, or the proxy's.
    case ErrorKind::kNoRoute:
    case ErrorKind::kNoEndpoint:
    case ErrorKind::kConnectFailed:
    case ErrorKind::kConnectTimeout:
    case ErrorKind::kPendingTimeout:
    case ErrorKind::kConnectionEnded:
    case ErrorKind::kUpstreamRefused:
    case ErrorKind::kUpstreamStalled:
    case ErrorKind::kTryTimeout:
    case ErrorKind::kQueueFull:
    case ErrorKind::kQueueTime:  // of its client's own limit no other call waits for it (Fetch::LeaveToClient)
    case ErrorKind::kDraining:
    case ErrorKind::kDeadlineExceeded:  // participants with more time ask again (FetchResult::deadline)
    case ErrorKind::kCancelled:         // all have left
      return true;
    // Limits: by whose call it is, where it stands in a queue, and what time it has.
    case ErrorKind::kRateLimited:
    case ErrorKind::kConcurrencyLimited:
    case ErrorKind::kDeadlineTooNear:
    case ErrorKind::kTooManyClients:
    case ErrorKind::kMemoryLimited:
    // Gates and the request's form.
    case ErrorKind::kAccessDenied:
    case ErrorKind::kJwtMissing:
    case ErrorKind::kJwtInvalid:
    case ErrorKind::kFaultInjected:
    case ErrorKind::kMalformedRequest:
    case ErrorKind::kTooLarge:
    case ErrorKind::kLoop:
    // What a backend makes of the request's headers.
    case ErrorKind::kConnectionLost:
    case ErrorKind::kPoisonCall:
    case ErrorKind::kUpstreamReset:
    case ErrorKind::kUpstreamCancelled:
    case ErrorKind::kUpstreamOverloaded:
    case ErrorKind::kUpstreamProtocol:
    case ErrorKind::kUpstreamNoStatus:
    // No ends of calls.
    case ErrorKind::kInternal:
    case ErrorKind::kInvalidArgument:
    case ErrorKind::kNotFound:
    case ErrorKind::kConflict:
    case ErrorKind::kIo:
    case ErrorKind::kBusy:
    case ErrorKind::kRemoved:
      return false;
  }
  return false;
}

}  // namespace

bool IsForAll(const FetchResult& result) {
  if (result.cause) return MeetsAll(*result.cause);
  switch (result.response->status) {
    case GrpcCode::kOk:
    case GrpcCode::kUnavailable:
    case GrpcCode::kDeadlineExceeded:
      return true;
    default:
      return false;
  }
}

bool IsSuspect(const FetchResult& result) {
  return result.cause &&
         (result.cause->kind == ErrorKind::kConnectionLost || result.cause->kind == ErrorKind::kPoisonCall);
}

}  // namespace sluice::proxy::fetch_sharing
