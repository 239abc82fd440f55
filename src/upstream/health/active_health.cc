#include "upstream/health/active_health.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace sluice::upstream {

using base::Nanos;
using base::TimePoint;
using Kind = HealthEnd::Kind;

namespace {

constexpr uint32_t kOk = 0, kUnimplemented = 12;  // gRPC's statuses

std::string InText(const HealthOptions& options) { return std::to_string(options.timeout.count()) + " ms"; }

}  // namespace

ActiveHealth::Act ActiveHealth::Next(const HealthOptions& options, TimePoint now, base::Random& random,
                                     bool may_begin) {
  if (options.mode == HealthMode::kOff) {
    const bool out = asking();
    if (active()) Forget();
    return out ? Act::kStop : Act::kNothing;
  }
  if (options.mode != options_.mode || options.service != options_.service) {
    const bool out = asking();
    Forget();
    options_ = options;
    if (out) return Act::kStop;
  }
  options_ = options;
  if (asking()) {
    const bool waits = opened_ && (asking_ == Act::kCheck || answers_ == 0);
    if (!waits || now - opened_at_ < options.timeout) return Act::kNothing;
    Ended({Kind::kBroken, 0, "no answer in " + InText(options)}, now, random);
    return Act::kStop;
  }
  if (now < next_at_ || !may_begin) return Act::kNothing;
  Begin(options.mode == HealthMode::kWatch && !no_watch_ ? Act::kWatch : Act::kCheck, now);
  return asking_;
}

void ActiveHealth::Begin(Act act, TimePoint now) {
  asking_ = act;
  opened_ = false;
  opened_at_ = now;
  answers_ = 0;
}

// As if the endpoint had never been asked.
void ActiveHealth::Forget() { *this = ActiveHealth(); }

void ActiveHealth::Read(const HealthReport& report, TimePoint now, base::Random& random) {
  if (!asking()) return;
  const HealthReport::View view = report.Read();
  if (view.opened && !std::exchange(opened_, true)) opened_at_ = now;
  if (view.answers != answers_) {
    answers_ = view.answers;
    Answered(view.status, now);
  }
  if (view.ended) Ended(report.end(), now, random);
}

void ActiveHealth::Answered(ServingStatus status, TimePoint now) {
  status_ = status;
  if (asking_ == Act::kCheck) return;  // it counts when the call has ended well
  tries_ = 0;
  last_ = ToString(status);
  const bool serving = status == ServingStatus::kServing;
  brief_ = serving && watch_failed_ && now - verdict_at_ < kBrief;
  watch_failed_ = false;
  Say(serving ? Verdict::kServing : Verdict::kNotServing, "the health service says " + last_, now);
}

void ActiveHealth::Ended(const HealthEnd& end, TimePoint now, base::Random& random) {
  const Act ended = std::exchange(asking_, Act::kNothing);
  const bool answered = std::exchange(answers_, 0) > 0;
  if (end.kind == Kind::kGaveWay) return Wait(options_.interval, now, random);
  if (ended == Act::kWatch)
    WatchEnded(end, answered, now, random);
  else
    CheckEnded(end, answered, now, random);
}

void ActiveHealth::WatchEnded(const HealthEnd& end, bool answered, TimePoint now, base::Random& random) {
  if (end.kind == Kind::kStatus && end.status == kUnimplemented) {
    no_watch_ = true;
    tries_ = row_ = 0;
    next_at_ = now;
    watch_failed_ = brief_ = false;
    if (verdict_ != Verdict::kServing) Say(Verdict::kServing, "Watch is UNIMPLEMENTED: taken as healthy", now);
    return;
  }
  // One attempt at once: A17 has it so where there was an answer.
  const Nanos wait = answered ? Nanos(0) : end.kind == Kind::kRefused ? kRefusedWait : Backoff();
  Wait(wait, now, random);
  if (end.kind == Kind::kMoved || (end.kind == Kind::kLost && answered)) return;
  const bool connected = end.kind == Kind::kStatus || end.kind == Kind::kBroken;
  last_ = (connected || end.kind == Kind::kLost ? "Watch failed: " : "no connection: ") + end.detail;
  if (verdict_ == Verdict::kNotServing) {
    watch_failed_ = watch_failed_ && connected;
    return;
  }
  watch_failed_ = connected;
  Say(Verdict::kNotServing, last_, now);
}

