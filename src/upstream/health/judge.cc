// The judge's passes, bounds and trials; the detectors are in judge_look.cc.
#include "upstream/health/judge.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace sluice::upstream {
namespace {

using base::Nanos;
using base::TimePoint;

constexpr uint32_t kQuietCalls = 2;  // sent since the last answer: an endpoint that may be held up
// A slow suspect that gets too few calls to be judged goes free after this.
constexpr Nanos kSuspectMax = std::chrono::seconds(30);
// The share grows slowly while the median is above this multiple of the others'.
constexpr double kHeldFactor = 2;
// Weights are sums of decimals.
constexpr double kEpsilon = 1e-9;

// The weight of one that is not out, as far as it takes its calls; one that warms is well.
double InRotation(const Judge::Subject& subject) {
  return subject.weight * (subject.record->state() == HealthState::kSuspect ? subject.record->share() : 1);
}

}  // namespace

void Judge::Count(const Subject& subject, TimePoint now) {
  EndpointRecord& record = *subject.record;
  const CallCounts more = record.seen ? subject.counts - record.last : CallCounts();
  record.last = subject.counts;
  if (!std::exchange(record.seen, true)) record.quiet_since = now;
  record.window.Add(more, now);
  record.sums = record.window.sum();
  record.newest_window.Add(more, now);
  // Over all workers: where none has seen a good answer the rows add up, else the longest row of one worker is sure.
  record.streak = more.good == 0 ? record.streak + more.bad : subject.row;
  if (more.failed() > 0) {
    record.cause = subject.cause;
    record.cause_at = now;
  }
  record.alone_before = record.alone;
  // Not the whole row of a worker that has seen no good answer yet: other endpoints may have failed when it began.
  record.alone += more.bad;
  if (more.good > 0) record.alone = std::min(record.alone, subject.row);
  // A deadline that passes tells of when the call was sent: an answer that came since tells more.
  if (record.cause == Cause::kDeadline && more.answered > 0) record.alone = 0;
  if (const uint32_t plain = more.plain(); plain > 0) {
    if (now - std::exchange(record.plain_at, now) > kPlainPause) {
      record.plain_since = now;
      record.plain_later = 0;
    }
    if (now - record.plain_since >= kPlainBurst) record.plain_later += plain;
  }
  record.failed_row = more.good == 0 ? record.failed_row + more.failed() : 0;
  record.more = more;
  record.good_since_return_ += more.good;
  const bool owed_before = std::exchange(record.owes, true);
  if (more.answered > 0) {
    const bool known = subject.answered_at != TimePoint::min();
    record.last_answer = record.quiet_since =
        known ? std::max(record.quiet_since, std::min(subject.answered_at, now)) : now;
    record.sent_quiet = 0;
  } else if (more.sent == 0 && (subject.in_flight == 0 || record.sent_quiet <= more.withdrawn)) {
    // Nothing is owed: the calls that are out, if any, have requests that have not ended.
    record.owes = false;
    record.quiet_since = now;
    record.sent_quiet = 0;
  } else {
    // What its client takes back tells nothing of the endpoint.
    record.sent_quiet -= std::min(record.sent_quiet, more.withdrawn);
    if (!owed_before || (more.withdrawn > 0 && record.sent_quiet == 0)) record.quiet_since = now;
    record.sent_quiet += more.sent;
  }
}

// Obeys the endpoint's own word, which is a level and no event: whatever else brought it back, it is out again as long
// as it says so. One that is ejected stays so, and is looked at when it is back.
void Judge::Heed(const Subject& subject, TimePoint now) {
  EndpointRecord& record = *subject.record;
  const EndpointRecord::Context context{subject.name, now, changes_};
  const bool refuses = subject.active != nullptr && subject.active->verdict() == ActiveHealth::Verdict::kNotServing;
  if (record.state() == HealthState::kNotServing) {
    if (refuses) return;
    const bool serves = subject.active != nullptr && subject.active->verdict() == ActiveHealth::Verdict::kServing;
    SlowStartOptions slow_start = slow_start_;
    if (serves && subject.active->brief()) slow_start.window = {};  // it has lost nothing meanwhile
    record.Return(context, serves ? subject.active->why() : "its health service has no say any more", slow_start);
  } else if (refuses && !subject.draining && !record.ejected()) {
    record.StopServing(context, subject.active->why());
  }
}

