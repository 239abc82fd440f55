// All frames but DATA, HEADERS and CONTINUATION.
#include <algorithm>
#include <vector>

#include "http2/session/session.h"

namespace sluice::http2 {

void Session::HandleSettings(const FrameHeader& frame, const uint8_t* payload) {
  if (frame.stream_id != 0) return Fail(ErrorCode::kProtocolError, "SETTINGS on a stream");  // RFC 9113 6.5
  if (frame.has(kFlagAck)) {
    if (frame.length != 0) return Fail(ErrorCode::kFrameSizeError, "SETTINGS ack with a payload");  // RFC 9113 6.5
    if (!Charge(Budget::kSettings, FloodKind::kSettingsFlood)) return;
    // RFC 7541 4.2: from now on the peer must keep to the table that we offered, and may use all of it.
    decoder_.SetTableBytesMax(options_.header_table_bytes);
    return;
  }
  if (frame.length % 6 != 0) return Fail(ErrorCode::kFrameSizeError, "SETTINGS cut short");  // RFC 9113 6.5
  if (!std::exchange(settings_received_, true)) {
    peer_streams_max_ = UINT32_MAX;  // RFC 9113 6.5.2: no limit by default
    charges_.Begin();
  }
  if (!Charge(Budget::kSettings, FloodKind::kSettingsFlood, 1 + frame.length / (6 * kSettingsPerUnit))) return;
  // One pass over the streams for the last INITIAL_WINDOW_SIZE, not one for each: 2730 fit in a frame.
  int64_t initial_window = -1;
  for (const uint8_t* p = payload; p != payload + frame.length; p += 6) {
    SettingId id = static_cast<SettingId>(Read16(p));
    uint32_t value = Read32(p + 2);
    if (!ApplySetting(id, value)) return;
    if (id == SettingId::kInitialWindowSize) initial_window = value;
  }
  if (initial_window >= 0 && !ApplyInitialWindow(static_cast<uint32_t>(initial_window))) return;
  send_.AddAnswer();
  send_.WriteSettingsAck();
  signals_ |= kSignalCapacity;
}

// RFC 9113 6.5.2. False: the value is a connection error.
bool Session::ApplySetting(SettingId id, uint32_t value) {
  switch (id) {
    case SettingId::kHeaderTableSize:
      send_.SetHeaderTableBytes(value);
      return true;
    case SettingId::kEnablePush:
      // A server must not ask for push, and there is no third value.
      if (value > 1 || (value == 1 && role_ == Role::kClient)) {
        Fail(ErrorCode::kProtocolError, "invalid ENABLE_PUSH");
        return false;
      }
      return true;
    case SettingId::kMaxConcurrentStreams:
      peer_streams_max_ = value;
      return true;
    case SettingId::kInitialWindowSize:
      if (value > kWindowBytesMax) {
        Fail(ErrorCode::kFlowControlError, "INITIAL_WINDOW_SIZE above 2^31-1");
        return false;
      }
      return true;
    case SettingId::kMaxFrameSize:
      if (value < kDefaultFrameBytesMax || value > kLargestFrameBytesMax) {
        Fail(ErrorCode::kProtocolError, "invalid MAX_FRAME_SIZE");
        return false;
      }
      send_.SetFrameBytesMax(value);
      return true;
    case SettingId::kMaxHeaderListSize:
      // Advisory by name, but there are peers that end the connection, and with it other calls. The owner compares.
      // 0 would be no list at all; grpc-go says it where its option is 0, and takes 16 MiB.
      peer_header_list_max_ = value == 0 ? UINT32_MAX : value;
      events_.OnHeaderListMax(peer_header_list_max_);
      return true;
    case SettingId::kProxied:
      peer_is_proxy_ = value == 1;
      return true;
  }
  return true;  // RFC 9113 6.5.2: unknown settings are ignored
}

// RFC 9113 6.9.2: the windows of all streams move by the difference, even below zero.
bool Session::ApplyInitialWindow(uint32_t value) {
  const int64_t delta = send_.SetInitialWindow(value);
  if (delta == 0) return true;
  if (!Charge(Budget::kSettings, FloodKind::kSettingsFlood, static_cast<uint32_t>(streams_.size() / kStreamsPerUnit)))
    return false;
  bool overflow = false;
  streams_.ForEach([&](Stream& stream) { overflow |= !send_.MoveWindow(stream, delta); });
  if (overflow) Fail(ErrorCode::kFlowControlError, "INITIAL_WINDOW_SIZE makes a window overflow");
  return !overflow;
}

void Session::HandleRstStream(const FrameHeader& frame, const uint8_t* payload) {
  if (frame.stream_id == 0) return Fail(ErrorCode::kProtocolError, "RST_STREAM on stream 0");      // RFC 9113 6.4
  if (frame.length != 4) return Fail(ErrorCode::kFrameSizeError, "RST_STREAM is not of 4 bytes");  // RFC 9113 6.4
  Stream* stream = streams_.Find(frame.stream_id);
  if (stream == nullptr) {
    // RFC 9113 6.4; on a closed stream it crossed our last frame (5.1), above our last id it is ignored (6.8).
    if (IsIdle(frame.stream_id) && frame.stream_id <= goaway_.last_id()) {
      return FailForNew(ErrorCode::kProtocolError, "RST_STREAM on an idle stream");
    }
    Charge(Budget::kUselessFrames, FloodKind::kClosedStreamFrames);
    return;
  }
  ++stats_.resets_received;
  ErrorCode code = static_cast<ErrorCode>(Read32(payload));
  streams_.ended().Remember(frame.stream_id, EndedStreams::How::kByPeersReset);
  ChargeReset(frame.stream_id, stream->headers_sent_);
  ResetStream(*stream);
  StreamEvents* events = std::exchange(stream->events_, nullptr);
  if (events == nullptr) return;
  // RFC 9113 8.7: REFUSED_STREAM promises that nothing was processed.
  events->OnReset(code, code == ErrorCode::kRefusedStream ? ResetCause::kRefused : ResetCause::kPeerReset);
}

// RFC 9113 5.3.2 and 6.3: priorities are deprecated. The frame is checked for its form, and for a stream that depends
// on itself (RFC 7540 5.3.1); else its content means nothing to us.
void Session::HandlePriority(const FrameHeader& frame, const uint8_t* payload) {
  if (frame.stream_id == 0) return Fail(ErrorCode::kProtocolError, "PRIORITY on stream 0");
  const bool whole = frame.length == 5;
  if (!whole || DependsOnItself(frame, payload)) {
    const ErrorCode error = whole ? ErrorCode::kProtocolError : ErrorCode::kFrameSizeError;
    if (Stream* stream = streams_.Find(frame.stream_id)) return StreamError(*stream, error);
    // An idle stream cannot be reset (RFC 9113 6.4), so the error is the connection's; a closed one need not be.
    if (IsIdle(frame.stream_id)) {
      return Fail(error, whole ? "PRIORITY of a stream on itself" : "PRIORITY is not of 5 bytes");
    }
  }
  Charge(Budget::kUselessFrames, FloodKind::kPriorityFlood);
}

void Session::HandlePing(const FrameHeader& frame, const uint8_t* payload) {
  if (frame.stream_id != 0) return Fail(ErrorCode::kProtocolError, "PING on a stream");      // RFC 9113 6.7
  if (frame.length != 8) return Fail(ErrorCode::kFrameSizeError, "PING is not of 8 bytes");  // RFC 9113 6.7
  uint64_t value = Read64(payload);
  if (!Charge(Budget::kPings, FloodKind::kPingFlood)) return;
  if (!frame.has(kFlagAck)) {
    charges_.NotePingAnswer();
    send_.AddAnswer();
    send_.WritePing(value, kFlagAck);
  } else if (goaway_.announced() && value == kGracefulPing) {
    GoawayNow(ErrorCode::kNoError, "");
  } else {
    events_.OnPingAck(value);
  }
}

void Session::HandleGoaway(const FrameHeader& frame, const uint8_t* payload) {
  if (frame.stream_id != 0) return Fail(ErrorCode::kProtocolError, "GOAWAY on a stream");    // RFC 9113 6.8
  if (frame.length < 8) return Fail(ErrorCode::kFrameSizeError, "GOAWAY is below 8 bytes");  // RFC 9113 6.8
  if (!Charge(Budget::kUselessFrames, FloodKind::kGoawayFlood,
              static_cast<uint32_t>(1 + streams_.size() / kStreamsPerUnit)))
    return;
  uint32_t last_id = Read32(payload) & kStreamIdMax;
  ErrorCode code = static_cast<ErrorCode>(Read32(payload + 4));
  goaway_.Receive(code);
  if (role_ == Role::kClient) {
    // RFC 9113 6.8: our streams above the last id were not and will not be processed.
    const std::vector<Stream*> refused =
        streams_.Select([last_id](const Stream& stream) { return stream.id_ > last_id; });
    for (Stream* stream : refused) {
      if (stream->closed_) continue;  // by the handler of another
      ResetStream(*stream);
      StreamEvents* events = std::exchange(stream->events_, nullptr);
      if (events != nullptr) events->OnReset(ErrorCode::kRefusedStream, ResetCause::kRefused);
    }
  }
  events_.OnGoaway(code, last_id, {reinterpret_cast<const char*>(payload + 8), frame.length - 8});
}

// `waiting` has had no window and gets one of `increment` bytes. Where that is less than its producer gives at a time,
// the peer makes us cut it into frames that are mostly their headers. Where it is not, the frames are small because the
// messages are.
bool Session::ChargeDribble(uint32_t increment, const StreamBacklog& waiting) {
  return increment >= std::min(kDribbleBytes, waiting.piece_bytes) ||
         Charge(Budget::kWindowUpdates, FloodKind::kDataDribble, kDribbleCost);
}

void Session::HandleWindowUpdate(const FrameHeader& frame, const uint8_t* payload) {
  if (frame.length != 4) return Fail(ErrorCode::kFrameSizeError, "WINDOW_UPDATE is not of 4 bytes");  // RFC 9113 6.9
  uint32_t increment = Read32(payload) & kStreamIdMax;
  if (!Charge(Budget::kWindowUpdates, FloodKind::kWindowUpdateFlood)) return;
  if (frame.stream_id == 0) {
    if (increment == 0) return Fail(ErrorCode::kProtocolError, "WINDOW_UPDATE of 0");  // RFC 9113 6.9
    const StreamBacklog* held_back = send_.held_back();
    if (held_back != nullptr && !ChargeDribble(increment, *held_back)) return;
    if (!send_.GrowWindow(increment)) Fail(ErrorCode::kFlowControlError, "the connection's window overflows");
    return;
  }
  Stream* stream = streams_.Find(frame.stream_id);
  if (stream == nullptr) {
    // RFC 9113 5.1: an error on an idle stream, nothing unusual on a closed one.
    if (IsIdle(frame.stream_id)) Fail(ErrorCode::kProtocolError, "WINDOW_UPDATE on an idle stream");
    return;
  }
  if (increment == 0) return StreamError(*stream, ErrorCode::kProtocolError);  // RFC 9113 6.9
  if (stream->send_window_ <= 0 && stream->has_queued() && !ChargeDribble(increment, *stream->backlog_)) return;
  const int64_t window = int64_t{stream->send_window_} + increment;
  if (window > kWindowBytesMax) return StreamError(*stream, ErrorCode::kFlowControlError);  // RFC 9113 6.9.1
  stream->send_window_ = static_cast<int32_t>(window);
  send_.MarkReady(*stream);
}

}  // namespace sluice::http2