void ActiveHealth::CheckEnded(const HealthEnd& end, bool answered, TimePoint now, base::Random& random) {
  if (end.kind != Kind::kStatus && end.kind != Kind::kBroken) no_watch_ = false;  // the next server may have it
  const bool connected = end.kind == Kind::kStatus || end.kind == Kind::kBroken || end.kind == Kind::kLost;
  if (end.kind == Kind::kMoved) {
    // Once at once, then not before its time.
    const bool again = tries_++ > 0;
    return Wait(again ? CheckWait() : Nanos(0), now, random);
  }
  tries_ = 0;
  if (end.kind == Kind::kStatus && end.status == kOk && answered) {
    Count(status_ == ServingStatus::kServing, std::string(ToString(status_)), now);
  } else if (end.kind == Kind::kStatus && end.status == kUnimplemented) {
    Count(true, "UNIMPLEMENTED, taken as healthy", now);
  } else if (end.kind == Kind::kStatus && end.status == kOk) {
    Count(false, "OK without an answer", now);
  } else {
    Count(false, connected ? end.detail : "no connection: " + end.detail, now);
  }
  Wait(end.kind == Kind::kRefused ? std::min(kRefusedWait, CheckWait()) : CheckWait(), now, random);
}

void ActiveHealth::Count(bool passed, const std::string& what, TimePoint now) {
  last_ = what;
  row_ = passed == row_passed_ ? row_ + 1 : 1;
  row_passed_ = passed;
  if (passed && verdict_ == Verdict::kNotServing && row_ >= options_.rise)
    Say(Verdict::kServing, std::to_string(row_) + " checks passed: " + what, now);
  else if (passed && verdict_ == Verdict::kNone)
    Say(Verdict::kServing, "a check passed: " + what, now);
  else if (!passed && verdict_ != Verdict::kNotServing && row_ >= options_.fall)
    Say(Verdict::kNotServing, std::to_string(row_) + (row_ == 1 ? " check failed: " : " checks failed: ") + what, now);
}

void ActiveHealth::Say(Verdict verdict, std::string why, TimePoint now) {
  if (verdict != verdict_) verdict_at_ = now;
  verdict_ = verdict;
  why_ = std::move(why);
}

// With 20% jitter, so that the proxies of a fleet do not ask together.
void ActiveHealth::Wait(Nanos wait, TimePoint now, base::Random& random) {
  const double jittered = static_cast<double>(wait.count()) * (0.8 + 0.4 * random.Unit());
  next_at_ = base::DeadlineAfter(now, Nanos(static_cast<int64_t>(jittered)));
}

Nanos ActiveHealth::Backoff() {
  const double wait = static_cast<double>(kBackoffBase.count()) * std::exp2(std::min(tries_++, 30u));
  return Nanos(static_cast<int64_t>(std::min(wait, static_cast<double>(kBackoffMax.count()))));
}

Nanos ActiveHealth::CheckWait() const {
  const bool doubt = row_ > 0 && row_passed_ == (verdict_ == Verdict::kNotServing);
  return doubt ? std::min(kDoubtWait, Nanos(options_.interval)) : Nanos(options_.interval);
}

std::string ActiveHealth::Describe() const {
  if (options_.mode == HealthMode::kOff) return "";
  const bool watch = options_.mode == HealthMode::kWatch && !no_watch_;
  return std::string(watch ? "watch: " : "check: ") + (last_.empty() ? "no answer yet" : last_);
}

void ActiveHealth::Hurry(TimePoint now) {
  tries_ = 0;
  next_at_ = std::min(next_at_, now);
}

void ActiveHealth::Suspect(TimePoint now) { next_at_ = std::min(next_at_, std::max(now, opened_at_ + kDoubtWait)); }

}  // namespace sluice::upstream
