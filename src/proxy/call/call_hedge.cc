// The steps of a call with two attempts at once (hedging): when the second one begins, and which of the two goes on as
// attempt_. The other is cancelled; it, or the one that has failed, leaves only a line of the log and a count.
#include <algorithm>

#include "proxy/call/call.h"
#include "proxy/call/hedge_delay.h"
#include "runtime/runtime.h"

namespace sluice::proxy {

using Hedge = ProxyMetrics::Hedge;

// When a second attempt begins beside this one, which begins now; kNever: not at all.
base::TimePoint Call::PlanHedge() {
  const HedgeOptions& options = route_->options.hedge;
  if (options.max == 0 || attempts_ > 1) return base::kNever;
  const base::TimePoint now = context.worker().now();
  history().first_began = now;
  if (!MayFollow(AttemptEnd::kInDoubt)) return base::kNever;
  if (!options.automatic()) return now + options.delay;
  const std::optional<base::Nanos> delay = route_->hedge_delay->Get(context.index(), now);
  return delay ? base::DeadlineAfter(now, *delay) : base::kNever;
}

// More load is for times when the cluster has room: no call waits at its limits. And it goes by the present
// configuration and endpoint list: those that the call began by may have ended meanwhile.
bool Call::MayHedge() {
  const Attempt::State at = attempt_.state();
  if (hedging() || !body.keeping() || !MayFollow(AttemptEnd::kInDoubt)) return false;
  // A call that may end connections shares none.
  if (attempt_.alone() || history_->lost > 0) return false;
  if (InQuarantine()) return false;
  context.Refresh();
  if (context.snapshot.get() != snapshot_.get()) return false;
  if (at != Attempt::State::kConnecting && at != Attempt::State::kSent) return false;
  return cluster_->limits->rate->waiting() == 0 && cluster_->limits->concurrency->waiting() == 0;
}

void Call::BeginHedge() {
  History& past = *history_;
  past.hedge_at = base::kNever;
  if (!MayHedge()) return;
  const base::TimePoint now = context.worker().now();
  past.tried.push_back(attempt_.endpoint());
  Permit permit;
  const uint32_t index = PickBeside(permit);
  if (index == upstream::LoadBalancer::kNone) return;
  if (!BuyAttempt(AttemptEnd::kInDoubt, ProxyMetrics::Refused::kHedge)) return;
  past.hedge_counts = attempt_.maybe_processed();
  if (past.hedge_counts) CountPrevious();
  ++attempts_;
  ++counted_attempts_;
  const std::shared_ptr<upstream::Endpoint>& endpoint = cluster_->endpoints[index].endpoint;
  past.hedge = std::make_unique<Attempt>(static_cast<Exchange&>(*this));
  past.hedging = true;
  past.hedge_endpoint = endpoint->name();
  past.hedge_began = now;
  past.hedge->SetEndpoint(*endpoint, std::move(permit));
  past.hedge_span = NewSpan(*past.hedge);
  past.hedge->Connect(*context.pools.Get(endpoint, cluster_->options, cluster_->balancer->feedback()));
}

// The call goes on with attempt_ alone.
void Call::EndHedge(Hedge result, TryEnd end) {
  History& past = *history_;
  past.hedging = false;
  NoteTry({past.hedge_endpoint, past.hedge_began, past.hedge_span, /*hedge=*/true}, end);
  context.metrics.Count(result, context.index());
  maybe_processed_ |= past.hedge->maybe_processed();
  if (past.hedge->state() == Attempt::State::kConnecting) {
    // It was never sent: the next attempt has its place, its credit and its endpoint.
    --counted_attempts_;
    past.credit = true;
    if (past.hedge_counts) UncountPrevious();
  } else {
    past.tried.push_back(past.hedge->endpoint());
  }
  past.hedge->Cancel();
}

// The call goes on with the second attempt alone. attempt_ has ended, and its end is noted.
void Call::TakeHedge() {
  History& past = *history_;
  past.hedging = false;
  past.tried.push_back(past.hedge->endpoint());
  maybe_processed_ |= attempt_.maybe_processed();
  attempt_.TakeOver(*past.hedge);
  past.endpoint = std::move(past.hedge_endpoint);
  past.try_began = past.hedge_began;
  past.try_hedges = true;
  past.try_span = past.hedge_span;
  past.connecting = {};
  if (attempt_.state() != Attempt::State::kSent) return;
  past.try_ends = TryEnds(past.hedge_began);
  ArmTimer(std::min(past.try_ends, past.hedge_at));
}

// For a delay that is found by itself.
void Call::NoteFirstResponse() {
  if (history_ == nullptr || history_->first_began == base::TimePoint{}) return;
  route_->hedge_delay->Observe(context.index(), answered_ - history_->first_began, answered_);
}

// The response of `winner` has begun, or is there.
void Call::Settle(Attempt& winner) {
  if (&winner == &attempt_) return EndHedge(Hedge::kLost, kTryCancelled);
  NoteTry(kTryCancelled);
  attempt_.Cancel();
  TakeHedge();
  context.metrics.Count(Hedge::kWon, context.index());
}

// Nothing can be kept for another attempt: the call goes on with the one that is further.
void Call::KeepOne() {
  const bool first_waits = attempt_.state() == Attempt::State::kConnecting;
  if (!first_waits || history_->hedge->state() != Attempt::State::kSent) {
    return EndHedge(Hedge::kAbandoned, kTryCancelled);
  }
  NoteTry(kTryCancelled);
  attempt_.Cancel();
  TakeHedge();
  context.metrics.Count(Hedge::kTookOver, context.index());
}

// One of the two has ended. False: the call waits for the other.
bool Call::SettleEnd(Attempt& ended) {
  const base::Error* error = ended.error();
  if (error == nullptr && EndOf(ended) == AttemptEnd::kFinal) {
    Settle(ended);
    return true;
  }
  NotePushback(ended);
  const TryEnd end = EndOfTry(error, ended.grpc_status());
  if (&ended != &attempt_) {
    EndHedge(Hedge::kFailed, end);
    return false;
  }
  if (history_->hedge->state() != Attempt::State::kSent) {
    // It has no connection yet: the attempt that is decided on now finds one as soon, after what wait there must be.
    EndHedge(Hedge::kAbandoned, kTryCancelled);
    return true;
  }
  NoteTry(end);
  TakeHedge();
  context.metrics.Count(Hedge::kTookOver, context.index());
  return false;
}

}  // namespace sluice::proxy
