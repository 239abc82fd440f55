#include "upstream/health/endpoint_record.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace sluice::upstream {

using std::chrono::duration_cast;

double EndpointRecord::share() const {
  if (out()) return 0;
  if (state_ == HealthState::kDraining) return share_;
  if (state_ == HealthState::kSuspect && detector_ == Detector::kSlow) return std::min(cap_, kSlowShare);
  return state_ == HealthState::kWarming ? std::min(cap_, share_) : cap_;
}

void EndpointRecord::Change(const Context& context, HealthState to, std::string why) {
  context.log.Add({context.now, std::string(context.name), state_, to, why});
  state_ = to;
  doubted_ = doubted_ && to == HealthState::kSuspect;
  since_ = context.now;
  why_ = std::move(why);
}

std::optional<EndpointRecord::Saved> EndpointRecord::Save(base::TimePoint now) const {
  if (!ejected() && state_ != HealthState::kWarming) return std::nullopt;
  Saved out{ejected() ? HealthState::kEjected : state_,
            detector_,
            since_,
            state_ == HealthState::kProbing ? now : probe_at_,
            silent_,
            refused_,
            joining_,
            trial_needed_,
            tries_,
            failed_probes_,
            trials_,
            share_,
            warmed_,
            why_,
            last_error_,
            last_error_at_};
  return out;
}

void EndpointRecord::Restore(const Context& context, const Saved& saved, const EjectionOptions& options) {
  if (saved.state != HealthState::kEjected && saved.state != HealthState::kWarming) return;
  detector_ = saved.detector;
  silent_ = saved.silent;
  refused_ = saved.refused;
  joining_ = saved.joining;
  trial_needed_ = saved.trial_needed;
  tries_ = saved.tries;
  failed_probes_ = saved.failed_probes;
  trials_ = std::clamp(saved.trials, kTrials, kTrialsMax);
  share_ = std::clamp(saved.share, 0.0, 1.0);
  warmed_ = std::clamp(saved.warmed, 0.0, 1.0);
  warmed_at_ = context.now;
  set_last_error(saved.last_error, std::min(saved.last_error_at, context.now));
  if (saved.state == HealthState::kEjected && saved.detector != Detector::kManual)
    probe_at_ = std::min(saved.probe_at, base::DeadlineAfter(context.now, options.max));
  Change(context, saved.state, saved.why);
  since_ = std::min(saved.since, context.now);
}

void EndpointRecord::Suspect(const Context& context, Detector detector, std::string why) {
  detector_ = detector;
  Change(context, HealthState::kSuspect, std::move(why));
}

void EndpointRecord::Clear(const Context& context, std::string why) {
  detector_ = Detector::kNone;
  pending = Detector::kNone;
  suppressed = doubt_in_vain = false;
  Change(context, HealthState::kUp, std::move(why));
}

// After `wait` nanoseconds, with 20% jitter so that the proxies of a fleet do not probe together.
void EndpointRecord::ArmProbe(base::TimePoint now, double wait, base::Random& random) {
  if (refused_) wait = std::min(wait, static_cast<double>(kRefusedProbe.count()));
  wait *= 0.8 + 0.4 * random.Unit();
  probe_at_ = base::DeadlineAfter(now, base::Nanos(static_cast<int64_t>(wait)));
}

void EndpointRecord::Eject(const Context& context, Detector detector, std::string why, const EjectionOptions& options,
                           base::Random& random, double failing) {
  detector_ = detector;
  trials_ = static_cast<uint32_t>(std::clamp<double>(std::ceil(kTrialFailures / failing), kTrials, kTrialsMax));
  refused_ = cause == Cause::kConnect;
  const bool of_calls = detector == Detector::kConsecutive || detector == Detector::kErrorRate;
  silent_ = detector == Detector::kStuck || (of_calls && cause == Cause::kDeadline);
  trial_needed_ = detector != Detector::kConsecutive || !refused_;
  spared_ = false;
  failed_probes_ = 0;
  if (detector != Detector::kManual) set_last_error(why, context.now);  // an order is no error of the endpoint
  // Only what costs clients calls is done more and more rarely: a return on the word of a connection alone, where the
  // endpoint then fails its calls.
  if (std::exchange(returned_, false)) ++tries_;
  if (detector == Detector::kManual) {
    probe_at_ = base::kNever;
  } else {
    const auto first = static_cast<double>(base::Nanos(options.base).count());
    const auto max = static_cast<double>(base::Nanos(options.max).count());
    ArmProbe(context.now, std::min(max, first * std::exp2(std::min(tries_, 30u))), random);
  }
  Change(context, HealthState::kEjected, std::move(why));
}

