// OtlpWriter: traced calls as an ExportTraceServiceRequest of OTLP: a span for the call, with its phases and waits as
// events, and one for each attempt below it. docs/tracing.md has each attribute.
//
// One thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/random.h"
#include "proxy/tracing/span_record.h"
#include "tracing/reverse_buffer.h"

namespace sluice::tracing {

class OtlpWriter {
 public:
  // What has the scope's version.
  OtlpWriter(std::string service_name, std::string version, uint64_t seed);

  // `wall_offset`: from the steady clock to the time since 1970, in nanoseconds.
  void Add(const proxy::SpanView& call, int64_t wall_offset);
  uint32_t calls() const { return calls_; }
  uint32_t spans() const { return spans_; }
  size_t bytes() const { return out_.size(); }
  // The request with all that was added, which is begun anew.
  ReverseBuffer Take();

 private:
  void Attempt(const proxy::SpanView& call, size_t index, int64_t wall_offset);
  void Head(const proxy::SpanView& call, uint64_t span, uint64_t parent, int64_t began, int64_t ended, int kind);

  const std::string service_name_, version_;
  base::Random random_;
  ReverseBuffer out_;
  uint32_t calls_ = 0, spans_ = 0;
};

}  // namespace sluice::tracing
