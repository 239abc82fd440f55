#include "http2/abuse.h"

namespace sluice::http2 {

std::string_view ToString(Abuse abuse) {
  switch (abuse) {
    case Abuse::kNone:
      return "none";
    case Abuse::kRapidReset:
      return "rapid_reset";
    case Abuse::kForcedReset:
      return "forced_reset";
    case Abuse::kRefusedStreams:
      return "refused_streams";
    case Abuse::kSettingsFlood:
      return "settings_flood";
    case Abuse::kPingFlood:
      return "ping_flood";
    case Abuse::kWindowUpdateFlood:
      return "window_update_flood";
    case Abuse::kDataDribble:
      return "data_dribble";
    case Abuse::kPriorityFlood:
      return "priority_flood";
    case Abuse::kUnknownFrames:
      return "unknown_frames";
    case Abuse::kEmptyData:
      return "empty_data";
    case Abuse::kPaddingFlood:
      return "padding_flood";
    case Abuse::kContinuationFlood:
      return "continuation_flood";
    case Abuse::kTableSizeFlapping:
      return "table_size_flapping";
    case Abuse::kOversizedHeaders:
      return "oversized_headers";
    case Abuse::kClosedStreamFrames:
      return "closed_stream_frames";
    case Abuse::kInterimResponses:
      return "interim_responses";
    case Abuse::kGoawayFlood:
      return "goaway_flood";
    case Abuse::kLateResponses:
      return "late_responses";
    case Abuse::kUnreadAnswers:
      return "unread_answers";
    case Abuse::kUnreadData:
      return "unread_data";
  }
  return "unknown";
}

}  // namespace sluice::http2
