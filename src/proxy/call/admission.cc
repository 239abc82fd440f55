#include "proxy/call/admission.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace sluice::proxy {

using limits::ConcurrencyLimiter;
using limits::LimiterMetrics;
using limits::RateLimiter;
using limits::Refusal;
using limits::Verdict;

bool Admission::Needed(const RouteConfig& config, const Route& on, const upstream::ClusterState& state) {
  const ProcessLimits* process = config.limits.get();
  const RouteLimits* route = on.limits.get();
  const upstream::ClusterLimits& cluster = *state.limits;
  return (process != nullptr && process->concurrency->enabled()) ||
         (route != nullptr && (route->rate->enabled() || route->client_rate->enabled())) || cluster.rate->enabled() ||
         cluster.concurrency->enabled() || state.EndpointsLimited();
}

Admission::~Admission() {
  waiting_.reset();
  cluster_.reset();
  for (auto grant = grants_.rbegin(); grant != grants_.rend(); ++grant) {
    if (grant->held) grant->limiter->Release();
  }
  process_.reset();
}

bool Admission::Start(RateLimiter& limiter, base::TimePoint now) {
  const RateLimiter::Start start = limiter.TryStart(now);
  if (start == RateLimiter::Start::kNo) return false;
  if (start != RateLimiter::Start::kUnlimited) grant() = {&limiter, start == RateLimiter::Start::kHeld};
  return true;
}

// The way of nearly all calls: no queue is looked into.
[[gnu::always_inline]] inline bool Admission::GoesAtOnce(base::TimePoint now, const Asker& asker) {
  const RouteLimits* route = route_.limits.get();
  switch (stage_) {
    case kProcess:
      return config_->limits == nullptr || Take(*config_->limits->concurrency, process_);
    case kRouteRate:
      return route == nullptr || Start(*route->rate, now);
    case kClientRate:
      if (route == nullptr || !route->client_rate->enabled()) return true;
      client_rate_ = route->client_rate->Get(asker.client_key(), now);
      return client_rate_ != nullptr && Start(*client_rate_, now);
    case kClusterRate:
      return Start(*cluster_limits_->rate, now);
    case kCluster:
      return Take(*cluster_limits_->concurrency, cluster_);
    default:
      return !gave_back_process_ || Take(*config_->limits->concurrency, process_);
  }
}

Verdict Admission::Queue(base::TimePoint now, base::TimePoint deadline, const Asker& asker) {
  const RouteLimits* route = route_.limits.get();
  switch (stage_) {
    case kRouteRate:
      return QueueForRate(*route->rate, route->rate_bound, now, deadline, asker);
    case kClientRate: {
      if (client_rate_ != nullptr) return QueueForRate(*client_rate_, route->client_rate_bound, now, deadline, asker);
      bound_ = &route->client_rate_bound;
      if (waiting_ == nullptr) waiting_.reset(new Waiting);
      return Settle(Verdict::Refused(Refusal::kTableFull, std::chrono::milliseconds(1000)), {}, now);
    }
    case kClusterRate:
      return QueueForRate(*cluster_limits_->rate, cluster_limits_->rate_bound, now, deadline, asker);
    case kCluster:
      return QueueForPermit(*cluster_limits_->concurrency, cluster_limits_->concurrency_bound, cluster_, now, deadline,
                            asker);
    default:
      return QueueForPermit(*config_->limits->concurrency, config_->limits->bound, process_, now, deadline, asker);
  }
}

