#include "proxy/call/limit_refusal.h"

#include <string>

#include "base/hash.h"
#include "proxy/call/call_context.h"

namespace sluice::proxy {

using base::ErrorKind;
using limits::Refusal;

namespace {

ErrorKind KindOf(Refusal refusal, bool rate) {
  switch (refusal) {
    case Refusal::kQueueTime:
      return ErrorKind::kQueueTime;
    case Refusal::kTooLate:
      return ErrorKind::kDeadlineTooNear;
    case Refusal::kTableFull:
    case Refusal::kDebt:
      return ErrorKind::kTooManyClients;
    default:
      return rate ? ErrorKind::kRateLimited : ErrorKind::kConcurrencyLimited;
  }
}

std::string Millis(base::Nanos time) { return std::to_string((time.count() + 500'000) / 1'000'000) + " ms"; }

// The wait that was, or that would have been.
std::string WaitText(const Admission::Refused& refused, const limits::Verdict& verdict) {
  if (refused.waited.count() > 0) return "it has waited " + Millis(refused.waited);
  return "it would wait " + Millis(verdict.retry_after);
}

std::string Text(const Admission& admission, const limits::Verdict& verdict, base::Nanos left) {
  const Admission::Refused& refused = admission.refused();
  switch (verdict.refusal) {
    case Refusal::kQueueTime:
      return WaitText(refused, verdict) + ", queue_time is " + Millis(refused.queue_time);
    case Refusal::kTooLate: {
      std::string text = WaitText(refused, verdict) + ", of its deadline " + Millis(left) + " are left";
      if (refused.service.count() > 0) text += ", and calls of its method lately took " + Millis(refused.service);
      return text;
    }
    default:
      return std::string(ToString(verdict.refusal));
  }
}

// Of a method of a cluster.
uint64_t KeyOf(const Admission& admission, const http2::HeaderList& request) {
  const http2::Field* path = request.Find(http2::Token::kPath);
  return base::Hash64(path == nullptr ? std::string_view() : path->value(),
                      reinterpret_cast<uintptr_t>(&admission.cluster_limits()));
}

}  // namespace

base::Nanos RecentServiceTime(const CallContext& context, const Admission& admission,
                              const http2::HeaderList& request) {
  if (context.service_times == nullptr) return base::Nanos(0);
  return context.service_times->Of(KeyOf(admission, request), context.worker().now());
}

void NoteAnswer(CallContext& context, Admission& admission, const http2::HeaderList& request, bool failed) {
  admission.Forget();
  if (failed || !admission.request_was_whole() ||
      (++context.answers_behind_limits % kSampled != 0 && admission.waits().empty()))
    return;
  const base::TimePoint now = context.worker().now();
  if (context.service_times == nullptr) context.service_times = std::make_unique<limits::ServiceTimes>();
  context.service_times->Note(KeyOf(admission, request), now - admission.passed_at(), now);
}

base::Error RefusalByLimit(const Admission& admission, const limits::Verdict& verdict, base::Nanos left) {
  const std::string& bound = admission.bound()->name;
  base::Error error = base::MakeError(KindOf(verdict.refusal, admission.is_rate()),
                                      bound + " refused the call: " + Text(admission, verdict, left));
  error.bound = bound;
  error.retry_after = verdict.retry_after;
  return error;
}

}  // namespace sluice::proxy
