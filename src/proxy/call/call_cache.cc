// The steps of a call that may be answered without an attempt of its own: the message that is its key, the look-up, the
// fetch that it leads or joins, and the relay of a response that is too large to share.
#include "proxy/call/call.h"
#include "proxy/call/hops.h"
#include "proxy/message_field.h"
#include "proxy/response_cache/sharing.h"
#include "runtime/runtime.h"

namespace sluice::proxy {

using http2::Token;
using GrpcBytes = std::span<const base::Slice>;

namespace {

// Bytes of the first message with its prefix; kMessagePrefixBytes until the prefix is there.
size_t MessageBytes(GrpcBytes parts) { return FieldBytesWanted(parts, SIZE_MAX - kMessagePrefixBytes); }

}  // namespace

// What the cache may do for the call, by its present route.
std::optional<CachePlan> Call::PlanCache() {
  const CacheRule& rule = route_->options.cache;
  if (config_->cache == nullptr) return std::nullopt;
  const CachedMethod* method = ResponseCache::Find(rule, request);
  if (method == nullptr) return std::nullopt;
  const uint32_t hops = request.HasAny(kSaidByProxies) ? HopsOf(request) : 0;
  if (hops > kHopsShared) return std::nullopt;
  // As with authorization that is there and not part of the key: RFC 9111 3.5.
  const bool dropped = history_ != nullptr && history_->gates != nullptr && history_->gates->credential_dropped;
  if (dropped && !rule.shared && !route_->key_has_credential) {
    config_->cache->Count(NotCached::kAuthorization, context.index());
    return std::nullopt;
  }
  std::optional<CachePlan> plan = config_->cache->Plan(rule, *method, request, context.index());
  if (plan) plan->hops = hops;
  return plan;
}

// Once, when the request's fields are those that count.
void Call::TakeCachePlan() {
  if (config_->cache == nullptr || !route_->options.cache.enabled()) return;
  if (std::optional<CachePlan> plan = PlanCache()) {
    cache_use_.reset(new CacheUse(*this));
    cache_use_->plan = std::move(plan);
  }
}

// The key of the cache, or of the ring, lies in the message: it is waited for before any limit is asked, so that a slow
// client holds no permit. Bytes that came are credited to the client at once; they are bounded by what is waited for.
bool Call::WaitsForMessage() {
  if (over() || request_ended) return false;
  const size_t have = body.total();
  if (MayUseCache()) {
    // One message and the end of the request. What is longer than that is no unary call.
    const size_t message = MessageBytes(body.parts());
    const bool too_large = message > config_->cache->request_bytes_max() + kMessagePrefixBytes;
    if (too_large || have > message) {
      config_->cache->Count(too_large ? NotCached::kRequestTooLarge : NotCached::kNotUnary, context.index());
      cache_use_->plan.reset();
    }
  }
  const HashBy& by = route_->options.hash_by;
  const bool for_ring = by.kind == HashBy::Kind::kField && have < FieldBytesWanted(body.parts(), by.field_bytes_max);
  if (!MayUseCache() && !for_ring) return false;
  CreditSent(have);
  state_ = State::kReading;
  return true;
}

bool Call::MayUseCache() const { return cache_use_ != nullptr && cache_use_->plan.has_value(); }

bool Call::AsksAgain() { return cache_use_ != nullptr && std::exchange(cache_use_->asks_again, false) && !over(); }

void Call::AskCache() {
  if (over()) return;
  if (state_ == State::kAtGate || state_ == State::kReading) {  // the configuration may have changed
    Reroute();
    if (over()) return;
    // The old plan points into the previous configuration.
    if (MayUseCache()) cache_use_->plan = MetGates() ? PlanCache() : std::nullopt;
  }
  if (route_->split != nullptr && !split_known_) [[unlikely]]
    ChooseByKey();
  if (!MayUseCache()) return;
  ResponseCache& cache = *config_->cache;
  const uint32_t w = context.index();
  const base::TimePoint now = context.worker().now();
  CacheKey& key = context.TakeCacheKey();  // it stays this call's: nothing below runs another one
  const bool made = cache.MakeKey(*cache_use_->plan->rule, CacheScope(), request, body.parts(), w, key);
  if (!made || request_trailers) return;
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
  auto anchor = std::make_shared<ResponseCollector::Anchor>();
  std::shared_ptr<Fetch> fetch;
  if (route_->limits != nullptr && route_->limits->client_rate->enabled()) cache_use_->plan->client = ClientKey();
  const auto joined =
      cache.Join(key, *cache_use_->plan, refresh ? nullptr : &cache_use_->participant, deadline, context.worker().now(),
                 ResponseCollector::Canceller(context.worker(), anchor), &fetch, context.index());
  if (joined == ResponseCache::Joined::kJoined && !refresh) cache_ = CacheOutcome::kCoalesced;
  if (joined != ResponseCache::Joined::kStarted) return;
  const bool with_id = config_->forwarding.request_id != RequestIds::kOff;
  if (with_id) AddRequestId();
  CanonicalRequest fields = request.Clone();
  fields.Remove(Token::kGrpcTimeout);  // the fetch has its own, for all that may join
  // A client of its own, because the count of this one's bounds the calls of a connection.
  auto client = std::make_shared<Client>(*client_);
  client->header_list_max = UINT32_MAX;  // each participant asks for its own client
  std::unique_ptr<Call> call(
      new Call(context, nullptr, std::move(client), std::move(fields), ends_in_headers, context.worker().now()));
  FetchLeader* leader = refresh ? nullptr : cache_use_.get();
  auto collector =
      std::make_unique<ResponseCollector>(cache, *cache_use_->plan, std::move(fetch), leader, std::move(anchor),
                                          config_, CacheScope(), context.worker(), call->client_events());
  if (!refresh) cache_use_->relay = collector.get();
  call->deadline = collector->deadline();
  call->sink.SetFetch(std::move(collector));
  // It goes where its key says.
  call->config_ = config_;
  call->snapshot_ = snapshot_;
  call->body.CopyFrom(body);
  call->request_ended = true;
  call->request_id_set_ = with_id;
  call->split_at_ = split_at_;  // the cluster that is in the key, also where chance has chosen it
  call->split_known_ = split_known_;
  if (config_->tracer != nullptr) [[unlikely]]
    TraceFetch(*call);
  // Refused while stopping: the call is destroyed and tells its participants.
  context.worker().runtime().SpawnOn(context.worker(), Run(std::move(call)));
}

bool Call::WaitsForFetch() {
  if (has_extra_ && !over() && WaitsForCut()) [[unlikely]]
    return true;
  if (over() || cache_use_ == nullptr) return false;
  CacheUse& use = *cache_use_;
  if (use.refused != nullptr && !sink.begun()) [[unlikely]] {
    Fail(std::move(*use.refused));
    return false;
  }
  if (use.relay != nullptr && use.relay->relaying()) return true;
  std::shared_ptr<const FetchResult> result = use.participant.result();
  if (result == nullptr) {
    if (!use.participant.in_fetch()) return false;
    state_ = State::kFetching;
    return true;
  }
  use.relay = nullptr;
  use.participant.Leave();
  TakeHistory(*result);
  // The fetch's time was up, not this call's. The next one that it joins has at least half of the time that it has
  // left.
  const bool cut_short = result->response != nullptr && result->response->status == GrpcCode::kDeadlineExceeded &&
                         result->deadline < deadline;
  if (result->response == nullptr || cut_short) {
    cache_ = CacheOutcome::kMiss;
    attempts_ = 0;
    if (result->response == nullptr) {
      maybe_processed_ |= result->cause ? result->cause->maybe_processed : result->attempts > 0;
      if (fetch_sharing::IsSuspect(*result)) history().lost = 1;  // so that it goes alone
    }
    use.plan.reset();  // it points into the previous configuration
    Reroute();
    if (cut_short && !over() && MetGates()) use.plan = PlanCache();
    if (use.plan) use.plan->joined_before = true;
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
  if (status != GrpcCode::kUnavailable || cache_use_ == nullptr || sink.begun()) return false;
  if (cache_use_->fallback == nullptr || !client_->Takes(cache_use_->fallback->list_bytes())) return false;
  if (config_->cache != nullptr) config_->cache->CountStale(context.index());
  error_.reset();
  Serve(*cache_use_->fallback, CacheOutcome::kStale);
  return true;
}

void Call::Serve(const CachedResponse& response, CacheOutcome outcome) {
  if (const size_t bytes = response.list_bytes(); !over() && !client_->Takes(bytes)) [[unlikely]]
    return Fail(BeyondClient(*client_, "stored response headers or trailers", bytes));
  state_ = State::kServed;
  cache_ = outcome;
  status_ = response.status;
  response_bytes = response.message.size();
  answered_ = context.worker().now();
  http2::HeaderList headers = context.stored_header_memo.HeadersFor(response, outcome, answered_);
  http2::HeaderList last = context.stored_header_memo.Plain(response.trailers);
  if (history_ != nullptr && !history_->waits.empty()) {
    (response.trailers_only() ? headers : last).Add("sluice-waited", history_->waits);
  }
  if (error_ != nullptr) AddCallId(response.trailers_only() ? headers : last);
  sink.SendStored(response, headers, last);
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

// For the log, the fetch's attempts and waits are the call's.
void Call::TakeHistory(const FetchResult& result) {
  attempts_ = static_cast<uint8_t>(result.attempts);
  if (history_ == nullptr && result.endpoint.empty() && result.waits.empty()) return;
  history().endpoint = result.endpoint;
  history().waits = result.waits;
  history().tries = result.tries;
}

void Call::TakeCause(const FetchResult& result) {
  if (result.cause) error_ = std::make_unique<base::Error>(*result.cause);
}

void Call::CacheUse::RelayHeaders(const http2::HeaderList& fields, bool end_stream) {
  call.answered_ = call.context.worker().now();
  call.snapshot_ = {};  // as in BeginResponse: a long relay keeps no rings of its time
  call.cluster_ = nullptr;
  if (refused == nullptr && !call.client_->Takes(fields.hpack_size())) [[unlikely]] {
    const bool trailers = call.sink.begun();
    refused = std::make_unique<base::Error>(
        BeyondClient(*call.client_, trailers ? "response trailers" : "response headers", fields.hpack_size()));
    if (trailers) call.sink.SendHeaders(MakeTrailers(ToGrpcError(*refused), /*trailers_only=*/false), true);
    call.event_.Set();  // headers: the call ends by itself, outside of what its fetch is sending
  }
  if (refused == nullptr) call.sink.SendHeaders(fields, end_stream);
}

void Call::CacheUse::RelayData(const base::Slice& bytes, bool end_stream) {
  if (refused != nullptr) return;
  call.response_bytes += bytes.size();
  call.sink.SendData(bytes, end_stream);
}

void Call::CacheUse::RelayEnded(const FetchResult& result, GrpcCode status) {
  if (refused != nullptr && !call.sink.begun()) {
    relay = nullptr;  // it is over
    return call.Fail(std::move(*refused));
  }
  call.state_ = State::kServed;
  call.status_ = status;
  call.TakeCause(result);
  call.TakeHistory(result);
  if (refused != nullptr) {
    call.status_ = ToGrpcCode(*refused);
    call.error_ = std::move(refused);
  }
  call.event_.Set();
}

}  // namespace sluice::proxy
