// TraceSet: the tracer in force, and the exporters: its own, and those of tracers that a reload has replaced, until
// they have sent what they had.
//
// Thread safety: one thread at a time, but for totals() and exemplars().
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "metrics/exemplars.h"
#include "proxy/options.h"
#include "proxy/tracing/tracer.h"
#include "tracing/exporter.h"

namespace sluice::server {

class TraceSet {
 public:
  TraceSet();
  // Stops, if that has not been done.
  ~TraceSet() { Stop(); }

  // The tracer for these options: the one in force where they are the same, null where tracing is off. A new one has an
  // exporter at once; if no snapshot takes it, that ends.
  std::shared_ptr<const proxy::Tracer> TracerFor(const proxy::TracingOptions& options, uint32_t workers);
  // From here on that one is in force.
  void Take(std::shared_ptr<const proxy::Tracer> tracer) { current_ = std::move(tracer); }
  // No call is written any more. Blocks until what was written is sent, Exporter::kFlushMax and kGrace at most.
  void Stop();

  const tracing::ExportTotals& totals() const { return *totals_; }
  // Of sluice_call_duration_seconds. Any thread.
  const metrics::Exemplars& exemplars() const { return *exemplars_; }

 private:
  struct Export {
    std::shared_ptr<proxy::SpanRings> rings;
    std::unique_ptr<tracing::Exporter> exporter;
  };
  const std::shared_ptr<tracing::ExportTotals> totals_;
  const std::shared_ptr<metrics::Exemplars> exemplars_;
  std::shared_ptr<const proxy::Tracer> current_;
  std::vector<Export> exports_;
};

}  // namespace sluice::server
