// All frames but DATA, HEADERS and CONTINUATION.
#include <algorithm>
#include <vector>

#include "http2/session.h"

namespace sluice::http2 {
namespace {

// A frame of settings counts as one more for each of these it has in it, or moves the window of.
constexpr uint32_t kCheapSettings = 16;
constexpr size_t kCheapStreams = 16;
// A window opened by less than this, for a stream that has more to send, is suspicious (CVE-2019-9511).
constexpr uint32_t kDribbleBytes = 1024;
constexpr uint32_t kDribbleCost = 8;

}  // namespace

void Session::HandleSettings(const FrameHeader& frame, const uint8_t* payload) {
  if (frame.stream_id != 0) return Fail(ErrorCode::kProtocolError, "SETTINGS on a stream");  // RFC 9113 6.5
  if (frame.has(kFlagAck)) {
    if (frame.length != 0) return Fail(ErrorCode::kFrameSizeError, "SETTINGS ack with a payload");  // RFC 9113 6.5
    if (!Charge(Budget::kSettings, Abuse::kSettingsFlood)) return;
    // RFC 7541 4.2: from now on the peer must keep to the table that we offered, and may use all of it.
    decoder_.SetTableBytesMax(options_.header_table_bytes);
    return;
  }
  if (frame.length % 6 != 0) return Fail(ErrorCode::kFrameSizeError, "SETTINGS cut short");  // RFC 9113 6.5
  if (!std::exchange(settings_received_, true)) {
    peer_streams_max_ = UINT32_MAX;  // RFC 9113 6.5.2: no limit by default
    flood_.Begin(now_);
  }
  if (!Charge(Budget::kSettings, Abuse::kSettingsFlood, 1 + frame.length / (6 * kCheapSettings))) return;
  // One pass over the streams for the last INITIAL_WINDOW_SIZE, not one for each: 2730 fit in a frame.
  int64_t initial_window = -1;
  for (const uint8_t* p = payload; p != payload + frame.length; p += 6) {
    SettingId id = static_cast<SettingId>(Read16(p));
    uint32_t value = Read32(p + 2);
    if (!ApplySetting(id, value)) return;
    if (id == SettingId::kInitialWindowSize) initial_window = value;
  }
  if (initial_window >= 0 && !ApplyInitialWindow(static_cast<uint32_t>(initial_window))) return;
  CountControlFrame();
  WriteFrameHeader(BeginFrame(kFrameHeaderBytes), 0, FrameType::kSettings, kFlagAck, 0);  // RFC 9113 6.5.3
  CommitFrame(kFrameHeaderBytes);
  signals_ |= kSignalCapacity;
}

// RFC 9113 6.5.2. False: the value is a connection error.
bool Session::ApplySetting(SettingId id, uint32_t value) {
  switch (id) {
    case SettingId::kHeaderTableSize:
      encoder_.SetPeerTableBytesMax(value);
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
      peer_frame_bytes_max_ = value;
      return true;
    case SettingId::kMaxHeaderListSize:
      peer_header_list_bytes_max_ = value;  // advisory: the peer itself refuses what is above it
      return true;
  }
  return true;  // RFC 9113 6.5.2: unknown settings are ignored
}

// RFC 9113 6.9.2: the windows of all streams move by the difference, even below zero.
bool Session::ApplyInitialWindow(uint32_t value) {
  int64_t delta = int64_t{value} - int64_t{peer_window_bytes_};
  peer_window_bytes_ = value;
  if (delta == 0) return true;
  if (!Charge(Budget::kSettings, Abuse::kSettingsFlood, static_cast<uint32_t>(table_.size() / kCheapStreams)))
    return false;
  bool overflow = false;
  table_.ForEach([&](Stream& stream) {
    const int64_t window = stream.send_window_ + delta;
    overflow |= window > kWindowBytesMax;
    stream.send_window_ = static_cast<int32_t>(std::min<int64_t>(window, kWindowBytesMax));
    if (stream.send_window_ <= 0) {
      if (stream.backlog_ != nullptr) stream.backlog_->Unlink();
    } else {
      MarkReady(stream);
    }
  });
  if (overflow) Fail(ErrorCode::kFlowControlError, "INITIAL_WINDOW_SIZE makes a window overflow");
  return !overflow;
}

void Session::HandleRstStream(const FrameHeader& frame, const uint8_t* payload) {
  if (frame.stream_id == 0) return Fail(ErrorCode::kProtocolError, "RST_STREAM on stream 0");      // RFC 9113 6.4
  if (frame.length != 4) return Fail(ErrorCode::kFrameSizeError, "RST_STREAM is not of 4 bytes");  // RFC 9113 6.4
  Stream* stream = table_.Find(frame.stream_id);
  if (stream == nullptr) {
    // RFC 9113 6.4; on a closed stream it crossed our last frame (5.1), above our last id it is ignored (6.8).
    if (IsIdle(frame.stream_id) && frame.stream_id <= goaway_last_id_) {
      return FailForNew(ErrorCode::kProtocolError, "RST_STREAM on an idle stream");
    }
    Charge(Budget::kUselessFrames, Abuse::kClosedStreamFrames);
    return;
  }
  ++stats_.resets_received;
  ErrorCode code = static_cast<ErrorCode>(Read32(payload));
  RememberEnded(frame.stream_id, true);
  ChargeReset(frame.stream_id, stream->sent_end_);
  ResetStream(*stream);
  StreamEvents* events = std::exchange(stream->events_, nullptr);
  if (events == nullptr) return;
  // RFC 9113 8.7: REFUSED_STREAM promises that nothing was processed.
  events->OnReset(code, code == ErrorCode::kRefusedStream ? ResetCause::kRefused : ResetCause::kPeerReset);
}

// RFC 9113 5.3.2 and 6.3: priorities are deprecated. The frame is checked for its form; its content, also a
// stream that depends on itself, means nothing to us.
void Session::HandlePriority(const FrameHeader& frame) {
  if (frame.stream_id == 0) return Fail(ErrorCode::kProtocolError, "PRIORITY on stream 0");
  if (frame.length == 5) {
    Charge(Budget::kUselessFrames, Abuse::kPriorityFlood);
    return;
  }
  if (Stream* stream = table_.Find(frame.stream_id)) return StreamError(*stream, ErrorCode::kFrameSizeError);
  // An idle stream cannot be reset (RFC 9113 6.4), so the error is the connection's.
  if (IsIdle(frame.stream_id)) Fail(ErrorCode::kFrameSizeError, "PRIORITY is not of 5 bytes");
}

void Session::HandlePing(const FrameHeader& frame, const uint8_t* payload) {
  if (frame.stream_id != 0) return Fail(ErrorCode::kProtocolError, "PING on a stream");      // RFC 9113 6.7
  if (frame.length != 8) return Fail(ErrorCode::kFrameSizeError, "PING is not of 8 bytes");  // RFC 9113 6.7
  uint64_t value = Read64(payload);
  if (!Charge(Budget::kPings, Abuse::kPingFlood)) return;
  if (!frame.has(kFlagAck)) {
    ++pings_answered_;
    CountControlFrame();
    WritePing(value, kFlagAck);
  } else if (graceful_ping_sent_ && value == kGracefulPing) {
    GoawayNow(ErrorCode::kNoError, "");
  } else {
    events_.OnPingAck(value);
  }
}

void Session::HandleGoaway(const FrameHeader& frame, const uint8_t* payload) {
  if (frame.stream_id != 0) return Fail(ErrorCode::kProtocolError, "GOAWAY on a stream");    // RFC 9113 6.8
  if (frame.length < 8) return Fail(ErrorCode::kFrameSizeError, "GOAWAY is below 8 bytes");  // RFC 9113 6.8
  if (!Charge(Budget::kUselessFrames, Abuse::kGoawayFlood, static_cast<uint32_t>(1 + table_.size() / kCheapStreams)))
    return;
  uint32_t last_id = Read32(payload) & kStreamIdMax;
  ErrorCode code = static_cast<ErrorCode>(Read32(payload + 4));
  goaway_received_ = true;
  if (role_ == Role::kClient) {
    // RFC 9113 6.8: our streams above the last id were not and will not be processed.
    std::vector<Stream*> refused;
    table_.ForEach([&](Stream& stream) {
      if (stream.id_ > last_id) refused.push_back(&stream);
    });
    SortByAge(refused);
    for (Stream* stream : refused) {
      if (stream->closed_) continue;  // by the handler of another
      ResetStream(*stream);
      StreamEvents* events = std::exchange(stream->events_, nullptr);
      if (events != nullptr) events->OnReset(ErrorCode::kRefusedStream, ResetCause::kRefused);
    }
  }
  events_.OnGoaway(code, last_id, {reinterpret_cast<const char*>(payload + 8), frame.length - 8});
}

// What waits for a window gets one of `increment` bytes: each such frame makes us send a frame that is mostly its
// header.
bool Session::ChargeDribble(uint32_t increment) {
  return increment >= kDribbleBytes || Charge(Budget::kWindowUpdates, Abuse::kDataDribble, kDribbleCost);
}

void Session::HandleWindowUpdate(const FrameHeader& frame, const uint8_t* payload) {
  if (frame.length != 4) return Fail(ErrorCode::kFrameSizeError, "WINDOW_UPDATE is not of 4 bytes");  // RFC 9113 6.9
  uint32_t increment = Read32(payload) & kStreamIdMax;
  if (!Charge(Budget::kWindowUpdates, Abuse::kWindowUpdateFlood)) return;
  if (frame.stream_id == 0) {
    if (increment == 0) return Fail(ErrorCode::kProtocolError, "WINDOW_UPDATE of 0");  // RFC 9113 6.9
    if (send_window_ <= 0 && !ready_.empty() && !ChargeDribble(increment)) return;
    send_window_ += increment;
    if (send_window_ > kWindowBytesMax) {  // RFC 9113 6.9.1
      return Fail(ErrorCode::kFlowControlError, "the connection's window overflows");
    }
    if (!ready_.empty()) signals_ |= kSignalOutput;
    return;
  }
  Stream* stream = table_.Find(frame.stream_id);
  if (stream == nullptr) {
    // RFC 9113 5.1: an error on an idle stream, nothing unusual on a closed one.
    if (IsIdle(frame.stream_id)) Fail(ErrorCode::kProtocolError, "WINDOW_UPDATE on an idle stream");
    return;
  }
  if (increment == 0) return StreamError(*stream, ErrorCode::kProtocolError);  // RFC 9113 6.9
  if (stream->send_window_ <= 0 && stream->has_queued() && !ChargeDribble(increment)) return;
  const int64_t window = int64_t{stream->send_window_} + increment;
  if (window > kWindowBytesMax) return StreamError(*stream, ErrorCode::kFlowControlError);  // RFC 9113 6.9.1
  stream->send_window_ = static_cast<int32_t>(window);
  MarkReady(*stream);
}

}  // namespace sluice::http2