// Another process listens where none did, and it may be cold. It warms, if as much of the weight as must stay in any
// case is well meanwhile. One that was ejected comes back by its probe.
void Judge::WarmRestarted(std::span<const Subject> subjects, TimePoint now) {
  const auto in_place = [](const Subject& subject, EndpointPort port) {
    const HealthState state = subject.record->state();
    return subject.port == port && (state == HealthState::kUp || state == HealthState::kSuspect);
  };
  double weight = 0, well = 0;
  bool any = false;
  for (const Subject& subject : subjects) {
    any |= in_place(subject, EndpointPort::kRestarted);
    if (subject.draining || subject.record->state() == HealthState::kNotServing) continue;
    weight += subject.weight;
    if (in_place(subject, EndpointPort::kSame)) well += InRotation(subject);
  }
  if (!any || well <= kEpsilon || well < options_.min_available * weight - kEpsilon) return;
  for (const Subject& subject : subjects) {
    if (!in_place(subject, EndpointPort::kRestarted)) continue;
    subject.record->Return({subject.name, now, changes_}, "its port refused connections, and takes them again",
                           slow_start_);
  }
}

// It owes answers and has given none for a while.
bool Judge::Quiet(const EndpointRecord& record, TimePoint now) {
  return record.sent_quiet >= kQuietCalls && now - record.quiet_since >= kPeriod;
}

Judge::Whole Judge::Sum(std::span<const Subject> subjects, TimePoint now) const {
  Whole whole;
  for (const Subject& subject : subjects) {
    const EndpointRecord& record = *subject.record;
    whole.more += record.more;
    if (record.sums.ended() > 0) {
      ++whole.active;
      whole.failing += record.streak > 0 ? 1 : 0;
    }
    // One that does not serve by its own word is no loss of capacity that a verdict of ours could bound.
    if (subject.draining || record.state() == HealthState::kNotServing) continue;
    whole.weight += subject.weight;
    if (record.out()) continue;
    ++whole.in_rotation;
    if (record.sums.sent > 0) {
      ++whole.asked;
      whole.quiet += Quiet(record, now) ? 1 : 0;
    }
    whole.available += InRotation(subject);
    if (record.spared()) whole.doubted += InRotation(subject);
    whole.sums += record.sums;
    // Of a thousand endpoints most have no calls.
    if (record.sums.ended() > 0) {
      record.window.AddTo(whole.window);
      record.newest_window.AddTo(whole.newest);
    }
    if (record.latency.samples() > 0) record.latency.AddTo(whole.latency);
    if (record.latency_lately.samples() > 0) record.latency_lately.AddTo(whole.latency_lately);
  }
  return whole;
}

// What the others did while this one failed or was quiet.
void Judge::Compare(EndpointRecord& record, const Whole& whole, TimePoint now) {
  // Whatever holds most of them up is not this one's fault, nor are the calls that it met meanwhile.
  const uint32_t asked = record.out() || record.sums.sent == 0 ? 0 : 1;
  const uint32_t quiet = asked == 1 && Quiet(record, now) ? 1 : 0;
  if ((whole.quiet - quiet) * 2 >= whole.asked - asked && whole.quiet > quiet) {
    record.held_up = true;
  } else if (std::exchange(record.held_up, false)) {
    record.quiet_since = now;
    record.sent_quiet = 0;
  }
  if (record.failed_row == 0 || record.failed_row == record.more.failed())
    record.meanwhile = {};
  else
    record.meanwhile += whole.more - record.more;
  if (OthersFail(record, whole)) record.alone = 0;
  if (record.alone == 0 || record.alone_before == 0) {
    record.witnesses = record.sent_alone = 0;
    return;
  }
  record.witnesses += whole.more.good - record.more.good;
  record.sent_alone += record.more.sent;
}

