// grpc-timeout (gRPC over HTTP/2, "Timeout"): 1 to 8 digits and a unit H M S m u n.
#pragma once

#include <optional>
#include <string_view>

#include "base/clock.h"

namespace sluice::proxy {

// Nothing for a malformed value. Very long ones are capped at 10^8 hours.
std::optional<base::Nanos> ParseGrpcTimeout(std::string_view value);

// The shortest spelling in at most 8 digits that is not longer than `timeout`; at least "1n" for what is not positive.
struct GrpcTimeoutText {
  char text[10];
  size_t size;
  std::string_view view() const { return {text, size}; }
};
GrpcTimeoutText FormatGrpcTimeout(base::Nanos timeout);
// The time that FormatGrpcTimeout(timeout) says: `timeout` cut to the text's unit.
base::Nanos AsFormatted(base::Nanos timeout);

// A peer whose timer for a call runs out resets the stream with CANCEL, and that may be read here before our own timer
// of the same deadline fires. These tell such a reset from a cancellation.
//
// Of a server that was sent `timeout` with the headers, `elapsed` ago: it starts to count when it has read them, so
// what it says comes after the timeout as formatted, and later by the time on the way. Only the grain of its clock may
// bring it forward: gRPC C++ counts in whole milliseconds, so up to 1 ms.
bool RanOutAtServer(base::Nanos elapsed, base::Nanos timeout);
// The same of a cancellation, for which its own time on a busy host may be another: in the last tenth of the timeout,
// or the last 100 ms of a long one.
bool CancelledByServersTimer(base::Nanos elapsed, base::Nanos timeout);
// Of a client that sent `timeout` with headers that were read `elapsed` ago: it started to count before they were here,
// and may have rounded up what it wrote (gRPC C++ to three digits, so by 1%; gRPC for Node.js to 1 ms). On a busy host
// its headers wait for a while. So up to 100 ms early, but never more than a tenth of the timeout; or 1% of it where
// that is more.
bool RanOutAtClient(base::Nanos elapsed, base::Nanos timeout);

}  // namespace sluice::proxy
