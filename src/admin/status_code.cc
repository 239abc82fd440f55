#include "admin/status_code.h"

namespace sluice::admin {
proxy::GrpcCode StatusCode(base::ErrorKind kind) {
  using base::ErrorKind;
  using proxy::GrpcCode;
  switch (kind) {
    case ErrorKind::kInvalidArgument:
    case ErrorKind::kMalformedRequest:
      return GrpcCode::kInvalidArgument;
    case ErrorKind::kNotFound:
    case ErrorKind::kNoRoute:
    case ErrorKind::kRemoved:
      return GrpcCode::kNotFound;
    case ErrorKind::kConflict:
    case ErrorKind::kDraining:
    case ErrorKind::kNoEndpoint:
      return GrpcCode::kFailedPrecondition;
    case ErrorKind::kQueueFull:
    case ErrorKind::kTooLarge:
      return GrpcCode::kResourceExhausted;
    case ErrorKind::kDeadlineExceeded:
    case ErrorKind::kConnectTimeout:
    case ErrorKind::kPendingTimeout:
      return GrpcCode::kDeadlineExceeded;
    case ErrorKind::kBusy:  // the same request may succeed a moment later
      return GrpcCode::kAborted;
    case ErrorKind::kCancelled:
      return GrpcCode::kCancelled;
    case ErrorKind::kInternal:
    case ErrorKind::kIo:
    case ErrorKind::kConnectFailed:
    case ErrorKind::kConnectionLost:
    case ErrorKind::kConnectionEnded:
    case ErrorKind::kPoisonCall:
    case ErrorKind::kUpstreamReset:
    case ErrorKind::kUpstreamCancelled:
    case ErrorKind::kUpstreamOverloaded:
    case ErrorKind::kRateLimited:
    case ErrorKind::kConcurrencyLimited:
    case ErrorKind::kQueueTime:
    case ErrorKind::kDeadlineTooNear:
    case ErrorKind::kTooManyClients:
    case ErrorKind::kUpstreamStalled:
    case ErrorKind::kTryTimeout:
    case ErrorKind::kMemoryLimited:
    case ErrorKind::kAccessDenied:
    case ErrorKind::kJwtMissing:
    case ErrorKind::kJwtInvalid:
    case ErrorKind::kFaultInjected:
    case ErrorKind::kLoop:
    case ErrorKind::kUpstreamRefused:
    case ErrorKind::kUpstreamProtocol:
    case ErrorKind::kUpstreamNoStatus:
      return GrpcCode::kInternal;
  }
  return GrpcCode::kInternal;
}

}  // namespace sluice::admin
