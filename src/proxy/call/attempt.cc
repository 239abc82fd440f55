#include "proxy/call/attempt.h"

#include "http2/fields/grpc_type.h"
#include "proxy/call/rewrite.h"
#include "proxy/grpc_timeout.h"
#include "runtime/runtime.h"

namespace sluice::proxy {

using base::ErrorKind;
using base::ErrorSource;
using http2::ErrorCode;
using http2::ResetCause;
using http2::Token;
using upstream::Cause;

namespace {

// What an error says of the endpoint's health. Not of it: a full queue of ours, a refusal or an end of the connection
// in good order (draining, age), and connections that were not made, which the pool counts once each.
Cause CauseOf(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kConnectionLost:
      return Cause::kLost;
    case ErrorKind::kUpstreamProtocol:
      return Cause::kProtocol;
    case ErrorKind::kUpstreamCancelled:
    case ErrorKind::kUpstreamReset:
      return Cause::kReset;
    default:
      return Cause::kNone;
  }
}

constexpr uint64_t Bit(Token token) { return uint64_t{1} << static_cast<uint32_t>(token); }

// What a response's first block may have that does not go on as it came; of one that ends with it; of trailers.
constexpr uint64_t kLooksAtLast = Bit(Token::kSluice);
constexpr uint64_t kLooksAtFirst = kLooksAtLast | Bit(Token::kContentLength) | Bit(Token::kGrpcStatus);
constexpr uint64_t kLooksAtOnly = kLooksAtLast | Bit(Token::kContentLength);

bool IsGrpcContent(const http2::HeaderList& response) {
  const http2::Field* type = response.Find(Token::kContentType);
  return type != nullptr && http2::IsGrpcType(type->value());
}

}  // namespace

void Attempt::SetEndpoint(upstream::Endpoint& endpoint, Permit permit) {
  SLUICE_DCHECK(state_ == State::kPicking);
  endpoint_ = &endpoint;
  permit_ = std::move(permit);
  state_ = State::kConnecting;
}

void Attempt::Connect(upstream::EndpointPool& pool) {
  pool_ = &pool;
  owed_ = exchange_.request_ended;
  pool.BeginCall(owed_);
  if (alone_) [[unlikely]] {
    opened_ = exchange_.context.worker().now();
    if (pool.WaitAlone(*this)) return;
    alone_ = false;
    if (must_be_alone_)
      return Fail(base::MakeError(ErrorKind::kPoisonCall,
                                  "connections were lost under calls of this method and key, and endpoint " +
                                      endpoint_->name() + " has too many connections for one call already"));
  }
  if (http2::Connection* connection = pool.Ready()) {
    OpenOn(*connection);
  } else if (opened_ = exchange_.context.worker().now(); !pool.Wait(*this)) {
    Fail(base::MakeError(ErrorKind::kQueueFull, "too many calls wait for a connection to " + endpoint_->name()));
  }
}

void Attempt::OnConnection(http2::Connection& connection) {
  exchange_.OnConnected(*this, exchange_.context.worker().now() - opened_);
  OpenOn(connection);
}

void Attempt::OpenOn(http2::Connection& connection) {
  const base::TimePoint now = exchange_.context.worker().now();
  // The backend gets the time that remains.
  if (ResponseCollector* fetch = exchange_.sink.fetch()) exchange_.deadline = fetch->FixDeadline();
  if (exchange_.deadline != base::kNever) {
    exchange_.request.Set(Token::kGrpcTimeout, "grpc-timeout", FormatGrpcTimeout(exchange_.deadline - now).view());
  }
  if (asks_at_sending_) [[unlikely]]
    exchange_.OnSending(*this);
  const uint64_t list_max = connection.session().peer_header_list_max();
  // END_STREAM only as it came: a gRPC request ends on DATA, if need be an empty frame (gRPC over HTTP/2, "Requests":
  // EOS), and there are servers that wait for it.
  if (exchange_.rewrites) [[unlikely]] {
    const http2::HeaderList rewritten = Rewritten(exchange_.request, exchange_.Rewrite());
    if (ExceedsPeer(rewritten, "request headers", list_max)) return;
    stream_ = connection.Open(rewritten, exchange_.ends_in_headers, *this);
  } else {
    if (ExceedsPeer(exchange_.request, "request headers", list_max)) return;
    stream_ = connection.Open(exchange_.request, exchange_.ends_in_headers, *this);
  }
  if (stream_ == nullptr) {
    return Fail(
        base::MakeError(ErrorKind::kUpstreamRefused, "the connection took no more streams", ErrorSource::kUpstream));
  }
  state_ = State::kSent;
  maybe_processed_ = was_sent_ = true;
  end_sent_ = exchange_.ends_in_headers;
  opened_ = now;
  exchange_.request.Compact();  // it may be long until the response begins
  SendBody();
}

