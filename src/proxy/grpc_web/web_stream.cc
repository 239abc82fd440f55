#include "proxy/grpc_web/web_stream.h"

#include <algorithm>
#include <utility>

#include "http2/fields/grpc_type.h"
#include "proxy/grpc_status.h"
#include "proxy/grpc_web/trailer_frame.h"
#include "proxy/grpc_web/web_headers.h"
#include "runtime/worker.h"

namespace sluice::proxy::grpc_web {

using http2::ErrorCode;
using http2::ResetCause;
using http2::Token;

WebStream::WebStream(http2::RequestStream& stream, std::shared_ptr<const Cors> cors, const MediaType& type,
                     http2::HeaderList& request)
    : stream_(stream),
      cors_(std::move(cors)),
      origin_(OriginOf(request, *cors_)),
      text_request_(type.text),
      text_response_(WantsText(request, type)) {
  request_type_ = ToGrpcType(type);
  request.Set(Token::kContentType, "content-type", request_type_);  // `type` points into the field that it replaces
  request.Set(Token::kTe, "te", "trailers");  // gRPC over HTTP/2, "Requests": there are servers that insist
  request.Remove(Token::kContentLength);      // of the text; gRPC has none
}

void WebStream::Release() {
  if (end_ != nullptr) *end_ = nullptr;
  stream_.Release();
  delete this;
}

// --- The request ---

void WebStream::OnHeaders(http2::HeaderList&& fields, bool end_stream) {
  if (refused_) return;
  if (!decoder_.complete()) return RefuseBody("its base64 ends inside of a group of four");
  if (events_ != nullptr) events_->OnHeaders(std::move(fields), end_stream);
}

void WebStream::OnData(const base::Slice& bytes, bool end_stream) {
  if (refused_) return;
  if (!text_request_) {
    if (events_ != nullptr) events_->OnData(bytes, end_stream);
    return;
  }
  // Characters are credited with the group that they complete, so that no more is credited than has come.
  const size_t groups = (decoder_.held() + bytes.size()) / 4;
  base::Slice decoded;
  if (!decoder_.Decode(bytes.view(), &decoded)) return RefuseBody("it is not base64");
  if (end_stream && !decoder_.complete()) return RefuseBody("its base64 ends inside of a group of four");
  if (groups > 0) stream_.Consume(groups * 4 - decoded.size());
  if (events_ != nullptr && (end_stream || !decoded.empty())) events_->OnData(decoded, end_stream);
}

// The call cannot say it: to it the stream is gone.
void WebStream::RefuseBody(std::string_view why) {
  refused_ = true;
  std::string detail("the request's body cannot be read as gRPC-Web text: ");
  detail.append(why);
  if (!ended_) {
    const base::Error error = base::MakeError(base::ErrorKind::kMalformedRequest, std::move(detail));
    SendHeaders(MakeTrailers(ToGrpcError(error), !begun_, request_type_), true);
  }
  if (events_ != nullptr) events_->OnReset(ErrorCode::kProtocolError, ResetCause::kMalformedBody);
}

void WebStream::OnReset(ErrorCode code, ResetCause cause) {
  if (std::exchange(refused_, true)) return;
  if (events_ != nullptr) events_->OnReset(code, cause);
}

// --- The response ---

void WebStream::SendHeaders(const http2::HeaderList& fields, bool end_stream) {
  if (ended_) return;
  if (begun_) return SendTrailers(fields);
  begun_ = true;
  ended_ = end_stream;
  const http2::Field* type = fields.Find(Token::kContentType);
  is_grpc_ = type != nullptr && http2::IsGrpcType(type->value());
  stream_.SendHeaders(WebHeaders(fields, text_response_, origin_, *cors_), end_stream);
}

// A client would take them for a part of a message that has not ended. It learns by a reset that the response is not
// whole.
void WebStream::SendTrailers(const http2::HeaderList& fields) {
  if (!is_grpc_) {
    ended_ = true;
    return Send({}, 0, true);  // no page can read trailers
  }
  if (!framing_.between()) return End(ErrorCode::kInternalError);
  ended_ = true;
  const std::string frame = MakeTrailerFrame(fields);
  Send(text_response_ ? encoder_.Encode(frame, /*flush=*/true) : base::Slice::Copy(frame), 0, true);
}

void WebStream::SendData(const base::Slice& bytes, bool end_stream) {
  if (ended_) return;
  if (!is_grpc_) {
    ended_ = end_stream;
    return Send(bytes, bytes.size(), end_stream);
  }
  if (!framing_.Advance(bytes.view())) return End(ErrorCode::kInternalError);
  ended_ = end_stream;
  if (!text_response_) return Send(bytes, bytes.size(), end_stream);
  Send(encoder_.Encode(bytes.view(), end_stream || framing_.between()), bytes.size(), end_stream);
}

// The stream says no more of itself; the call must hear of it, as it would of a client that has gone, but not from
// inside of what it sends.
void WebStream::End(ErrorCode code) {
  ended_ = true;
  stream_.Reset(code);
  runtime::Worker* worker = runtime::Worker::Current();
  if (worker == nullptr) return TellEnd();  // a test without one
  end_ = std::make_shared<WebStream*>(this);
  worker->Post([end = end_] {
    if (*end != nullptr) (*end)->TellEnd();
  });
}

void WebStream::TellEnd() {
  if (std::exchange(refused_, true)) return;
  if (events_ != nullptr) events_->OnReset(ErrorCode::kInternalError, ResetCause::kMalformedBody);
}

void WebStream::Send(base::Slice bytes, size_t raw, bool end_stream) {
  queued_ += bytes.size();
  queued_raw_ += raw;
  stream_.SendData(bytes, end_stream);  // which may say at once that they have gone
}

void WebStream::OnSent(size_t bytes) {
  const uint64_t raw = bytes >= queued_ ? queued_raw_ : queued_raw_ * bytes / queued_;
  queued_ -= std::min<uint64_t>(bytes, queued_);
  queued_raw_ -= raw;
  if (raw > 0 && events_ != nullptr) events_->OnSent(raw);
}

}  // namespace sluice::proxy::grpc_web
