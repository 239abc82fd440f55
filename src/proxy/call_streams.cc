// The streams of a call: what is sent to the upstream, and what comes from either side. DATA is passed on here, without
// waking the call's coroutine.
#include "proxy/call.h"
#include "proxy/grpc_timeout.h"

namespace sluice::proxy {

using base::ErrorKind;
using base::ErrorSource;
using http2::ErrorCode;
using http2::ResetCause;
using http2::Token;

// The upstream gets the time that remains.
void Call::PrepareRequest() {
  if (deadline_ != base::kNever) {
    request_.Set(Token::kGrpcTimeout, "grpc-timeout", FormatGrpcTimeout(deadline_ - context_.worker().now()).view());
  }
  if (std::exchange(forwarded_, true)) return;  // not by attempts: the first may not have come to here
  if (config_->forwarding.x_forwarded) AddForwardedFor();
  if (config_->forwarding.via) request_.Add("via", "2 sluice");
}

// The peer's address behind what proxies before us have written, which may be in several fields (RFC 9110 5.3).
void Call::AddForwardedFor() {
  std::string chain;
  for (const http2::Field* field : request_) {
    if (field->token == Token::kXForwardedFor) chain.append(field->value()).append(", ");
  }
  chain += client_->address();
  request_.Set(Token::kXForwardedFor, "x-forwarded-for", chain);
  if (request_.Find(Token::kXForwardedProto) == nullptr)
    request_.Add("x-forwarded-proto", client_->tls ? "https" : "http");
  const http2::Field* authority = request_.Find(Token::kAuthority);
  if (authority != nullptr && request_.Find(Token::kXForwardedHost) == nullptr) {
    request_.Add("x-forwarded-host", authority->value());
  }
}

void Call::OpenOn(http2::Connection& connection) {
  PrepareRequest();
  bool end = request_ended_ && body_.all_sent() && !request_trailers_;
  upstream_ = connection.Open(request_, end, from_upstream());
  if (upstream_ == nullptr) {
    return FailAttempt(
        base::MakeError(ErrorKind::kUpstreamRefused, "the connection took no more streams", ErrorSource::kUpstream));
  }
  upstream_end_sent_ = end;
  opened_ = context_.worker().now();
  request_.Compact();  // it may be long until the response begins
  SendBody();
}

void Call::SendBody() {
  if (upstream_ == nullptr || upstream_end_sent_) return;
  while (!body_.all_sent()) {
    base::Slice part = body_.TakeUnsent();
    bool last = body_.all_sent() && request_ended_ && !request_trailers_;
    if (last) upstream_end_sent_ = true;
    upstream_->SendData(part, last);
  }
  if (!request_ended_ || upstream_end_sent_) return;
  upstream_end_sent_ = true;
  if (request_trailers_) {
    upstream_->SendHeaders(*request_trailers_, true);
  } else {
    upstream_->SendData(base::Slice(), true);
  }
}

void FromDownstream::OnHeaders(http2::HeaderList fields, bool) {
  Call& call = static_cast<Call&>(*this);
  call.request_trailers_ = std::make_unique<http2::HeaderList>(std::move(fields));
  call.request_ended_ = true;
  call.SendBody();
  if (call.upstream_ == nullptr) call.event_.Set();  // the call may wait for its message
}

void FromDownstream::OnData(const base::Slice& bytes, bool end_stream) {
  Call& call = static_cast<Call&>(*this);
  call.request_ended_ = end_stream;
  call.body_.Append(bytes, /*held=*/call.upstream_ == nullptr);
  call.SendBody();
  if (call.upstream_ == nullptr) call.event_.Set();  // the call may wait for its message
}

void FromDownstream::OnReset(ErrorCode, ResetCause cause) {
  Call& call = static_cast<Call&>(*this);
  call.ReleaseDownstream();
  const char* why = cause == ResetCause::kPeerReset ? "cancelled by the client"
                    : cause == ResetCause::kStalled ? "the client took or sent too little for too long"
                                                    : "the client's connection ended";
  call.Fail(ErrorKind::kCancelled, why, ErrorSource::kDownstream);
  call.EndAttempt();
}

void FromDownstream::OnSent(size_t bytes) {
  Call& call = static_cast<Call&>(*this);
  if (call.cache_use_ != nullptr && call.cache_use_->relay != nullptr) return call.cache_use_->relay->RelaySent(bytes);
  if (call.upstream_ != nullptr) call.upstream_->Consume(bytes);
}

void FromUpstream::OnHeaders(http2::HeaderList fields, bool end_stream) {
  Call& call = static_cast<Call&>(*this);
  if (!call.response_begun_) {
    // 1xx says nothing to a gRPC client (RFC 9113 8.1): the final response follows.
    const http2::Field* status = fields.Find(Token::kStatus);
    if (status != nullptr && status->value().starts_with('1')) return;
    call.response_ok_ = status != nullptr && status->value() == "200";
    call.response_ = std::move(fields);
    call.response_begun_ = true;
    // From here on there is nothing to decide, so the coroutine need not run before the response has ended.
    if (!end_stream) return call.ForwardResponse();
  } else {
    call.response_ = std::move(fields);  // the headers have been sent on
    call.trailers_received_ = true;
  }
  if (end_stream) {
    call.response_ended_ = true;
    call.EndAttempt();
  }
  call.event_.Set();
}

void FromUpstream::OnData(const base::Slice& bytes, bool end_stream) {
  Call& call = static_cast<Call&>(*this);
  call.response_bytes_ += bytes.size();
  if (!bytes.empty() && call.downstream_ != nullptr) call.downstream_->SendData(bytes, false);
  if (!end_stream) return;
  call.response_ended_ = true;
  call.EndAttempt();
  call.event_.Set();
}

void FromUpstream::OnReset(ErrorCode code, ResetCause cause) {
  Call& call = static_cast<Call&>(*this);
  std::string where = " of endpoint " + call.pool_->endpoint().name();
  base::Error error;
  switch (cause) {
    case ResetCause::kRefused:
      error = base::MakeError(ErrorKind::kUpstreamRefused, "the stream was refused by the connection" + where);
      break;
    case ResetCause::kConnectionLost:
      error = base::MakeError(ErrorKind::kConnectionLost, "the connection" + where + " was lost");
      break;
    case ResetCause::kStalled:
      error = base::MakeError(ErrorKind::kUpstreamStalled,
                              "the call made no progress for too long on the connection" + where);
      break;
    case ResetCause::kProtocolError:
      error = base::MakeError(ErrorKind::kUpstreamProtocol,
                              "the response" + where + " broke HTTP/2: " + std::string(ToString(code)));
      break;
    case ResetCause::kPeerReset:
      ErrorKind kind = code == ErrorCode::kCancel            ? ErrorKind::kUpstreamCancelled
                       : code == ErrorCode::kEnhanceYourCalm ? ErrorKind::kUpstreamOverloaded
                                                             : ErrorKind::kUpstreamReset;
      error =
          base::MakeError(kind, "the stream was reset by the connection" + where + ": " + std::string(ToString(code)));
      break;
  }
  error.source = ErrorSource::kUpstream;
  call.FailAttempt(std::move(error));
}

// Bytes sent again after a retry were given back to the client's window the first time.
void FromUpstream::OnSent(size_t bytes) {
  Call& call = static_cast<Call&>(*this);
  call.attempt_sent_ += bytes;
  if (call.attempt_sent_ <= call.credited_) return;
  size_t fresh = call.attempt_sent_ - call.credited_;
  call.credited_ = call.attempt_sent_;
  if (call.downstream_ != nullptr) call.downstream_->Consume(fresh);
}

}  // namespace sluice::proxy
