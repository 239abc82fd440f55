#include "admin/status_code.h"

namespace sluice::admin {
namespace {

// https://grpc.github.io/grpc/core/md_doc_statuscodes.html; spelled here to keep gRPC's headers out.
enum Code : int {
  kCancelled = 1,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kInternal = 13,
};

}  // namespace

int StatusCode(base::ErrorKind kind) {
  using base::ErrorKind;
  switch (kind) {
    case ErrorKind::kInvalidArgument:
    case ErrorKind::kMalformedRequest:
      return kInvalidArgument;
    case ErrorKind::kNotFound:
    case ErrorKind::kNoRoute:
    case ErrorKind::kRemoved:
      return kNotFound;
    case ErrorKind::kConflict:
    case ErrorKind::kDraining:
    case ErrorKind::kNoEndpoint:
      return kFailedPrecondition;
    case ErrorKind::kQueueFull:
    case ErrorKind::kTooLarge:
      return kResourceExhausted;
    case ErrorKind::kDeadlineExceeded:
    case ErrorKind::kConnectTimeout:
      return kDeadlineExceeded;
    case ErrorKind::kBusy:  // the same request may succeed a moment later
      return kAborted;
    case ErrorKind::kCancelled:
      return kCancelled;
    case ErrorKind::kInternal:
    case ErrorKind::kIo:
    case ErrorKind::kConnectFailed:
    case ErrorKind::kConnectionLost:
    case ErrorKind::kUpstreamReset:
    case ErrorKind::kUpstreamCancelled:
    case ErrorKind::kUpstreamOverloaded:
    case ErrorKind::kRateLimited:
    case ErrorKind::kConcurrencyLimited:
    case ErrorKind::kUpstreamStalled:
    case ErrorKind::kMemoryLimited:
    case ErrorKind::kUpstreamRefused:
    case ErrorKind::kUpstreamProtocol:
    case ErrorKind::kUpstreamNoStatus:
      return kInternal;
  }
  return kInternal;
}

}  // namespace sluice::admin
