// Options of an HTTP/2 session and its keepalive: the maps `http2` and `keepalive` of a listener or cluster,
// and its own keys for how long peers may take.
#include "config/parsers.h"

namespace sluice::config {

using namespace std::chrono_literals;

void ParseSession(Reader& reader, const Node& node, std::string path, http2::SessionOptions* out) {
  constexpr uint32_t kKiB = 1024;
  constexpr uint32_t kMiB = 1024 * 1024;
  constexpr uint32_t kWindowMax = (1u << 31) - 1;  // RFC 9113 6.9.1
  Section section(reader, node, std::move(path));
  section.Number("concurrent_streams_max", {1, kWindowMax}, &out->concurrent_streams_max);
  section.Bytes("stream_window_bytes", {65535, kWindowMax}, &out->stream_window_bytes);
  section.Bytes("connection_window_bytes", {65535, kWindowMax}, &out->connection_window_bytes);
  section.Bytes("frame_bytes_max", {16384, (1u << 24) - 1}, &out->frame_bytes_max);  // RFC 9113 6.5.2
  section.Bytes("header_list_bytes_max", {kKiB, kMiB}, &out->header_list_bytes_max);
  section.Number("header_count_max", {1, 65536}, &out->header_count_max);
  section.Bytes("header_table_bytes", {0, 65536}, &out->header_table_bytes);
  section.Bytes("header_block_bytes_max", {16 * kKiB, 16 * kMiB}, &out->header_block_bytes_max);
  section.Bytes("output_bytes_max", {16 * kKiB, 64 * kMiB}, &out->output_bytes_max);
  section.Bytes("queued_bytes_max", {uint64_t{kMiB}, uint64_t{1} << 40}, &out->queued_bytes_max);
  section.Number("control_frames_max", {16, 1000000}, &out->control_frames_max);
  // Below 16 an ordinary start of a connection could be a flood.
  section.Number("resets_per_second", {16, 1000000}, &out->resets_per_second);
  section.Number("settings_per_second", {16, 1000000}, &out->settings_per_second);
  section.Number("pings_per_second", {16, 1000000}, &out->pings_per_second);
  section.Number("window_updates_per_second", {16, 1000000}, &out->window_updates_per_second);
  section.Number("useless_frames_per_second", {16, 1000000}, &out->useless_frames_per_second);
}

void ParseKeepalive(Reader& reader, const Node& node, std::string path, http2::KeepaliveOptions* out) {
  Section section(reader, node, std::move(path));
  section.Duration("interval", {0ms, 24h}, &out->interval);
  section.Duration("timeout", {1ms, 1h}, &out->timeout);
}

void ParseLife(Section& section, http2::LifeOptions* out) {
  section.Duration("headers_timeout", {0ms, 1h}, &out->headers_timeout);
  section.Duration("send_timeout", {0ms, 24h}, &out->send_timeout);
  section.Duration("stall_timeout", {0ms, 24h}, &out->stall_timeout);
  section.Duration("body_timeout", {0ms, 24h}, &out->body_timeout);
  section.Duration("idle_timeout", {0ms, 24h}, &out->idle_timeout);
  section.Duration("age_max", {0ms, 8760h}, &out->age_max);
  section.Duration("age_grace", {1ms, 24h}, &out->age_grace);
}

}  // namespace sluice::config
