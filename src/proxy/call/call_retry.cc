// The steps of a call between two attempts: whether there is another one, what it costs, and the wait before it.
#include <algorithm>
#include <utility>

#include "proxy/call/call.h"
#include "runtime/runtime.h"

namespace sluice::proxy {

using base::ErrorKind;
using base::ErrorSource;
using http2::Token;
using Refused = ProxyMetrics::Refused;

// A trial that has not been answered for so long gets a hedge.
constexpr base::Nanos kTrialPatience = std::chrono::milliseconds(50);

// What the end of `attempt` means for another one. What was never sent is not in doubt.
AttemptEnd Call::EndOf(const Attempt& attempt) const {
  AttemptEnd end = proxy::EndOf(route_->options.retry, attempt.error(), attempt.grpc_status());
  // What a trial was to find out is not for the client, whatever the route repeats.
  if (history_ != nullptr && history_->trial && attempt.complete() && attempt.StatusCause() != upstream::Cause::kNone)
    end = AttemptEnd::kInDoubt;
  // Its time to wait is over: only an endpoint that it has not asked can be better.
  if (attempt.error() != nullptr && attempt.error()->kind == ErrorKind::kPendingTimeout && !AnyUntried() &&
      !MayLeaveCluster())
    return AttemptEnd::kFinal;
  // Another endpoint may take larger headers.
  if (attempt.error() != nullptr && attempt.error()->kind == ErrorKind::kTooLarge &&
      attempt.error()->source == base::ErrorSource::kDownstream && !attempt.maybe_processed() && AnyUntried())
    return AttemptEnd::kUnsent;
  return end == AttemptEnd::kInDoubt && !attempt.maybe_processed() ? AttemptEnd::kUnsent : end;
}

// The one place where an attempt after this one is decided on. Nothing of this one's response has gone to the client.
bool Call::TriesAgain() {
  if (state_ != State::kTrying) return false;
  const base::Error* error = attempt_.error();
  const AttemptEnd end = EndOf(attempt_);
  if (end == AttemptEnd::kFinal) return false;
  NotePushback(attempt_);
  std::optional<base::Nanos> wait;
  if (history_ != nullptr) wait = std::exchange(history_->bought, std::nullopt);
  if (!wait) wait = BuyAttempt(end, end == AttemptEnd::kInDoubt ? Refused::kRetry : Refused::kUnprocessed);
  if (!wait) return false;
  // An endpoint that leaves in good order has not failed.
  if (end != AttemptEnd::kLeft && ++counted_attempts_ >= route_->options.retry.attempts_max) leaves_cluster_ = true;

  metrics::Counter* reason = error != nullptr
                                 ? context.metrics.retries[static_cast<size_t>(error->kind)]
                                 : context.metrics.status_retries[static_cast<size_t>(attempt_.grpc_status())];
  reason->Add(context.index());
  History& past = history();
  NoteTry(EndOfTry(error, attempt_.grpc_status()));
  if (end == AttemptEnd::kInDoubt) CountPrevious();
  past.tried.push_back(attempt_.endpoint());
  past.last_failure = attempt_.TakeError();
  past.last_response.Clear();
  past.last_status = attempt_.grpc_status();
  if (past.last_failure == nullptr && !attempt_.lacks_status()) past.last_response = std::move(attempt_.response());
  past.retry_at = context.worker().now() + *wait;
  past.try_ends = past.hedge_at = base::kNever;  // of the attempt that has ended; the route may be another meanwhile
  past.trial = false;
  past.try_began = {};
  past.connecting = {};
  maybe_processed_ |= attempt_.maybe_processed();
  attempt_.Restart();
  picked_ = upstream::LoadBalancer::kNone;
  return true;
}

// Whether the call as it is leaves room for another attempt, after or beside one that ends as `end`.
bool Call::MayFollow(AttemptEnd end) const {
  const RetryOptions& options = route_->options.retry;
  if (end == AttemptEnd::kFinal || state_ != State::kTrying || stopping_) return false;
  if (!body.CanRewind() || attempts_ >= kAttemptsEver || (history_ != nullptr && history_->no_more)) return false;
  if (end != AttemptEnd::kLeft && counted_attempts_ + 1u >= options.attempts_max)
    return end == AttemptEnd::kUnsent && MayLeaveCluster();
  return end != AttemptEnd::kInDoubt || MayRepeat(options, request);
}

// Whether another attempt may begin, after or beside attempt_, which has ended, is to be given up or goes on. Then its
// credit is taken, to be held from now on, and the result is the wait before it. `where_refused`: what is counted where
// there is no credit; a hedge leaves half of the budget to retries.
std::optional<base::Nanos> Call::BuyAttempt(AttemptEnd end, Refused where_refused) {
  if (!MayFollow(end)) return std::nullopt;
  const RetryOptions& options = route_->options.retry;
  const base::TimePoint now = context.worker().now();
  const bool in_doubt = end == AttemptEnd::kInDoubt;
  base::Nanos wait(0);
  if (history_ != nullptr && history_->pushed_back_until >= now) {
    wait = history_->pushed_back_until - now;
  } else if (in_doubt && !AnyUntried()) {
    wait = Backoff(options, history().backoffs++, context.worker().random());
  }
  if (wait.count() > 0 && wait >= deadline - now) return std::nullopt;
  if (end == AttemptEnd::kLeft || end == AttemptEnd::kUnsent) return wait;
  // What was lost beside another call, once, costs no credit: its next attempt is alone on its connection.
  if (in_doubt && history_ != nullptr && history_->lost == 1 && attempt_.error() != nullptr &&
      attempt_.error()->kind == ErrorKind::kConnectionLost)
    return wait;
  if (history_ != nullptr && std::exchange(history_->credit, false)) return wait;
  using Account = upstream::RetryBudget::Account;
  const Account account = in_doubt ? Account::kRepeated : Account::kUnprocessed;
  upstream::RetryBudget& budget = cluster_->load->retry_budget();
  const upstream::RetryBudgetOptions& bounds = cluster_->options->retry_budget;
  const bool enough = where_refused != Refused::kHedge || budget.Left(bounds, account, now) >= 0.5;
  if (enough && budget.Withdraw(bounds, account, RetryCost(), now)) return wait;
  context.metrics.Count(where_refused, context.index());
  return std::nullopt;
}

// grpc-retry-pushback-ms holds for all further attempts; the back-off starts anew behind it (gRFC A6).
void Call::NotePushback(Attempt& ended) {
  if (ended.error() != nullptr) return;
  const Pushback pushback = ReadPushback(ended.response());
  if (pushback.stop) history().no_more = true;
  if (!pushback.delay) return;
  const base::TimePoint until = base::DeadlineAfter(context.worker().now(), *pushback.delay);
  history().pushed_back_until = std::max(history().pushed_back_until, until);
  history().backoffs = 0;
}

// The next attempt comes after, or begins beside, one more that may have been processed.
void Call::CountPrevious() {
  ++history().repeats;
  request.Set(Token::kGrpcPreviousRpcAttempts, "grpc-previous-rpc-attempts",
              std::to_string(PreviousAttempts(request) + 1));
}

void Call::UncountPrevious() {
  --history().repeats;
  const uint32_t before = PreviousAttempts(request) - 1;
  if (before == 0) return request.Remove(Token::kGrpcPreviousRpcAttempts);
  request.Set(Token::kGrpcPreviousRpcAttempts, "grpc-previous-rpc-attempts", std::to_string(before));
}

// In credits. What the client, perhaps another proxy, tries again itself must not multiply with what is tried again
// here.
uint32_t Call::RetryCost() const {
  const uint32_t own = history_ != nullptr ? history_->repeats : 0;
  return PreviousAttempts(request) > own ? 2 : 1;
}

// Besides this attempt's endpoint: one is left that the call has not tried.
bool Call::AnyUntried() const {
  return std::any_of(cluster_->endpoints.begin(), cluster_->endpoints.end(), [&](const auto& entry) {
    const upstream::Endpoint& endpoint = *entry.endpoint;
    if (!entry.TakesCalls() || &endpoint == attempt_.endpoint()) return false;
    if (endpoint.out() || !endpoint.AdmitsRepeatable(upstream::Endpoint::Choosiness::kOut, ring_key)) return false;
    if (history_ != nullptr && history_->Tried(endpoint)) return false;
    const upstream::EndpointPool* pool = endpoint.pool(context.index());
    return pool == nullptr || pool->Usable();
  });
}

bool Call::WaitsForBackoff() {
  if (over() || context.worker().now() >= history_->retry_at) return false;
  if (admission_ != nullptr) admission_->Pause();
  ArmTimer(history_->retry_at);
  return true;
}

// When this attempt is given up, or another one begins beside it.
void Call::TimeAttempt() {
  if (!MayRepeat(route_->options.retry, request)) return;
  History& past = history();
  past.try_ends = TryEnds(context.worker().now());
  past.hedge_at = PlanHedge();
  if (past.trial) past.hedge_at = std::min(past.hedge_at, context.worker().now() + kTrialPatience);
  ArmTimer(std::min(past.try_ends, past.hedge_at));
}

// Of an attempt that began then: only one that another may follow has a bound of its own.
base::TimePoint Call::TryEnds(base::TimePoint began) const {
  const RetryOptions& options = route_->options.retry;
  const bool bounded = options.per_try_timeout.count() > 0 && MayFollow(AttemptEnd::kInDoubt);
  return bounded ? base::DeadlineAfter(began, options.per_try_timeout) : base::kNever;
}

void Call::OnAttemptTimer(base::TimePoint now) {
  History& past = *history_;
  if (now >= past.hedge_at) BeginHedge();
  if (now >= past.try_ends) {
    past.try_ends = base::kNever;
    GiveUpAttempt(ErrorKind::kTryTimeout, "took per_try_timeout");
  }
  ArmTimer(std::min(past.try_ends, past.hedge_at));
}

// For the one beside it, or for one that has been paid. Without either it goes on, because to end it would be to fail
// the call.
void Call::GiveUpAttempt(ErrorKind kind, std::string_view why) {
  History& past = history();
  const Attempt::State at = attempt_.state();
  if (state_ != State::kTrying || (at != Attempt::State::kConnecting && at != Attempt::State::kSent)) return;
  if (!past.hedging) {
    const bool in_doubt = attempt_.maybe_processed();
    past.bought = BuyAttempt(in_doubt ? AttemptEnd::kInDoubt : AttemptEnd::kUnsent, Refused::kRetry);
    if (!past.bought) return;
  } else if (past.hedge->state() != Attempt::State::kSent) {
    if (past.try_ends == base::kNever)
      past.try_ends = TryEnds(context.worker().now());  // a hedge that waits for a connection is nothing to go on with
    return;
  }
  attempt_.GiveUp(base::MakeError(
      kind, "the attempt at endpoint " + attempt_.endpoint()->name() + " " + std::string(why), ErrorSource::kUpstream));
}

void Call::LeaveSilent(CallContext& context, const upstream::Endpoint& endpoint) {
  ForEach(context, [&](Call& call) {
    if (call.state_ != State::kTrying || call.attempt_.endpoint() != &endpoint || !call.AnyUntried()) return;
    call.GiveUpAttempt(ErrorKind::kUpstreamStalled, "has no answer, and the endpoint was ejected for giving none");
  });
}

}  // namespace sluice::proxy
