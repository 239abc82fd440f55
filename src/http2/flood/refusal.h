// Refusal: why a session did not pass a request on. Such a request is no call: no consumer hears of it,
// but for trailers, which come on a call that there is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::http2 {

enum class Refusal : uint8_t {
  kMalformed,       // RFC 9113 8.1.1: its fields break a rule
  kSelfDependency,  // RFC 7540 5.3.1: the stream depends on itself
  kTooLarge,        // header_list_bytes_max, header_count_max: answered with RESOURCE_EXHAUSTED
  kMetadata,        // a field of bytes does not decode: answered with INVALID_ARGUMENT
  kConnect,         // RFC 9113 8.5: answered with 501
  kStreams,         // concurrent_streams_max: REFUSED_STREAM
};
inline constexpr size_t kRefusals = static_cast<size_t>(Refusal::kStreams) + 1;

// The label of sluice_http2_refused_requests_total.
constexpr std::string_view ToString(Refusal refusal) {
  constexpr std::string_view kNames[kRefusals] = {"malformed", "self_dependency", "too_large",
                                                  "metadata",  "connect",         "streams_max"};
  return kNames[static_cast<size_t>(refusal)];
}

}  // namespace sluice::http2
