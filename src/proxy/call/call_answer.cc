// The last steps of a call: the attempt, its response, and the end.
#include "proxy/call/call.h"
#include "proxy/call/forwarded_fields.h"
#include "proxy/call/hops.h"
#include "proxy/call/limit_refusal.h"
#include "proxy/call/observer.h"
#include "proxy/call/request_id.h"
#include "proxy/call/rewrite.h"
#include "proxy/tracing/tracer.h"
#include "runtime/runtime.h"

namespace sluice::proxy {

using base::ErrorKind;
using base::ErrorSource;
using http2::Token;

namespace {

// The least that a client must read: for one that takes less than an answer of ours has.
http2::HeaderList OnlyStatus(const http2::HeaderList& answer) {
  http2::HeaderList least;
  for (const http2::Field* field : answer) {
    const bool needed = IsPseudo(field->token) || field->token == Token::kContentType ||
                        field->token == Token::kGrpcStatus || field->token == Token::kContentLength;
    if (needed) least.Add(field->name(), field->value());
  }
  return least;
}

}  // namespace

void Call::OpenUpstream() {
  if (over()) return;
  if (!std::exchange(fields_added_, true)) AddForwardedFields();
  rewrites = route_->rewrites_request;
  if (config_->observed() || sink.fetch() != nullptr) NoteAttempt();
  ++attempts_;
  const bool trial = history_ != nullptr && history_->trial;
  if (route_->options.hedge.max > 0 || route_->options.retry.per_try_timeout.count() > 0 || trial) [[unlikely]]
    TimeAttempt();
  if (route_->mirror != nullptr) [[unlikely]]
    BeginMirror();
  upstream::EndpointPool* pool =
      context.pools.Get(cluster_->endpoints[picked_].endpoint, cluster_->options, cluster_->balancer->feedback());
  SLUICE_CHECK(pool != nullptr);
  if (context.quarantine.any(context.worker().now()) || (history_ != nullptr && history_->lost > 0)) [[unlikely]]
    ChooseAlone();
  attempt_.Connect(*pool);
}

void Call::AddForwardedFields() {
  // What they say is the proxy's to say: a backend must not read a client's word as ours.
  if (request.HasAny(kNotAClients)) [[unlikely]]
    RemoveNotAClients();
  if (config_->forwarding.x_forwarded) [[unlikely]]
    SetXForwarded(*client_, context.worker().now(), request);
  if (config_->forwarding.request_id != RequestIds::kOff) [[unlikely]]
    AddRequestId();
  if (config_->forwarding.via) request.Add("via", "2 sluice");
}

// Not inlined, as AddRequestId. With client_cert the field is what GuardFields has made of it.
[[gnu::noinline]] void Call::RemoveNotAClients() {
  const uint32_t hops = HopsOf(request);
  request.Remove(Token::kSluice);
  if (hops > 0) SetHops(request, hops + 1);
  if (!config_->forwarding.client_cert) request.Remove(Token::kXForwardedClientCert);
}

// One for all attempts of the call, and for the fetch that it begins. Not inlined: it stays two instructions where it
// is off.
[[gnu::noinline]] void Call::AddRequestId() {
  if (std::exchange(request_id_set_, true)) return;
  SetRequestId(config_->forwarding.request_id, context.worker().random(), request);
}

bool Call::WaitsForResponse() const { return !over() && attempt_.state() < Attempt::State::kAnswering; }

// Lets go of the upstream's side, in whatever state it is.
void Call::EndAttempt() {
  if (admission_ != nullptr) admission_->LeaveEndpointQueue();  // while snapshot_ keeps the endpoint
  if (error_ != nullptr && error_->kind == ErrorKind::kCancelled) return attempt_.CancelForClient();
  attempt_.Cancel();
}

// --- The response ---

// From here on there is nothing to decide, so the coroutine need not run before the response has ended.
void Call::OnResponse(Attempt& attempt) {
  if (hedging()) [[unlikely]]
    Settle(attempt);
  if (!client_->Takes(attempt_.response().hpack_size())) [[unlikely]]
    return Fail(BeyondClient(*client_, "response headers", attempt_.response().hpack_size()));
  BeginResponse();
  state_ = State::kAnswering;
  sink.SendHeaders(attempt_.response(), false);
}

void Call::OnAttemptEnded(Attempt& attempt) {
  if (attempt.alone() || (attempt.error() != nullptr && attempt.error()->kind == ErrorKind::kConnectionLost))
      [[unlikely]]
    NoteLoss(attempt);
  if (hedging() && !SettleEnd(attempt)) [[unlikely]]
    return;
  event_.Set();
}

// There will be no other attempt: all that is only for one goes.
void Call::BeginResponse() {
  attempt_.OwnBody();
  snapshot_ = {};
  if (admission_ != nullptr) [[unlikely]]
    NoteAnswer(context, *admission_, request, attempt_.complete() && attempt_.grpc_status() != GrpcCode::kOk);
  cluster_ = nullptr;
  answered_ = context.worker().now();
  if (route_->hedge_delay != nullptr) [[unlikely]]
    NoteFirstResponse();
  if (route_->rewrites_response) [[unlikely]]
    RewriteHeaders(route_->options.rewrite, attempt_.response());
  if (config_->forwarding.via) attempt_.response().Add("via", "2 sluice");
}

bool Call::WaitsForEnd() {
  if (has_extra_ && WaitsForCut()) [[unlikely]]
    return true;
  return !over() && attempt_.state() != Attempt::State::kEnded;
}

// The last word to the client: the upstream's trailers, or ours.
void Call::EndResponse() {
  if (state_ == State::kServed) return;
  if (error_ == nullptr && attempt_.error() != nullptr) error_ = attempt_.TakeError();
  // One deadline has one answer, whichever timer was first: ours, the client's (EndAtDeadline) or the endpoint's.
  if (error_ == nullptr && state_ == State::kTrying && attempt_.at_deadline()) {
    error_ = std::make_unique<base::Error>(
        base::MakeError(ErrorKind::kDeadlineExceeded, "the call's deadline passed, as the endpoint said first"));
  }
  if (error_ != nullptr) return Answer();
  if (state_ == State::kTrying) BeginResponse();  // it is one header block, and goes as one
  http2::HeaderList& last = attempt_.response();
  status_ = attempt_.grpc_status();
  if (ServeStaleFor(status_)) return;
  if (attempt_.lacks_status()) {
    // gRPC must end with a status. What came is passed on, then ours follows.
    if (!sink.begun()) sink.SendHeaders(last, false);
    error_ = std::make_unique<base::Error>(base::MakeError(
        ErrorKind::kUpstreamNoStatus, "the upstream ended the response without grpc-status", ErrorSource::kUpstream));
    return Answer();
  }
  // Participants of a fetch say themselves what they waited for: what is cached must not.
  const bool says_waits = sink.fetch() == nullptr || sink.fetch()->relaying();
  if (says_waits && admission_ != nullptr && !admission_->waits().empty()) {
    last.Add("sluice-waited", FormatWaits(admission_->waits()));
  }
  if (attempt_.has_trailers() && route_->rewrites_response) [[unlikely]]
    RewriteTrailers(route_->options.rewrite, last);
  if (!client_->Takes(last.hpack_size())) [[unlikely]] {
    error_ = std::make_unique<base::Error>(
        BeyondClient(*client_, attempt_.has_trailers() ? "response trailers" : "response headers", last.hpack_size()));
    error_->detail.append(", with status ").append(ToString(status_));
    return Answer();
  }
  if (!sink.begun() || attempt_.has_trailers()) {
    sink.SendHeaders(last, true);
  } else {
    sink.SendData(base::Slice(), true);
  }
}

// Where there is no endpoint for another attempt, the status that the last one was answered with says more.
bool Call::AnswerAsBefore() {
  if (error_->kind != ErrorKind::kNoEndpoint || history_ == nullptr || history_->last_response.empty()) return false;
  error_.reset();
  status_ = history_->last_status;
  if (ServeStaleFor(status_) || sink.closed()) return true;
  if (route_->rewrites_response) [[unlikely]]
    RewriteHeaders(route_->options.rewrite, history_->last_response);
  if (config_->forwarding.via) history_->last_response.Add("via", "2 sluice");
  sink.SendHeaders(history_->last_response, true);
  return true;
}

// With error_.
void Call::Answer() {
  if (AnswerAsBefore()) return;
  status_ = ToGrpcCode(*error_);
  error_->maybe_processed |= maybe_processed_ || attempt_.maybe_processed();
  if (ServeStaleFor(status_) || sink.closed()) return;
  // To plain HTTP a status in trailers says nothing, and END_STREAM that half a body is whole.
  if (!IsGrpc() && sink.begun()) return sink.Reset(http2::ErrorCode::kInternalError);
  http2::HeaderList last =
      sink.begun() ? MakeTrailers(ToGrpcError(*error_), /*trailers_only=*/false) : MakeAnswer(*error_, request);
  AddCallId(last);
  if (!client_->Takes(last.hpack_size())) [[unlikely]]
    last = OnlyStatus(last);
  sink.SendHeaders(last, true);
}

void Call::Finish() {
  EndAttempt();
  sink.Release();
  LeaveFetch();
  if (history_ != nullptr) history_->gates.reset();
  context.worker().timers().Disarm(*this);
  if (admission_ != nullptr) {
    admission_->GiveUp(/*deadline_passed=*/false, context.worker().now());
    if (!admission_->waits().empty()) {
      history().waits = FormatWaits(admission_->waits());
      TraceWaits();
    }
    if (attempts_ == 0) admission_->RefundRates();
    admission_.reset();  // permits go back before an observer is told
  }
  const base::Nanos total = context.worker().now() - started_;
  if (sink.fetch() == nullptr) CountCall(context, {MetricsOfCall(), status_, error_.get(), total});
  if (config_->observed() || status_ != GrpcCode::kOk) [[unlikely]]
    TellObservers(total);
  if (sink.fetch() != nullptr) {
    FetchResult result{nullptr, {}, {}, {}, {}, attempts_, deadline};
    if (error_ != nullptr) result.cause = std::move(*error_);
    if (history_ != nullptr) {
      result.endpoint = std::move(history_->endpoint);
      result.waits = std::move(history_->waits);
      result.tries = std::move(history_->tries);
    }
    sink.fetch()->Complete(std::move(result), status_);
  }
}

void Call::TellObservers(base::Nanos total) {
  const bool traced = config_->tracer != nullptr && EndTrace(total);
  const bool keeps = KeepsFailure(total);
  if (!keeps && !traced && config_->observers.empty()) {
    context.named = {};  // another call may get this one's place in memory
    return;
  }
  CallRecord record =
      RecordOf(*client_, request, route_, RequestIdOf(config_->forwarding.request_id, request_id_set_, request));
  if (route_ != nullptr) record.cluster = NameOfCluster();
  record.status = status_;
  if (error_) {
    record.cause = base::Reason(error_->kind);
    record.detail = error_->detail;
    record.limit = error_->bound;
    record.processed = ProcessedText(error_->maybe_processed);
  }
  if (history_ != nullptr) {
    if (attempt_.endpoint() != nullptr) {
      const TryEnd end = EndOfTry(error_.get(), status_);
      if (attempts_ > 1) {
        NoteTry(end);
      } else if (traced) {
        TraceTry({history_->endpoint, history_->try_began, history_->try_span, history_->try_hedges}, end);
      }
    }
    record.endpoint = history_->endpoint;
    record.waits = history_->waits;
    record.tries = history_->tries;
  }
  if (cache_ != CacheOutcome::kNone) record.cache = ToString(cache_);
  record.attempts = attempts_;
  record.request_bytes = body.total();
  record.response_bytes = response_bytes;
  if (attempt_.opened() != base::TimePoint{}) record.to_upstream = attempt_.opened() - started_;
  if (answered_ != base::TimePoint{}) record.to_response = answered_ - started_;
  record.total = total;
  record.ended = started_ + total;
  if (error_ == nullptr && attempt_.complete()) record.trailers = &attempt_.response();
  record.fetch = sink.fetch() != nullptr;
  record.connecting = Connecting(started_ + total);
  if (!record.fetch) record.id = TakeId();
  if (keeps) KeepFailure(record);
  if (traced) config_->tracer->Write(record, *history_->trace, context.index());
  NotifyObservers(context, *config_, record);
}

}  // namespace sluice::proxy
