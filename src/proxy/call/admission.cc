#include "proxy/call/admission.h"

#include <cstdio>

namespace sluice::proxy {

using limits::ConcurrencyLimiter;
using limits::LimiterMetrics;
using limits::RateLimiter;
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
bool Admission::GoesAtOnce(base::TimePoint now, ClientKey client_key) {
  const RouteLimits* route = route_.limits.get();
  switch (stage_) {
    case kProcess:
      return config_->limits == nullptr || Take(*config_->limits->concurrency, process_);
    case kRouteRate:
      return route == nullptr || Start(*route->rate, now);
    case kClientRate:
      if (route == nullptr || !route->client_rate->enabled()) return true;
      client_rate_ = route->client_rate->Get(client_key(), now);
      return client_rate_ != nullptr && Start(*client_rate_, now);
    case kClusterRate:
      return Start(*cluster_limits_->rate, now);
    default:
      return Take(*cluster_limits_->concurrency, cluster_);
  }
}

Verdict Admission::Queue(base::TimePoint now, base::TimePoint deadline) {
  const RouteLimits* route = route_.limits.get();
  switch (stage_) {
    case kProcess:
      return QueueForPermit(*config_->limits->concurrency, config_->limits->bound, process_, now);
    case kRouteRate:
      return QueueForRate(*route->rate, route->rate_bound, now, deadline);
    case kClientRate: {
      if (client_rate_ != nullptr) return QueueForRate(*client_rate_, route->client_rate_bound, now, deadline);
      bound_ = &route->client_rate_bound;
      const Verdict refused = Verdict::Refused(limits::Refusal::kTableFull, std::chrono::milliseconds(1000));
      Settle(refused, now);
      return refused;
    }
    case kClusterRate:
      return QueueForRate(*cluster_limits_->rate, cluster_limits_->rate_bound, now, deadline);
    default:
      return QueueForPermit(*cluster_limits_->concurrency, cluster_limits_->concurrency_bound, cluster_, now);
  }
}

Verdict Admission::QueueForPermit(ConcurrencyLimiter& limiter, const LimiterMetrics& bound, Permit& permit,
                                  base::TimePoint now) {
  bound_ = &bound;
  if (waiting_ == nullptr) waiting_.reset(new Waiting);
  const Verdict verdict = waits_now_ ? waiting_->permit.Poll() : waiting_->permit.Ask(limiter, flow_);
  Settle(verdict, now);
  if (verdict.kind == Verdict::Kind::kGo && waiting_->permit.Detach()) permit.reset(&limiter);
  return verdict;
}

Verdict Admission::QueueForRate(RateLimiter& limiter, const LimiterMetrics& bound, base::TimePoint now,
                                base::TimePoint deadline) {
  bound_ = &bound;
  if (waiting_ == nullptr) waiting_.reset(new Waiting);
  const Verdict verdict = waits_now_ ? waiting_->rate.Poll(now) : waiting_->rate.Ask(limiter, now, deadline);
  Settle(verdict, now);
  if (verdict.kind != Verdict::Kind::kGo) return verdict;
  const bool held = waiting_->rate.Detach();
  if (held || limiter.enabled()) grant() = {&limiter, held};
  return verdict;
}

void Admission::Settle(const Verdict& verdict, base::TimePoint now) {
  if (verdict.kind == Verdict::Kind::kWait) {
    if (!waits_now_) waiting_->since = now;
    waits_now_ = true;
    return;
  }
  EndWait(now);
  if (verdict.kind == Verdict::Kind::kRefused) bound_->refused(verdict.refusal)->Add(worker_);
}

void Admission::EndWait(base::TimePoint now) {
  if (!waits_now_) return;
  waits_now_ = false;
  const base::Nanos time = now - waiting_->since;
  waiting_->over.push_back({bound_->name, time, now});
  bound_->waited->Observe(worker_, static_cast<uint64_t>(time.count()));
}

Verdict Admission::Advance(base::TimePoint now, base::TimePoint deadline, ClientKey client_key) {
  for (; stage_ < kEndpoint; ++stage_) {
    if (!waits_now_ && GoesAtOnce(now, client_key)) continue;
    const Verdict verdict = Queue(now, deadline);
    if (verdict.kind != Verdict::Kind::kGo) return verdict;
  }
  return Verdict::Go();
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
                                   base::TimePoint now, Permit& permit) {
  return QueueForPermit(*endpoint.concurrency(), cluster.limits->endpoint_bound, permit, now);
}

void Admission::LeaveEndpointQueue() {
  if (stage_ == kEndpoint && waiting_ != nullptr) waiting_->permit.Drop();
}

void Admission::GiveUp(bool deadline_passed, base::TimePoint now) {
  if (!waits_now_) return;
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
