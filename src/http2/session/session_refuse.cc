// Messages that the session does not pass on: requests that are answered or reset here, and blocks of open streams that
// are beyond our limits.
//
// What breaks HTTP/2 is reset, and charged to the peer. What is legal, and only more than we take, is answered, and
// costs its own call alone: neither the connection nor the peer's good name.

#include "absl/strings/str_cat.h"
#include "http2/fields/respell.h"
#include "http2/fields/validate.h"
#include "http2/session/session.h"

namespace sluice::http2 {

using base::ErrorKind;

namespace {

constexpr uint8_t kInvalidArgument = 3;  // of gRPC

}  // namespace

// Resets a request that is not shown to the owner, for a fault of the peer's. `why`: the rule that it breaks; null: of
// a malformed one, that its content-length is.
void Session::Refuse(uint32_t id, Refusal refusal, const char* why, const HeaderList& fields) {
  if (refusal == Refusal::kMalformed && why == nullptr) why = "it ends before its content-length";
  AllowLateData(options_.stream_window_bytes);
  events_.OnRefused(refusal, why != nullptr ? std::string_view(why) : std::string_view(), fields);
  if (refusal == Refusal::kStreams) {
    return WriteForcedReset(id, ErrorCode::kRefusedStream, FloodKind::kRefusedStreams);
  }
  WriteForcedReset(id, ErrorCode::kProtocolError);
}

// A request whose header list is above our limit: a client gets a status that tells it so, not a bare reset.
void Session::RejectTooLarge(uint32_t id, bool end_stream, const HeaderList& fields) {
  if (failed_) return;
  RejectWith(id, end_stream, Refusal::kTooLarge, TooLargeError("request headers", fields), fields);
}

// A request with a field of bytes that no receiver can decode (bin_value.h).
void Session::RejectUndecodable(uint32_t id, bool end_stream, const HeaderList& fields) {
  RejectWith(id, end_stream, Refusal::kMetadata, UndecodableError(), fields);
}

void Session::RejectWith(uint32_t id, bool end_stream, Refusal refusal, const base::Error& error,
                         const HeaderList& fields) {
  events_.OnRefused(refusal, error.detail, fields);
  Reject(id, end_stream, AnswerTo(error, fields));
}

// RFC 9113 8.5: we are no tunnel. A 2xx, which a gRPC status comes with, would say that we are.
void Session::RejectConnect(uint32_t id, bool end_stream, const HeaderList& fields) {
  events_.OnRefused(Refusal::kConnect, {}, fields);
  HeaderList reply(&interns_);
  reply.Add(":status", "501");
  Reject(id, end_stream, reply);
}

// Answers a request that is not shown to the owner.
void Session::Reject(uint32_t id, bool end_stream, const HeaderList& reply) {
  send_.WriteHeaders(id, reply, /*end_stream=*/true);
  if (end_stream) {
    streams_.ended().Remember(id, EndedStreams::How::kByBothSides);
  } else {
    AllowLateData(options_.stream_window_bytes);
    WriteReset(id, ErrorCode::kNoError);  // RFC 9113 8.1: the rest of the request is not wanted
  }
}

// What the owner answers a request with, or, where it leaves that to us, what gRPC clients read.
HeaderList Session::AnswerTo(const base::Error& error, const HeaderList& fields) {
  HeaderList reply = events_.AnswerRefused(error, fields);
  if (!reply.empty()) return reply;
  reply = HeaderList(&interns_);
  reply.AddInterned(InternTable::Static(8));  // :status 200, RFC 7541 Appendix A
  reply.Add("content-type", "application/grpc", Indexing::kIndexed);
  AddStatus(error, reply);
  return reply;
}

void Session::AddStatus(const base::Error& error, HeaderList& reply) {
  reply.Add("grpc-status", error.grpc_code == kInvalidArgument ? "3" : "8");  // RESOURCE_EXHAUSTED
  reply.Add("grpc-message", error.detail);
  reply.Add("sluice-reason", base::Reason(error.kind));
  reply.Add("sluice-processed", error.maybe_processed ? "maybe" : "no");
}

base::Error Session::TooLargeError(std::string_view what, const HeaderList& fields) const {
  return base::MakeError(
      ErrorKind::kTooLarge,
      absl::StrCat(absl::string_view(what.data(), what.size()), " of ", fields.hpack_size() + decoder_.dropped_bytes(),
                   " bytes are above the limit of ", options_.header_list_bytes_max, " bytes or ",
                   options_.header_count_max, " fields"),
      base::ErrorSource::kDownstream);
}

base::Error Session::UndecodableError() const {
  base::Error error = base::MakeError(ErrorKind::kMalformedRequest,
                                      "metadata \"" + undecodable_ +
                                          "\" does not decode: names that end in -bin have base64 as their values, "
                                          "padded or not, with commas between them",
                                      base::ErrorSource::kDownstream);
  error.grpc_code = kInvalidArgument;
  return error;
}

// A block of an open stream is above our limits: of a request its trailers.
void Session::BeyondOurLimit(Stream& stream, bool end_stream, const HeaderList& fields) {
  if (failed_) return;
  if (role_ == Role::kServer) {
    if (!end_stream) return StreamError(stream, ErrorCode::kProtocolError);  // RFC 9113 8.1: trailers end the message
    return RefuseTrailers(stream, Refusal::kTooLarge, TooLargeError("request trailers", fields), fields);
  }
  stream.oversized_bytes_ = fields.hpack_size() + decoder_.dropped_bytes();
  WriteReset(stream.id_, ErrorCode::kCancel);
  ResetStream(stream);
  if (StreamEvents* events = std::exchange(stream.events_, nullptr))
    events->OnReset(ErrorCode::kCancel, ResetCause::kTooLarge);
}

// The trailers of a request cannot go on: the call ends with `error`, unless it is answered already. The peer ended its
// own call as a reset does, so it is charged as a reset, and the end pays for none.
void Session::RefuseTrailers(Stream& stream, Refusal refusal, base::Error error, const HeaderList& fields) {
  events_.OnRefused(refusal, error.detail, fields);
  stream.refused_trailers_ = true;
  const uint32_t id = stream.id_;
  const bool answered = stream.headers_sent_;
  stream.received_end_ = true;
  error.maybe_processed = true;
  if (!stream.send_done_) {
    HeaderList reply(&interns_);
    if (!stream.headers_sent_) {
      reply.AddInterned(InternTable::Static(8));
      reply.Add("content-type", "application/grpc", Indexing::kIndexed);
    }
    AddStatus(error, reply);
    SendHeaders(stream, reply, /*end_stream=*/true);
  } else if (stream.sent_end_ && !stream.closed_) {
    EndByBothSides(stream);
  }
  if (StreamEvents* events = std::exchange(stream.events_, nullptr))
    events->OnReset(ErrorCode::kCancel, refusal == Refusal::kTooLarge ? ResetCause::kTooLarge : ResetCause::kMetadata);
  ChargeReset(id, answered);
}

// RFC 7541 7.3: a block of 16 KiB may stand for 16,000 fields of some KiB, and a block of 1 MiB may be one field.
bool Session::ChargeOversized(size_t block_bytes) {
  const size_t cost = 1 + decoder_.dropped() / kDroppedFieldsPerUnit + block_bytes / kBlockBytesPerUnit;
  return Charge(Budget::kUselessFrames, FloodKind::kOversizedHeaders, static_cast<uint32_t>(cost));
}

// Spells `fields` as they are read and passed on, and tells the owner what that took.
Session::RespellEnd Session::RespellFields(HeaderList& fields) {
  Respelled respelled = Respell(interns_, fields, options_.header_count_max);
  events_.OnRespelled(respelled);
  fields = std::move(respelled.fields);
  if (respelled.too_many || fields.hpack_size() > options_.header_list_bytes_max) {
    // A few bytes of an index may stand for thousands of members.
    Charge(Budget::kUselessFrames, FloodKind::kOversizedHeaders, 1 + options_.header_count_max / kDroppedFieldsPerUnit);
    return RespellEnd::kTooLarge;
  }
  if (respelled.undecodable == 0) return RespellEnd::kWhole;
  undecodable_ = std::move(respelled.first_undecodable);
  return RespellEnd::kUndecodable;
}

// A malformed block is reset, however its other fields are spelled.
bool Session::RespellRequest(uint32_t id, bool end_stream, HeaderList& fields, MessageHead& head) {
  RespellEnd respelled = RespellEnd::kWhole;
  if (head.malformed == kToRespell) {
    respelled = RespellFields(fields);
    head = ValidateRequest(fields);
  }
  if (head.malformed != nullptr || (end_stream && head.content_length > 0)) {
    Refuse(id, Refusal::kMalformed, head.malformed, fields);
  } else if (respelled == RespellEnd::kTooLarge) {
    RejectTooLarge(id, end_stream, fields);
  } else if (respelled == RespellEnd::kUndecodable) {
    RejectUndecodable(id, end_stream, fields);
  } else {
    return true;
  }
  return false;
}

bool Session::RespellResponse(Stream& stream, bool end_stream, HeaderList& fields, MessageHead& head) {
  if (head.malformed == kToRespell) {
    if (RespellFields(fields) == RespellEnd::kTooLarge) {
      BeyondOurLimit(stream, end_stream, fields);
      return false;
    }
    head = ValidateResponse(fields);
  }
  // RFC 9113 8.1: an interim response cannot end the stream.
  if (head.malformed == nullptr && !(head.status < 200 && end_stream)) return true;
  StreamError(stream, ErrorCode::kProtocolError);
  return false;
}

bool Session::RespellTrailers(Stream& stream, bool end_stream, HeaderList& fields, const char* malformed) {
  RespellEnd respelled = RespellEnd::kWhole;
  if (malformed == kToRespell) {
    respelled = RespellFields(fields);
    malformed = ValidateTrailers(fields);
  }
  if (respelled == RespellEnd::kTooLarge) {
    BeyondOurLimit(stream, end_stream, fields);
  } else if (malformed != nullptr || !end_stream) {  // RFC 9113 8.1: the second field section ends the message
    StreamError(stream, ErrorCode::kProtocolError);
  } else if (respelled == RespellEnd::kUndecodable && role_ == Role::kServer) {
    RefuseTrailers(stream, Refusal::kMetadata, UndecodableError(), fields);
  } else {
    return true;
  }
  return false;
}

}  // namespace sluice::http2
