// The part of a call that may be answered without an upstream call of its own: the message that is its key, the
// look-up, the fetch it leads or joins, and the relay of a response that is too large to share.
#include "proxy/call.h"
#include "proxy/message_field.h"
#include "runtime/runtime.h"

namespace sluice::proxy {

using http2::Token;
using GrpcBytes = std::span<const base::Slice>;

namespace {

// Bytes of the first message with its prefix; kMessagePrefixBytes until the prefix is there.
size_t MessageBytes(GrpcBytes parts) { return FieldBytesWanted(parts, SIZE_MAX - kMessagePrefixBytes); }

}  // namespace

// What the cache may do for the call, by the route of now.
std::optional<CachePlan> Call::PlanCache() {
  const CacheRule& rule = route_->options.cache;
  if (config_->cache == nullptr || fetch_stream_ != nullptr) return std::nullopt;
  const CachedMethod* method = ResponseCache::Find(rule, request_);
  return method == nullptr ? std::nullopt : config_->cache->Plan(rule, *method, request_, context_.index());
}

// The key of the cache, or of the ring, lies in the message: it is waited for before any limit is asked, so that a slow
// client holds no permit. Bytes that came are credited to the client at once; they are bounded by what is waited for.
bool Call::WaitsForMessage() {
  if (over()) return false;
  if (!message_asked_) {
    message_asked_ = true;
    if (std::optional<CachePlan> plan = PlanCache()) {
      cache_use_ = std::make_unique<CacheUse>();
      cache_use_->plan = std::move(plan);
    }
    by_field_ = route_->options.hash_by.kind == HashBy::Kind::kField;
  }
  if (request_ended_) return false;
  const size_t have = body_.total();
  const size_t message = MessageBytes(body_.parts());
  // One message and the end of the request. What is longer than that is no unary call.
  if (MayUseCache() && message > config_->cache->request_bytes_max() + kMessagePrefixBytes) {
    config_->cache->Count(NotCached::kRequestTooLarge, context_.index());
    cache_use_->plan.reset();
  } else if (MayUseCache() && have > message) {
    config_->cache->Count(NotCached::kNotUnary, context_.index());
    cache_use_->plan.reset();
  }
  const bool for_ring = by_field_ && have < FieldBytesWanted(body_.parts(), route_->options.hash_by.field_bytes_max);
  if (!MayUseCache() && !for_ring) return false;
  if (have > credited_ && downstream_ != nullptr) {
    downstream_->Consume(have - credited_);
    credited_ = have;
  }
  message_waited_ = true;
  return true;
}

bool Call::MayUseCache() const { return cache_use_ != nullptr && cache_use_->plan.has_value(); }

bool Call::AsksAgain() { return cache_use_ != nullptr && std::exchange(cache_use_->asks_again, false) && !over(); }

void Call::AskCache() {
  if (over()) return;
  if (message_waited_) {
    Reroute();
    if (over()) return;
    if (MayUseCache()) cache_use_->plan = PlanCache();  // it lay in the configuration of then
  }
  if (!MayUseCache()) return;
  ResponseCache& cache = *config_->cache;
  const uint32_t w = context_.index();
  const base::TimePoint now = context_.worker().now();
  CacheKey& key = context_.TakeCacheKey();  // nobody else's meanwhile: nothing below runs another call
  const bool made = cache.MakeKey(*cache_use_->plan->rule, route_->options.cluster, request_, body_.parts(), w, key);
  if (!made || request_trailers_) return;
  ResponseCache::Found found = cache.Lookup(key, *cache_use_->plan, now, w);
  switch (found.kind) {
    case ResponseCache::Found::Kind::kFresh:
      return Serve(*found.response, CacheOutcome::kHit);
    case ResponseCache::Found::Kind::kStale:
      StartFetch(key, /*refresh=*/true);
      return Serve(*found.response, CacheOutcome::kStale);
    case ResponseCache::Found::Kind::kMiss:
      cache_ = CacheOutcome::kMiss;
      cache_use_->fallback = std::move(found.response);
      return StartFetch(key, /*refresh=*/false);
  }
}

// Joins the fetch for the key, or starts it: a second call with this one's request.
void Call::StartFetch(const CacheKey& key, bool refresh) {
  ResponseCache& cache = *config_->cache;
  auto anchor = std::make_shared<FetchStream::Anchor>();
  std::shared_ptr<Fetch> fetch;
  const auto joined =
      cache.Join(key, *cache_use_->plan, refresh ? nullptr : &cache_use_->participant, deadline_,
                 context_.worker().now(), FetchStream::Canceller(context_.worker(), anchor), &fetch, context_.index());
  if (joined == ResponseCache::Joined::kJoined && !refresh) cache_ = CacheOutcome::kCoalesced;
  if (joined != ResponseCache::Joined::kStarted) return;
  http2::HeaderList request = request_.Clone();
  request.Remove(Token::kGrpcTimeout);  // the fetch has its own, for all that may join
  // A client of its own, because the count of this one's bounds the calls of a connection.
  auto client = std::make_shared<const Client>(*client_);
  std::unique_ptr<Call> call(
      new Call(context_, nullptr, std::move(client), std::move(request), /*end_stream=*/true, context_.worker().now()));
  FetchLeader* leader = refresh ? nullptr : this;
  call->fetch_stream_ =
      std::make_unique<FetchStream>(cache, *cache_use_->plan, std::move(fetch), leader, std::move(anchor), config_,
                                    route_->options.cluster, context_.worker(), call->from_downstream());
  call->downstream_ = call->fetch_stream_.get();
  // It goes where its key says.
  call->config_ = config_;
  call->snapshot_ = snapshot_;
  call->deadline_ = call->fetch_stream_->deadline();
  call->body_.CopyFrom(body_);
  if (!refresh) cache_use_->relay = call->fetch_stream_.get();
  // Refused while stopping: the call is destroyed and tells its participants.
  context_.worker().runtime().SpawnOn(context_.worker(), Run(std::move(call)));
}

bool Call::WaitsForFetch() {
  if (over() || cache_use_ == nullptr) return false;
  CacheUse& use = *cache_use_;
  if (use.relay != nullptr && use.relay->relaying()) return true;
  std::shared_ptr<const FetchResult> result = use.participant.result();
  if (result == nullptr) return use.participant.in_fetch();
  use.relay = nullptr;
  use.participant.Leave();
  TakeHistory(*result);
  // The fetch's time was up, not this call's. Its own fetch would have more, so it asks no more than once for each
  // leader with less.
  const bool cut_short = result->response != nullptr && result->response->status == GrpcCode::kDeadlineExceeded &&
                         result->deadline < deadline_;
  if (result->response == nullptr || cut_short) {
    cache_ = CacheOutcome::kMiss;
    attempts_ = 0;
    use.plan.reset();  // it lies in the configuration of then
    Reroute();
    if (cut_short && !over()) use.plan = PlanCache();
    use.asks_again = use.plan.has_value();
    return false;  // else by itself
  }
  if (ServeStaleFor(result->response->status)) return false;
  TakeCause(*result);
  Serve(*result->response, cache_);
  return false;
}

// In the place of an answer that is UNAVAILABLE, of which the client has seen nothing yet.
bool Call::ServeStaleFor(GrpcCode status) {
  if (status != GrpcCode::kUnavailable || cache_use_ == nullptr || response_forwarded_) return false;
  if (cache_use_->fallback == nullptr) return false;
  if (config_->cache != nullptr) config_->cache->CountStale(context_.index());
  Serve(*cache_use_->fallback, CacheOutcome::kStale);
  return true;
}

void Call::Serve(const CachedResponse& response, CacheOutcome outcome) {
  served_ = true;
  cache_ = outcome;
  status_ = response.status;
  response_bytes_ = response.message.size();
  answered_ = context_.worker().now();
  if (downstream_ == nullptr) return;
  http2::HeaderList headers = context_.ready_headers.HeadersFor(response, outcome, answered_);
  http2::HeaderList last = context_.ready_headers.Plain(response.trailers);
  if (history_ != nullptr && !history_->waits.empty()) {
    (response.trailers_only() ? headers : last).Add("sluice-waited", history_->waits);
  }
  SendStored(*downstream_, response, headers, last);
  ReleaseDownstream();
}

void Call::LeaveFetch() {
  if (cache_use_ == nullptr) return;
  cache_use_->participant.Leave();
  EndRelay();
}

void Call::EndRelay() {
  if (cache_use_ == nullptr || cache_use_->relay == nullptr) return;
  std::exchange(cache_use_->relay, nullptr)->LeaderGone();
}

bool Call::in_fetch() const { return cache_use_ != nullptr && cache_use_->participant.in_fetch(); }

// What came of the fetch is what came of the call.
void Call::TakeHistory(const FetchResult& result) {
  attempts_ = result.attempts;
  if (history_ == nullptr && result.endpoint.empty() && result.waits.empty()) return;
  history().endpoint = result.endpoint;
  history().waits = result.waits;
}

void Call::TakeCause(const FetchResult& result) {
  if (result.cause) cause_ = std::make_unique<base::Error>(*result.cause);
}

void Call::RelayHeaders(const http2::HeaderList& fields, bool end_stream) {
  answered_ = context_.worker().now();
  response_forwarded_ = true;
  snapshot_ = {};  // as in ForwardResponse: a long relay keeps no rings of its time
  cluster_ = nullptr;
  if (downstream_ == nullptr) return;
  downstream_->SendHeaders(fields, end_stream);
  if (end_stream) ReleaseDownstream();
}

void Call::RelayData(const base::Slice& bytes, bool end_stream) {
  response_bytes_ += bytes.size();
  if (downstream_ == nullptr) return;
  downstream_->SendData(bytes, end_stream);
  if (end_stream) ReleaseDownstream();
}

void Call::FetchGone() { cache_use_->relay = nullptr; }

void Call::RelayEnded(const FetchResult& result, GrpcCode status) {
  served_ = true;
  status_ = status;
  TakeCause(result);
  TakeHistory(result);
  event_.Set();
}

}  // namespace sluice::proxy
