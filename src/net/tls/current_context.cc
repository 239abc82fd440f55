#include "net/tls/current_context.h"

#include <array>
#include <optional>

#include "base/log.h"

namespace sluice::net {

CurrentTlsContext::CurrentTlsContext(metrics::Registry& registry, std::string_view side, std::string_view name)
    : label_(std::string(side).append(" ").append(name)) {
  std::array<std::string_view, kTlsFailures> results;
  for (size_t i = 0; i < kTlsFailures; ++i) {
    const auto failure = static_cast<TlsFailure>(i);
    results[i] = failure == TlsFailure::kNone ? "ok" : ToString(failure);
  }
  const auto ended = registry.AddCounters("sluice_tls_handshakes_total", "TLS handshakes ended, by result.",
                                          {{"side", std::string(side)}, {"name", std::string(name)}}, "result", results,
                                          metrics::Show::kFirst);
  for (size_t i = 0; i < kTlsFailures; ++i) ended_[i] = &ended[i];
}

std::shared_ptr<const TlsContext> CurrentTlsContext::context() const {
  std::lock_guard lock(mutex_);
  return context_;
}

void CurrentTlsContext::Put(std::shared_ptr<const TlsContext> context) {
  std::lock_guard lock(mutex_);
  context_.swap(context);  // if this was the last reference, the former one is destroyed without the lock
}

void CurrentTlsContext::Ended(size_t worker, base::TimePoint now, TlsFailure failure, std::string_view peer,
                              std::string_view detail) {
  ended_[static_cast<size_t>(failure)]->Add(worker);
  if (failure == TlsFailure::kNone) return;
  std::optional<std::string> note;
  {
    std::lock_guard lock(mutex_);
    note = log_.Allow(now);
  }
  if (note)
    SLUICE_LOG_WARN("{}: TLS handshake with {} failed: {}: {}{}", label_, peer, ToString(failure), detail, *note);
}

}  // namespace sluice::net