void Attempt::SendBody() {
  if (stream_ == nullptr || end_sent_) return;
  Body& body = exchange_.body;
  const bool ends_on_data = exchange_.request_ended && exchange_.request_trailers == nullptr;
  while (!body.AllTaken(sent_)) {
    const base::Slice part = body.Take(sent_);
    end_sent_ = ends_on_data && body.AllTaken(sent_);
    stream_->SendData(part, end_sent_);
  }
  if (!exchange_.request_ended) return;
  Owe();
  if (end_sent_) return;
  end_sent_ = true;
  if (ends_on_data) {
    stream_->SendData(base::Slice(), true);
  } else if (!ExceedsPeer(*exchange_.request_trailers, "request trailers", stream_->peer_header_list_max())) {
    stream_->SendHeaders(*exchange_.request_trailers, true);
  }
}

void Attempt::OnHeaders(http2::HeaderList&& fields, bool end_stream) {
  if (state_ == State::kSent) {
    const http2::Field* status = fields.Find(Token::kStatus);
    if (status != nullptr && status->value().starts_with('1')) return PassInterim(std::move(fields));
    http_ok_ = status != nullptr && status->value() == "200";
    if (!http_ok_ && status != nullptr) status_ = FromHttpStatus(status->value());
    response_ = std::move(fields);
    if (response_.HasAny(end_stream ? kLooksAtOnly : kLooksAtFirst)) [[unlikely]]
      CleanHeaders(end_stream);
    state_ = State::kAnswering;
    Owe();
    pool_->Answered(exchange_.context.worker().now() - opened_);
    if (!end_stream && !http_ok_ && exchange_.IsGrpc() && !IsGrpcContent(response_)) [[unlikely]]
      return EndByHttpStatus();
    if (!end_stream) return exchange_.OnResponse(*this);
  } else {
    response_ = std::move(fields);  // the headers have been sent on
    if (response_.HasAny(kLooksAtLast)) [[unlikely]]
      response_.Remove(Token::kSluice);
    has_trailers_ = true;
  }
  Complete(/*in_block=*/true);  // a second header block always ends the stream (RFC 9113 8.1)
}

// RFC 9110 15.2: a proxy forwards interim responses. To a gRPC client they say nothing.
void Attempt::PassInterim(http2::HeaderList&& fields) {
  constexpr size_t kListBytesMax = 4096;  // RFC 8297's hints may be lost, and there are clients with a limit of 8 KiB
  if (exchange_.IsGrpc() || exchange_.sink.begun() || fields.hpack_size() > kListBytesMax) return;
  fields.Remove(Token::kSluice);
  exchange_.sink.SendInterim(fields);
}

// Fields that are the proxy's to say go; a backend's word must not be read as ours. A gRPC client is told no length,
// whatever the answer is: where it has to be cut, trailers with a status follow, which a length would contradict (RFC
// 9113 8.1.1). Nor is it told a status in headers that do not end the response (gRPC over HTTP/2, "Responses").
void Attempt::CleanHeaders(bool end_stream) {
  response_.Remove(Token::kSluice);
  if (!exchange_.IsGrpc()) return;
  response_.Remove(Token::kContentLength);
  if (end_stream) return;
  response_.Remove(Token::kGrpcStatus);
  response_.Remove(Token::kGrpcMessage);
}

void Attempt::OnData(const base::Slice& bytes, bool end_stream) {
  exchange_.response_bytes += bytes.size();
  if (!bytes.empty()) exchange_.sink.SendData(bytes, false);
  if (end_stream) Complete(/*in_block=*/false);
}

