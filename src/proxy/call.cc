#include "proxy/call.h"

#include <algorithm>

#include "base/memory_budget.h"
#include "proxy/access_log.h"
#include "proxy/grpc_timeout.h"
#include "runtime/runtime.h"

namespace sluice::proxy {

using base::ErrorKind;
using base::ErrorSource;
using http2::Token;

http2::StreamEvents* Call::Start(WorkerContext& context, http2::StreamIo& downstream, ClientPtr client,
                                 http2::HeaderList request, bool end_stream, base::TimePoint started) {
  std::unique_ptr<Call> call(
      new Call(context, &downstream, std::move(client), std::move(request), end_stream, started));
  http2::StreamEvents* events = &call->from_downstream();
  // Refused while stopping: the call is destroyed and has released its stream.
  return context.worker().runtime().SpawnOn(context.worker(), Run(std::move(call))) ? events : nullptr;
}

Call::Call(WorkerContext& context, http2::StreamIo* downstream, ClientPtr client, http2::HeaderList request,
           bool end_stream, base::TimePoint started)
    : context_(context),
      downstream_(downstream),
      request_(std::move(request)),
      client_(std::move(client)),
      started_(started),
      request_ended_(end_stream) {
  context_.calls.PushBack(*this);
  if (downstream_ != nullptr) context_.metrics.calls_in_flight->Add(context_.index(), 1);
  ReadSnapshot();
  const http2::Field* type = request_.Find(Token::kContentType);
  is_grpc_ = type != nullptr && type->value().starts_with("application/grpc");
  ReadTimeout();
  if (base::MemoryBudget::level() == base::MemoryLevel::kOver) [[unlikely]]
    RefuseForMemory();
}

// Its headers are all that it will hold, and for a moment. A fetch holds nothing yet: its leader has been let in.
void Call::RefuseForMemory() {
  if (downstream_ == nullptr) return;
  base::Error error = base::MakeError(ErrorKind::kMemoryLimited, "the proxy holds as much as it may; try again later");
  error.retry_after = MemoryRelief::kPushback;
  Fail(std::move(error));
}

void Call::ReadSnapshot() {
  context_.Refresh();
  snapshot_ = context_.snapshot;
  config_ = context_.config;
}

Call::~Call() {
  // Only a call whose task was destroyed by a shutdown still has something to let go.
  EndAttempt();
  ReleaseDownstream();
  context_.worker().timers().Disarm(*this);
  LeaveFetch();
  if (fetch_stream_ == nullptr) context_.metrics.calls_in_flight->Add(context_.index(), -1);
}

Call::History& Call::history() {
  if (history_ == nullptr) history_ = std::make_unique<History>();
  return *history_;
}

std::string_view Call::endpoint_name() const { return history_ != nullptr ? std::string_view(history_->endpoint) : ""; }

runtime::Task<void> Call::Run(std::unique_ptr<Call> self) {
  Call& call = *self;
  call.Route();
  while (call.WaitsForMessage()) co_await call.event_.Wait();
  do {
    call.AskCache();
    while (call.WaitsForFetch()) co_await call.event_.Wait();
  } while (call.AsksAgain());
  while (call.WaitsForAdmission()) co_await call.event_.Wait();
  while (!call.over()) {
    call.Pick();
    while (call.WaitsForEndpoint()) co_await call.event_.Wait();
    call.OpenUpstream();
    while (!call.end_ && !call.attempt_error_ && !call.response_begun_) co_await call.event_.Wait();
    if (call.end_ || call.response_begun_) break;
    if (!call.MayRetry()) {
      call.end_ = std::move(call.attempt_error_);
    } else {
      call.Route();  // by the configuration and the list of now
    }
  }
  if (!call.over() && !call.response_forwarded_) call.ForwardResponse();
  while (!call.over() && !call.attempt_error_ && !call.response_ended_) co_await call.event_.Wait();
  call.EndResponse();
  call.Finish();
}

// grpc-timeout counts from the first byte of the headers: the turn in which they were read.
void Call::ReadTimeout() {
  const http2::Field* field = request_.Find(Token::kGrpcTimeout);
  if (field == nullptr) return;
  std::optional<base::Nanos> timeout = ParseGrpcTimeout(field->value());
  if (!timeout) return Fail(ErrorKind::kMalformedRequest, "malformed grpc-timeout", ErrorSource::kDownstream);
  deadline_ = base::DeadlineAfter(started_, *timeout);
}

void Call::Route() {
  if (end_) return;
  if (attempts_ > 0) {
    Reroute();
  } else {
    MatchRoute();
  }
  if (end_ || attempts_ > 0) return;
  const RouteOptions& options = route_->options;
  body_.SetKeepMax(options.retry.attempts_max > 1 ? options.retry.buffer_bytes_max : 0);
  // Not a fetch's: it is for calls that come later too, and ends by fetch_timeout.
  if (options.timeout.count() > 0 && fetch_stream_ == nullptr) {
    deadline_ = std::min(deadline_, base::DeadlineAfter(started_, options.timeout));
  }
  if (context_.worker().now() >= deadline_)
    return Fail(ErrorKind::kDeadlineExceeded, "the deadline had passed on arrival");
  ArmTimer(base::kNever);
}

void Call::MatchRoute() {
  route_ = config_->routes.Match(request_);
  if (route_ == nullptr) {
    const http2::Field* path = request_.Find(Token::kPath);
    return Fail(ErrorKind::kNoRoute,
                "no route for " + std::string(path != nullptr ? path->value() : "a request without path"));
  }
  cluster_ = snapshot_->clusters[route_->cluster].get();
  if (fetch_stream_ != nullptr && fetch_stream_->cluster() != route_->options.cluster) {
    // Its response would be found by the key of a cluster that it is not from: the calls go by themselves.
    ReleaseDownstream();
    Fail(ErrorKind::kCancelled, "the route leads to another cluster than when the fetch began");
  }
}

// After a wait: by the configuration and the endpoint list of now.
void Call::Reroute() {
  ReadSnapshot();
  MatchRoute();
}

// One timer for the deadline and for the next look at a limit.
void Call::ArmTimer(base::TimePoint check_at) {
  const base::TimePoint when = std::min(deadline_, check_at);
  if (when == timer_at_) return;
  timer_at_ = when;
  context_.worker().timers().Arm(*this, when);
}

void Call::OpenUpstream() {
  if (end_) return;
  pool_ = context_.pools.Get(*endpoint_, cluster_->options);
  SLUICE_CHECK(pool_ != nullptr);
  pool_->BeginCall();
  tried_now_ = endpoint_->get();
  if (config_->access_log->enabled() || fetch_stream_ != nullptr) history().endpoint = tried_now_->name();
  ++attempts_;
  if (http2::Connection* connection = pool_->Ready()) {
    OpenOn(*connection);
  } else if (!pool_->Wait(*this)) {
    FailAttempt(
        base::MakeError(ErrorKind::kQueueFull, "too many calls wait for a connection to " + pool_->endpoint().name()));
  }
}

void Call::OnConnection(http2::Connection& connection) { OpenOn(connection); }

void Call::OnNoConnection(const base::Error& error) { FailAttempt(error); }

// A response that is complete, though not passed on yet, is not late. Else the attempt ends here and now: no call
// starts after its deadline.
void Call::OnTimer(base::TimePoint now) {
  timer_at_ = base::kNever;
  if (now < deadline_) return event_.Set();  // a limit is to be asked again
  if (response_ended_ || served_) return;
  base::Error error = base::MakeError(ErrorKind::kDeadlineExceeded, "the call's deadline passed");
  if (admission_ != nullptr && admission_->waiting()) {
    error.bound = admission_->bound()->name;
    error.detail += " while it waited for " + error.bound;
    admission_->GiveUp(/*deadline_passed=*/true, now);
  } else if (in_fetch()) {
    error.detail += " while it waited for a fetch";
  }
  Fail(std::move(error));
  EndAttempt();
}

// Only what was certainly not processed is tried again, and only while all of the request is still here.
bool Call::MayRetry() {
  ErrorKind kind = attempt_error_->kind;
  bool never_processed = kind == ErrorKind::kConnectFailed || kind == ErrorKind::kConnectTimeout ||
                         kind == ErrorKind::kUpstreamRefused || kind == ErrorKind::kDraining ||
                         kind == ErrorKind::kQueueFull;
  if (!never_processed || !body_.CanRewind() || attempts_ >= kAttemptsEver) return false;
  // An endpoint that leaves in good order is nobody's failure.
  if (kind != ErrorKind::kDraining && ++counted_attempts_ >= route_->options.retry.attempts_max) return false;
  context_.metrics.retries[static_cast<size_t>(kind)]->Add(context_.index());
  history().tried.push_back(std::exchange(tried_now_, nullptr));
  body_.Rewind();
  attempt_sent_ = 0;
  upstream_end_sent_ = false;
  history_->last_failure = std::move(attempt_error_);
  return true;
}

void Call::ForwardResponse() {
  body_.StopKeeping();
  snapshot_ = {};
  if (admission_ != nullptr) admission_->Forget();
  cluster_ = nullptr;
  answered_ = context_.worker().now();
  if (config_->forwarding.via) response_.Add("via", "2 sluice");
  // A response that is one header block goes as one (EndResponse), unless it must be mended there.
  if (downstream_ == nullptr || (response_ended_ && response_bytes_ == 0 && !trailers_received_)) return;
  response_forwarded_ = true;
  downstream_->SendHeaders(response_, false);
}

// The last word to the client: the upstream's trailers, or ours.
void Call::EndResponse() {
  if (served_) return;
  if (end_) return Answer(*end_);
  if (attempt_error_) return Answer(*attempt_error_);
  const http2::Field* status = response_.Find(Token::kGrpcStatus);
  status_ = status != nullptr           ? ParseGrpcStatus(status->value())
            : is_grpc_ || !response_ok_ ? GrpcCode::kUnknown
                                        : GrpcCode::kOk;
  if (downstream_ == nullptr || ServeStaleFor(status_)) return;
  if (is_grpc_ && response_ok_ && status == nullptr) {
    // gRPC must end with a status. What came is passed on, then ours follows.
    if (!response_forwarded_) downstream_->SendHeaders(response_, false);
    response_forwarded_ = true;
    return Answer(base::MakeError(ErrorKind::kUpstreamNoStatus, "the upstream ended the response without grpc-status",
                                  ErrorSource::kUpstream));
  }
  // Participants of a fetch say themselves what they waited for: what is cached must not.
  const bool says_waits = fetch_stream_ == nullptr || fetch_stream_->relaying();
  if (says_waits && admission_ != nullptr && !admission_->waits().empty()) {
    response_.Add("sluice-waited", FormatWaits(admission_->waits()));
  }
  if (!response_forwarded_ || trailers_received_) {
    downstream_->SendHeaders(response_, true);
  } else {
    downstream_->SendData(base::Slice(), true);
  }
  ReleaseDownstream();
}

void Call::Answer(const base::Error& error) {
  if (ServeStaleFor(ToGrpcCode(error.kind))) return;
  status_ = ToGrpcCode(error.kind);
  cause_ = std::make_unique<base::Error>(error);
  if (downstream_ == nullptr) return;
  downstream_->SendHeaders(MakeTrailers(ToGrpcError(error), !response_forwarded_), true);
  ReleaseDownstream();
}

void Call::Finish() {
  EndAttempt();
  ReleaseDownstream();
  LeaveFetch();
  context_.worker().timers().Disarm(*this);
  if (admission_ != nullptr) {
    admission_->GiveUp(/*deadline_passed=*/false, context_.worker().now());
    if (!admission_->waits().empty()) history().waits = FormatWaits(admission_->waits());
    if (attempts_ == 0) admission_->RefundRates();
    admission_.reset();  // permits go back before anybody is told
  }
  if (fetch_stream_ != nullptr) {
    FetchResult result{nullptr, {}, {}, {}, attempts_, deadline_};
    if (cause_ != nullptr) result.cause = std::move(*cause_);
    if (history_ != nullptr) {
      result.endpoint = std::move(history_->endpoint);
      result.waits = std::move(history_->waits);
    }
    return fetch_stream_->Complete(std::move(result), status_);
  }
  const uint32_t w = context_.index();
  base::Nanos total = context_.worker().now() - started_;
  if (cause_) context_.metrics.errors[static_cast<size_t>(cause_->kind)]->Add(w);
  if (route_ != nullptr) {
    route_->metrics.calls[static_cast<size_t>(status_)]->Add(w);
    route_->metrics.duration->Observe(w, static_cast<uint64_t>(total.count()));
  }
  if (config_->access_log->enabled()) WriteAccessLog(total);
}

void Call::WriteAccessLog(base::Nanos total) {
  auto value = [&](Token token) {
    const http2::Field* field = request_.Find(token);
    return field != nullptr ? field->value() : std::string_view();
  };
  CallRecord record;
  record.peer = client_->peer_name;
  record.client = client_->identity;
  record.authority = value(Token::kAuthority);
  record.path = value(Token::kPath);
  if (route_ != nullptr) {
    record.route = route_->options.name;
    record.cluster = route_->options.cluster;
  }
  record.endpoint = endpoint_name();
  record.status = status_;
  if (cause_) {
    record.cause = base::Reason(cause_->kind);
    record.detail = cause_->detail;
    record.limit = cause_->bound;
  }
  if (history_ != nullptr) record.waits = history_->waits;
  if (cache_ != CacheOutcome::kNone) record.cache = ToString(cache_);
  record.attempts = attempts_;
  record.request_bytes = body_.total();
  record.response_bytes = response_bytes_;
  if (opened_ != base::TimePoint{}) record.to_upstream = opened_ - started_;
  if (answered_ != base::TimePoint{}) record.to_response = answered_ - started_;
  record.total = total;
  config_->access_log->Write(record);
}

// Lets go of the upstream's side, in whatever state it is.
void Call::EndAttempt() {
  CancelWait();
  if (upstream_ != nullptr) std::exchange(upstream_, nullptr)->Release();
  if (admission_ != nullptr) admission_->DropEndpoint();  // while its endpoint is there, by the pool or snapshot_
  if (pool_ != nullptr) std::exchange(pool_, nullptr)->EndCall();
}

void Call::ReleaseDownstream() {
  if (downstream_ != nullptr) std::exchange(downstream_, nullptr)->Release();
}

void Call::Fail(ErrorKind kind, std::string detail, ErrorSource source) {
  Fail(base::MakeError(kind, std::move(detail), source));
}

void Call::Fail(base::Error error) {
  if (over()) return;
  end_ = std::make_unique<base::Error>(std::move(error));
  EndRelay();  // nothing more may come from it
  event_.Set();
}

void Call::FailAttempt(base::Error error) {
  pool_->endpoint().metrics().failures->Add(context_.index());
  EndAttempt();
  attempt_error_ = std::make_unique<base::Error>(std::move(error));
  event_.Set();
}

}  // namespace sluice::proxy
