#include "http2/flood/charges.h"

#include <algorithm>

namespace sluice::http2 {
namespace {

// Of DATA that we have sent each so many bytes pay for a WINDOW_UPDATE. An application that reads a large message by
// less at a time, and has each read acknowledged, costs itself more than us.
constexpr uint64_t kReadBytes = 64;

}  // namespace

// What has paid for a budget, in its units.
uint32_t FloodCharges::Units(Budget budget, const FloodWork& work) const {
  // Of what we send, answers to PING are the peer's own doing. All other frames that a peer can force have budgets
  // themselves.
  const uint64_t sent = work.frames_sent - pings_answered_;
  // DATA that may carry a message costs us more than what it pays for, and is bounded by windows.
  const uint64_t messages = work.data_frames_received - tiny_data_;
  switch (budget) {
    case Budget::kResets:
      return work.streams_completed;
    case Budget::kSettings:
      return 0;
    case Budget::kPings:
      return static_cast<uint32_t>(sent + messages);  // gRPC measures the path with DATA, in Go up to once each time
    case Budget::kWindowUpdates:
      // For each frame, and for each of the messages in one, an update of the stream and one of the connection; and of
      // large ones for each part that the peer's application reads.
      return static_cast<uint32_t>(2 * (sent + work.pieces_joined) + work.data_bytes_sent / kReadBytes);
    case Budget::kUselessFrames:
      return static_cast<uint32_t>(4 * work.streams_opened + messages + work.data_bytes_received / 1024);
  }
  return 0;
}

bool FloodCharges::Earn(Budget budget, uint32_t cost, const FloodWork& work) {
  budgets_.Refill(budget, Units(budget, work), now_);
  return budgets_.Spend(budget, std::min(cost, budgets_.limit(budget)));
}

// What was opened before the last mark, or before a long silence, is not young.
void FloodCharges::AgeStreams(base::TimePoint now, uint32_t last_id) {
  old_id_ = now - now_ >= kYoungStream ? last_id : young_id_;
  young_id_ = last_id;
  mark_due_ = now + kYoungStream;
}

}  // namespace sluice::http2
