// What the end of an attempt means for another one. Pure: Call::TriesAgain decides and pays.
//
//   the attempt                                    class        another attempt
//   found no connection, or was given up before    kUnsent      always; needs no credit
//   ... because its endpoint leaves the list       kLeft        always; does not count as an attempt
//   was refused (RFC 9113 8.7, GOAWAY)             kRefused     always, with a credit of kUnprocessed
//   reset, lost, stalled, or status in retry.on    kInDoubt     if the method may be repeated, with one of kRepeated
//   anything else                                  kFinal       never
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "http2/fields/header.h"
#include "proxy/canonical/request.h"
#include "proxy/grpc_status.h"
#include "proxy/options.h"

namespace sluice::proxy {

enum class AttemptEnd : uint8_t { kFinal, kLeft, kUnsent, kRefused, kInDoubt };

// Of an attempt that ended with `error`, or, where that is null, with a whole response of `status` and no message.
AttemptEnd EndOf(const RetryOptions& options, const base::Error* error, GrpcCode status);

// The request's method may be done twice.
bool MayRepeat(const RetryOptions& options, const CanonicalRequest& request);

// The wait before retry number `n`, from 0: base x 2^n, at most max, with 20% jitter.
base::Nanos Backoff(const RetryOptions& options, uint32_t n, base::Random& random);

// A backend that asks for more asks for no other attempt: a call must not hold its permits for hours.
inline constexpr std::chrono::milliseconds kPushbackMax{60'000};

// grpc-retry-pushback-ms (gRFC A6): what the backend asks for.
struct Pushback {
  bool stop = false;  // no other attempt: a negative number, one above kPushbackMax, or none at all
  std::optional<std::chrono::milliseconds> delay;  // wait this long instead of the back-off
};
Pushback ReadPushback(const http2::HeaderList& response);

// grpc-previous-rpc-attempts (gRFC A6) of a request; 0 where it is absent or no number.
uint32_t PreviousAttempts(const http2::HeaderList& request);

}  // namespace sluice::proxy
