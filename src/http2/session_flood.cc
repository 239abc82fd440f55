// What a peer's behaviour costs, what pays for it, and the end of a connection that is worn out (docs/http2.md,
// "Floods").
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "http2/session.h"

namespace sluice::http2 {

// What has paid for a budget since the start, in its units; grows, modulo 2^32.
uint32_t Session::WorkFor(Budget budget) const {
  // Of what we send, answers to PING are the peer's own doing. All other frames that a peer can force have budgets
  // themselves.
  const uint64_t sent = stats_.frames_sent - pings_answered_;
  switch (budget) {
    case Budget::kResets:
      return ended_count_ - static_cast<uint32_t>(stats_.resets_received);  // streams that both sides have ended
    case Budget::kSettings:
      return 0;
    case Budget::kPings:
      return static_cast<uint32_t>(sent);  // gRPC measures the path whenever DATA comes, in Go up to once each time
    case Budget::kWindowUpdates:
      return static_cast<uint32_t>(2 * sent);  // of the stream and of the connection
    case Budget::kUselessFrames:
      return static_cast<uint32_t>(4 * stats_.streams_opened + stats_.data_bytes_received / 1024);
  }
  return 0;
}

bool Session::ChargeMore(Budget budget, Abuse abuse, uint32_t cost) {
  if (failed_) return false;
  cost = std::min(cost, flood_.limit(budget));
  flood_.Refill(budget, WorkFor(budget), now_);
  if (flood_.Spend(budget, cost)) return true;
  FailAbuse(abuse, absl::StrCat("beyond ", flood_.limit(budget), " a second"));
  return false;
}

// RFC 9113 10.5: "An endpoint MAY treat activity that is suspicious as a connection error of type ENHANCE_YOUR_CALM."
void Session::FailAbuse(Abuse abuse, std::string_view text) {
  if (failed_) return;
  abuse_ = abuse;
  Fail(ErrorCode::kEnhanceYourCalm, std::string(ToString(abuse)).append(": ").append(text));
}

// A Feed at `now`, and a mark is due. What was opened before the last mark, or before a long silence, is not young.
void Session::AgeStreams(base::TimePoint now) {
  old_id_ = now - now_ >= kYoungStream ? last_peer_id_ : young_id_;
  young_id_ = last_peer_id_;
  mark_due_ = now + kYoungStream;
}

// The peer has reset a stream of its own. One that has lived for a while was bounded by concurrent_streams_max, as
// every call is, and one that we have answered was worth it: only the others are what CVE-2023-44487 is made of.
void Session::ChargeReset(uint32_t id, bool answered) {
  // As a client each stream that the peer can reset is one that we have opened.
  if (role_ == Role::kClient) return;
  if (id > old_id_ && !answered) Charge(Budget::kResets, Abuse::kRapidReset);
}

}  // namespace sluice::http2