// A call must leave while the service has time for it: twice the mean of what it lately took, because half of the calls
// take longer than that.
template <typename Limiter>
Admission::End Admission::EndOfWait(const Limiter& limiter, base::TimePoint now, base::TimePoint deadline,
                                    const Asker& asker) {
  Refused& refused = waiting_->refused;
  if (!waits_now_) {
    refused.service = deadline == base::kNever ? base::Nanos(0) : asker.service_time();
    refused.queue_time = limiter.queue_time();
    waiting_->since = now;
  }
  End end{base::kNever, Refusal::kQueueTime};
  if (refused.queue_time.count() > 0) end.at = base::DeadlineAfter(waiting_->since, refused.queue_time);
  // Without an estimate the call's own timer ends its wait, with the status that says so.
  const bool judged = deadline != base::kNever && (refused.service.count() > 0 || !waits_now_);
  if (judged && deadline - 2 * refused.service <= end.at) end = {deadline - 2 * refused.service, Refusal::kTooLate};
  return end;
}

Verdict Admission::QueueForPermit(ConcurrencyLimiter& limiter, const LimiterMetrics& bound, Permit& permit,
                                  base::TimePoint now, base::TimePoint deadline, const Asker& asker) {
  bound_ = &bound;
  if (waiting_ == nullptr) waiting_.reset(new Waiting);
  const End end = EndOfWait(limiter, now, deadline, asker);
  ConcurrencyLimiter::Ticket& ticket = waiting_->permit;
  const bool late = end.why == Refusal::kTooLate;
  Verdict verdict = waits_now_ ? ticket.Poll() : ticket.Ask(limiter, flow_, late ? end.at : base::kNever);
  if (verdict.kind == Verdict::Kind::kWait && now >= end.at) verdict = ticket.Expire(end.why);
  if (verdict.kind == Verdict::Kind::kGo && waits_now_ && late && now > end.at) {
    ticket.Drop();  // the unit is for a call that has the time
    verdict = limiter.Refuse(end.why);
  }
  verdict = Settle(verdict, end, now);
  if (verdict.kind == Verdict::Kind::kGo && ticket.Detach()) permit.reset(&limiter);
  return verdict;
}

Verdict Admission::QueueForRate(RateLimiter& limiter, const LimiterMetrics& bound, base::TimePoint now,
                                base::TimePoint deadline, const Asker& asker) {
  bound_ = &bound;
  if (waiting_ == nullptr) waiting_.reset(new Waiting);
  const End end = EndOfWait(limiter, now, deadline, asker);
  RateLimiter::Ticket& ticket = waiting_->rate;
  Verdict verdict = waits_now_ ? ticket.Poll(now) : ticket.Ask(limiter, now, end.at);
  if (verdict.kind == Verdict::Kind::kWait && now >= end.at) verdict = ticket.Expire(now, end.why);
  if (verdict.refusal == Refusal::kTooLate) verdict.refusal = end.why;  // it would start after end.at
  verdict = Settle(verdict, end, now);
  if (verdict.kind != Verdict::Kind::kGo) return verdict;
  const bool held = ticket.Detach();
  if (held || limiter.enabled()) grant() = {&limiter, held};
  return verdict;
}

Verdict Admission::Settle(Verdict verdict, const End& end, base::TimePoint now) {
  if (verdict.kind == Verdict::Kind::kWait) {
    if (!std::exchange(waits_now_, true)) GiveBackShared();
    verdict.check_at = std::min(verdict.check_at, end.at);
    return verdict;
  }
  waiting_->refused.waited = waits_now_ ? now - waiting_->since : base::Nanos(0);
  EndWait(now);
  if (verdict.kind == Verdict::Kind::kRefused) bound_->refused(verdict.refusal)->Add(worker_);
  return verdict;
}

// It begins to wait, and must not keep others from limits that it does not wait at. A call that
// holds the process's unit waits at no other limit with it, so no two calls wait for each other.
void Admission::GiveBackShared() {
  if (stage_ == kProcess || stage_ == kProcessAgain) return;
  gave_back_process_ |= process_ != nullptr;
  process_.reset();
  if (stage_ != kEndpoint) return;
  gave_back_cluster_ |= cluster_ != nullptr;
  cluster_.reset();
}

void Admission::EndWait(base::TimePoint now) {
  if (!waits_now_) return;
  waits_now_ = false;
  const base::Nanos time = now - waiting_->since;
  waiting_->over.push_back({bound_->name, time, now});
  bound_->waited->Observe(worker_, static_cast<uint64_t>(time.count()));
}

