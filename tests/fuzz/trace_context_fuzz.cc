// traceparent, tracestate and grpc-trace-bin: any text is refused or read as W3C Trace Context says, and what is
// written is read back the same.
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/check.h"
#include "proxy/tracing/trace_context.h"

namespace sluice::proxy {
namespace {

// The grammar of 3.2 again, by its places.
bool IsTraceparent(std::string_view text) {
  if (text.size() < 55) return false;
  bool trace = false, span = false;
  for (size_t i = 0; i < 55; ++i) {
    if (i == 2 || i == 35 || i == 52) {
      if (text[i] != '-') return false;
      continue;
    }
    if (std::string_view("0123456789abcdef").find(text[i]) == std::string_view::npos) return false;
    if (i > 2 && i < 35) trace |= text[i] != '0';
    if (i > 35 && i < 52) span |= text[i] != '0';
  }
  if (!trace || !span || text.starts_with("ff")) return false;
  return text.size() == 55 || (!text.starts_with("00") && text[55] == '-');
}

void CheckWritten(const TraceContext& context) {
  const TraceparentText text = FormatTraceparent(context);
  SLUICE_CHECK(ParseTraceparent({text.data(), text.size()}) == context);
  const GrpcTraceText binary = FormatGrpcTrace(context);
  std::optional<TraceContext> back = ParseGrpcTrace({binary.data(), binary.size()});
  SLUICE_CHECK(back.has_value());
  back->random = context.random;  // the binary form has no such flag
  SLUICE_CHECK(*back == context);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::optional<TraceContext> parent = ParseTraceparent(text);
  SLUICE_CHECK(parent.has_value() == IsTraceparent(text));
  if (parent) CheckWritten(*parent);
  if (const std::optional<TraceContext> binary = ParseGrpcTrace(text)) CheckWritten(*binary);
  size_t members = 0;
  if (IsTracestate(text, members)) SLUICE_CHECK(members <= kTracestateMembersMax);
  return 0;
}

}  // namespace sluice::proxy
