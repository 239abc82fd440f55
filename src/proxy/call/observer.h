// CallObserver: hears of every finished call: calls, hits of the cache's fast path, and the cache's own fetches.
//
//   the call is over --CountCall--> metrics, always
//                    --NotifyObservers--> RouteConfig::observers, in order, each with the same CallRecord
//
// Metrics need four words of a call and are told them directly. A record takes look-ups and copies, so it is made only
// where the configuration has an observer; without one a call pays a load and a branch.
#pragma once

#include <memory>
#include <utility>

#include "base/error.h"
#include "proxy/access_log/access_log.h"
#include "proxy/call/call_context.h"
#include "proxy/call_record.h"
#include "proxy/client.h"

namespace sluice::proxy {

// Thread safety: called by any worker, several at the same time. Must not suspend, nor call back into calls or the
// cache.
class CallObserver {
 public:
  virtual ~CallObserver() = default;
  // On the worker `worker` of the call, when its permits have gone back.
  virtual void OnCallEnd(const CallRecord& record, uint32_t worker) = 0;
};

// A line of the access log for each call of a client.
class AccessLogObserver final : public CallObserver {
 public:
  explicit AccessLogObserver(std::shared_ptr<AccessLog> log) : log_(std::move(log)) {}
  void OnCallEnd(const CallRecord& record, uint32_t worker) override {
    if (!record.fetch) log_->Write(record, worker);
  }

 private:
  const std::shared_ptr<AccessLog> log_;
};

// What is counted of a call that a client has made.
struct CallEnd {
  const RouteMetrics* metrics = nullptr;  // of its route and cluster; null: no route matched
  GrpcCode status = GrpcCode::kOk;
  const base::Error* cause = nullptr;  // the proxy's own error; null: the upstream or the cache answered
  base::Nanos total{0};                // from the first header byte
};

inline void CountCall(const CallContext& context, const CallEnd& end) {
  const uint32_t w = context.index();
  if (end.cause != nullptr) {
    context.metrics.errors[static_cast<size_t>(end.cause->kind)]->Add(w);
    context.metrics.failed_calls[end.cause->maybe_processed ? 1 : 0]->Add(w);
  }
  if (end.metrics == nullptr) return;
  end.metrics->calls[static_cast<size_t>(end.status)]->Add(w);
  end.metrics->duration->Observe(w, static_cast<uint64_t>(end.total.count()));
}

// A record with what is known of a call before it is answered. `route` null: none matched; `request_id`: see
// request_id.h.
CallRecord RecordOf(const Client& client, const CanonicalRequest& request, const Route* route,
                    std::string_view request_id);
void NotifyObservers(const CallContext& context, const RouteConfig& config, const CallRecord& record);

}  // namespace sluice::proxy
