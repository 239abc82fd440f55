// FloodKind: what a peer may be told ENHANCE_YOUR_CALM for (RFC 9113 10.5): things that HTTP/2 permits one at a time
// and that cost us more than the peer when they are many. The names are stable: they stand in the log, in the GOAWAY's
// text and in sluice_http2_abuse_total{kind}.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::http2 {

enum class FloodKind : uint8_t {
  kNone,
  kRapidReset,      // requests reset as fast as they are made (CVE-2023-44487)
  kForcedReset,     // frames of a client that make us reset its streams (CVE-2025-8671, CVE-2019-9514)
  kRefusedStreams,  // requests beyond concurrent_streams_max
  kSettingsFlood,   // SETTINGS, many settings in one, or windows of many streams moved again and again (CVE-2019-9515)
  kPingFlood,       // CVE-2019-9512
  kWindowUpdateFlood,  // WINDOW_UPDATEs for which nothing was sent
  kDataDribble,        // windows that are opened by a few bytes at a time (CVE-2019-9511)
  kPriorityFlood,      // CVE-2019-9513
  kUnknownFrames,
  kEmptyData,           // DATA of next to nothing that does not end its stream (CVE-2019-9518)
  kPaddingFlood,        // DATA that is padding rather than data
  kContinuationFlood,   // a header block in small parts (CVE-2024-27316)
  kHeaderBlock,         // a header block without an end, or of a client that has too much metadata and means no harm
  kTableSizeFlapping,   // HPACK size updates, each of which may empty the table
  kOversizedHeaders,    // header lists above the limit, of many fields: HPACK bombs
  kClosedStreamFrames,  // HEADERS, small DATA, DATA beyond what was on its way, and RST_STREAM on streams that have
                        // ended
  kInterimResponses,    // 1xx without end
  kGoawayFlood,         // GOAWAY again and again
  kLateResponses,       // HEADERS of a server on streams that have ended
  kTlsMessages,         // KeyUpdates, tickets and warnings of TLS (CVE-2026-32283)
  kUnreadAnswers,       // what we must answer, and the answers are not read (control_frames_max)
  kUnreadData,          // DATA that it does not take, in all streams (queued_bytes_max): of them some are reset
};
inline constexpr size_t kFloodKinds = static_cast<size_t>(FloodKind::kUnreadData) + 1;

// "rapid_reset" and so on; "none".
std::string_view ToString(FloodKind kind);

}  // namespace sluice::http2
