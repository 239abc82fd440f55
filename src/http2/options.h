// Options of an HTTP/2 session, either role. Parsed by config, with the ranges in option_table.h; documented in
// config/reference.yaml.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::http2 {

struct SessionOptions {
  // Streams the peer may have open at once (SETTINGS_MAX_CONCURRENT_STREAMS). More are refused with REFUSED_STREAM.
  uint32_t concurrent_streams_max = 1000;
  // Receive window of a stream: the bytes a stalled reader may hold in memory.
  uint32_t stream_window_bytes = 256 * 1024;
  // Receive window of the connection: bytes on their way to us. What streams hold is bounded by their own windows, so
  // that slow readers do not stop the others.
  uint32_t connection_window_bytes = 4 * 1024 * 1024;
  // Largest frame we accept (SETTINGS_MAX_FRAME_SIZE).
  uint32_t frame_bytes_max = 16384;
  // Header list we accept, as RFC 9113 6.5.2 counts it. More is answered per stream.
  uint32_t header_list_bytes_max = 64 * 1024;
  // Fields in one header list. More is answered per stream.
  uint32_t header_count_max = 256;
  // HPACK table we offer.
  uint32_t header_table_bytes = 4096;
  // Bytes of a header block still to be joined from CONTINUATIONs: beyond it the connection ends (ENHANCE_YOUR_CALM).
  uint32_t header_block_bytes_max = 128 * 1024;
  // Output waiting for the socket above which DATA stays in its stream.
  uint32_t output_bytes_max = 512 * 1024;
  // DATA that waits for the peer in all streams together: the streams with the most of it are reset (ENHANCE_YOUR_CALM)
  // until it is 7/8. One turn's reads may come on top.
  uint64_t queued_bytes_max = 128 * 1024 * 1024;
  // Queued replies to SETTINGS and PING plus RST_STREAMs not yet written; beyond it the connection ends
  // (ENHANCE_YOUR_CALM).
  uint32_t control_frames_max = 10000;
  // What a peer may do in a second, and at once after a pause, that brings no call forward; useful work pays for more
  // (docs/http2.md, "Floods"). Beyond, the connection ends (ENHANCE_YOUR_CALM).
  // Requests reset within 25 ms and before any answer, and streams that its mistakes make us reset. Each stream that
  // ends by itself pays for one.
  uint32_t resets_per_second = 2000;
  // SETTINGS. 16 settings in one count as one more, and so do 16 streams whose window it moves.
  uint32_t settings_per_second = 1000;
  // PINGs. Each frame that we send, and each DATA frame with a message, pays for one.
  uint32_t pings_per_second = 2000;
  // WINDOW_UPDATEs; one that lets a stalled stream send next to nothing counts as 9. Each frame that we send, and each
  // message in one that had to wait, pays for two; each 64 bytes of DATA sent for one.
  uint32_t window_updates_per_second = 20000;
  // PRIORITY, unknown frames, DATA of less than five bytes, small CONTINUATIONs, frames on streams that are over, HPACK
  // table size updates; a message of TLS behind its handshake counts as 25. Each stream pays for four, each larger DATA
  // frame and each KiB of DATA for one.
  uint32_t useless_frames_per_second = 5000;
  bool operator==(const SessionOptions&) const = default;
};

struct KeepaliveOptions {
  // A PING after this much silence. 0: none.
  std::chrono::milliseconds interval{0};
  // The connection ends if no byte has come this long after the PING.
  std::chrono::milliseconds timeout{20000};
  // The next PING where nothing but the answer to one has come since: gRPC's servers end a connection whose client
  // sends more than two within 5 minutes while they are silent. 0: interval.
  std::chrono::milliseconds repeat{0};
  bool operator==(const KeepaliveOptions&) const = default;
};

// How long a peer may keep us waiting, and how long a connection lasts. 0: no bound.
struct LifeOptions {
  // For the peer's preface and SETTINGS, from the connection's start; and for a frame (not DATA) or header block, from
  // its first byte to its last. The connection ends.
  std::chrono::milliseconds headers_timeout{10000};
  // The socket has taken nothing of what we have to say for this long. The connection ends.
  std::chrono::milliseconds send_timeout{60000};
  // DATA of a stream waits for the peer's window, and none of it has gone for this long. The stream is reset with
  // CANCEL. May be late by a quarter, as may body_timeout.
  std::chrono::milliseconds stall_timeout{300000};
  // A stream whose peer may send, and has neither ended its message nor sent a byte for this long, is reset with
  // CANCEL. Off by default: an honest subscription may be silent for hours.
  std::chrono::milliseconds body_timeout{0};
  // A connection without streams for this long ends. A client's gets the two-step GOAWAY, so that no request is lost.
  std::chrono::milliseconds idle_timeout{3600000};
  // A connection of this age, give or take a tenth so that those of a fleet do not end together, takes no new streams.
  std::chrono::milliseconds age_max{0};
  // Streams may go on for this long after that, or after idle_timeout; then the connection is closed.
  std::chrono::milliseconds age_grace{30000};
  // A client's connection is read only so long after it came, at most, if others of its address were ended for abuse
  // lately (PenaltyBox). Not for the connections we open.
  std::chrono::milliseconds abuse_delay{1000};
  bool operator==(const LifeOptions&) const = default;
};

// The bounds above, for counters and logs.
enum class Timeout : uint8_t { kHeaders, kSend, kStall, kBody, kIdle, kAge, kAgeGrace, kKeepalive };
inline constexpr size_t kTimeouts = 8;
std::string_view ToString(Timeout timeout);

}  // namespace sluice::http2