// A connection to it works, and calls are to show whether its answers are good. Those of a cluster in which none may be
// repeated cannot, so the connection's word has to do.
void Judge::JudgeTrial(const Subject& subject, const Whole& whole, TimePoint now) {
  EndpointRecord& record = *subject.record;
  const EndpointRecord::Context context{subject.name, now, changes_};
  auto failed = [&](const std::string& error, bool silent = false) {
    record.ProbeFailed(context, error, false, options_, random_, silent);
  };
  const Nanos spent = now - record.since();
  const CallCounts& sums = record.sums;
  if (sums.failed() > 0)
    return failed("a call failed: " + std::string(ToString(record.cause)), record.cause == Cause::kDeadline);
  const bool slow = options_.slow.factor > 0 && SumOf(record.latency.counts()) > 0 && SumOf(whole.latency) > 0 &&
                    IsSlow(record.latency.counts(), whole.latency, 0);
  // A few show it, as each is a client's call.
  if (slow && sums.good >= EndpointRecord::kTrialsSlow) return failed("it is slow");
  if (sums.good < record.trials() && spent < EndpointRecord::kTrialTime) return;
  if (sums.sent == 0) {
    // Requests that have not ended are on their way: whole ones are waited for, which show it.
    if (sums.open() > 0 && subject.in_flight > 0 && spent < EndpointRecord::kTrialOpenTime) return;
    return record.Return(context, "a new connection to it works", slow_start_);
  }
  if (sums.good == 0 && sums.answered == 0) {
    // Since something is owed, which may be long after the trial began. Nothing is where the calls have gone without an
    // answer, as those do whose hedges were faster.
    const Nanos owed = record.owes ? now - std::max(record.since(), record.quiet_since) : spent;
    const double p99 = Quantile(whole.latency, 0.99, 0);
    const double bound = std::max(static_cast<double>(EndpointRecord::kTrialTime.count()), kStuckTimes * p99);
    if (static_cast<double>(owed.count()) >= bound) failed("no call was answered", true);
    return;
  }
  if (slow) return failed("it is slow");
  // Streams that are answered and go on show that it lives, and not yet that they end well.
  if (sums.good == 0)
    return record.Return(context, std::to_string(sums.answered) + " calls are being answered", slow_start_);
  record.Return(context, std::to_string(sums.good) + " calls were answered well", slow_start_, /*shown=*/true);
}

bool Judge::Held(const EndpointRecord& record, const Whole& whole) const {
  if (record.sums.sent > 0 && record.good_since_return() == 0) return true;
  const LatencyWindow::Counts own = record.latency.counts();
  const LatencyWindow::Counts others = Without(whole.latency, own);
  if (SumOf(own) == 0 || SumOf(others) == 0) return false;
  return Quantile(own, 0.5, -1) > kHeldFactor * Quantile(others, 0.5, 1);
}

Suppression Judge::MayEject(const Subject& subject, Detector detector, const Whole& whole) const {
  if (whole.in_rotation <= 1) return Suppression::kLast;
  const EndpointRecord& record = *subject.record;
  if (whole.available - InRotation(subject) < options_.min_available * whole.weight - kEpsilon)
    return Suppression::kMinAvailable;
  if (detector == Detector::kConsecutive && OthersFail(record, whole)) return Suppression::kAllFailing;
  return Suppression::kNone;
}

// Only as far as enough weight takes the calls that pass it over.
void Judge::Doubt(const Subject& subject, bool doubted, Whole& whole) {
  const double left = whole.available - whole.doubted - InRotation(subject);
  const bool room = left > kEpsilon && left >= options_.min_available * whole.weight - kEpsilon;
  if (doubted && room && !subject.record->doubted()) ++counts_.doubts;
  subject.record->Doubt(doubted && room);
  if (doubted && room) whole.doubted += InRotation(subject);
}

