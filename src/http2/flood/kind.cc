#include "http2/flood/kind.h"

namespace sluice::http2 {

std::string_view ToString(FloodKind kind) {
  switch (kind) {
    case FloodKind::kNone:
      return "none";
    case FloodKind::kRapidReset:
      return "rapid_reset";
    case FloodKind::kForcedReset:
      return "forced_reset";
    case FloodKind::kRefusedStreams:
      return "refused_streams";
    case FloodKind::kSettingsFlood:
      return "settings_flood";
    case FloodKind::kPingFlood:
      return "ping_flood";
    case FloodKind::kWindowUpdateFlood:
      return "window_update_flood";
    case FloodKind::kDataDribble:
      return "data_dribble";
    case FloodKind::kPriorityFlood:
      return "priority_flood";
    case FloodKind::kUnknownFrames:
      return "unknown_frames";
    case FloodKind::kEmptyData:
      return "empty_data";
    case FloodKind::kPaddingFlood:
      return "padding_flood";
    case FloodKind::kContinuationFlood:
      return "continuation_flood";
    case FloodKind::kHeaderBlock:
      return "header_block";
    case FloodKind::kTableSizeFlapping:
      return "table_size_flapping";
    case FloodKind::kOversizedHeaders:
      return "oversized_headers";
    case FloodKind::kClosedStreamFrames:
      return "closed_stream_frames";
    case FloodKind::kInterimResponses:
      return "interim_responses";
    case FloodKind::kGoawayFlood:
      return "goaway_flood";
    case FloodKind::kLateResponses:
      return "late_responses";
    case FloodKind::kTlsMessages:
      return "tls_messages";
    case FloodKind::kUnreadAnswers:
      return "unread_answers";
    case FloodKind::kUnreadData:
      return "unread_data";
  }
  return "unknown";
}

}  // namespace sluice::http2
