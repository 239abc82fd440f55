// Frames as they are read (frame/frame_reader.h), and DATA.

#include "absl/strings/str_cat.h"
#include "http2/session/session.h"

namespace sluice::http2 {

base::Status Session::Feed(base::Slice bytes, base::TimePoint now) {
  if (failed_) return Failure();
  Scope scope(*this);
  charges_.Tick(now, streams_.last_peer_id());
  reader_.Feed(bytes, *this);
  if (!failed_) return base::Ok();
  CloseAll(failure_code_, false, ResetCause::kConnectionLost);
  return Failure();
}

// RFC 9113 3.4: the client's first bytes.
void Session::OnBadPreface() { Fail(ErrorCode::kProtocolError, "not the client preface of HTTP/2"); }

void Session::AfterStep() {
  // Between two frames nothing here holds a Stream: a long read need not keep all that it has ended.
  if ((signals_ & kReleasedStreams) && depth_ == 1) FreeReleased();
  if (send_.any_unread_answers() && send_.unread_answers() > options_.control_frames_max) [[unlikely]]
    FailFlood(FloodKind::kUnreadAnswers, "too many control frames wait to be written");
}

// What can be said before the payload is there.
bool Session::CheckUnusualFrame(const FrameHeader& frame) {
  // RFC 9113 3.4. Before the size is looked at: that of "HTTP/1.1 400" says nothing.
  if (!settings_received_ && (frame.type != FrameType::kSettings || frame.has(kFlagAck))) {
    Fail(ErrorCode::kProtocolError, "the first frame is not SETTINGS");
    return false;
  }
  if (frame.length > options_.frame_bytes_max) {  // RFC 9113 4.2
    Fail(ErrorCode::kFrameSizeError, absl::StrCat("a frame of ", frame.length, " bytes"));
    return false;
  }
  // RFC 9113 6.10: nothing may come between the parts of a header block, not even an unknown frame.
  if (block_.id() != 0 && (frame.type != FrameType::kContinuation || frame.stream_id != block_.id())) {
    Fail(ErrorCode::kProtocolError, "a header block is interrupted");
    return false;
  }
  return true;
}

void Session::HandleFrame(const FrameHeader& frame, const uint8_t* payload) {
  ++stats_.frames_received;
  switch (frame.type) {
    case FrameType::kData:
      return;  // BeginData
    case FrameType::kHeaders:
      return HandleHeaders(frame, payload);
    case FrameType::kPriority:
      return HandlePriority(frame, payload);
    case FrameType::kRstStream:
      return HandleRstStream(frame, payload);
    case FrameType::kSettings:
      return HandleSettings(frame, payload);
    case FrameType::kPushPromise:
      // RFC 9113 8.4: a client cannot push, and as a client we have forbidden it (ENABLE_PUSH 0).
      return Fail(ErrorCode::kProtocolError, "PUSH_PROMISE");
    case FrameType::kPing:
      return HandlePing(frame, payload);
    case FrameType::kGoaway:
      return HandleGoaway(frame, payload);
    case FrameType::kWindowUpdate:
      return HandleWindowUpdate(frame, payload);
    case FrameType::kContinuation:
      return HandleContinuation(frame, payload);
  }
  // RFC 9113 4.1: frames of unknown types are ignored.
  Charge(Budget::kUselessFrames, FloodKind::kUnknownFrames);
}

// A DATA frame's header has come: all of its length counts in both windows (RFC 9113 6.9.1). Its payload
// follows in HandleData. `padding` is the frame's pad length field.
void Session::BeginData(const FrameHeader& frame, uint32_t padding) {
  ++stats_.data_frames_received;
  if (frame.stream_id == 0) return Fail(ErrorCode::kProtocolError, "DATA on stream 0");  // RFC 9113 6.1
  uint32_t overhead = 0;                                                                 // the pad length field
  if (frame.has(kFlagPadded)) {
    if (frame.length == 0) return Fail(ErrorCode::kFrameSizeError, "padded DATA without a pad length");
    if (padding >= frame.length) return Fail(ErrorCode::kProtocolError, "DATA is all padding");  // RFC 9113 6.1
    overhead = 1;
  }
  if (!receive_.Take(frame.length)) {
    return Fail(ErrorCode::kFlowControlError, "DATA beyond the connection's window");  // RFC 9113 6.9.1
  }
  uint32_t data_bytes = frame.length - overhead - padding;
  Stream* stream = streams_.Find(frame.stream_id);
  if (stream == nullptr ? !FrameOnClosedStream(frame.stream_id, FrameType::kData)
                        : !AdmitData(*stream, frame.length, data_bytes, frame.has(kFlagEndStream))) {
    stream = nullptr;
    if (failed_) return;
  }
  if (stream == nullptr && !ChargeLateData(frame.length, data_bytes < kTinyDataBytes)) return;
  if (data_bytes < kTinyDataBytes && !ChargeTinyData(frame, stream, padding > data_bytes)) return;
  if (stream == nullptr) {  // it has no consumer
    reader_.ExpectData(0, frame.length - overhead);
    CreditConnection(frame.length);
    return;
  }
  data_stream_ = stream;
  data_end_ = frame.has(kFlagEndStream);
  reader_.ExpectData(data_bytes, padding);
  if (overhead > 0) {  // padding does not reach the consumer: credited here
    CreditConnection(overhead + padding);
    uint32_t increment = stream->receive_.Credit(overhead + padding);
    if (increment > 0 && !data_end_) WriteWindowUpdate(frame.stream_id, increment);
  }
  if (data_bytes == 0) {
    if (data_end_) DeliverData(base::Slice());
    data_stream_ = nullptr;
  }
}

// DATA that costs us a frame's work, and perhaps a frame to the other side, for next to nothing. More of it pays for
// itself, and for all of its padding. False: too many.
bool Session::ChargeTinyData(const FrameHeader& frame, const Stream* stream, bool mostly_padding) {
  charges_.NoteTinyData();
  if (stream == nullptr) return Charge(Budget::kUselessFrames, FloodKind::kClosedStreamFrames);
  if (mostly_padding) return Charge(Budget::kUselessFrames, FloodKind::kPaddingFlood, kPaddingCost);
  return frame.has(kFlagEndStream) || Charge(Budget::kUselessFrames, FloodKind::kEmptyData);
}

// Whether DATA may come on this stream now; if not, the stream has been reset.
bool Session::AdmitData(Stream& stream, uint32_t frame_bytes, uint32_t data_bytes, bool end_stream) {
  ErrorCode error = ErrorCode::kNoError;
  if (stream.received_end_) {
    error = ErrorCode::kStreamClosed;  // RFC 9113 5.1, half-closed (remote)
  } else if (!stream.receive_.Take(frame_bytes)) {
    error = ErrorCode::kFlowControlError;  // RFC 9113 6.9.1
  } else if (role_ == Role::kClient && !stream.final_headers_) {
    error = ErrorCode::kProtocolError;  // RFC 9113 8.1: a response starts with its headers
  } else if (stream.content_left_ >= 0) {
    // RFC 9113 8.1.1: the DATA must sum up to content-length.
    if (data_bytes > stream.content_left_ || (end_stream && data_bytes != stream.content_left_)) {
      error = ErrorCode::kProtocolError;
    }
    stream.content_left_ -= data_bytes;
  }
  if (error == ErrorCode::kNoError) return true;
  StreamError(stream, error);
  return false;
}

// Bytes of the DATA frame that BeginData has admitted.
void Session::HandleData(const base::Slice& read, size_t at, uint32_t bytes) {
  if (data_stream_ != nullptr) {
    DeliverData(base::BorrowedSlice(read, at, bytes).get());
  } else {
    CreditConnection(bytes);  // its stream ended in the middle of the frame
  }
  if (reader_.data_left() == 0) data_stream_ = nullptr;
}

void Session::DeliverData(const base::Slice& bytes) {
  Stream& stream = *data_stream_;
  bool end_stream = data_end_ && reader_.data_left() == 0;
  stats_.data_bytes_received += bytes.size();
  stream.silent_rounds_ = 0;
  // The connection's window bounds what is on its way to us. What a stream holds until its consumer is done is
  // bounded by the stream's own window: else a few slow readers would stop every other stream here.
  CreditConnection(static_cast<uint32_t>(bytes.size()));
  if (stream.events_ != nullptr) stream.unconsumed_ += static_cast<uint32_t>(bytes.size());
  if (end_stream) ReceivedEnd(stream);
  if (stream.events_ != nullptr) stream.events_->OnData(bytes, end_stream);
}

// DATA or HEADERS on a stream that is in no table. False: a connection error.
bool Session::FrameOnClosedStream(uint32_t id, FrameType type) {
  if (IsIdle(id)) {
    Fail(ErrorCode::kProtocolError, absl::StrCat("a frame on idle stream ", id));  // RFC 9113 5.1
    return false;
  }
  if (const EndedStreams::How how = streams_.ended().Find(id); how != EndedStreams::How::kForgotten) {
    if (role_ == Role::kServer && how == EndedStreams::How::kByBothSides) {
      Fail(ErrorCode::kStreamClosed, absl::StrCat("a frame on closed stream ", id));  // RFC 9113 5.1
      return false;
    }
    if (role_ == Role::kClient && type == FrameType::kHeaders) return LateResponse();
    WriteForcedReset(id, ErrorCode::kStreamClosed);  // RFC 9113 6.1, 5.4.2
    return !failed_;
  }
  // Reset by us, refused, above our GOAWAY's last id, or long closed: ignored (RFC 9113 5.1, 6.8). A header block costs
  // its decoding all the same.
  return type != FrameType::kHeaders || Charge(Budget::kUselessFrames, FloodKind::kClosedStreamFrames);
}

// HEADERS of a server on a stream that is over. RFC 9113 5.1 lets us drop them, and we do: gRPC C++ of before
// 2024 may answer a call twice (docs/http2.md), and the other calls of the connection must not pay for that.
// False: too many in a row.
bool Session::LateResponse() {
  if (streams_.ended().TakeLateResponse()) return true;
  FailFlood(FloodKind::kLateResponses, "too many responses on closed streams");
  return false;
}

}  // namespace sluice::http2
