// TraceContext: a call's place in a trace, as metadata says it: traceparent and tracestate (W3C Trace Context), and
// grpc-trace-bin (the binary form of OpenCensus). Texts in and out; no state.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice::proxy {

// 16 bytes, the first one highest. All zero: none.
struct TraceId {
  uint64_t high = 0, low = 0;
  bool valid() const { return (high | low) != 0; }
  bool operator==(const TraceId&) const = default;
};

// A call as its caller, or as its attempts, are told of it.
struct TraceContext {
  TraceId trace;
  uint64_t span = 0;     // the caller's; 0: none
  bool sampled = false;  // the caller may have recorded its span
  bool random = false;   // the last 7 bytes of the trace's id are random (W3C Trace Context 2, "Random Trace ID Flag")
  bool operator==(const TraceContext&) const = default;
};

inline constexpr size_t kTraceparentBytes = 55, kTraceIdHexBytes = 32, kGrpcTraceBytes = 29, kGrpcTraceTextBytes = 39;
inline constexpr size_t kTracestateMembersMax = 32;
using TraceparentText = std::array<char, kTraceparentBytes>;
using GrpcTraceText = std::array<char, kGrpcTraceTextBytes>;

// The value of one traceparent. Null: none that may be followed (W3C Trace Context 3.2). Of a version above 00 what
// version 00 says of it is read.
std::optional<TraceContext> ParseTraceparent(std::string_view value);
// Version 00. The ids are not 0.
TraceparentText FormatTraceparent(const TraceContext& context);
// The value of one grpc-trace-bin: base64, padded or not. Null: it names no trace and span.
std::optional<TraceContext> ParseGrpcTrace(std::string_view value);
// As gRPC sends binary metadata: base64 without padding.
GrpcTraceText FormatGrpcTrace(const TraceContext& context);
// Whether a list of members is as W3C Trace Context 3.3 has it: at most kTracestateMembersMax, keys and values legal.
// Of several fields with the name `members_before` counts those of the fields before; those of this one are added.
bool IsTracestate(std::string_view value, size_t& members_before);

// 32 hexadecimal digits.
std::array<char, kTraceIdHexBytes> HexOf(const TraceId& id);

}  // namespace sluice::proxy
