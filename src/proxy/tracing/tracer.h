// Tracer: which calls are traced, what their requests say of it, and what of them goes to the exporter.
//
//   first attempt --Begin--> sampled by its caller or by the ratio: its attempts' requests say where they belong
//                       +--> not: its headers stay as they are
//   end           --Takes--> sampled, failed or slow: Write; one that had no trace gets one here (Late)
//
// So the decision that can see how the call went is made when it has ended, and a call that is not traced pays a look
// at its headers.
#pragma once

#include <cstdint>
#include <memory>

#include "base/random.h"
#include "http2/fields/header.h"
#include "proxy/call_record.h"
#include "proxy/options.h"
#include "proxy/tracing/call_trace.h"
#include "proxy/tracing/span_rings.h"

namespace sluice::proxy {

// Thread safety: any worker; `random` is the worker's.
class Tracer {
 public:
  // `options`: those of an enabled tracing.
  Tracer(const TracingOptions& options, std::shared_ptr<SpanRings> rings);
  // What was written still goes to the collector.
  ~Tracer() { rings_->Close(); }
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  // Of a call whose requests are to say where in a trace they are. Null: they are not.
  std::unique_ptr<CallTrace> Begin(const http2::HeaderList& request, base::Random& random) const;
  // Of a call that has not begun one, at its end: its headers were not touched. `out` has no span yet.
  void Late(const http2::HeaderList& request, base::Random& random, CallTrace& out) const;
  // Of a call that the proxy makes for another one, which is traced.
  std::unique_ptr<CallTrace> Child(const CallTrace& of, base::Random& random) const;
  // Whether a call that has not begun one may be taken when it ends.
  bool TakesLate() const { return takes_late_; }
  // Of a call that has ended; `trace` null: it has not begun one.
  bool Takes(const CallTrace* trace, GrpcCode status, base::Nanos total) const {
    if (trace != nullptr && trace->own.sampled) return true;
    return (options_.errors && status != GrpcCode::kOk) || total > slower_than_;
  }
  // On `worker`. Never waits; a call for which its ring has no room is dropped and counted.
  void Write(const CallRecord& record, const CallTrace& trace, uint32_t worker) const;
  // Puts into the request what an attempt with this span says.
  static void Put(const CallTrace& trace, uint64_t span, http2::HeaderList& request);

  const TracingOptions& options() const { return options_; }

 private:
  bool InRatio(const TraceId& id) const { return (id.low & kRandomPart) >= threshold_; }
  // The ratio's threshold is compared with the last 7 bytes of the trace's id, so proxies with the same ratio agree.
  static constexpr uint64_t kRandomPart = (uint64_t{1} << 56) - 1;

  const TracingOptions options_;
  const std::shared_ptr<SpanRings> rings_;
  const uint64_t threshold_;
  const base::Nanos slower_than_;
  const bool takes_late_;
};

// A span's id: never 0.
uint64_t NewSpanId(base::Random& random);

}  // namespace sluice::proxy