// What evidence, or its absence, does to an endpoint in rotation.
void Judge::Weigh(const Subject& subject, Evidence evidence, Whole& whole, TimePoint now) {
  EndpointRecord& record = *subject.record;
  const EndpointRecord::Context context{subject.name, now, changes_};
  const HealthState state = record.state();
  if (evidence.detector == Detector::kNone) {
    // Where no call may be repeated, none would come, and no answer that ends the doubt; but for those that it owes.
    const bool in_vain = record.doubt_in_vain || (record.doubted() && record.more.sent == 0 && subject.in_flight == 0);
    record.doubt_in_vain = evidence.doubt && in_vain;
    Doubt(subject, evidence.doubt && !in_vain, whole);
    if (state == HealthState::kSuspect) {
      const bool too_few = record.detector() == Detector::kSlow && record.latency.samples() < kSamplesMin;
      if (too_few && now - record.since() < kSuspectMax) return;
      return record.Clear(context, "no evidence any more");
    }
    record.pending = Detector::kNone;
    record.suppressed = false;
    record.EndSparing(now);
    if (state == HealthState::kWarming) record.Warm(context, slow_start_, Held(record, whole));
    return record.Age(now, options_);
  }
  if (std::exchange(record.pending, evidence.detector) != evidence.detector) record.pending_since = now;
  const bool again = now - record.pending_since >= kConfirm;
  const Suppression suppression = MayEject(subject, evidence.detector, whole);
  // Where no call may be repeated, none would come to show what becomes of it. One that is stuck shows it without more,
  // and a row of failures is as long when it is looked at for the second time.
  record.doubt_in_vain |= record.doubted() && record.more.sent == 0;
  const bool looked_at =
      evidence.detector == Detector::kConsecutive && now - record.pending_since <= kConfirm + kCloser;
  const bool shows = evidence.detector == Detector::kStuck || looked_at || !record.doubt_in_vain;
  Doubt(subject, suppression == Suppression::kNone && evidence.detector != Detector::kSlow && shows, whole);
  if (!again) {
    // A slow one loses weight at once, so it may only be suspected where it may be ejected.
    if (state != HealthState::kUp || (evidence.detector == Detector::kSlow && suppression != Suppression::kNone))
      return;
    record.Suspect(context, evidence.detector, std::move(evidence.text));
    if (evidence.detector != Detector::kSlow) return;
    record.ForgetLatency();  // judged anew, with less to do
    whole.available -= subject.weight * (1 - record.share());
    return;
  }
  if (evidence.detector == Detector::kConsecutive && suppression != Suppression::kAllFailing && !evidence.sure &&
      !RowIsSure(record, whole))
    return;
  if (suppression != Suppression::kNone) {
    if (!std::exchange(record.suppressed, true)) ++counts_.suppressed[static_cast<size_t>(suppression)];
    return;
  }
  whole.available -= InRotation(subject);
  whole.doubted -= record.doubted() ? InRotation(subject) : 0;
  --whole.in_rotation;
  ++counts_.ejections[static_cast<size_t>(evidence.detector)];
  record.Eject(context, evidence.detector, std::move(evidence.text), options_, random_, evidence.failing);
}

// The list or the options have changed, and more is out than may be: the least bad come back.
void Judge::KeepEnough(std::span<const Subject> subjects, Whole& whole, TimePoint now) {
  for (;;) {
    const bool enough = whole.in_rotation > 0 && whole.available >= options_.min_available * whole.weight - kEpsilon;
    const Subject* best = nullptr;
    for (const Subject& subject : subjects) {
      const EndpointRecord& record = *subject.record;
      if (!record.ejected() || record.manual() || subject.draining) continue;
      if (best == nullptr ||
          record.tries_ + record.failed_probes_ < best->record->tries_ + best->record->failed_probes_)
        best = &subject;
    }
    if (enough || best == nullptr) return;
    best->record->Return({best->name, now, changes_}, "too few others are left", slow_start_);
    whole.available += best->weight;
    ++whole.in_rotation;
  }
}

