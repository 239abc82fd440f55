#include "proxy/call/mirror_call.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "runtime/runtime.h"

namespace sluice::proxy {

using http2::Token;

std::unique_ptr<MirrorTap> MirrorCall::Start(Origin origin) {
  const RouteMirror& mirror = *origin.route.mirror;
  const MirrorOptions& options = origin.route.options.mirror;
  CallContext& context = origin.context;
  if (origin.body.total() > options.bytes_max) {
    mirror.Count(MirrorResult::kFull, context.index());
    return nullptr;
  }
  // Relaxed: a bound, which orders nothing.
  if (mirror.under_way->fetch_add(1, std::memory_order_relaxed) >= options.calls_max) {
    mirror.under_way->fetch_sub(1, std::memory_order_relaxed);
    mirror.Count(MirrorResult::kBusy, context.index());
    return nullptr;
  }
  std::unique_ptr<MirrorCall> call(new MirrorCall(std::move(origin)));
  auto tap = std::make_unique<MirrorTap>(*call);
  call->tap_ = tap.get();
  // Refused while stopping: it is destroyed, and the tap knows.
  context.worker().runtime().SpawnOn(context.worker(), Run(std::move(call)));
  return tap;
}

MirrorCall::MirrorCall(Origin origin)
    : Exchange(origin.context, &collector_, origin.request.Clone(), origin.ends_in_headers),
      config_(std::move(origin.config)),
      snapshot_(std::move(origin.snapshot)),
      route_(origin.route),
      primary_cluster_(origin.cluster),
      id_(origin.id) {
  ring_key = origin.key;
  context.mirrors.PushBack(*this);
  request.Remove(Token::kGrpcPreviousRpcAttempts);
  request.Remove(Token::kGrpcTimeout);  // its own is set when it is sent
  request.Add("sluice-mirrored", "1", http2::Indexing::kIndexed);
  body.CopyFrom(origin.body);
  request_ended = origin.request_ended;
  if (origin.trailers != nullptr) request_trailers = std::make_unique<http2::HeaderList>(origin.trailers->Clone());
  rewrites = route_.rewrites_request;
  const base::TimePoint now = context.worker().now();
  deadline = std::min(origin.deadline, base::DeadlineAfter(now, options().timeout));
  context.worker().timers().Arm(*this, deadline);
}

MirrorCall::~MirrorCall() {
  attempt_.Cancel();
  context.worker().timers().Disarm(*this);
  if (tap_ != nullptr) tap_->call_ = nullptr;
  permit_.reset();
  if (has_token_) limits_->rate->Release();
  route_.mirror->under_way->fetch_sub(1, std::memory_order_relaxed);
}

runtime::Task<void> MirrorCall::Run(std::unique_ptr<MirrorCall> self) {
  MirrorCall& call = *self;
  call.Open();
  while (call.WaitsForEnd()) co_await call.event_.Wait();
  call.Finish();
}

// Nothing waits: a mirrored call is one too many where there is no room.
void MirrorCall::Open() {
  if (over_) return;
  const upstream::ClusterState& cluster = *snapshot_->clusters[route_.mirror->cluster];
  if (!PassesLimits(cluster)) return GiveUp(MirrorResult::kLimited);
  uint32_t index = Pick(cluster, /*awaits=*/false);
  if (index == upstream::LoadBalancer::kNone) index = Pick(cluster, /*awaits=*/true);
  if (index == upstream::LoadBalancer::kNone) return GiveUp(MirrorResult::kNoEndpoint);
  const std::shared_ptr<upstream::Endpoint>& endpoint = cluster.endpoints[index].endpoint;
  Permit permit;
  if (!Admission::TryEndpoint(*endpoint, permit)) return GiveUp(MirrorResult::kLimited);
  attempt_.OwnBody();  // there is no other attempt
  attempt_.SetEndpoint(*endpoint, std::move(permit));
  attempt_.Connect(*context.pools.Get(endpoint, cluster.options, cluster.balancer->feedback()));
}

bool MirrorCall::PassesLimits(const upstream::ClusterState& cluster) {
  using Start = limits::RateLimiter::Start;
  limits_ = cluster.limits;
  const Start start = limits_->rate->TryStart(context.worker().now());
  if (start == Start::kNo) return false;
  has_token_ = start == Start::kHeld;
  if (!limits_->concurrency->enabled()) return true;
  if (!limits_->concurrency->TryTake()) return false;
  permit_.reset(limits_->concurrency.get());
  return true;
}

// The endpoint of the key, by the ring and the tiers. `awaits`: also of those with which a connection takes long.
uint32_t MirrorCall::Pick(const upstream::ClusterState& cluster, bool awaits) const {
  const uint32_t w = context.index();
  const bool keyed = cluster.options->policy == upstream::Policy::kRingHash;
  const uint64_t random = keyed ? ring_key : context.worker().random().Next();
  const auto ok = [&](uint32_t index) {
    const upstream::ListedEndpoint& entry = cluster.endpoints[index];
    if (!entry.TakesCalls() || !entry.endpoint->Admits(upstream::Endpoint::Choosiness::kShare, random)) return false;
    if (!entry.endpoint->concurrency()->HasRoom() || !cluster.BelowBoundedLoad(index, w)) return false;
    upstream::EndpointPool* pool = entry.endpoint->pool(w);
    return pool == nullptr || (awaits ? pool->Usable() : pool->TakesCalls());
  };
  const auto load = [&](uint32_t index) {
    const upstream::EndpointPool* pool = cluster.endpoints[index].endpoint->pool(w);
    return pool == nullptr ? 0u : pool->in_flight();
  };
  if (cluster.tiers.empty()) return cluster.balancer->Pick({ring_key, random, w, ok, load, false});
  const upstream::Tier& tier = cluster.tiers[cluster.spill->TierOf(random, cluster.tiers)];
  const auto ok_in_tier = [&](uint32_t i) { return ok(tier.places[i]); };
  const auto load_in_tier = [&](uint32_t i) { return load(tier.places[i]); };
  const uint32_t i = tier.balancer->Pick({ring_key, random, w, ok_in_tier, load_in_tier, false});
  return i == upstream::LoadBalancer::kNone ? i : tier.places[i];
}

bool MirrorCall::WaitsForEnd() const { return !over_ || (options().compare && answer_.complete && tap_ != nullptr); }

void MirrorCall::Finish() {
  if (answer_.complete && options().compare) {
    Compare();
  } else if (answer_.complete) {
    result_ = MirrorResult::kAnswered;
  }
  route_.mirror->Count(result_, context.index());
}

void MirrorCall::Compare() {
  if (!primary_.complete) {
    result_ = MirrorResult::kIncomplete;
    return;
  }
  const bool same = answer_.bytes == primary_.bytes && answer_.hash.Value() == primary_.hash.Value();
  result_ = answer_.status != primary_.status ? MirrorResult::kStatusDiffers
            : same                            ? MirrorResult::kEqual
                                              : MirrorResult::kMessageDiffers;
  if (result_ == MirrorResult::kEqual) return;
  const auto suffix = context.mirror_log.Allow(context.worker().now());
  if (!suffix) return;
  const http2::Field* path = request.Find(Token::kPath);
  SLUICE_LOG_WARN("mirror of route {}: call {} of {}: {} answered {} with {} bytes, {} {} with {} bytes{}",
                  route_.options.name, id_.set() ? id_.ToString() : "of the cache",
                  path == nullptr ? std::string_view() : path->value(), primary_cluster_, ToString(primary_.status),
                  primary_.bytes, options().cluster, ToString(answer_.status), answer_.bytes, *suffix);
}

void MirrorCall::GiveUp(MirrorResult result) {
  if (over_) return;
  over_ = true;
  result_ = result;
  attempt_.Cancel();
  event_.Set();
}

void MirrorCall::EndAll(CallContext& context) {
  for (auto* node = context.mirrors.front(); node != nullptr; node = context.mirrors.Next(*node)) {
    auto* call = static_cast<MirrorCall*>(node);
    call->GiveUp(MirrorResult::kIncomplete);
    call->LeaveTap();
  }
}

// --- What its client's call tells ---

void MirrorCall::OnRequestData(const base::Slice& bytes, bool end_stream) {
  if (over_) return;
  request_ended = end_stream;
  body.Append(bytes, /*held=*/true);
  if (body.total() - credited > options().bytes_max) return GiveUp(MirrorResult::kFull);
  attempt_.SendBody();
}

void MirrorCall::OnRequestTrailers(const http2::HeaderList& fields) {
  if (over_) return;
  request_trailers = std::make_unique<http2::HeaderList>(fields.Clone());
  request_ended = true;
  attempt_.SendBody();
}

// `answer`: what its client was answered; null: it is not known.
void MirrorCall::OnPrimaryEnd(const AnswerDigest* answer) {
  tap_ = nullptr;
  if (answer != nullptr) primary_ = *answer;
  // The rest of the request will not come, or there is nothing to compare with any more.
  if (!request_ended || (options().compare && !primary_.complete)) GiveUp(MirrorResult::kIncomplete);
  event_.Set();
}

// --- Its attempt ---

void MirrorCall::Collector::SendData(const base::Slice& bytes, bool) {
  call.answer_.Add(bytes);
  call.attempt_.Consume(bytes.size());
}

// Its time is over, and the endpoint said so a moment before we would have.
bool MirrorCall::RanOut(GrpcCode status) const {
  constexpr base::Nanos kGrain = std::chrono::milliseconds(1);
  if (status != GrpcCode::kDeadlineExceeded && status != GrpcCode::kCancelled) return false;
  return context.worker().runtime().clock().Now() >= deadline - kGrain;
}

void MirrorCall::OnResponse(Attempt&) { snapshot_ = {}; }

void MirrorCall::OnAttemptEnded(Attempt& attempt) {
  if (over_) return;
  over_ = true;
  answer_.status = attempt.grpc_status();
  answer_.complete = attempt.complete() && !attempt.lacks_status() && !RanOut(answer_.status);
  event_.Set();
}

// Nor does it wait for its client's answer any longer.
void MirrorCall::OnTimer(base::TimePoint) {
  GiveUp(MirrorResult::kIncomplete);
  LeaveTap();
}

void MirrorCall::LeaveTap() {
  if (tap_ != nullptr) std::exchange(tap_, nullptr)->call_ = nullptr;
  event_.Set();
}

// --- The tap ---

MirrorTap::~MirrorTap() {
  if (call_ != nullptr) call_->OnPrimaryEnd(nullptr);
}

void MirrorTap::SendHeaders(const http2::HeaderList& fields, bool end_stream) {
  if (const http2::Field* status = fields.Find(Token::kGrpcStatus)) answer_.status = ParseGrpcStatus(status->value());
  of_proxy_ |= fields.Find("sluice-reason") != nullptr;
  next().SendHeaders(fields, end_stream);
  if (end_stream) End();
}

void MirrorTap::SendData(const base::Slice& bytes, bool end_stream) {
  answer_.Add(bytes);
  next().SendData(bytes, end_stream);
  if (end_stream) End();
}

void MirrorTap::End() {
  answer_.complete = !of_proxy_;
  if (call_ != nullptr) std::exchange(call_, nullptr)->OnPrimaryEnd(&answer_);
}

}  // namespace sluice::proxy