// From the first stage on, each known to the compiler. False: stage_ is the first that does not let the call go.
template <Admission::Stage... stages>
[[gnu::always_inline]] inline bool Admission::PassesAtOnce(base::TimePoint now, const Asker& asker) {
  return ((stage_ = stages, GoesAtOnce(now, asker)) && ...);
}

Verdict Admission::Advance(base::TimePoint now, base::TimePoint deadline, const Asker& asker) {
  bool asked = false;  // stage_, in vain
  if (stage_ == kProcess && !waits_now_) {
    asked = !PassesAtOnce<kProcess, kRouteRate, kClientRate, kClusterRate, kCluster, kProcessAgain>(now, asker);
    if (!asked) [[likely]]
      stage_ = kEndpoint;
  }
  for (; stage_ < kEndpoint; ++stage_) {
    if (!waits_now_ && !std::exchange(asked, false) && GoesAtOnce(now, asker)) continue;
    const Verdict verdict = Queue(now, deadline, asker);
    if (verdict.kind != Verdict::Kind::kGo) return verdict;
  }
  gave_back_process_ = gave_back_cluster_ = false;
  passed_at_ = now;
  return Verdict::Go();
}

void Admission::Pause() {
  if (stage_ != kEndpoint || endpoint_granted_) return;
  GiveBackShared();
  if (gave_back_process_ || gave_back_cluster_) stage_ = kCluster;
}

void Admission::RefundRates() {
  if (waiting_ != nullptr) waiting_->rate.Drop();
  for (Grant& grant : grants_) {
    if (grant.limiter == nullptr) continue;
    const Grant back = std::exchange(grant, Grant());
    back.held ? back.limiter->ReleaseUnused() : back.limiter->Refund();
  }
}

void Admission::Forget() {
  for (Grant& grant : grants_) {
    if (!grant.held) grant.limiter = nullptr;
  }
  // A pointer to a client's limiter keeps its place in the table.
  if (!grants_[kClientRate - kRouteRate].held) client_rate_.reset();
}

Verdict Admission::AdvanceEndpoint(upstream::Endpoint& endpoint, const upstream::ClusterState& cluster,
                                   base::TimePoint now, base::TimePoint deadline, const Asker& asker, Permit& permit) {
  if (!endpoint_granted_) {
    if (waiting_ == nullptr) waiting_.reset(new Waiting);
    const Verdict verdict = QueueForPermit(*endpoint.concurrency(), cluster.limits->endpoint_bound, waiting_->endpoint,
                                           now, deadline, asker);
    if (verdict.kind != Verdict::Kind::kGo) return verdict;
    endpoint_granted_ = true;
    if (gave_back_process_ || gave_back_cluster_) stage_ = gave_back_cluster_ ? kCluster : kProcessAgain;
  }
  const Verdict verdict = Advance(now, deadline, asker);
  if (verdict.kind == Verdict::Kind::kWait) return verdict;
  if (verdict.kind == Verdict::Kind::kGo) permit = std::move(waiting_->endpoint);
  LeaveEndpointQueue();
  return verdict;
}

void Admission::DropEndpointTicket() {
  waiting_->permit.Drop();
  waiting_->endpoint.reset();
  endpoint_granted_ = false;
}

void Admission::GiveUpWait(bool deadline_passed, base::TimePoint now) {
  if (deadline_passed) bound_->timed_out->Add(worker_);
  EndWait(now);
}

std::string FormatWaits(std::span<const Admission::Wait> waits) {
  std::string out;
  for (const Admission::Wait& wait : waits) {
    char time[32];
    std::snprintf(time, sizeof(time), "=%.3fms", static_cast<double>(wait.time.count()) / 1e6);
    if (!out.empty()) out += ',';
    out.append(wait.bound).append(time);
  }
  return out;
}

}  // namespace sluice::proxy