void Attempt::OnReset(ErrorCode code, ResetCause cause) {
  const std::string where = " of endpoint " + endpoint_->name();
  auto error = [](ErrorKind kind, std::string detail) {
    return base::MakeError(kind, std::move(detail), ErrorSource::kUpstream);
  };
  switch (cause) {
    case ResetCause::kRefused:
      return Fail(error(ErrorKind::kUpstreamRefused, "the stream was refused by the connection" + where));
    case ResetCause::kConnectionLost:
      return Fail(error(ErrorKind::kConnectionLost, "the connection" + where + " was lost"));
    case ResetCause::kRetired:
      return Fail(error(ErrorKind::kConnectionEnded, "the proxy ended the connection" + where +
                                                         " under the call: " + std::string(stream_->connection_end())));
    case ResetCause::kWentAway:
      return Fail(error(ErrorKind::kConnectionEnded, "the server" + where +
                                                         " ended its connection under the call, behind a GOAWAY in "
                                                         "good order"));
    case ResetCause::kStalled:
      return Fail(
          error(ErrorKind::kUpstreamStalled, "the call made no progress for too long on the connection" + where));
    case ResetCause::kProtocolError:
      return Fail(error(ErrorKind::kUpstreamProtocol,
                        "the response" + where + " broke HTTP/2: " + std::string(ToString(code))));
    case ResetCause::kTooLarge:
      // It broke no rule, and other calls would not meet it: not the endpoint's failure.
      return EndWith(error(ErrorKind::kTooLarge, OverOurLimit(where)), upstream::Outcome::kAbandoned);
    case ResetCause::kPeerReset:
    case ResetCause::kMetadata:
    case ResetCause::kMalformedBody:  // of requests only
      break;
  }
  if (code == ErrorCode::kCancel && EndsByDeadline()) {
    // No failure of the endpoint's, as it is none where our timer for the same deadline fires first.
    return EndWith(error(ErrorKind::kDeadlineExceeded,
                         "the call's deadline passed, and the connection" + where + " reset the stream"),
                   upstream::Outcome::kAbandoned, state_ == State::kSent ? DeadlineCause() : Cause::kNone);
  }
  const ErrorKind kind = code == ErrorCode::kCancel            ? ErrorKind::kUpstreamCancelled
                         : code == ErrorCode::kEnhanceYourCalm ? ErrorKind::kUpstreamOverloaded
                                                               : ErrorKind::kUpstreamReset;
  Fail(error(kind, "the stream was reset by the connection" + where + ": " + std::string(ToString(code))));
}

std::string Attempt::OverOurLimit(const std::string& where) const {
  const http2::Stream::Oversized list = stream_->oversized();
  return (state_ == State::kSent ? "response headers" : "response trailers") + where + " of " +
         std::to_string(list.bytes) + " bytes are above the limit of " + std::to_string(list.bytes_max) + " bytes or " +
         std::to_string(list.fields_max) + " fields";
}

// Whether the peer takes less than `fields`: nothing is sent then, and the attempt ends. This may be gone.
bool Attempt::ExceedsPeer(const http2::HeaderList& fields, const char* what, uint64_t bytes_max) {
  if (fields.hpack_size() <= bytes_max) [[likely]]
    return false;
  if (owed_ && state_ == State::kConnecting) pool_->Withdrawn();
  EndWith(base::MakeError(ErrorKind::kTooLarge,
                          std::string(what) + " of " + std::to_string(fields.hpack_size()) + " bytes are above the " +
                              std::to_string(bytes_max) + " bytes that endpoint " + endpoint_->name() + " takes",
                          ErrorSource::kDownstream),
          upstream::Outcome::kAbandoned);
  return true;
}

void Attempt::OnSent(size_t bytes) {
  sent_bytes_ += bytes;
  exchange_.CreditSent(sent_bytes_);
}

// `in_block`: END_STREAM came on response_, which may have the status.
void Attempt::Complete(bool in_block) {
  complete_ = true;
  ReadStatus(in_block);
  if (status_ == GrpcCode::kOk) {
    pool_->endpoint().load().retry_budget().CountOk(exchange_.context.index(), exchange_.context.worker().now());
  } else {
    exchange_.OnAttemptFailing(*this);
  }
  // Its timer for the call may run out a moment before ours does, and then it says what we would have said.
  if (status_ == GrpcCode::kDeadlineExceeded) [[unlikely]]
    at_deadline_ = !has_trailers_ && RanOut();
  Close(upstream::Outcome::kAnswered, status_, status_ == GrpcCode::kOk ? Cause::kNone : StatusCause());
  exchange_.OnAttemptEnded(*this);
}

