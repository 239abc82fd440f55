// Header blocks to messages: HEADERS and CONTINUATION are joined, decoded, checked (validate.h) and passed
// on.

#include "absl/strings/str_cat.h"
#include "http2/fields/validate.h"
#include "http2/session/session.h"

namespace sluice::http2 {
namespace {

// The request with an :authority of what its host field says (RFC 9113 8.3.1: an intermediary constructs it).
HeaderList WithAuthority(InternTable& interns, const HeaderList& fields) {
  HeaderList out(&interns);
  bool added = false;
  for (const Field* field : fields) {
    if (!added && !IsPseudo(field->token)) {
      out.Add(":authority", fields.Find(Token::kHost)->value());
      added = true;
    }
    if (field->interned()) {
      InternTable::Ref(field);
      out.AddInterned(field);
    } else {
      out.Add(field->name(), field->value(), field->indexing);
    }
  }
  return out;
}

}  // namespace

void Session::HandleHeaders(const FrameHeader& frame, const uint8_t* payload) {
  if (frame.stream_id == 0) return Fail(ErrorCode::kProtocolError, "HEADERS on stream 0");  // RFC 9113 6.2
  uint32_t begin = frame.has(kFlagPadded) ? 1 : 0;
  uint32_t skipped = begin + (frame.has(kFlagPriority) ? 5 : 0);
  if (frame.length < skipped) return Fail(ErrorCode::kFrameSizeError, "HEADERS without its fields");
  uint32_t padding = begin > 0 ? payload[0] : 0;
  if (padding > frame.length - skipped) {
    return Fail(ErrorCode::kProtocolError, "HEADERS is all padding");  // RFC 9113 6.2
  }
  // RFC 9113 5.3.2: but for this error of RFC 7540 the priority fields are skipped.
  const bool on_itself = frame.has(kFlagPriority) && DependsOnItself(frame, payload + begin);
  // RFC 9113 5.1.1: a client opens odd streams; a server opens none, because push is never enabled.
  if ((frame.stream_id & 1) == 0) return Fail(ErrorCode::kProtocolError, "HEADERS on an even stream");
  std::string_view fragment(reinterpret_cast<const char*>(payload) + skipped, frame.length - skipped - padding);
  if (frame.has(kFlagEndHeaders)) {
    return HandleHeaderBlock(frame.stream_id, frame.has(kFlagEndStream), on_itself, fragment);
  }
  block_.Begin(frame.stream_id, frame.has(kFlagEndStream), on_itself, fragment);
}

void Session::HandleContinuation(const FrameHeader& frame, const uint8_t* payload) {
  // CheckFrameHeader has seen to it that an open block is this stream's.
  if (block_.id() == 0) return Fail(ErrorCode::kProtocolError, "CONTINUATION without HEADERS");  // RFC 9113 6.10
  if (!block_.Admit(frame.length, options_.header_block_bytes_max)) {
    const bool in_small_parts = frame.length < kSmallContinuationBytes;
    return FailFlood(in_small_parts ? FloodKind::kContinuationFlood : FloodKind::kHeaderBlock,
                     "a header block is too large");
  }
  if (frame.length < kSmallContinuationBytes && !frame.has(kFlagEndHeaders) &&
      !Charge(Budget::kUselessFrames, FloodKind::kContinuationFlood)) {
    return;
  }
  block_.Add({reinterpret_cast<const char*>(payload), frame.length});
  if (!frame.has(kFlagEndHeaders)) return;
  const uint32_t id = block_.id();
  const std::string block = block_.Take();
  HandleHeaderBlock(id, block_.end_stream(), block_.on_itself(), block);
}

// The handlers of a block are parts of HandleHeaderBlock, which runs three times a call.
[[gnu::always_inline]] inline void Session::DeliverHeaders(Stream& stream, bool end_stream, HeaderList&& fields) {
  stream.silent_rounds_ = 0;
  if (end_stream) {
    if (stream.content_left_ > 0) return StreamError(stream, ErrorCode::kProtocolError);  // RFC 9113 8.1.1
    ReceivedEnd(stream);
  }
  if (stream.events_ != nullptr) stream.events_->OnHeaders(std::move(fields), end_stream);
}

[[gnu::always_inline]] inline void Session::HandleRequest(uint32_t id, bool end_stream, HeaderList&& fields) {
  MessageHead head = ValidateRequest(fields);
  // RFC 9113 8.1.1: malformed, also when it ends at once and a content-length promised more.
  if (head.malformed != nullptr || (end_stream && head.content_length > 0)) [[unlikely]] {
    if (!RespellRequest(id, end_stream, fields, head)) return;
  }
  if (head.connect) return RejectConnect(id, end_stream, fields);
  if (head.authority_in_host) fields = WithAuthority(interns_, fields);
  Stream& stream = NewStream(id, nullptr);
  stream.content_left_ = head.content_length;
  stream.received_end_ = end_stream;
  stream.request_bytes_ = fields.hpack_size();
  StreamEvents* events = events_.OnRequest(stream, std::move(fields), end_stream);
  if (stream.released_) return;  // the object is still there: Scope
  if (events == nullptr) return ReleaseByConsumer(stream);
  // Reset or answered in full by the handler: nothing more will come.
  if (!stream.closed_) stream.events_ = events;
}

[[gnu::always_inline]] inline void Session::HandleResponse(Stream& stream, bool end_stream, HeaderList&& fields) {
  MessageHead head = ValidateResponse(fields);
  // RFC 9113 8.1: an interim response cannot end the stream.
  if (head.malformed != nullptr || (head.status < 200 && end_stream)) [[unlikely]] {
    if (!RespellResponse(stream, end_stream, fields, head)) return;
  }
  if (head.status < 200) {
    if (!Charge(Budget::kUselessFrames, FloodKind::kInterimResponses)) return;
  } else {
    stream.final_headers_ = true;
    // RFC 9110 6.4.1: these have no content, though they may have its length. DATA on them is one of the extraneous
    // frames of RFC 9113 8.1.1.
    bool no_content = stream.head_request_ || head.status == 304 || head.status == 204;
    stream.content_left_ = no_content ? 0 : head.content_length;
  }
  DeliverHeaders(stream, end_stream, std::move(fields));
}

[[gnu::always_inline]] inline void Session::HandleTrailers(Stream& stream, bool end_stream, HeaderList&& fields) {
  const char* const malformed = ValidateTrailers(fields);
  // RFC 9113 8.1: the second field section ends the message.
  if (!end_stream || malformed != nullptr) [[unlikely]] {
    if (!RespellTrailers(stream, end_stream, fields, malformed)) return;
  }
  DeliverHeaders(stream, end_stream, std::move(fields));
}

// `on_itself`: the stream depends on itself, a stream error (RFC 7540 5.3.1).
void Session::HandleHeaderBlock(uint32_t id, bool end_stream, bool on_itself, std::string_view block) {
  HeaderList fields(&interns_);
  // Decoded even if it will be refused: the table must stay in step (RFC 9113 4.3).
  DecodeResult decoded = decoder_.Decode(block, {options_.header_list_bytes_max, options_.header_count_max}, fields);
  if (decoded == DecodeResult::kError) return Fail(ErrorCode::kCompressionError, "a header block cannot be decoded");
  if (const uint32_t updates = decoder_.size_updates(); updates != 0) [[unlikely]] {
    if (!Charge(Budget::kUselessFrames, FloodKind::kTableSizeFlapping, updates)) return;
  }
  if (decoded == DecodeResult::kTooLarge && !ChargeOversized(block.size())) [[unlikely]]
    return;
  if (Stream* stream = streams_.Find(id)) {
    if (stream->received_end_) return StreamError(*stream, ErrorCode::kStreamClosed);  // RFC 9113 5.1
    if (on_itself) return StreamError(*stream, ErrorCode::kProtocolError);
    if (decoded == DecodeResult::kTooLarge) return BeyondOurLimit(*stream, end_stream, fields);
    if (role_ == Role::kServer || stream->final_headers_) return HandleTrailers(*stream, end_stream, std::move(fields));
    return HandleResponse(*stream, end_stream, std::move(fields));
  }
  if (role_ == Role::kClient || id <= streams_.last_peer_id()) {
    // Trailers may still come on a stream that we have reset, but a request opens one: RFC 9113 5.1.1.
    if (FrameOnClosedStream(id, FrameType::kHeaders) && role_ == Role::kServer && fields.Find(":method") != nullptr) {
      Fail(ErrorCode::kProtocolError,
           absl::StrCat("a request on stream ", id, " after stream ", streams_.last_peer_id()));
    }
    return;
  }
  streams_.NotePeerId(id);
  if (id > goaway_.last_id()) {  // RFC 9113 6.8: not processed; what else comes on it is ignored too
    AllowLateData(options_.stream_window_bytes);
    Charge(Budget::kUselessFrames, FloodKind::kClosedStreamFrames);
    return;
  }
  if (streams_.size() >= options_.concurrent_streams_max) {  // RFC 9113 5.1.2
    ++stats_.streams_refused;
    return Refuse(id, Refusal::kStreams, nullptr, fields);
  }
  if (on_itself) return Refuse(id, Refusal::kSelfDependency, nullptr, fields);
  if (decoded == DecodeResult::kTooLarge) return RejectTooLarge(id, end_stream, fields);
  HandleRequest(id, end_stream, std::move(fields));
}

// The peer's END_STREAM was seen. Before the consumer hears of it, so that it sees a closed stream where it
// is one.
void Session::ReceivedEnd(Stream& stream) {
  stream.received_end_ = true;
  if (stream.sent_end_) EndByBothSides(stream);
}

}  // namespace sluice::http2
