// What may stand in the maps `http2` and `keepalive` of a listener or cluster, and in itself for how long peers may
// take.
#pragma once

#include "base/option.h"
#include "http2/options.h"

namespace sluice::http2 {

inline constexpr uint32_t kWindowBytesMax = (1u << 31) - 1;  // RFC 9113 6.9.1
inline constexpr uint32_t kFrameBytesMax = (1u << 24) - 1;   // RFC 9113 6.5.2

inline constexpr base::Option<SessionOptions> kSessionOptions[] = {
    {"concurrent_streams_max", &SessionOptions::concurrent_streams_max, 1, kWindowBytesMax},
    {"stream_window_bytes", &SessionOptions::stream_window_bytes, 65535, kWindowBytesMax, base::kBytes},
    {"connection_window_bytes", &SessionOptions::connection_window_bytes, 65535, kWindowBytesMax, base::kBytes},
    {"frame_bytes_max", &SessionOptions::frame_bytes_max, 16384, kFrameBytesMax, base::kBytes},
    {"header_list_bytes_max", &SessionOptions::header_list_bytes_max, base::kKiB, base::kMiB, base::kBytes},
    {"header_count_max", &SessionOptions::header_count_max, 1, 65536},
    {"header_table_bytes", &SessionOptions::header_table_bytes, 0, 65536, base::kBytes},
    {"header_block_bytes_max", &SessionOptions::header_block_bytes_max, 16384, 16 * base::kMiB, base::kBytes},
    {"output_bytes_max", &SessionOptions::output_bytes_max, 16384, 64 * base::kMiB, base::kBytes},
    {"queued_bytes_max", &SessionOptions::queued_bytes_max, base::kMiB, base::kTiB, base::kBytes},
    {"control_frames_max", &SessionOptions::control_frames_max, 16, 1000000},
    // Below 16 an ordinary start of a connection could be a flood.
    {"resets_per_second", &SessionOptions::resets_per_second, 16, 1000000},
    {"settings_per_second", &SessionOptions::settings_per_second, 16, 1000000},
    {"pings_per_second", &SessionOptions::pings_per_second, 16, 1000000},
    {"window_updates_per_second", &SessionOptions::window_updates_per_second, 16, 1000000},
    {"useless_frames_per_second", &SessionOptions::useless_frames_per_second, 16, 1000000},
};

inline constexpr base::Option<KeepaliveOptions> kKeepaliveOptions[] = {
    {"interval", &KeepaliveOptions::interval, 0, base::kDay},
    {"timeout", &KeepaliveOptions::timeout, 1, base::kHour},
    {"repeat", &KeepaliveOptions::repeat, 0, base::kDay},
};

inline constexpr base::Option<LifeOptions> kLifeOptions[] = {
    {"headers_timeout", &LifeOptions::headers_timeout, 0, base::kHour},
    {"send_timeout", &LifeOptions::send_timeout, 0, base::kDay},
    {"stall_timeout", &LifeOptions::stall_timeout, 0, base::kDay},
    {"body_timeout", &LifeOptions::body_timeout, 0, base::kDay},
    {"idle_timeout", &LifeOptions::idle_timeout, 0, base::kDay},
    {"age_max", &LifeOptions::age_max, 0, 365 * base::kDay},
    {"age_grace", &LifeOptions::age_grace, 1, base::kDay},
};
// Only of a listener.
inline constexpr base::Option<LifeOptions> kListenerLifeOptions[] = {
    {"abuse_delay", &LifeOptions::abuse_delay, 0, base::kMinute},
};

}  // namespace sluice::http2