void EndpointRecord::BeginProbe(const Context& context) {
  probe_at_ = base::kNever;
  // Not in the log: an endpoint that is down is probed for hours.
  state_ = HealthState::kProbing;
  since_ = context.now;
  on_trial_ = false;
}

void EndpointRecord::BeginTrial(const Context& context) {
  ForgetCalls(context.now);
  on_trial_ = true;
  since_ = context.now;
}

void EndpointRecord::ProbeFailed(const Context& context, const std::string& error, bool refused,
                                 const EjectionOptions& options, base::Random& random, bool silent) {
  refused_ = refused;
  silent_ = silent;
  if (refused) trial_needed_ = false;  // what will listen there is another process
  ++failed_probes_;
  ArmProbe(context.now, static_cast<double>(base::Nanos(options.base).count()), random);
  const bool known = error == last_error_;
  set_last_error(error, context.now);
  if (known) {
    state_ = HealthState::kEjected;
    since_ = context.now;
    return;
  }
  Change(context, HealthState::kEjected, "probe failed: " + error);
}

void EndpointRecord::ForgetCalls(base::TimePoint now) {
  streak = alone = alone_before = failed_row = 0;
  meanwhile = {};
  plain_at = {};
  plain_later = 0;
  sent_quiet = 0;
  quiet_since = now;
  window.Forget();
  newest_window.Forget();
  sums = {};
  ForgetLatency();
  pending = Detector::kNone;
  suppressed = doubt_in_vain = false;
  good_since_return_ = 0;
}

void EndpointRecord::Return(const Context& context, std::string why, const SlowStartOptions& options, bool shown) {
  ForgetCalls(context.now);
  returned_ = !shown && ejected();
  spared_ = shown;
  detector_ = Detector::kNone;
  refused_ = joining_ = false;
  probe_at_ = base::kNever;
  warmed_ = 0;
  warmed_at_ = context.now;
  share_ = options.first;
  Change(context, options.window.count() == 0 ? HealthState::kUp : HealthState::kWarming, std::move(why));
}

void EndpointRecord::Warm(const Context& context, const SlowStartOptions& options, bool held) {
  const auto passed = std::exchange(warmed_at_, context.now);
  const double window = std::max(1.0, static_cast<double>(base::Nanos(options.window).count()));
  // Not below 0: a change by RPC reads the clock itself, and a pass may go by a moment before that.
  const base::Nanos since = std::max(base::Nanos(0), duration_cast<base::Nanos>(context.now - passed));
  const double step = static_cast<double>(since.count()) / window;
  warmed_ = std::min(1.0, warmed_ + (held ? step / 4 : step));
  share_ = std::max(share_, options.first + (1 - options.first) * warmed_);  // a key that came home stays
  EndSparing(context.now);
  if (warmed_ < 1) return;
  spared_ = false;
  Change(context, HealthState::kUp, "warm");
}

void EndpointRecord::EndSparing(base::TimePoint now) {
  if (good_since_return_ >= kSparedGood || now - since_ >= kSparedTime) spared_ = false;
}

void EndpointRecord::Join(const Context& context, const SlowStartOptions& options) {
  if (options.window.count() == 0) return;
  Return(context, "new in the list", options);
  joining_ = true;
}

void EndpointRecord::SetDraining(const Context& context, bool draining, const SlowStartOptions& options) {
  const bool was = state_ == HealthState::kDraining;
  if (!draining) {
    if (was) Return(context, "in the list again", options);
    return;
  }
  // Now, because calls meet the next list before the judge does.
  share_ = options.window.count() == 0 ? 1 : options.first;
  if (was) return;
  ForgetCalls(context.now);
  detector_ = Detector::kNone;
  probe_at_ = base::kNever;
  spared_ = false;
  Change(context, HealthState::kDraining, "drained in the list");
}

void EndpointRecord::StopServing(const Context& context, std::string why) {
  ForgetCalls(context.now);
  detector_ = Detector::kNone;
  spared_ = false;
  Change(context, HealthState::kNotServing, std::move(why));
}

void EndpointRecord::ResetBackoff(base::TimePoint now) {
  tries_ = 0;
  if (state_ == HealthState::kEjected && detector_ != Detector::kManual) probe_at_ = now;
}

void EndpointRecord::Age(base::TimePoint now, const EjectionOptions& options) {
  if (state_ != HealthState::kUp || now - since_ < options.max) return;
  tries_ = 0;
  returned_ = false;
}

}  // namespace sluice::upstream
