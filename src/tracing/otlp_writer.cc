#include "tracing/otlp_writer.h"

#include <opentelemetry/proto/collector/trace/v1/trace_service.pb.h>

#include <algorithm>
#include <utility>

#include "base/visible_text.h"
#include "proxy/grpc_status.h"

namespace sluice::tracing {
namespace {

namespace common = opentelemetry::proto::common::v1;
namespace trace = opentelemetry::proto::trace::v1;
using opentelemetry::proto::collector::trace::v1::ExportTraceServiceRequest;
using opentelemetry::proto::resource::v1::Resource;
using proxy::GrpcCode;
using proxy::SpanAttempt;
using proxy::SpanText;
using proxy::SpanView;
using proxy::SpanWait;
using trace::ResourceSpans;
using trace::ScopeSpans;
using trace::Span;
using trace::Status;

// Protobuf's strings are UTF-8, which what clients send need not be, and where a text was cut a character may be too. A
// receiver that looks refuses the whole message otherwise, with all other calls in it.
bool Plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

void PutString(ReverseBuffer& out, uint32_t field, std::string_view text) {
  return Plain(text) ? out.Text(field, text) : out.Text(field, base::VisibleText(text));
}

// Attributes of a span, and of an event, have the same shape.
void PutText(ReverseBuffer& out, uint32_t field, std::string_view key, std::string_view value) {
  if (value.empty()) return;
  const size_t mark = out.size();
  PutString(out, common::AnyValue::kStringValueFieldNumber, value);
  out.Wrap(common::KeyValue::kValueFieldNumber, mark);
  out.Text(common::KeyValue::kKeyFieldNumber, key);
  out.Wrap(field, mark);
}

void PutNumber(ReverseBuffer& out, uint32_t field, std::string_view key, uint64_t value) {
  const size_t mark = out.size();
  out.Number(common::AnyValue::kIntValueFieldNumber, value);
  out.Wrap(common::KeyValue::kValueFieldNumber, mark);
  out.Text(common::KeyValue::kKeyFieldNumber, key);
  out.Wrap(field, mark);
}

void PutTrue(ReverseBuffer& out, uint32_t field, std::string_view key) {
  const size_t mark = out.size();
  out.Number(common::AnyValue::kBoolValueFieldNumber, 1);
  out.Wrap(common::KeyValue::kValueFieldNumber, mark);
  out.Text(common::KeyValue::kKeyFieldNumber, key);
  out.Wrap(field, mark);
}

constexpr uint32_t kAttributes = Span::kAttributesFieldNumber;

// OpenTelemetry's conventions for gRPC: of a server only these are its own failure.
bool IsServerError(GrpcCode code) {
  switch (code) {
    case GrpcCode::kUnknown:
    case GrpcCode::kDeadlineExceeded:
    case GrpcCode::kUnimplemented:
    case GrpcCode::kInternal:
    case GrpcCode::kUnavailable:
    case GrpcCode::kDataLoss:
      return true;
    default:
      return false;
  }
}

void PutError(ReverseBuffer& out, std::string_view message) {
  const size_t mark = out.size();
  out.Number(Status::kCodeFieldNumber, Status::STATUS_CODE_ERROR);
  if (!message.empty()) PutString(out, Status::kMessageFieldNumber, message);
  out.Wrap(Span::kStatusFieldNumber, mark);
}

// "/pkg.Service/Get" is the service "pkg.Service" and the method "Get".
struct Method {
  explicit Method(std::string_view path) {
    if (path.starts_with('/')) path.remove_prefix(1);
    name = path;
    const size_t slash = path.rfind('/');
    service = slash == path.npos ? std::string_view() : path.substr(0, slash);
    method = slash == path.npos ? path : path.substr(slash + 1);
  }
  std::string_view name, service, method;
};

void PutMethod(ReverseBuffer& out, const Method& method, int status) {
  PutNumber(out, kAttributes, "rpc.grpc.status_code", static_cast<uint64_t>(status));
  PutText(out, kAttributes, "rpc.method", method.method);
  PutText(out, kAttributes, "rpc.service", method.service);
  PutText(out, kAttributes, "rpc.system", "grpc");
}

void PutEvent(ReverseBuffer& out, std::string_view name, int64_t at, const SpanWait* wait = nullptr) {
  const size_t mark = out.size();
  if (wait != nullptr) {
    PutNumber(out, Span::Event::kAttributesFieldNumber, "sluice.wait_ns", static_cast<uint64_t>(wait->nanos));
    PutText(out, Span::Event::kAttributesFieldNumber, "sluice.limit", wait->name);
  }
  out.Text(Span::Event::kNameFieldNumber, name);
  out.Fixed64(Span::Event::kTimeUnixNanoFieldNumber, static_cast<uint64_t>(at));
  out.Wrap(Span::kEventsFieldNumber, mark);
}

void PutSpanId(ReverseBuffer& out, uint32_t field, uint64_t id) {
  const size_t mark = out.size();
  out.BigEndian(id);
  out.Wrap(field, mark);
}

}  // namespace

OtlpWriter::OtlpWriter(std::string service_name, std::string version, uint64_t seed)
    : service_name_(std::move(service_name)), version_(std::move(version)), random_(seed) {}

// What all spans of the call begin with.
void OtlpWriter::Head(const SpanView& call, uint64_t span, uint64_t parent, int64_t began, int64_t ended, int kind) {
  out_.Fixed64(Span::kEndTimeUnixNanoFieldNumber, static_cast<uint64_t>(ended));
  out_.Fixed64(Span::kStartTimeUnixNanoFieldNumber, static_cast<uint64_t>(began));
  out_.Number(Span::kKindFieldNumber, static_cast<uint64_t>(kind));
  PutString(out_, Span::kNameFieldNumber, Method(call.text(SpanText::kPath)).name);
  if (parent != 0) PutSpanId(out_, Span::kParentSpanIdFieldNumber, parent);
  if (const std::string_view state = call.text(SpanText::kState); !state.empty())
    PutString(out_, Span::kTraceStateFieldNumber, state);
  PutSpanId(out_, Span::kSpanIdFieldNumber, span);
  const size_t mark = out_.size();
  out_.BigEndian(call.words.trace.low);
  out_.BigEndian(call.words.trace.high);
  out_.Wrap(Span::kTraceIdFieldNumber, mark);
  ++spans_;
}

void OtlpWriter::Attempt(const SpanView& call, size_t index, int64_t wall_offset) {
  const SpanAttempt& attempt = call.attempts[index];
  const size_t mark = out_.size();
  out_.Fixed32(Span::kFlagsFieldNumber, (call.words.sampled ? 1u : 0) | (call.words.random ? 2u : 0));
  if (attempt.code != 0) PutError(out_, attempt.end);
  if (attempt.hedge) PutTrue(out_, kAttributes, "sluice.hedge");
  PutText(out_, kAttributes, "sluice.end", attempt.end);
  PutNumber(out_, kAttributes, "sluice.attempt", index + 1);
  PutText(out_, kAttributes, "sluice.endpoint", attempt.endpoint);
  PutMethod(out_, Method(call.text(SpanText::kPath)), attempt.code);
  // One whose request said nothing has an id that no other span names.
  const uint64_t span = attempt.span != 0 ? attempt.span : random_.Next() | 1;
  Head(call, span, call.words.span, attempt.began + wall_offset, attempt.ended + wall_offset, Span::SPAN_KIND_CLIENT);
  out_.Wrap(ScopeSpans::kSpansFieldNumber, mark);
}

void OtlpWriter::Add(const SpanView& call, int64_t wall_offset) {
  for (size_t i = call.attempts.size(); i-- > 0;) Attempt(call, i, wall_offset);
  const proxy::SpanWords& words = call.words;
  const int64_t ended = words.ended + wall_offset, began = ended - words.durations[2];
  const size_t mark = out_.size();
  out_.Fixed32(Span::kFlagsFieldNumber, (words.sampled ? 1u : 0) | (words.random ? 2u : 0));
  const auto code = static_cast<GrpcCode>(words.status);
  if (IsServerError(code)) PutError(out_, call.text(SpanText::kDetail));
  if (words.durations[1] >= 0) PutEvent(out_, "response", began + words.durations[1]);
  if (words.durations[0] >= 0) PutEvent(out_, "sent", began + words.durations[0]);
  for (size_t i = call.waits.size(); i-- > 0;) {
    PutEvent(out_, "waited", call.waits[i].ended + wall_offset, &call.waits[i]);
  }
  PutNumber(out_, kAttributes, "sluice.response_bytes", words.bytes[1]);
  PutNumber(out_, kAttributes, "sluice.request_bytes", words.bytes[0]);
  if (words.fetch) PutTrue(out_, kAttributes, "sluice.fetch");
  PutText(out_, kAttributes, "sluice.request_id", call.text(SpanText::kRequestId));
  PutText(out_, kAttributes, "sluice.cache", call.text(SpanText::kCache));
  PutText(out_, kAttributes, "sluice.limit", call.text(SpanText::kLimit));
  PutText(out_, kAttributes, "sluice.processed", call.text(SpanText::kProcessed));
  PutText(out_, kAttributes, "sluice.cause", call.text(SpanText::kCause));
  PutNumber(out_, kAttributes, "sluice.attempts", words.attempts);
  PutText(out_, kAttributes, "sluice.cluster", call.text(SpanText::kCluster));
  PutText(out_, kAttributes, "sluice.route", call.text(SpanText::kRoute));
  PutText(out_, kAttributes, "sluice.client", call.text(SpanText::kClient));
  PutText(out_, kAttributes, "server.address", call.text(SpanText::kAuthority));
  PutText(out_, kAttributes, "client.address", call.text(SpanText::kPeer));
  PutMethod(out_, Method(call.text(SpanText::kPath)), words.status);
  Head(call, words.span, words.parent, began, ended, words.fetch ? Span::SPAN_KIND_INTERNAL : Span::SPAN_KIND_SERVER);
  out_.Wrap(ScopeSpans::kSpansFieldNumber, mark);
  ++calls_;
}

ReverseBuffer OtlpWriter::Take() {
  size_t mark = out_.size();
  out_.Text(common::InstrumentationScope::kVersionFieldNumber, version_);
  out_.Text(common::InstrumentationScope::kNameFieldNumber, "sluice");
  out_.Wrap(ScopeSpans::kScopeFieldNumber, mark);
  out_.Wrap(ResourceSpans::kScopeSpansFieldNumber, 0);
  mark = out_.size();
  PutText(out_, Resource::kAttributesFieldNumber, "service.name", service_name_);
  out_.Wrap(ResourceSpans::kResourceFieldNumber, mark);
  out_.Wrap(ExportTraceServiceRequest::kResourceSpansFieldNumber, 0);
  calls_ = spans_ = 0;
  return std::exchange(out_, {});
}

}  // namespace sluice::tracing
