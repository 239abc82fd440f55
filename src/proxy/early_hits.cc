#include "proxy/early_hits.h"

#include <memory>
#include <optional>
#include <utility>

#include "proxy/grpc_timeout.h"
#include "proxy/pending_call.h"
#include "proxy/worker_context.h"
#include "runtime/frame_pool.h"

namespace sluice::proxy {

class EarlyHits::Held final : public base::ListNode<Held>, public PendingCall {
 public:
  static void* operator new(size_t bytes) { return runtime::AllocateFrame(bytes); }
  static void operator delete(void* memory, size_t bytes) { runtime::FreeFrame(memory, bytes); }

  Held(EarlyHits& hits, const ClientPtr& connection_client, base::TimePoint when)
      : hits_(hits), connection_client_(&connection_client), started_(when) {}

  void OnData(const base::Slice& bytes, bool end) override {
    if (end && parts.empty() && Answered({&bytes, 1})) return;
    PendingCall::OnData(bytes, end);
    if (end && parts.size() > 1) Answered(parts);
  }
  void OnReset(http2::ErrorCode code, http2::ResetCause cause) override {
    PendingCall::OnReset(code, cause);
    client = *connection_client_;  // the connection may go before the turn's I/O ends
  }
  void StartCall() {
    if (!reset) client = *connection_client_;
    Start(hits_.context_, started_);
  }

 private:
  // True: answered, and this is gone.
  bool Answered(std::span<const base::Slice> message) {
    if (!hits_.Answer(*stream, fields, message, started_)) return false;
    delete this;
    return true;
  }

  EarlyHits& hits_;
  const ClientPtr* const connection_client_;  // until it is reset. Not counted: what is held are open streams
  const base::TimePoint started_;
};

EarlyHits::EarlyHits(WorkerContext& context) : context_(context) {}

EarlyHits::~EarlyHits() {
  while (Held* held = held_.PopFront()) {
    held->stream->Release();
    delete held;
  }
}

const RouteConfig* EarlyHits::Config() const {
  const RouteConfig* config = context_.config.get();
  return config != nullptr && config->cache != nullptr && !config->access_log->enabled() ? config : nullptr;
}

http2::StreamEvents* EarlyHits::Hold(http2::Stream& stream, const ClientPtr& client, http2::HeaderList request) {
  Held* held = new Held(*this, client, context_.worker().now());
  held->stream = &stream;
  held->fields = std::move(request);
  held_.PushBack(*held);
  context_.worker().AtIoEnd(*this);
  return held;
}

bool EarlyHits::Answer(http2::StreamIo& stream, const http2::HeaderList& request, std::span<const base::Slice> message,
                       base::TimePoint started) {
  if (Config() == nullptr) return false;
  context_.Refresh();  // it may be another since the headers came
  const RouteConfig* config = Config();
  const HitPlan* plan = config != nullptr ? plans_.For(*config, request) : nullptr;
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
    SendStored(stream, response, context_.ready_headers.HeadersFor(response, CacheOutcome::kHit, now),
               context_.ready_headers.Plain(response.trailers));
    stream.Release();
    plan->route->metrics.calls[static_cast<size_t>(response.status)]->Add(w);
    plan->route->metrics.duration->Observe(w, static_cast<uint64_t>((now - started).count()));
  });
}

void EarlyHits::StartCalls() {
  while (Held* next = held_.PopFront()) {
    const std::unique_ptr<Held> held(next);
    held->StartCall();
  }
}

}  // namespace sluice::proxy
