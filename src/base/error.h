// Error and Result<T>: what may be expected of a network, a file or a user is a value, not an exception.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.h"

namespace sluice::base {

// What went wrong. proxy/grpc_status.h maps each kind to one gRPC code; Reason() is the stable token users see.
enum class ErrorKind : uint8_t {
  kInternal,            // a case that should not exist; never used for a peer's fault
  kInvalidArgument,     // an admin request or an option outside what is allowed
  kNotFound,            // no such cluster, endpoint, file
  kConflict,            // the version given is no longer the one in force
  kIo,                  // a local file or socket call failed
  kNoRoute,             // no route matches the call
  kNoEndpoint,          // the cluster has no endpoint that may take the call
  kConnectFailed,       // no connection to the endpoint: refused, unreachable, or in back-off
  kConnectTimeout,      // the connection was not there in connect_timeout
  kPendingTimeout,      // the endpoint's connections had no room for the call in pending_timeout: it was not sent
  kConnectionLost,      // an upstream connection ended under the call
  kPoisonCall,          // upstream connections were lost under the call again and again: it is not tried again
  kConnectionEnded,     // the same in good order: by a bound of ours, or behind the endpoint's GOAWAY NO_ERROR
  kUpstreamReset,       // the upstream reset the stream
  kUpstreamRefused,     // REFUSED_STREAM, or above the last stream id of a GOAWAY: certainly not processed
  kUpstreamProtocol,    // the upstream broke HTTP/2 or gRPC
  kUpstreamNoStatus,    // the upstream ended a gRPC response without grpc-status
  kDeadlineExceeded,    // grpc-timeout or the route's timeout passed
  kCancelled,           // the client went away
  kQueueFull,           // a bounded queue is full
  kDraining,            // the proxy or the endpoint is going away
  kMalformedRequest,    // the request breaks a rule that HTTP/2 framing does not cover
  kTooLarge,            // headers or metadata above a limit
  kBusy,                // another operation held the object and did not release it in time; control plane only
  kRemoved,             // the object the request waited for was removed meanwhile; control plane only
  kUpstreamCancelled,   // the upstream reset the stream with CANCEL
  kUpstreamOverloaded,  // the upstream reset the stream with ENHANCE_YOUR_CALM
  kRateLimited,         // a rate limit refused the call
  kConcurrencyLimited,  // a limit on calls under way refused the call
  kQueueTime,           // the call waited at a limit, or would have waited, longer than its queue_time
  kDeadlineTooNear,     // what is left of the deadline is less than the wait at a limit and the service would take
  kTooManyClients,      // more clients than clients_max call, and this one has no bucket of its own yet
  kUpstreamStalled,     // the upstream took nothing, or sent nothing that it owed, for too long
  kTryTimeout,          // one attempt took longer than the route's per_try_timeout
  kMemoryLimited,       // the proxy holds as much as it may
  kAccessDenied,        // the route's access rules do not let this client make this call
  kJwtMissing,          // the route wants a JWT, and the call has none
  kJwtInvalid,          // the call's JWT is not one that the route's provider takes
  kFaultInjected,       // an operator has asked for the failure
  kLoop,                // the call has passed as many proxies as it may: an endpoint leads back to a proxy before it
};

inline constexpr size_t kErrorKinds = static_cast<size_t>(ErrorKind::kLoop) + 1;

enum class ErrorSource : uint8_t { kProxy, kDownstream, kUpstream };

// The stable token of a kind: lower case, underscores; in the sluice-reason trailer and in logs. Never renamed.
std::string_view Reason(ErrorKind kind);
std::string_view ToString(ErrorSource source);

struct Error {
  ErrorKind kind = ErrorKind::kInternal;
  ErrorSource source = ErrorSource::kProxy;
  std::string detail;  // for a person; English, no trailing stop
  // Of a refusal by a limit, and of a deadline that passed in a queue: which bound it was, as "cluster/users/rate".
  std::string bound;
  // When it makes sense to try again, where that is known.
  std::optional<std::chrono::milliseconds> retry_after;
  // Of a call: some backend may have worked on it. False: certainly none has.
  bool maybe_processed = false;
  // errno of a connect that the system has said no to; else 0.
  int os_error = 0;
  // The gRPC code to answer with, where a rule names one; 0: that of the kind.
  uint8_t grpc_code = 0;

  std::string ToString() const;
};

// Either a T or an Error. Result<void> is Status below.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& value() {
    SLUICE_CHECK(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const {
    SLUICE_CHECK(ok());
    return *std::get_if<0>(&state_);
  }
  const Error& error() const {
    SLUICE_CHECK(!ok());
    return *std::get_if<1>(&state_);
  }

 private:
  std::variant<T, Error> state_;
};

using Status = Result<std::monostate>;
inline Status Ok() { return Status(std::monostate{}); }

inline Error MakeError(ErrorKind kind, std::string detail, ErrorSource source = ErrorSource::kProxy) {
  return Error{kind, source, std::move(detail), {}, {}};
}

}  // namespace sluice::base
