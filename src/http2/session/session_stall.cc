// Peers that stop in the middle: what they have begun, and streams that do not move.
#include <algorithm>
#include <vector>

#include "http2/session/session.h"

namespace sluice::http2 {

std::string_view ToString(Timeout timeout) {
  switch (timeout) {
    case Timeout::kHeaders:
      return "headers";
    case Timeout::kSend:
      return "send";
    case Timeout::kStall:
      return "stall";
    case Timeout::kBody:
      return "body";
    case Timeout::kIdle:
      return "idle";
    case Timeout::kAge:
      return "age";
    case Timeout::kAgeGrace:
      return "age_grace";
    case Timeout::kKeepalive:
      return "keepalive";
  }
  return "unknown";
}

size_t Session::SweepUnread() {
  std::vector<Stream*> stalled;
  // Also streams without a consumer, which drain by themselves: only this look ends them.
  streams_.ForEach([&](Stream& stream) {
    if (stream.has_queued() && ++stream.backlog_->still_rounds > kStallRounds) stalled.push_back(&stream);
  });
  return ResetStalled(stalled, ErrorCode::kCancel);
}

size_t Session::SweepSilent() {
  std::vector<Stream*> stalled;
  streams_.ForEach([&](Stream& stream) {
    // A peer without a window cannot send; and a server owes nothing before the request is whole.
    const bool owes = !stream.received_end_ && !stream.may_be_silent_ && stream.receive_.available() > 0 &&
                      (role_ == Role::kServer || stream.sent_end_);
    if (!owes) {
      stream.silent_rounds_ = 0;
    } else if (++stream.silent_rounds_ > kStallRounds) {
      stalled.push_back(&stream);
    }
  });
  return ResetStalled(stalled, ErrorCode::kCancel);
}

Session::Held Session::LookAtHeld() const {
  constexpr size_t kStreamBytes = 2048;  // a call with both its streams
  Held held{buffered_bytes(), streams_.size() * kStreamBytes};
  const bool server = role_ == Role::kServer;
  streams_.ForEach([&](const Stream& stream) {
    held.waiting += stream.unconsumed_;
    if (server) held.resting += stream.request_bytes_;
  });
  return held;
}

size_t Session::ResetHeaviest() {
  const uint64_t wanted = options_.queued_bytes_max / 8 * 7;
  std::vector<Stream*> streams;
  streams_.ForEach([&](Stream& stream) {
    if (stream.has_queued()) streams.push_back(&stream);
  });
  std::sort(streams.begin(), streams.end(), [](Stream* a, Stream* b) { return a->queued_bytes() > b->queued_bytes(); });
  size_t count = 0;
  for (uint64_t left = send_.queued_bytes(); count < streams.size() && left > wanted; ++count)
    left -= streams[count]->queued_bytes();
  streams.resize(count);
  return ResetStalled(streams, ErrorCode::kEnhanceYourCalm);
}

size_t Session::ResetStalled(const std::vector<Stream*>& streams, ErrorCode code) {
  Scope scope(*this);
  size_t count = 0;
  for (Stream* stream : streams) {
    if (stream->closed_) continue;  // by the handler of another; the object is kept by Scope
    ++count;
    WriteReset(stream->id_, code, /*peer_caused=*/false);
    ResetStream(*stream);
    StreamEvents* events = std::exchange(stream->events_, nullptr);
    if (events != nullptr) events->OnReset(code, ResetCause::kStalled);
  }
  return count;
}

}  // namespace sluice::http2
