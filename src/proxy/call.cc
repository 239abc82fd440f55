#include "proxy/call.h"

#include <algorithm>

#include "base/hash.h"
#include "proxy/access_log.h"
#include "proxy/grpc_timeout.h"
#include "runtime/runtime.h"

namespace sluice::proxy {

using base::ErrorKind;
using base::ErrorSource;
using http2::Token;

http2::StreamEvents* Call::Start(WorkerContext& context, http2::StreamIo& downstream, ClientPtr client,
                                 http2::HeaderList request, bool end_stream) {
  std::unique_ptr<Call> call(new Call(context, downstream, std::move(client), std::move(request), end_stream));
  http2::StreamEvents* events = &call->from_downstream_;
  // Refused while stopping: the call is destroyed and has released its stream.
  return context.worker().runtime().SpawnOn(context.worker(), Run(std::move(call))) ? events : nullptr;
}

Call::Call(WorkerContext& context, http2::StreamIo& downstream, ClientPtr client, http2::HeaderList request, bool end_stream)
    : context_(context),
      downstream_(&downstream),
      request_(std::move(request)),
      request_ended_(end_stream),
      client_(std::move(client)),
      started_(context.worker().now()) {
  context_.calls.PushBack(*this);
  context_.metrics.calls_in_flight->Add(context_.index(), 1);
  ReadSnapshot();
  const http2::Field* type = request_.Find(Token::kContentType);
  is_grpc_ = type != nullptr && type->value().starts_with("application/grpc");
  ReadTimeout();
}

void Call::ReadSnapshot() {
  SnapshotRef now = context_.snapshots.Read(context_.index(), [this](const SnapshotPointers& p) { return p.For(context_.index()); });
  snapshot_ = std::move(now.snapshot);
  config_ = std::move(now.config);
}

Call::~Call() {
  // Only a call whose task was destroyed by a shutdown still has something to let go.
  EndAttempt();
  ReleaseDownstream();
  context_.worker().timers().Disarm(*this);
  context_.metrics.calls_in_flight->Add(context_.index(), -1);
}

runtime::Task<void> Call::Run(std::unique_ptr<Call> self) {
  Call& call = *self;
  while (!call.end_) {
    call.Route();
    call.Pick();
    call.OpenUpstream();
    while (!call.end_ && !call.attempt_error_ && !call.response_begun_) co_await call.event_.Wait();
    if (call.end_ || call.response_begun_) break;
    if (!call.MayRetry()) call.end_ = std::move(call.attempt_error_);
  }
  if (!call.end_) call.ForwardResponse();
  while (!call.end_ && !call.attempt_error_ && !call.response_ended_) co_await call.event_.Wait();
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
  if (attempts_ > 0) ReadSnapshot();  // another attempt goes by the configuration and the list of now
  route_ = config_->routes.Match(request_);
  if (route_ == nullptr) {
    const http2::Field* path = request_.Find(Token::kPath);
    return Fail(ErrorKind::kNoRoute, "no route for " + std::string(path != nullptr ? path->value() : "a request without path"));
  }
  cluster_ = snapshot_->clusters[route_->cluster].get();
  if (attempts_ > 0) return;
  const RouteOptions& options = route_->options;
  body_.SetKeepMax(options.retry.attempts_max > 1 ? options.retry.buffer_bytes_max : 0);
  if (options.timeout.count() > 0) deadline_ = std::min(deadline_, base::DeadlineAfter(started_, options.timeout));
  if (context_.worker().now() >= deadline_) return Fail(ErrorKind::kDeadlineExceeded, "the deadline had passed on arrival");
  if (deadline_ != base::kNever) context_.worker().timers().Arm(*this, deadline_);
}

uint64_t Call::HashKey() const {
  const HashBy& by = route_->options.hash_by;
  switch (by.kind) {
    case HashBy::Kind::kRandom:
    case HashBy::Kind::kField: break;
    case HashBy::Kind::kPeer: return base::Hash64(client_->peer_hash, config_->hash_seed);
    case HashBy::Kind::kMethod:
      if (const http2::Field* path = request_.Find(Token::kPath)) return base::Hash64(path->value(), config_->hash_seed);
      break;
    case HashBy::Kind::kMetadata:
      if (const http2::Field* field = request_.Find(by.metadata)) return base::Hash64(field->value(), config_->hash_seed);
      break;
  }
  return context_.worker().random().Next();
}

void Call::Pick() {
  if (end_) return;
  const uint32_t w = context_.index();
  bool look_at_tried = true;
  auto ok = [&](uint32_t index) {
    const upstream::ListedEndpoint& entry = cluster_->endpoints[index];
    if (entry.draining || entry.endpoint->removed()) return false;
    if (look_at_tried && std::find(tried_.begin(), tried_.end(), entry.endpoint.get()) != tried_.end()) return false;
    const upstream::EndpointPool* pool = entry.endpoint->pool(w);
    return pool == nullptr || pool->Usable();
  };
  auto load = [&](uint32_t index) {
    const upstream::EndpointPool* pool = cluster_->endpoints[index].endpoint->pool(w);
    return pool == nullptr ? 0u : pool->in_flight();
  };
  upstream::PickContext pick{HashKey(), context_.worker().random().Next(), w, ok, load};
  uint32_t index = cluster_->balancer->Pick(pick);
  if (index == upstream::LoadBalancer::kNone && !tried_.empty()) {
    // All that are left have been tried: one that refused may take the call on another connection.
    look_at_tried = false;
    index = cluster_->balancer->Pick(pick);
  }
  if (index == upstream::LoadBalancer::kNone) {
    // Why the last attempt failed says more than that nothing is left.
    if (last_failure_) return Fail(last_failure_->kind, last_failure_->detail, last_failure_->source);
    return Fail(ErrorKind::kNoEndpoint, "no endpoint of cluster " + cluster_->name() + " can take the call: " +
                                            (cluster_->endpoints.empty() ? "the list is empty" : "all are in back-off or draining"));
  }
  const std::shared_ptr<upstream::Endpoint>& endpoint = cluster_->endpoints[index].endpoint;
  pool_ = context_.pools.Get(endpoint, cluster_->options);
  SLUICE_CHECK(pool_ != nullptr);
  pool_->BeginCall();
  tried_now_ = endpoint.get();
  if (config_->access_log->enabled()) endpoint_name_ = endpoint->name();
  ++attempts_;
}

void Call::OpenUpstream() {
  if (end_) return;
  if (http2::Connection* connection = pool_->Ready()) {
    OpenOn(*connection);
  } else if (!pool_->Wait(*this)) {
    FailAttempt(base::MakeError(ErrorKind::kQueueFull, "too many calls wait for a connection to " + pool_->endpoint().name()));
  }
}

void Call::OnConnection(http2::Connection& connection) { OpenOn(connection); }

void Call::OnNoConnection(const base::Error& error) { FailAttempt(error); }

// A response that is complete, though not passed on yet, is not late. Else the attempt ends here and now: no call
// starts after its deadline.
void Call::OnTimer(base::TimePoint) {
  if (response_ended_) return;
  Fail(ErrorKind::kDeadlineExceeded, "the call's deadline passed");
  EndAttempt();
}

// Only what was certainly not processed is tried again, and only while all of the request is still here.
bool Call::MayRetry() {
  ErrorKind kind = attempt_error_->kind;
  bool never_processed = kind == ErrorKind::kConnectFailed || kind == ErrorKind::kConnectTimeout ||
                         kind == ErrorKind::kUpstreamRefused || kind == ErrorKind::kDraining || kind == ErrorKind::kQueueFull;
  if (!never_processed || !body_.CanRewind() || attempts_ >= kAttemptsEver) return false;
  // An endpoint that leaves in good order is nobody's failure.
  if (kind != ErrorKind::kDraining && ++counted_attempts_ >= route_->options.retry.attempts_max) return false;
  context_.metrics.retries[static_cast<size_t>(kind)]->Add(context_.index());
  tried_.push_back(std::exchange(tried_now_, nullptr));
  body_.Rewind();
  attempt_sent_ = 0;
  upstream_end_sent_ = false;
  last_failure_ = std::exchange(attempt_error_, std::nullopt);
  return true;
}

void Call::ForwardResponse() {
  body_.StopKeeping();
  snapshot_.reset();
  cluster_ = nullptr;
  answered_ = context_.worker().now();
  if (config_->forwarding.via) response_.Add("via", "2 sluice");
  // A response that is one header block goes as one (EndResponse), unless it must be mended there.
  if (downstream_ == nullptr || (response_ended_ && pending_response_.empty() && !trailers_received_)) return;
  response_forwarded_ = true;
  downstream_->SendHeaders(response_, false);
  for (base::Slice& part : pending_response_) downstream_->SendData(std::move(part), false);
  pending_response_.clear();
}

// The last word to the client: the upstream's trailers, or ours.
void Call::EndResponse() {
  if (end_) return Answer(*end_);
  if (attempt_error_) return Answer(*attempt_error_);
  const http2::HeaderList& last = trailers_received_ ? trailers_ : response_;
  const http2::Field* status = last.Find(Token::kGrpcStatus);
  const http2::Field* http_status = response_.Find(Token::kStatus);
  bool http_ok = http_status != nullptr && http_status->value() == "200";
  status_ = status != nullptr ? ParseGrpcStatus(status->value()) : is_grpc_ || !http_ok ? GrpcCode::kUnknown : GrpcCode::kOk;
  if (downstream_ == nullptr) return;
  if (is_grpc_ && http_ok && status == nullptr) {
    // gRPC must end with a status. What came is passed on, then ours follows.
    if (!response_forwarded_) downstream_->SendHeaders(response_, false);
    response_forwarded_ = true;
    return Answer(base::MakeError(ErrorKind::kUpstreamNoStatus, "the upstream ended the response without grpc-status",
                                  ErrorSource::kUpstream));
  }
  if (!response_forwarded_) {
    downstream_->SendHeaders(response_, true);
  } else if (trailers_received_) {
    downstream_->SendHeaders(trailers_, true);
  } else {
    downstream_->SendData(base::Slice(), true);
  }
  ReleaseDownstream();
}

void Call::Answer(const base::Error& error) {
  status_ = ToGrpcCode(error.kind);
  cause_ = error;
  context_.metrics.errors[static_cast<size_t>(error.kind)]->Add(context_.index());
  if (downstream_ == nullptr) return;
  downstream_->SendHeaders(MakeTrailers(ToGrpcError(error), !response_forwarded_), true);
  ReleaseDownstream();
}

void Call::Finish() {
  EndAttempt();
  ReleaseDownstream();
  context_.worker().timers().Disarm(*this);
  const uint32_t w = context_.index();
  base::Nanos total = context_.worker().now() - started_;
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
  record.authority = value(Token::kAuthority);
  record.path = value(Token::kPath);
  if (route_ != nullptr) {
    record.route = route_->options.name;
    record.cluster = route_->options.cluster;
  }
  record.endpoint = endpoint_name_;
  record.status = status_;
  if (cause_) {
    record.cause = base::Reason(cause_->kind);
    record.detail = cause_->detail;
  }
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
  if (pool_ != nullptr) std::exchange(pool_, nullptr)->EndCall();
}

void Call::ReleaseDownstream() {
  if (downstream_ != nullptr) std::exchange(downstream_, nullptr)->Release();
}

void Call::Fail(ErrorKind kind, std::string detail, ErrorSource source) {
  if (end_) return;
  end_ = base::MakeError(kind, std::move(detail), source);
  event_.Set();
}

void Call::FailAttempt(base::Error error) {
  pool_->endpoint().metrics().failures->Add(context_.index());
  EndAttempt();
  attempt_error_ = std::move(error);
  event_.Set();
}

}  // namespace sluice::proxy
