// The steps of a call that fails because an operator has asked for it (fault.h).
#include <algorithm>

#include "proxy/call/call.h"
#include "proxy/call/fault.h"
#include "runtime/runtime.h"

namespace sluice::proxy {

using Kind = ProxyMetrics::FaultKind;

// The first fault that is for the call and meets it by chance. It is asked once; a fetch of the cache is not met, for
// each call that takes part in it was.
const Fault* Call::FindFault() {
  const http2::Field* path = request.Find(http2::Token::kPath);
  const std::string_view path_value = path == nullptr ? std::string_view() : path->value();
  for (const std::shared_ptr<const Fault>& fault : *context.faults) {
    if (!fault->Covers(route_->options.name, path_value, context.worker().now())) continue;
    if (fault->options.percent < 100 && context.worker().random().Unit() * 100 >= fault->options.percent) continue;
    extra().fault = fault;
    fault->calls.fetch_add(1, std::memory_order_relaxed);  // a count that is read alone
    return fault.get();
  }
  return nullptr;
}

bool Call::AskFaults() {
  if (over() || sink.fetch() != nullptr) return false;
  Extra& more = extra();
  if (!std::exchange(more.fault_asked, true)) {
    const Fault* fault = FindFault();
    if (fault == nullptr) return false;
    more.fault_at = context.worker().now() + fault->options.delay;
    if (fault->options.delay.count() > 0) context.metrics.Count(Kind::kDelay, context.index());
  }
  if (more.fault == nullptr || more.fault_at == base::kNever) return false;
  // One that was removed or has ended while it delayed the call does nothing more to it.
  const bool there = context.worker().now() < more.fault->ends &&
                     std::find(context.faults->begin(), context.faults->end(), more.fault) != context.faults->end();
  if (there && context.worker().now() < more.fault_at) {
    ArmTimer(more.fault_at);
    state_ = State::kAtGate;
    return true;
  }
  more.fault_at = base::kNever;
  if (there) BeginFault(*more.fault);
  return false;
}

void Call::BeginFault(const Fault& fault) {
  const FaultOptions& options = fault.options;
  if (options.abort != GrpcCode::kOk) {
    context.metrics.Count(Kind::kAbort, context.index());
    return FailByFault(options.abort, "ends calls");
  }
  if (!options.reset_after || sink.closed()) return;
  extra().cut = std::make_unique<CutFilter>(*options.reset_after, event_);
  sink.Wrap(*extra().cut);
}

void Call::FailByFault(GrpcCode code, std::string_view what) {
  base::Error error = base::MakeError(base::ErrorKind::kFaultInjected, "fault " + std::to_string(extra().fault->id));
  error.detail.append(", which an operator has asked for, ").append(what);
  error.grpc_code = static_cast<uint8_t>(code);
  if (!over()) return Fail(std::move(error));
  status_ = code;  // it was answered from the cache, and cut off
  error_ = std::make_unique<base::Error>(std::move(error));
}

// Whether the call, whose response may be cut off, has to wait until what is to be sent of it has left.
bool Call::WaitsForCut() {
  if (extra().cut == nullptr) return false;
  CutFilter& cut = *extra().cut;
  if (cut.cut() && !std::exchange(extra().cut_told, true)) {
    context.metrics.Count(Kind::kReset, context.index());
    FailByFault(GrpcCode::kInternal, "cuts responses off");
  }
  return cut.pending();
}

void Call::EndCut() {
  if (extra().cut == nullptr || !extra().cut->pending()) return;
  extra().cut->Abandon();
  event_.Set();
}

void Call::NoteSentToCut(size_t bytes) {
  if (extra().cut != nullptr) extra().cut->OnSent(bytes);
}

}  // namespace sluice::proxy
