#include "server/trace_set.h"

#include <utility>

#include "base/clock.h"
#include "server/version.h"

namespace sluice::server {

TraceSet::TraceSet()
    : totals_(std::make_shared<tracing::ExportTotals>()),
      exemplars_(std::make_shared<metrics::Exemplars>("sluice_call_duration_seconds", "route")) {}

std::shared_ptr<const proxy::Tracer> TraceSet::TracerFor(const proxy::TracingOptions& options, uint32_t workers) {
  std::erase_if(exports_, [](const Export& one) { return one.exporter->ended(); });
  if (!options.enabled()) return nullptr;
  if (current_ != nullptr && current_->options() == options) return current_;
  auto rings = std::make_shared<proxy::SpanRings>(workers, options.buffer_bytes);
  const auto seed = static_cast<uint64_t>(base::Clock::Steady().Now().time_since_epoch().count());
  auto exporter = std::make_unique<tracing::Exporter>(options, std::string(kVersion), rings, totals_, exemplars_, seed);
  exports_.push_back({rings, std::move(exporter)});
  return std::make_shared<const proxy::Tracer>(options, std::move(rings));
}

void TraceSet::Stop() {
  current_ = nullptr;
  for (Export& one : exports_) one.rings->Close();
  for (Export& one : exports_) one.exporter->Wait();
  exports_.clear();
}

}  // namespace sluice::server
