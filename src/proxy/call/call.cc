#include "proxy/call/call.h"

#include "base/memory_budget.h"
#include "proxy/call/forwarded_fields.h"
#include "proxy/call/hops.h"
#include "proxy/grpc_timeout.h"
#include "runtime/runtime.h"

namespace sluice::proxy {

using base::ErrorKind;
using base::ErrorSource;
using http2::ErrorCode;
using http2::ResetCause;
using http2::Token;

// What a client is asked to wait that was refused because memory is scarce.
constexpr std::chrono::milliseconds kMemoryPushback{1000};

http2::StreamEvents* Call::Start(CallContext& context, http2::StreamIo& downstream, ClientPtr client,
                                 const RequestSource& request, bool end_stream, base::TimePoint started) {
  std::unique_ptr<Call> call(new Call(context, &downstream, std::move(client), request, end_stream, started));
  http2::StreamEvents* events = call.get();
  context.metrics.calls_in_flight->Add(context.index(), 1);
  call->ReadSnapshot();
  call->ReadTimeout();
  if (call->request.fault() != CanonicalRequest::Fault::kNone) [[unlikely]]
    call->Fail(call->request.Refusal());
  if (base::MemoryBudget::level() == base::MemoryLevel::kOver) [[unlikely]]
    call->RefuseForMemory();
  if (call->request.HasAny(kSaidByProxies)) [[unlikely]] {
    if (std::optional<base::Error> loop = FindLoop(call->request)) call->Fail(*std::move(loop));
  }
  // Refused while stopping: the call is destroyed and has released its stream.
  return context.worker().runtime().SpawnOn(context.worker(), Run(std::move(call))) ? events : nullptr;
}

Call::Call(CallContext& context, http2::StreamIo* client_stream, ClientPtr client, const RequestSource& request,
           bool end_stream, base::TimePoint started)
    : Exchange(context, client_stream, request, end_stream), client_(std::move(client)), started_(started) {
  context.calls.PushBack(*this);
}

Call::~Call() {
  // Only a call whose task was destroyed by a shutdown still has something to let go.
  EndAttempt();
  sink.Release();
  context.worker().timers().Disarm(*this);
  LeaveFetch();
  if (sink.fetch() == nullptr) context.metrics.calls_in_flight->Add(context.index(), -1);
}

runtime::Task<void> Call::Run(std::unique_ptr<Call> self) {
  Call& call = *self;
  call.Route();
  // One wait for two reasons: each place that waits takes its part of an open call's memory.
  while (call.WaitsForGates(GateStage::kBeforeCache) || call.WaitsForFault() || call.WaitsForMessage())
    co_await call.event_.Wait();
  do {
    call.AskCache();
    while (call.WaitsForFetch()) co_await call.event_.Wait();
  } while (call.AsksAgain());
  while (call.WaitsForGates(GateStage::kToUpstream) || call.WaitsForAdmission()) co_await call.event_.Wait();
  while (!call.over()) {
    // Not for gates alone that a new configuration brought meanwhile.
    while (call.WaitsForGates(GateStage::kToUpstream) || call.WaitsForEndpoint()) co_await call.event_.Wait();
    call.OpenUpstream();
    while (call.WaitsForResponse()) co_await call.event_.Wait();
    if (!call.TriesAgain()) break;
    while (call.WaitsForBackoff()) co_await call.event_.Wait();
    call.Reroute();
  }
  while (call.WaitsForEnd()) co_await call.event_.Wait();
  call.EndResponse();
  call.Finish();
}

// --- Arrival ---

void Call::ReadSnapshot() {
  context.Refresh();
  snapshot_ = context.snapshot;
  config_ = context.config;
}

// grpc-timeout counts from the first byte of the headers: the turn in which they were read.
void Call::ReadTimeout() {
  const http2::Field* field = request.Find(Token::kGrpcTimeout);
  if (field == nullptr) return;
  std::optional<base::Nanos> timeout = ParseGrpcTimeout(field->value());
  if (!timeout) return Fail(ErrorKind::kMalformedRequest, "malformed grpc-timeout", ErrorSource::kDownstream);
  deadline = base::DeadlineAfter(started_, *timeout);
  deadline_is_clients_ = true;
}

// Its headers are all that it will hold, and for a moment. A fetch is not asked: its leader has been let in.
void Call::RefuseForMemory() {
  base::Error error = base::MakeError(ErrorKind::kMemoryLimited, "the proxy holds as much as it may; try again later");
  error.retry_after = kMemoryPushback;
  Fail(std::move(error));
}

void Call::Route() {
  if (over()) return;
  if (config_->guard != nullptr && sink.fetch() == nullptr) [[unlikely]]
    GuardClaims(*config_->guard, request);
  MatchRoute();
  if (over()) return;
  const RouteOptions& options = route_->options;
  body.SetKeepMax(options.retry.attempts_max > 1 ? options.retry.buffer_bytes_max : 0);
  if (body.over_limit()) attempt_.OwnBody();
  // A fetch has the time of the calls that wait for it, which the route's timeout bounds, or fetch_timeout.
  const bool is_fetch = sink.fetch() != nullptr;
  if (options.timeout.count() > 0 && !is_fetch) {
    const base::TimePoint bound = base::DeadlineAfter(started_, options.timeout);
    if (bound < deadline) {
      deadline = bound;
      deadline_is_clients_ = false;
    }
  }
  if (context.worker().now() >= deadline) {
    return Fail(ErrorKind::kDeadlineExceeded, "the deadline had passed on arrival");
  }
  ArmTimer(base::kNever);
  // With gates by the fields as they leave them.
  if (!is_fetch && route_->gates == nullptr) TakeCachePlan();
}

void Call::MatchRoute() {
  if (config_->guard != nullptr) [[unlikely]]
    GuardFields(*config_->guard, config_->forwarding, *client_, context.worker().now(), request);
  route_ = config_->routes.Match(request, client_->listener);
  if (route_ == nullptr) {
    return Fail(ErrorKind::kNoRoute, config_->routes.WhyNone(request, client_->listener));
  }
  if (route_->failover == Route::kNoFailover && route_->split == nullptr) [[likely]] {
    cluster_ = snapshot_->clusters[route_->cluster].get();
    failed_over_ = false;  // a reload may have taken the failover away
  } else {
    ChooseCluster();
  }
  if (sink.fetch() != nullptr && sink.fetch()->scope() != CacheScope()) {
    // Its response would be found by the key of a cluster that it is not from: the calls go by themselves.
    sink.Release();
    Fail(ErrorKind::kCancelled, "the route leads to another cluster than when the fetch began");
  }
}

// After a wait: by the present configuration and endpoint list.
void Call::Reroute() {
  if (over()) return;
  ReadSnapshot();
  MatchRoute();
}

// One timer for the deadline, the next look at a limit, the end of a back-off and that of an attempt.
void Call::ArmTimer(base::TimePoint check_at) {
  const base::TimePoint when = std::min(deadline, check_at);
  if (when == timer_at_) return;
  timer_at_ = when;
  context.worker().timers().Arm(*this, when);
}

// A response that is complete, though not passed on yet, is not late.
void Call::OnTimer(base::TimePoint now) {
  timer_at_ = base::kNever;
  if (now >= deadline) {
    const ResponseCollector* fetch = sink.fetch();
    if (fetch == nullptr || fetch->deadline() <= now) {
      if (has_extra_) EndCut();  // the client may not take what is to be sent before the cut
      if (!attempt_.complete()) EndAtDeadline("the call's deadline passed");
      return;
    }
    deadline = fetch->deadline();  // a call with more time has joined, and no backend was told the former one
  }
  ArmTimer(base::kNever);
  if (history_ != nullptr) OnAttemptTimer(now);
  event_.Set();  // a limit is to be asked again, or the back-off is over
}

// --- The client's stream ---

void Call::OnHeaders(http2::HeaderList&& fields, bool) {
  GuardTrailers(config_->guard.get(), config_->routes, fields);
  request_trailers = std::make_unique<http2::HeaderList>(std::move(fields));
  request_ended = true;
  if (has_extra_ && extra().mirror != nullptr) [[unlikely]]
    extra().mirror->OnRequestTrailers(*request_trailers);
  SendOn();
}

void Call::OnData(const base::Slice& bytes, bool end_stream) {
  request_ended = end_stream;
  body.Append(bytes, /*held=*/!attempt_.open());
  if (body.over_limit()) KeepNoBody();
  if (has_extra_ && extra().mirror != nullptr) [[unlikely]]
    extra().mirror->OnRequestData(bytes, end_stream);
  SendOn();
}

// There is no other attempt.
void Call::KeepNoBody() {
  if (hedging()) KeepOne();
  attempt_.OwnBody();
}

void Call::SendOn() {
  attempt_.SendBody();
  if (hedging()) [[unlikely]]
    history_->hedge->SendBody();
  if (!attempt_.open()) event_.Set();  // the call may wait for its message
}

void Call::OnReset(ErrorCode code, ResetCause cause) {
  sink.Release();
  if (has_extra_) [[unlikely]]
    EndCut();
  if (cause == ResetCause::kPeerReset && code == ErrorCode::kCancel && ClientRanOut()) {
    return EndAtDeadline("the client reset the call at its deadline");
  }
  if (cause == ResetCause::kProtocolError) {
    const std::string rule(ToString(code));
    return Fail(ErrorKind::kMalformedRequest, "the client broke HTTP/2 on its stream: " + rule,
                ErrorSource::kDownstream);
  }
  if (cause == ResetCause::kTooLarge) {
    return Fail(ErrorKind::kTooLarge, "the request's trailers are above the limit", ErrorSource::kDownstream);
  }
  if (cause == ResetCause::kMetadata) {
    base::Error error =
        base::MakeError(ErrorKind::kMalformedRequest, "a -bin field of the request's trailers does not decode",
                        ErrorSource::kDownstream);
    error.grpc_code = static_cast<uint8_t>(GrpcCode::kInvalidArgument);
    return Fail(std::move(error));
  }
  if (cause == ResetCause::kMalformedBody && code == ErrorCode::kInternalError) {
    return Fail(ErrorKind::kUpstreamProtocol, "the endpoint's response could not be translated to gRPC-Web",
                ErrorSource::kUpstream);
  }
  if (cause == ResetCause::kMalformedBody) {
    return Fail(ErrorKind::kMalformedRequest, "the client's body could not be translated to gRPC",
                ErrorSource::kDownstream);
  }
  const char* why = cause == ResetCause::kPeerReset ? "cancelled by the client"
                    : cause == ResetCause::kStalled ? "the client took or sent too little for too long"
                                                    : "the client's connection ended";
  Fail(ErrorKind::kCancelled, why, ErrorSource::kDownstream);
}

void Call::OnSent(size_t bytes) {
  if (has_extra_) [[unlikely]]
    NoteSentToCut(bytes);
  if (cache_use_ != nullptr && cache_use_->relay != nullptr) return cache_use_->relay->RelaySent(bytes);
  attempt_.Consume(bytes);
}

// Whether the client's own timer for the call has run out. The clock is read anew: the turn may have begun before the
// reset arrived.
bool Call::ClientRanOut() const {
  if (!deadline_is_clients_ || deadline == base::kNever) return false;
  const base::TimePoint now = context.worker().runtime().clock().Now();
  return RanOutAtClient(now - started_, deadline - started_);
}

// --- How it may end before its response does ---

void Call::Fail(ErrorKind kind, std::string detail, ErrorSource source) {
  Fail(base::MakeError(kind, std::move(detail), source));
}

void Call::Fail(base::Error error) {
  if (has_extra_) [[unlikely]]
    EndCut();
  if (over()) return;
  maybe_processed_ |= state_ == State::kFetching;
  state_ = State::kFailed;
  error_ = std::make_unique<base::Error>(std::move(error));
  // Nothing more may come from a fetch or an endpoint.
  EndRelay();
  if (hedging()) EndHedge(ProxyMetrics::Hedge::kAbandoned, kTryCancelled);
  NoteEndpoint();
  EndAttempt();
  event_.Set();
}

// The same error and the same counters, whichever timer was first: ours or the client's. Ends the attempt here and now:
// no call starts after its deadline.
void Call::EndAtDeadline(std::string detail) {
  if (over()) return;
  base::Error error = base::MakeError(ErrorKind::kDeadlineExceeded, std::move(detail));
  if (const Gate* gate = WaitingGate()) {
    error.detail.append(" while it waited for ").append(gate->name());
  } else if (state_ == State::kAtGate) {
    error.detail += " while a fault that an operator has asked for delayed it";
  } else if (admission_ != nullptr && admission_->waiting()) {
    error.bound = admission_->bound()->name;
    error.detail += " while it waited for " + error.bound;
    admission_->GiveUp(/*deadline_passed=*/true, context.worker().now());
  } else if (state_ == State::kFetching) {
    error.detail += " while it waited for a fetch";
  }
  NoteEndpoint();
  attempt_.CancelAtDeadline(started_);
  Fail(std::move(error));
}

Call::History& Call::history() {
  if (history_ == nullptr) history_ = std::make_unique<History>();
  return *history_;
}

Call::Extra& Call::extra() {
  if (!std::exchange(has_extra_, true)) history().extra = std::make_unique<Extra>();
  return *history_->extra;
}

// --- What the worker asks of all calls ---

void Call::EndForShutdown() {
  stopping_ = true;  // a response that is there goes on as it is
  if (has_extra_) EndCut();
  if (!attempt_.complete()) Fail(ErrorKind::kDraining, "the proxy is stopping");
}

void Call::DropKept() {
  KeepNoBody();
  if (sink.fetch() != nullptr) sink.fetch()->StopCollecting();
}

}  // namespace sluice::proxy
