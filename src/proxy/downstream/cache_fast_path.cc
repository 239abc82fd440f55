#include "proxy/downstream/cache_fast_path.h"

#include <memory>
#include <optional>
#include <utility>

#include "proxy/call/buffered_request.h"
#include "proxy/call/forwarded_fields.h"
#include "proxy/call/observer.h"
#include "proxy/call/request_id.h"
#include "proxy/grpc_timeout.h"
#include "proxy/tracing/tracer.h"

namespace sluice::proxy {

class CacheFastPath::Candidate final : public base::ListNode<Candidate>, public BufferedRequest {
 public:
  Candidate(CacheFastPath& hits, const ClientPtr& connection_client, http2::RequestStream& on,
            CanonicalRequest&& request, base::TimePoint now, const KnownPlan& known)
      : BufferedRequest(on, std::move(request), now),
        hits_(hits),
        connection_client_(&connection_client),
        known_(known) {}

  void OnData(const base::Slice& bytes, bool end) override {
    if (end && parts.empty() && Answered({&bytes, 1})) return;
    BufferedRequest::OnData(bytes, end);
    if (end && parts.size() > 1) Answered(parts);
  }
  void OnReset(http2::ErrorCode code, http2::ResetCause cause) override {
    BufferedRequest::OnReset(code, cause);
    client = *connection_client_;  // the connection may go before the turn's I/O ends
  }
  void StartCall() {
    if (!reset) client = *connection_client_;
    Start(hits_.context_);
  }

 private:
  // True: answered, and this is gone.
  bool Answered(std::span<const base::Slice> message) {
    if (!hits_.Answer(*stream, **connection_client_, fields, message, started, known_)) return false;
    delete this;
    return true;
  }

  CacheFastPath& hits_;
  const ClientPtr* const connection_client_;  // until it is reset. Not counted: each candidate is an open stream
  const KnownPlan known_;
};

CacheFastPath::CacheFastPath(CallContext& context) : context_(context) {}

CacheFastPath::~CacheFastPath() {
  while (Candidate* candidate = candidates_.PopFront()) {
    candidate->stream->Release();
    delete candidate;
  }
}

const RouteConfig* CacheFastPath::Config() const {
  const RouteConfig* config = context_.config.get();
  // Faults are for calls that the cache would answer, too: a Call asks.
  return config != nullptr && config->cache != nullptr && context_.faults == nullptr ? config : nullptr;
}

http2::StreamEvents* CacheFastPath::Buffer(http2::RequestStream& stream, const ClientPtr& client,
                                           CanonicalRequest&& request, const KnownPlan& known) {
  auto* candidate = new Candidate(*this, client, stream, std::move(request), context_.worker().now(), known);
  candidates_.PushBack(*candidate);
  context_.worker().AtIoEnd(*this);
  return candidate;
}

bool CacheFastPath::Answer(http2::StreamIo& stream, const Client& client, const CanonicalRequest& request,
                           std::span<const base::Slice> message, base::TimePoint started, const KnownPlan& known) {
  if (Config() == nullptr) return false;
  context_.Refresh();  // it may be another since the headers came
  const RouteConfig* config = Config();
  if (config == nullptr) return false;
  if (config->guard != nullptr && GuardDecides(*config->guard, request)) [[unlikely]]
    return false;  // for a Call
  const FastPathPlan* plan = plans_.Again(known, context_.config_version);
  if (plan == nullptr) plan = plans_.For(*config, context_.config_version, request, client.listener);
  if (plan == nullptr) return false;
  const base::TimePoint now = context_.worker().now();
  if (const http2::Field* timeout = request.Find(http2::Token::kGrpcTimeout)) {
    const std::optional<base::Nanos> left = ParseGrpcTimeout(timeout->value());
    if (!left || now >= base::DeadlineAfter(started, *left)) return false;  // a Call says what is wrong
  }
  CacheKey& key = context_.TakeCacheKey();
  if (!config->cache->MakeKey(plan->key_head, message, key)) return false;
  const uint32_t w = context_.index();
  return config->cache->ServeFresh(key, plan->plan, now, w, [&](const CachedResponse& response) {
    if (!client.Takes(response.list_bytes())) [[unlikely]]
      return false;  // a Call says so
    SendStored(stream, response, context_.stored_header_memo.HeadersFor(response, CacheOutcome::kHit, now),
               context_.stored_header_memo.Plain(response.trailers));
    stream.Release();
    const base::Nanos total = now - started;
    CountCall(context_, {&plan->route->metrics, response.status, nullptr, total});
    if (!config->observed()) [[likely]]
      return true;
    std::unique_ptr<CallTrace> trace = TraceOf(*config, request, response.status, total);
    if (trace == nullptr && config->observers.empty()) return true;
    CallRecord record =
        RecordOf(client, request, plan->route, RequestIdOf(config->forwarding.request_id, /*set=*/false, request));
    record.id = context_.TakeCallId();
    record.status = response.status;
    record.cache = ToString(CacheOutcome::kHit);
    for (const base::Slice& part : message) record.request_bytes += part.size();
    record.response_bytes = response.message.size();
    record.to_response = record.total = total;
    record.ended = now;
    if (trace != nullptr) config->tracer->Write(record, *trace, w);
    NotifyObservers(context_, *config, record);
    return true;
  });
}

// A hit is one span. Null: it goes to no exporter.
std::unique_ptr<CallTrace> CacheFastPath::TraceOf(const RouteConfig& config, const CanonicalRequest& request,
                                                  GrpcCode status, base::Nanos total) {
  if (config.tracer == nullptr) return nullptr;
  base::Random& random = context_.worker().random();
  std::unique_ptr<CallTrace> trace = config.tracer->Begin(request, random);
  if (!config.tracer->Takes(trace.get(), status, total)) return nullptr;
  if (trace == nullptr) {
    trace = std::make_unique<CallTrace>();
    config.tracer->Late(request, random, *trace);
  }
  return trace;
}

void CacheFastPath::StartCalls() {
  while (Candidate* next = candidates_.PopFront()) {
    const std::unique_ptr<Candidate> candidate(next);
    candidate->StartCall();
  }
}

}  // namespace sluice::proxy
