// Bytes to frames, and DATA. Frames are read in place; only a frame that a read has cut is joined (carry_),
// and DATA not even then: what has come of it is passed on.
#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "http2/session.h"

namespace sluice::http2 {

base::Status Session::Feed(base::Slice bytes, base::TimePoint now) {
  if (failed_) return Failure();
  Scope scope(*this);
  if (now >= mark_due_) [[unlikely]]
    AgeStreams(now);
  now_ = now;
  const uint8_t* p = bytes.data();
  const uint8_t* end = p + bytes.size();
  if (preface_left_ > 0) p = TakePreface(p, end);
  while (p != end && !failed_) {
    if (data_left_ + skip_left_ > 0) {
      p = TakeData(bytes, p, end);
    } else if (carry_bytes_ > 0) {
      p = TakeCarry(p, end);
    } else {
      p = TakeFrame(p, end);
    }
    // Between two frames nothing here holds a Stream: a long read need not keep all that it has ended.
    if ((signals_ & kReleasedStreams) && depth_ == 1) FreeReleased();
    if (UnwrittenControlFrames() > options_.control_frames_max) {
      FailAbuse(Abuse::kUnreadAnswers, "too many control frames wait to be written");
    }
  }
  if (!failed_) return base::Ok();
  CloseAll(failure_code_, false);
  return Failure();
}

// RFC 9113 3.4: the client's first bytes.
const uint8_t* Session::TakePreface(const uint8_t* p, const uint8_t* end) {
  size_t n = std::min<size_t>(preface_left_, static_cast<size_t>(end - p));
  const char* expected = kClientPreface.data() + kClientPreface.size() - preface_left_;
  if (n > 0 && std::memcmp(p, expected, n) != 0) {
    Fail(ErrorCode::kProtocolError, "not the client preface of HTTP/2");
    return end;
  }
  preface_left_ -= n;
  return p + n;
}

// The frame at p, with all its bytes if possible; else what has come of it goes aside.
const uint8_t* Session::TakeFrame(const uint8_t* p, const uint8_t* end) {
  size_t available = static_cast<size_t>(end - p);
  if (available >= kFrameHeaderBytes) {
    FrameHeader frame = ReadFrameHeader(p);
    if (!CheckFrameHeader(frame)) return end;
    if (frame.type == FrameType::kData) {
      size_t head = kFrameHeaderBytes + (frame.has(kFlagPadded) && frame.length > 0 ? 1 : 0);
      if (available >= head) {
        BeginData(frame, head > kFrameHeaderBytes ? p[kFrameHeaderBytes] : 0);
        return p + head;
      }
    } else if (available >= kFrameHeaderBytes + frame.length) {
      HandleFrame(frame, p + kFrameHeaderBytes);
      return p + kFrameHeaderBytes + frame.length;
    }
  }
  return TakeCarry(p, end);
}

// Joins a frame that came in pieces.
const uint8_t* Session::TakeCarry(const uint8_t* p, const uint8_t* end) {
  auto fill = [&](uint8_t* to,
                  size_t upto) {  // until carry_bytes_ is `upto`; `to` is where the next byte goes
    size_t n = std::min<size_t>(upto - carry_bytes_, static_cast<size_t>(end - p));
    if (n > 0) std::memcpy(to, p, n);
    carry_bytes_ += static_cast<uint32_t>(n);
    p += n;
    return carry_bytes_ == upto;
  };
  if (carry_bytes_ < kFrameHeaderBytes) {
    if (!fill(head_.data() + carry_bytes_, kFrameHeaderBytes)) return p;
    if (!CheckFrameHeader(ReadFrameHeader(head_.data()))) return end;
  }
  FrameHeader frame = ReadFrameHeader(head_.data());
  if (frame.type == FrameType::kData) {
    bool padded = frame.has(kFlagPadded) && frame.length > 0;
    if (padded && !fill(head_.data() + kFrameHeaderBytes, kFrameHeaderBytes + 1)) return p;
    carry_bytes_ = 0;
    BeginData(frame, padded ? head_[kFrameHeaderBytes] : 0);
    return p;
  }
  if (frame.length > 0) {
    if (carry_.empty()) carry_ = base::Slice::Uninitialized(frame.length);
    // Nobody else has the block.
    uint8_t* const payload = const_cast<uint8_t*>(carry_.data());
    if (!fill(payload + (carry_bytes_ - kFrameHeaderBytes), kFrameHeaderBytes + frame.length)) return p;
  }
  carry_bytes_ = 0;
  const base::Slice payload = std::move(carry_);
  HandleFrame(frame, payload.data());
  return p;
}

// What can be said before the payload is there.
bool Session::CheckFrameHeader(const FrameHeader& frame) {
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
  if (block_id_ != 0 && (frame.type != FrameType::kContinuation || frame.stream_id != block_id_)) {
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
      return HandlePriority(frame);
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
  Charge(Budget::kUselessFrames, Abuse::kUnknownFrames);
}

// A DATA frame's header has come: all of its length counts in both windows (RFC 9113 6.9.1). Its payload
// follows in TakeData. `padding` is the frame's pad length field.
void Session::BeginData(const FrameHeader& frame, uint32_t padding) {
  ++stats_.frames_received;
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
  Stream* stream = table_.Find(frame.stream_id);
  if (stream == nullptr ? !FrameOnClosedStream(frame.stream_id, FrameType::kData)
                        : !AdmitData(*stream, frame.length, data_bytes, frame.has(kFlagEndStream))) {
    stream = nullptr;
    if (failed_) return;
  }
  if (data_bytes < kTinyDataBytes && !ChargeTinyData(frame, stream)) return;
  if (stream == nullptr) {  // nobody will consume it
    skip_left_ = frame.length - overhead;
    CreditConnection(frame.length);
    return;
  }
  data_stream_ = stream;
  data_left_ = data_bytes;
  data_end_ = frame.has(kFlagEndStream);
  skip_left_ = padding;
  if (overhead > 0) {  // padding does not reach the consumer: credited here
    if (padding > data_bytes && !Charge(Budget::kUselessFrames, Abuse::kPaddingFlood)) return;
    CreditConnection(overhead + padding);
    uint32_t increment = stream->receive_.Credit(overhead + padding);
    if (increment > 0 && !data_end_) WriteWindowUpdate(frame.stream_id, increment);
  }
  if (data_bytes == 0) {
    if (data_end_) DeliverData(base::Slice());
    data_stream_ = nullptr;
  }
}

// DATA that costs us a frame's work, and perhaps a frame to the other side, for next to nothing. False: too many.
bool Session::ChargeTinyData(const FrameHeader& frame, const Stream* stream) {
  if (stream == nullptr) return Charge(Budget::kUselessFrames, Abuse::kClosedStreamFrames);
  return frame.has(kFlagEndStream) || Charge(Budget::kUselessFrames, Abuse::kEmptyData);
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
const uint8_t* Session::TakeData(const base::Slice& bytes, const uint8_t* p, const uint8_t* end) {
  uint32_t n = std::min<uint32_t>(data_left_, static_cast<uint32_t>(end - p));
  if (n > 0) {
    data_left_ -= n;
    if (data_stream_ != nullptr) {
      DeliverData(base::BorrowedSlice(bytes, static_cast<size_t>(p - bytes.data()), n).get());
    } else {
      CreditConnection(n);  // its stream ended in the middle of the frame
    }
    p += n;
    if (data_left_ == 0) data_stream_ = nullptr;
  }
  uint32_t skipped = std::min<uint32_t>(skip_left_, static_cast<uint32_t>(end - p));
  if (data_left_ == 0) {
    skip_left_ -= skipped;
    p += skipped;
  }
  return p;
}

void Session::DeliverData(const base::Slice& bytes) {
  Stream& stream = *data_stream_;
  bool end_stream = data_end_ && data_left_ == 0;
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
  for (uint32_t ended : ended_) {
    if (ended >> 1 != id) continue;
    bool by_reset = (ended & 1) != 0;  // the peer has reset it itself
    if (role_ == Role::kServer && !by_reset) {
      Fail(ErrorCode::kStreamClosed, absl::StrCat("a frame on closed stream ", id));  // RFC 9113 5.1
      return false;
    }
    if (role_ == Role::kClient && type == FrameType::kHeaders) return LateResponse();
    WriteForcedReset(id, ErrorCode::kStreamClosed);  // RFC 9113 6.1, 5.4.2
    return !failed_;
  }
  // Reset by us, refused, above our GOAWAY's last id, or long closed: ignored (RFC 9113 5.1, 6.8). A header block costs
  // its decoding all the same.
  return type != FrameType::kHeaders || Charge(Budget::kUselessFrames, Abuse::kClosedStreamFrames);
}

// HEADERS of a server on a stream that is over. RFC 9113 5.1 lets us drop them, and we do: gRPC C++ of before
// 2024 may answer a call twice (docs/http2.md), and the other calls of the connection must not pay for that.
// False: too many in a row.
bool Session::LateResponse() {
  if (++late_responses_ <= kLateResponsesMax) return true;
  FailAbuse(Abuse::kLateResponses, "too many responses on closed streams");
  return false;
}

}  // namespace sluice::http2
