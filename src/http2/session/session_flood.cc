// The end of a connection whose peer has used up a budget (flood/charges.h).

#include "absl/strings/str_cat.h"
#include "http2/session/session.h"

namespace sluice::http2 {

bool Session::ChargeMore(Budget budget, FloodKind kind, uint32_t cost) {
  if (failed_) return false;
  FloodWork work;
  work.frames_sent = send_.stats().frames_sent;
  work.data_bytes_sent = send_.stats().data_bytes_sent;
  work.pieces_joined = send_.pieces_joined();
  work.data_frames_received = stats_.data_frames_received;
  work.data_bytes_received = stats_.data_bytes_received;
  work.streams_opened = stats_.streams_opened;
  work.streams_completed =
      streams_.ended().count() - static_cast<uint32_t>(stats_.resets_received + stats_.trailers_refused);
  if (charges_.Earn(budget, cost, work)) return true;
  FailFlood(kind, absl::StrCat("beyond ", charges_.limit(budget), " a second"));
  return false;
}

base::Status Session::NoteTlsMessages(uint32_t count, base::TimePoint now) {
  if (failed_) return Failure();
  Scope scope(*this);
  charges_.Tick(now, streams_.last_peer_id());
  if (Charge(Budget::kUselessFrames, FloodKind::kTlsMessages, count * kTlsMessageCost)) return base::Ok();
  CloseAll(failure_code_, false, ResetCause::kConnectionLost);
  return Failure();
}

// DATA for a stream that is not there any more. Its bytes go back into the connection's window, so nothing else would
// bound how much of it we read for nothing.
bool Session::ChargeLateData(uint32_t frame_bytes, bool tiny) {
  if (charges_.TakeLate(frame_bytes) || tiny) return true;  // ChargeTinyData is next
  charges_.NoteTinyData();
  return Charge(Budget::kUselessFrames, FloodKind::kClosedStreamFrames, 1 + frame_bytes / kLateBytesPerUnit);
}

// RFC 9113 10.5: "An endpoint MAY treat activity that is suspicious as a connection error of type ENHANCE_YOUR_CALM."
void Session::FailFlood(FloodKind kind, std::string_view text) {
  if (failed_) return;
  charges_.End(kind);
  Fail(ErrorCode::kEnhanceYourCalm, std::string(ToString(kind)).append(": ").append(text));
}

// The peer has reset a stream of its own. One that has lived for a while was bounded by concurrent_streams_max, as
// every call is, and one that we have begun to answer was worth it: only the others are what CVE-2023-44487 is made of.
void Session::ChargeReset(uint32_t id, bool answered) {
  // As a client each stream that the peer can reset is one that we have opened.
  if (role_ == Role::kClient) return;
  if (charges_.IsYoung(id) && !answered) Charge(Budget::kResets, FloodKind::kRapidReset);
}

}  // namespace sluice::http2
