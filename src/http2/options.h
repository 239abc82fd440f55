// Options of an HTTP/2 session, either role. Parsed by config, documented in config/reference.yaml.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace sluice::http2 {

struct SessionOptions {
  // Streams the peer may have open at once (SETTINGS_MAX_CONCURRENT_STREAMS). More are refused with REFUSED_STREAM. 1..2^31-1.
  uint32_t concurrent_streams_max = 1000;
  // Receive window of a stream: the bytes a stalled reader may hold in memory. 65535..2^31-1.
  uint32_t stream_window_bytes = 256 * 1024;
  // Receive window of the connection: bytes on their way to us. What streams hold is bounded by their own windows, so
  // that slow readers do not stop the others. 65535..2^31-1.
  uint32_t connection_window_bytes = 4 * 1024 * 1024;
  // Largest frame we accept (SETTINGS_MAX_FRAME_SIZE). 16384..2^24-1.
  uint32_t frame_bytes_max = 16384;
  // Header list we accept, as RFC 9113 6.5.2 counts it. More is answered per stream. 1024..1 MiB.
  uint32_t header_list_bytes_max = 64 * 1024;
  // Fields in one header list. More is answered per stream. 1..65536.
  uint32_t header_count_max = 256;
  // HPACK table we offer. 0..65536.
  uint32_t header_table_bytes = 4096;
  // Bytes of a header block still to be joined from CONTINUATIONs: beyond it the connection ends (ENHANCE_YOUR_CALM).
  // 16 KiB..16 MiB.
  uint32_t header_block_bytes_max = 128 * 1024;
  // Output waiting for the socket above which DATA stays in its stream. 16 KiB..64 MiB.
  uint32_t output_bytes_max = 512 * 1024;
  // Queued replies to SETTINGS and PING plus RST_STREAMs not yet written; beyond it the connection ends (ENHANCE_YOUR_CALM).
  // 16..1000000.
  uint32_t control_frames_max = 10000;
  // What a peer may do in a second, and at once after a pause, that brings no call forward; useful work pays for more
  // (docs/http2.md, "Floods"). Beyond, the connection ends (ENHANCE_YOUR_CALM). 16..1000000 each.
  // Requests reset within 0.1 s, and streams that its mistakes make us reset. Each stream that ends by itself pays for one.
  uint32_t resets_per_second = 2000;
  // SETTINGS. 16 settings in one count as one more, and so do 16 streams whose window it moves.
  uint32_t settings_per_second = 1000;
  // PINGs. Each frame that we send pays for one.
  uint32_t pings_per_second = 2000;
  // WINDOW_UPDATEs; one that lets a stalled stream send next to nothing counts as 9. Each frame that we send pays for two.
  uint32_t window_updates_per_second = 20000;
  // PRIORITY, unknown frames, DATA that is empty or mostly padding, small CONTINUATIONs, frames on streams that are over,
  // HPACK table size updates. Each stream pays for four, each KiB of DATA for one.
  uint32_t useless_frames_per_second = 5000;
  bool operator==(const SessionOptions&) const = default;
};

struct KeepaliveOptions {
  // A PING after this much silence. 0: none. 0..24h.
  std::chrono::milliseconds interval{0};
  // The connection ends if no byte has come this long after the PING. 1ms..1h.
  std::chrono::milliseconds timeout{20000};
  bool operator==(const KeepaliveOptions&) const = default;
};

}  // namespace sluice::http2