// An intermediary or a web server has answered a gRPC call with a page of its own. gRPC clients look at :status alone
// and let the page go; so do we, because then it can be told from an answer, and another attempt may follow.
void Attempt::EndByHttpStatus() {
  const std::string http_status(response_.Find(Token::kStatus)->value());
  complete_ = true;
  response_.Clear();
  response_.Add(":status", "200");
  const http2::Field* type = exchange_.request.Find(Token::kContentType);
  response_.Add("content-type", AnswerType(type != nullptr ? type->value() : std::string_view()));
  response_.Add("grpc-status", std::to_string(static_cast<int>(status_)));
  response_.Add("grpc-message", PercentEncode("HTTP status " + http_status));
  exchange_.OnAttemptFailing(*this);
  Close(upstream::Outcome::kAnswered, status_, StatusCause());
  exchange_.OnAttemptEnded(*this);
}

// Of what is no gRPC, HTTP's status is all there is.
void Attempt::ReadStatus(bool in_block) {
  const http2::Field* status = in_block ? response_.Find(Token::kGrpcStatus) : nullptr;
  if (status != nullptr) {
    if (status->value() == "0") [[likely]] {
      status_ = GrpcCode::kOk;
      return;
    }
    status_ = ParseGrpcStatus(status->value());
    if (!IsPlainGrpcStatus(status->value())) [[unlikely]]
      RespellGrpcStatus(response_);
    return;
  }
  if (!http_ok_) return;  // by :status, known already
  lacks_status_ = exchange_.IsGrpc();
  status_ = lacks_status_ ? GrpcCode::kUnknown : GrpcCode::kOk;
}

void Attempt::Fail(base::Error error) {
  const Cause cause = CauseOf(error.kind);
  EndWith(std::move(error), upstream::Outcome::kFailed, cause);
}

void Attempt::EndWith(base::Error error, upstream::Outcome outcome, Cause cause) {
  exchange_.OnAttemptFailing(*this);
  error_ = std::make_unique<base::Error>(std::move(error));
  if (error_->kind == ErrorKind::kUpstreamRefused && state_ == State::kSent) maybe_processed_ = false;
  Close(outcome, ToGrpcCode(error_->kind), cause);
  exchange_.OnAttemptEnded(*this);
}

void Attempt::Close(upstream::Outcome outcome, GrpcCode status, Cause cause) {
  CancelWait();
  if (stream_ != nullptr) std::exchange(stream_, nullptr)->Release();
  permit_.reset();  // before the pool lets the endpoint go
  if (pool_ != nullptr)
    std::exchange(pool_, nullptr)->EndCall(outcome, static_cast<size_t>(status), cause, exchange_.ring_key);
  state_ = State::kEnded;
}

void Attempt::Restart() {
  SLUICE_DCHECK(state_ == State::kEnded);
  endpoint_ = nullptr;
  sent_bytes_ = 0;
  response_.Clear();
  error_.reset();
  opened_ = {};
  sent_ = {};
  state_ = State::kPicking;
  end_sent_ = complete_ = http_ok_ = has_trailers_ = lacks_status_ = maybe_processed_ = asks_at_sending_ = was_sent_ =
      alone_ = must_be_alone_ = owed_ = at_deadline_ = false;
  status_ = GrpcCode::kUnknown;
}

void Attempt::TakeOver(Attempt& other) {
  SLUICE_DCHECK(state_ == State::kEnded && other.state_ >= State::kSent);
  stream_ = std::exchange(other.stream_, nullptr);
  if (stream_ != nullptr) stream_->SetEvents(*this);
  pool_ = std::exchange(other.pool_, nullptr);
  endpoint_ = other.endpoint_;
  permit_ = std::move(other.permit_);
  sent_bytes_ = other.sent_bytes_;
  response_ = std::move(other.response_);
  error_ = std::move(other.error_);
  opened_ = other.opened_;
  sent_ = other.sent_;
  state_ = std::exchange(other.state_, State::kEnded);
  status_ = other.status_;
  end_sent_ = other.end_sent_;
  owed_ = other.owed_;
  complete_ = other.complete_;
  http_ok_ = other.http_ok_;
  has_trailers_ = other.has_trailers_;
  lacks_status_ = other.lacks_status_;
  maybe_processed_ = other.maybe_processed_;
  was_sent_ = other.was_sent_;
  alone_ = other.alone_;
  at_deadline_ = other.at_deadline_;
}

}  // namespace sluice::proxy
