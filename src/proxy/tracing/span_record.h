// SpanRecord: what of a traced call goes through a ring to the exporter: words, then texts, attempts and waits.
//
//   [ words | length and bytes of each text | each attempt: words, text, text | each wait: words, text ]
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "proxy/call_record.h"
#include "proxy/tracing/call_trace.h"

namespace sluice::proxy {

// The bounds of a record, in bytes and pieces. What is longer is cut.
inline constexpr size_t kSpanNameBytesMax = 256;   // names and words
inline constexpr size_t kSpanPathBytesMax = 1024;  // path, detail
// Of tracestate, which cannot be cut: a longer one is left out (W3C Trace Context 3.3.1.5 asks for 512 at least).
inline constexpr size_t kSpanStateBytesMax = 512;
inline constexpr size_t kSpanAttemptsMax = 32, kSpanWaitsMax = 32;

struct SpanWords {
  TraceId trace;
  uint64_t span = 0, parent = 0;       // parent 0: none
  int64_t ended = 0;                   // nanoseconds of the steady clock
  std::array<int64_t, 3> durations{};  // to_upstream, to_response, total, in nanoseconds; negative: not reached
  std::array<uint64_t, 2> bytes{};     // of the request, of the response
  uint32_t attempts = 0;               // of the call, which may be more than those that follow
  uint8_t status = 0;                  // GrpcCode
  bool fetch = false, sampled = false, random = false;
  uint8_t attempt_count = 0, wait_count = 0;  // of those that follow
};

// In the order in which a record has them.
enum class SpanText : uint8_t {
  kPath,
  kAuthority,
  kPeer,
  kClient,
  kRoute,
  kCluster,
  kCause,
  kDetail,
  kProcessed,
  kLimit,
  kCache,
  kRequestId,
  kState,
};
inline constexpr size_t kSpanTexts = static_cast<size_t>(SpanText::kState) + 1;

struct SpanAttempt {
  uint64_t span = 0;
  int64_t began = 0, ended = 0;
  uint8_t code = 0;
  bool hedge = false;
  std::string_view endpoint, end;
};

struct SpanWait {
  int64_t ended = 0, nanos = 0;
  std::string_view name;
};

// Bytes of the record; `state`: the caller's tracestate, or nothing.
size_t MeasureSpan(const CallRecord& call, const CallTrace& trace, std::string_view state);
// `to`: room for what MeasureSpan said of the same.
void CopySpan(const CallRecord& call, const CallTrace& trace, std::string_view state, uint8_t* to);

// A record in the ring, read back. The views are the record's.
struct SpanView {
  SpanWords words;
  std::array<std::string_view, kSpanTexts> texts;
  std::vector<SpanAttempt> attempts;
  std::vector<SpanWait> waits;

  std::string_view text(SpanText which) const { return texts[static_cast<size_t>(which)]; }
  // Takes a record of CopySpan's in place of what was read before.
  void Read(std::span<const uint8_t> record);
};

}  // namespace sluice::proxy
