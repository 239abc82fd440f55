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

}  // namespace sluice::proxy