// A reload has switched the judge off.
void Judge::ReleaseAll(std::span<const Subject> subjects, TimePoint now) {
  for (const Subject& subject : subjects) {
    EndpointRecord& record = *subject.record;
    if (record.ejected() && !record.manual())
      record.Return({subject.name, now, changes_}, "ejection is off now", slow_start_);
  }
}

// It fails calls, owes answers, or is suspected of one of these. `p99`: of all times to first byte.
bool Judge::NeedsCloserLook(const Subject& subject, Nanos p99, TimePoint now) const {
  const EndpointRecord& record = *subject.record;
  if (record.state() == HealthState::kProbing) return true;
  if (subject.draining || record.out()) return false;
  if (record.pending != Detector::kNone && record.pending != Detector::kSlow && !record.suppressed) return true;
  if (record.more.failed() > 0 || (record.more.answered == 0 && record.sent_quiet >= kQuietCalls)) return true;
  // It may be called stuck, or doubted, before the next pass.
  return options_.stuck.count() > 0 && subject.in_flight >= kQuietCalls && record.more.sent >= kQuietCalls &&
         now - record.quiet_since >= std::max<Nanos>(options_.stuck / 2, p99);
}

std::vector<uint32_t> Judge::Pass(std::span<const Subject> subjects, TimePoint now) {
  for (const Subject& subject : subjects) {
    Count(subject, now);
    subject.record->SetCap(subject.cap);
    subject.record->SetDraining({subject.name, now, changes_}, subject.draining, slow_start_);
    Heed(subject, now);
  }
  if (slow_start_.window.count() > 0) WarmRestarted(subjects, now);
  Whole whole = Sum(subjects, now);
  for (const Subject& subject : subjects) Compare(*subject.record, whole, now);
  for (const Subject& subject : subjects) {
    if (subject.draining) continue;
    if (subject.record->on_trial()) JudgeTrial(subject, whole, now);
    if (subject.record->out()) continue;
    Weigh(subject, options_.enabled ? Look(subject, subjects, whole, now) : Evidence(), whole, now);
  }
  KeepEnough(subjects, whole, now);
  const Nanos p99(static_cast<int64_t>(std::min(Quantile(whole.latency, 0.99, 0), 1e18)));
  looks_closer_ = options_.enabled && std::any_of(subjects.begin(), subjects.end(), [&](const Subject& subject) {
                    return NeedsCloserLook(subject, p99, now);
                  });
  if (!options_.enabled) ReleaseAll(subjects, now);
  std::vector<uint32_t> probing;
  for (uint32_t i = 0; i < subjects.size(); ++i) {
    EndpointRecord& record = *subjects[i].record;
    if (record.state() != HealthState::kEjected || now < record.probe_at()) continue;
    record.BeginProbe({subjects[i].name, now, changes_});
    probing.push_back(i);
  }
  return probing;
}

void Judge::Probed(EndpointRecord& record, std::string_view name, const std::string& error, bool refused,
                   TimePoint now) {
  if (record.state() != HealthState::kProbing || record.on_trial()) return;
  const EndpointRecord::Context context{name, now, changes_};
  if (!error.empty()) return record.ProbeFailed(context, error, refused, options_, random_);
  if (record.NeedsTrial()) return record.BeginTrial(context);
  record.Return(context, "a new connection to it works", slow_start_);
}

void Judge::Eject(EndpointRecord& record, std::string_view name, TimePoint now) {
  if (record.manual()) return;
  ++counts_.ejections[static_cast<size_t>(Detector::kManual)];
  record.Eject({name, now, changes_}, Detector::kManual, "by RPC", options_, random_);
}

void Judge::Join(EndpointRecord& record, std::string_view name, TimePoint now) {
  record.Join({name, now, changes_}, slow_start_);
}

void Judge::Restore(EndpointRecord& record, std::string_view name, TimePoint now) {
  if (!record.ejected()) return;
  record.Return({name, now, changes_}, "restored by RPC", slow_start_);
}

}  // namespace sluice::upstream
