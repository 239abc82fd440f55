#include "proxy/tracing/tracer.h"

#include <optional>
#include <string>
#include <utility>

#include "proxy/tracing/span_record.h"

namespace sluice::proxy {

using http2::Field;
using http2::HeaderList;
using http2::Token;

namespace {

struct Caller {
  TraceContext context;
  bool by_traceparent = false;
};

bool IsRepeated(const HeaderList& request, Token token) {
  int found = 0;
  for (const Field* field : request) found += field->token == token;
  return found > 1;
}

// The caller, if the request says one that may be followed: by traceparent, else by grpc-trace-bin. A name that is
// there twice says nothing.
std::optional<Caller> CallerOf(const HeaderList& request) {
  if (const Field* field = request.Find(Token::kTraceparent); field != nullptr) {
    const auto context = ParseTraceparent(field->value());
    if (context && !IsRepeated(request, Token::kTraceparent)) return Caller{*context, true};
  }
  const Field* field = request.Find(Token::kGrpcTraceBin);
  if (field == nullptr) return std::nullopt;
  const auto context = ParseGrpcTrace(field->value());
  if (!context || IsRepeated(request, Token::kGrpcTraceBin)) return std::nullopt;
  return Caller{*context, false};
}

// tracestate belongs to the traceparent beside it: without one that was read it is not looked at (W3C Trace Context
// 4.3), and one that is not legal is dropped whole.
bool KeepsState(const HeaderList& request) {
  if (request.Find(Token::kTraceparent) == nullptr) return false;
  size_t members = 0;
  for (const Field* field : request) {
    if (field->token == Token::kTracestate && !IsTracestate(field->value(), members)) return false;
  }
  return true;
}

// Of several fields one list (W3C Trace Context 3.3.1).
std::string StateOf(const HeaderList& request) {
  std::string out;
  for (const Field* field : request) {
    if (field->token != Token::kTracestate) continue;
    if (!out.empty()) out += ',';
    out += field->value();
  }
  return out;
}

uint64_t ThresholdOf(double ratio) {
  constexpr double kAll = 0x1p56;
  return ratio >= 1 ? 0 : static_cast<uint64_t>((1 - ratio) * kAll);
}

void Fill(const std::optional<Caller>& caller, const HeaderList& request, TraceId id, base::Random& random,
          CallTrace& out) {
  if (caller) {
    out.own = caller->context;
    out.parent = caller->context.span;
    out.keeps_state = caller->by_traceparent && KeepsState(request);
  } else {
    out.own.trace = id;
    out.own.random = true;
  }
  out.own.span = NewSpanId(random);
}

TraceId NewTraceId(base::Random& random) { return {random.Next() | 1, random.Next()}; }

}  // namespace

uint64_t NewSpanId(base::Random& random) { return random.Next() | 1; }

Tracer::Tracer(const TracingOptions& options, std::shared_ptr<SpanRings> rings)
    : options_(options),
      rings_(std::move(rings)),
      threshold_(ThresholdOf(options.ratio)),
      slower_than_(options.slower_than.count() > 0 ? base::Nanos(options.slower_than) : base::Nanos::max()),
      takes_late_(options.errors || options.slower_than.count() > 0) {}

std::unique_ptr<CallTrace> Tracer::Begin(const HeaderList& request, base::Random& random) const {
  const bool says_all = options_.propagate == TracingOptions::Propagate::kAll;
  if (!options_.parent && options_.ratio == 0 && !says_all) return nullptr;
  const std::optional<Caller> caller = CallerOf(request);
  TraceId id;
  bool sampled = false;
  if (caller && options_.parent) {
    sampled = caller->context.sampled;
  } else if (options_.ratio > 0 || says_all) {
    id = caller ? caller->context.trace : NewTraceId(random);
    sampled = options_.ratio > 0 && InRatio(id);
  }
  if (!sampled && !says_all) return nullptr;
  auto trace = std::make_unique<CallTrace>();
  Fill(caller, request, id, random, *trace);
  trace->own.sampled = sampled;
  trace->spoken = true;
  return trace;
}

void Tracer::Late(const HeaderList& request, base::Random& random, CallTrace& out) const {
  const std::optional<Caller> caller = CallerOf(request);
  Fill(caller, request, caller ? TraceId{} : NewTraceId(random), random, out);
  out.own.sampled = false;
}

std::unique_ptr<CallTrace> Tracer::Child(const CallTrace& of, base::Random& random) const {
  auto trace = std::make_unique<CallTrace>();
  trace->own = of.own;
  trace->own.span = NewSpanId(random);
  trace->parent = of.own.span;
  trace->spoken = of.spoken;
  trace->keeps_state = of.keeps_state;
  return trace;
}

void Tracer::Write(const CallRecord& record, const CallTrace& trace, uint32_t worker) const {
  const std::string state = trace.keeps_state ? StateOf(*record.request) : std::string();
  concurrent::RecordRing& ring = rings_->ring(worker);
  uint8_t* const room = ring.Begin(MeasureSpan(record, trace, state));
  if (room == nullptr) [[unlikely]]
    return;
  CopySpan(record, trace, state, room);
  if (ring.End()) rings_->bell().Ring();
}

void Tracer::Put(const CallTrace& trace, uint64_t span, HeaderList& request) {
  TraceContext context = trace.own;
  context.span = span;
  const TraceparentText text = FormatTraceparent(context);
  request.Set(Token::kTraceparent, "traceparent", {text.data(), text.size()});
  if (!trace.keeps_state) request.Remove(Token::kTracestate);
  if (request.Find(Token::kGrpcTraceBin) == nullptr) return;
  const GrpcTraceText binary = FormatGrpcTrace(context);
  request.Set(Token::kGrpcTraceBin, "grpc-trace-bin", {binary.data(), binary.size()});
}

}  // namespace sluice::proxy
