#include "proxy/admission.h"

#include <cstdio>

namespace sluice::proxy {

using limits::Answer;

bool Admission::Needed(const Request& r) {
  const ProcessLimits* process = r.config->limits.get();
  const RouteLimits* route = r.route->limits.get();
  const upstream::ClusterLimits& cluster = *r.cluster->limits;
  return (process != nullptr && process->concurrency->enabled()) ||
         (route != nullptr && (route->rate->enabled() || route->client_rate->enabled())) || cluster.rate->enabled() ||
         cluster.concurrency->enabled() || r.cluster->EndpointsLimited();
}

Answer Admission::Ask(base::TimePoint now, base::TimePoint deadline) {
  const ProcessLimits* process = request_.config->limits.get();
  const RouteLimits* route = request_.route->limits.get();
  const upstream::ClusterLimits& cluster = *request_.cluster->limits;
  switch (stage_) {
    case kProcess:
      if (process == nullptr) return Answer::Go();
      bound_ = &process->bound;
      return process_.Ask(process->concurrency, request_.flow);
    case kRouteRate:
      if (route == nullptr) return Answer::Go();
      bound_ = &route->rate_bound;
      return rates_[0].Ask(route->rate, now, deadline);
    case kClientRate: {
      if (route == nullptr || !route->client_rate->enabled()) return Answer::Go();
      bound_ = &route->client_rate_bound;
      client_rate_ = route->client_rate->Get(request_.client_key, now);
      if (client_rate_ == nullptr) return Answer::Refused(limits::Refusal::kTableFull, std::chrono::milliseconds(1000));
      return rates_[1].Ask(client_rate_, now, deadline);
    }
    case kClusterRate:
      bound_ = &cluster.rate_bound;
      return rates_[2].Ask(cluster.rate, now, deadline);
    default:
      bound_ = &cluster.concurrency_bound;
      return cluster_.Ask(cluster.concurrency, request_.flow);
  }
}

Answer Admission::Poll(base::TimePoint now) {
  switch (stage_) {
    case kProcess: return process_.Poll();
    case kRouteRate: return rates_[0].Poll(now);
    case kClientRate: return rates_[1].Poll(now);
    case kClusterRate: return rates_[2].Poll(now);
    default: return cluster_.Poll();
  }
}

Answer Admission::Settle(Answer answer, base::TimePoint now) {
  if (answer.kind == Answer::Kind::kWait) {
    if (!waiting_) since_ = now;
    waiting_ = true;
    return answer;
  }
  EndWait(now);
  if (answer.kind == Answer::Kind::kRefused) bound_->refused(answer.refusal)->Add(request_.worker);
  return answer;
}

void Admission::EndWait(base::TimePoint now) {
  if (!waiting_) return;
  waiting_ = false;
  waits_.push_back({bound_->name, now - since_});
  bound_->waited->Observe(request_.worker, static_cast<uint64_t>((now - since_).count()));
}

Answer Admission::Advance(base::TimePoint now, base::TimePoint deadline) {
  for (; stage_ < kEndpoint; ++stage_) {
    Answer answer = Settle(waiting_ ? Poll(now) : Ask(now, deadline), now);
    if (answer.kind != Answer::Kind::kGo) return answer;
    if (is_rate()) NoteGrant();
  }
  return Answer::Go();
}

void Admission::NoteGrant() {
  const size_t i = stage_ - kRouteRate;
  const RouteLimits* route = request_.route->limits.get();
  limits::RateLimiter* limiters[] = {route == nullptr ? nullptr : route->rate.get(), client_rate_.get(),
                                     request_.cluster->limits->rate.get()};
  if (limiters[i] != nullptr && limiters[i]->enabled() && !rates_[i].holding()) granted_[i] = limiters[i];
}

void Admission::RefundRates() {
  for (auto& ticket : rates_) ticket.DropUnused();
  for (auto& limiter : granted_) {
    if (limiter != nullptr) std::exchange(limiter, nullptr)->Refund();
  }
}

void Admission::Keep(const WorkerRef<RouteConfig>& config, const WorkerRef<Snapshot>& snapshot) {
  if (kept_config_.get() == nullptr) kept_config_ = config;
  if (kept_snapshot_.get() == nullptr) kept_snapshot_ = snapshot;
}

void Admission::Forget() {
  granted_ = {};
  client_rate_.reset();
  kept_config_ = {};
  kept_snapshot_ = {};
}

bool Admission::TryEndpoint(upstream::Endpoint& endpoint, const upstream::ClusterState& cluster) {
  endpoint_.Drop();
  bound_ = &cluster.limits->endpoint_bound;
  return endpoint_.TryAsk(endpoint.concurrency()).kind == Answer::Kind::kGo;
}

Answer Admission::AdvanceEndpoint(upstream::Endpoint& endpoint, const upstream::ClusterState& cluster, base::TimePoint now) {
  bound_ = &cluster.limits->endpoint_bound;
  return Settle(waiting_ ? endpoint_.Poll() : endpoint_.Ask(endpoint.concurrency(), request_.flow), now);
}

void Admission::GiveUp(bool deadline_passed, base::TimePoint now) {
  if (!waiting_) return;
  if (deadline_passed) bound_->timed_out->Add(request_.worker);
  EndWait(now);
}

std::string FormatWaits(const absl::InlinedVector<Admission::Wait, 1>& waits) {
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
