// What a call keeps of its attempts and waits for its log line and its spans, and whether there are spans of it.
#include <cstdio>
#include <utility>

#include "proxy/call/call.h"
#include "proxy/tracing/tracer.h"

namespace sluice::proxy {

// An attempt is about to begin.
void Call::NoteAttempt() {
  if (!trace_decided_ && config_->tracer != nullptr) BeginTrace();
  const bool traced = history_ != nullptr && history_->trace != nullptr && history_->trace->spoken;
  const bool may_be = config_->tracer != nullptr && config_->tracer->TakesLate();
  if (!traced && !may_be && config_->observers.empty() && sink.fetch() == nullptr) return;
  History& past = history();
  past.endpoint = attempt_.endpoint()->name();
  past.try_began = context.worker().now();
  past.try_hedges = false;
  past.try_span = NewSpan(attempt_);
}

void Call::BeginTrace() {
  trace_decided_ = true;
  auto trace = config_->tracer->Begin(request, context.worker().random());
  if (trace != nullptr) history().trace = std::move(trace);
}

// The span of an attempt that is about to begin. 0: the requests of the call say nothing of a trace.
uint64_t Call::NewSpan(Attempt& attempt) {
  if (history_ == nullptr || history_->trace == nullptr || !history_->trace->spoken) return 0;
  attempt.AskAtSending();
  return NewSpanId(context.worker().random());
}

// Here and not when the attempt begins: it may wait for a connection, while another one is sent.
void Call::OnSending(const Attempt& attempt) {
  Tracer::Put(*history_->trace, &attempt == &attempt_ ? history_->try_span : history_->hedge_span, request);
}

// The fetch belongs to this call, which leads it.
void Call::TraceFetch(Call& fetch) {
  if (!trace_decided_) BeginTrace();
  fetch.trace_decided_ = true;
  // Without a span of its own yet (only waits were noted) the call has nothing that a child could name.
  if (history_ == nullptr || history_->trace == nullptr || history_->trace->own.span == 0) return;
  fetch.history().trace = config_->tracer->Child(*history_->trace, context.worker().random());
}

CallTrace& Call::trace_notes() {
  if (!trace_decided_) BeginTrace();
  std::unique_ptr<CallTrace>& trace = history().trace;
  if (trace == nullptr) trace = std::make_unique<CallTrace>();
  return *trace;
}

// The call waits for another gate than for `former`, or for none; null: it waited for none.
void Call::TraceGate(const Gate* former) {
  if (config_->tracer == nullptr) return;
  CallTrace& trace = trace_notes();
  const base::TimePoint now = context.worker().now();
  if (former != nullptr) trace.waits.push_back({std::string(former->name()), now, now - trace.gate_since});
  trace.gate_since = now;
}

void Call::TraceWaits() {
  if (config_->tracer == nullptr) return;
  for (const Admission::Wait& wait : admission_->waits()) {
    trace_notes().waits.push_back({wait.bound, wait.ended, wait.time});
  }
}

// Whether the call's spans go to the exporter; then history_->trace is there, and has all of them but the last attempt.
bool Call::EndTrace(base::Nanos total) {
  const Tracer& tracer = *config_->tracer;
  if (!trace_decided_) BeginTrace();
  if (!tracer.Takes(history_ != nullptr ? history_->trace.get() : nullptr, status_, total)) return false;
  CallTrace& trace = trace_notes();
  if (trace.own.span == 0) tracer.Late(request, context.worker().random(), trace);
  return true;
}

Call::TryEnd Call::EndOfTry(const base::Error* error, GrpcCode status) {
  if (error != nullptr) return {base::Reason(error->kind), ToGrpcCode(*error)};
  return {ToString(status), status};
}

// This attempt has ended, and another one followed or was beside it.
void Call::NoteTry(TryEnd end) {
  NoteEndpoint();
  const History& past = history();
  NoteTry({past.endpoint, past.try_began, past.try_span, past.try_hedges}, end);
}

// The log's text is "e1:UNAVAILABLE:1.200ms", behind those that are there.
void Call::NoteTry(const Try& attempt, TryEnd end) {
  History& past = history();
  const base::TimePoint now = context.worker().now();
  char text[32];
  // When it began is kept only of a call that is observed.
  const base::Nanos took = attempt.began == base::TimePoint{} ? AgeOfAttempt(now) : now - attempt.began;
  std::snprintf(text, sizeof(text), ":%.3fms", static_cast<double>(took.count()) / 1e6);
  if (!past.tries.empty()) past.tries += ',';
  past.tries.append(attempt.endpoint).append(":").append(end.text).append(text);
  TraceTry(attempt, end);
}

void Call::TraceTry(const Try& attempt, TryEnd end) {
  // It may have begun before there was a tracer.
  if (config_->tracer == nullptr || attempt.began == base::TimePoint{}) return;
  trace_notes().attempts.push_back(
      {attempt.span, attempt.began, context.worker().now(), attempt.endpoint, end.text, end.code, attempt.hedge});
}

}  // namespace sluice::proxy
