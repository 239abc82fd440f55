// EndpointRecord: one endpoint's health: its state, since when and why, its back-off, its share of calls; and what the
// judge remembers of its calls. One for the process, whatever lists the endpoint stands in.
//
//                evidence              twice, and there is room
//        up ----------------> suspect --------------------------> ejected <-----------+
//        ^  <----------------    ^                                 |    ^             |
//        |    no evidence        |                     back-off over    | probe failed| evidence, twice
//        |                       |                                 v    |             |
//        |                       |                                probing             |
//        |      window over      |                                 | probe passed     |
//        +----------------------------------------------------- warming --------------+
//
// From every state: draining while the list says so, then warming. One that is new in a list that others serve begins
// with warming. From every state too: ejected by RPC, which no probe ends; and from ejected to warming, by RPC or where
// too few others are left. From up, suspect and warming: not_serving while the endpoint's health service says so, then
// warming. From up and suspect: warming, where the port refused connections and takes them again.
//
// One thread at a time; time is a parameter.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/random.h"
#include "upstream/health/latency_window.h"
#include "upstream/health/options.h"
#include "upstream/health/outcome_cell.h"
#include "upstream/health/rate_window.h"
#include "upstream/health/state.h"

namespace sluice::upstream {

class EndpointRecord {
 public:
  static constexpr base::Nanos kLatelyHalf = std::chrono::seconds(1);
  // A refused port is tried this often at least, whatever the back-off: a process that is back takes calls within a
  // second, with the judge's two periods on top.
  static constexpr base::Nanos kRefusedProbe = std::chrono::milliseconds(400);
  // A trial is passed with so many good answers and no failure, or with one in kTrialTime where there are few calls:
  // more where the endpoint failed a small part of its calls, so that it would fail kTrialFailures of them on average.
  static constexpr uint32_t kTrials = 10, kTrialsMax = 60;
  static constexpr double kTrialFailures = 3;
  // It has failed where the median of so many answers is slow.
  static constexpr uint32_t kTrialsSlow = 3;
  static constexpr base::Nanos kTrialTime = std::chrono::seconds(1);
  // And as long as this where only calls came whose requests have not ended.
  static constexpr base::Nanos kTrialOpenTime = std::chrono::seconds(5);
  // Calls of a trial that may be without an answer at a time.
  static constexpr uint32_t kTrialsOut = 2;
  // And with requests that have not ended, which show nothing: more, or they would keep those out that do.
  static constexpr uint32_t kTrialsOpen = 8;
  // After a trial it is spared calls that may not be repeated until it has had so many good answers, or for this long.
  static constexpr uint32_t kSparedGood = 20;
  static constexpr base::Nanos kSparedTime = std::chrono::seconds(3);
  // Of a slow suspect's calls, this share stays.
  static constexpr double kSlowShare = 0.25;

  HealthState state() const { return state_; }
  base::TimePoint since() const { return since_; }
  const std::string& why() const { return why_; }  // of the last change; empty before
  Detector detector() const { return detector_; }  // what it is suspected of or ejected for
  // It was ejected, or its last trial failed, for want of answers: its connections may be dead.
  bool silent() const { return silent_; }
  // What a probe or a call met last; empty: nothing.
  const std::string& last_error() const { return last_error_; }
  base::TimePoint last_error_at() const { return last_error_at_; }
  void set_last_error(std::string text, base::TimePoint now) {
    last_error_ = std::move(text);
    last_error_at_ = now;
  }
  // When the next probe begins; kNever: by itself not, or not ejected.
  base::TimePoint probe_at() const { return probe_at_; }
  // Takes no calls while another endpoint can.
  bool out() const { return ejected() || state_ == HealthState::kNotServing; }
  // By a verdict of the judge's, or by RPC.
  bool ejected() const { return state_ == HealthState::kEjected || state_ == HealthState::kProbing; }
  bool manual() const { return ejected() && detector_ == Detector::kManual; }
  // Which share of its keys it takes, 0..1: grows only while it warms, falls only while it is drained over a time.
  // While the list lets it drain: the share that it begins with when the list takes that back.
  double share() const;
  // It warms because it is new: before that others carried its keys, and they still can.
  bool joining() const { return state_ == HealthState::kWarming && joining_; }
  // Good answers since it came back.
  uint32_t good_since_return() const { return good_since_return_; }
  // Probing: a connection to it works, and calls that may be repeated are to show whether its answers are good.
  bool on_trial() const { return state_ == HealthState::kProbing && on_trial_; }
  // One such call is to be sent now.
  bool wants_trial() const {
    return on_trial() && sums.asked() < sums.ended() + kTrialsOut && sums.open() < kTrialsOpen;
  }
  // It takes only calls that may be repeated.
  bool passed_over() const { return spared_ || doubted_; }
  // So: a trial has just brought it back.
  bool spared() const { return spared_; }
  // So: it may be sick.
  bool doubted() const { return doubted_; }
  void Doubt(bool doubted) { doubted_ = doubted; }

  // Good answers that pass the trial.
  uint32_t trials() const { return trials_; }

  // What another process goes on from, of an endpoint that is ejected or warms. Times are of the monotonic clock, which
  // the system's processes share.
  struct Saved {
    HealthState state = HealthState::kUp;
    Detector detector = Detector::kNone;
    base::TimePoint since{}, probe_at = base::kNever;
    bool silent = false, refused = false, joining = false, trial_needed = false;
    uint32_t tries = 0, failed_probes = 0, trials = kTrials;
    double share = 1, warmed = 0;
    std::string why, last_error;
    base::TimePoint last_error_at{};
  };
  // nullopt: it is in no such state. One that is being probed is to be probed anew.
  std::optional<Saved> Save(base::TimePoint now) const;

  // The changes; each is written into `log` under `name`.
  struct Context {
    std::string_view name;
    base::TimePoint now;
    ChangeLog& log;
  };
  // From up. What `saved` cannot have meant is put right: shares, numbers of trials, times too far away.
  void Restore(const Context& context, const Saved& saved, const EjectionOptions& options);
  void Suspect(const Context& context, Detector detector, std::string why);
  void Clear(const Context& context, std::string why);
  // `failing`: the share of its calls that failed.
  void Eject(const Context& context, Detector detector, std::string why, const EjectionOptions& options,
             base::Random& random, double failing = 1);
  void BeginProbe(const Context& context);
  // A connection works: to a trial by calls, where it was ejected for what became of calls.
  bool NeedsTrial() const { return trial_needed_; }
  void BeginTrial(const Context& context);
  // The probe, or the trial that followed it; `silent`: of that, a call was not answered.
  void ProbeFailed(const Context& context, const std::string& error, bool refused, const EjectionOptions& options,
                   base::Random& random, bool silent = false);
  // To warming, or to up where the window is 0. `shown`: calls have shown that it works, so that an ejection that
  // follows costs no client anything; else the back-off doubles.
  void Return(const Context& context, std::string why, const SlowStartOptions& options, bool shown = false);
  // It is not spared for ever.
  void EndSparing(base::TimePoint now);
  // The time since the last call has passed; `held`: the endpoint is no match for the others yet, so its share grows at
  // a quarter of the speed.
  void Warm(const Context& context, const SlowStartOptions& options, bool held);
  // It is new in a list that other endpoints serve: to warming, where the window is not 0.
  void Join(const Context& context, const SlowStartOptions& options);
  // At most this share, because it is drained over a time; 1: no bound.
  void SetCap(double cap) { cap_ = cap; }
  // By the list. One that has been drained warms.
  void SetDraining(const Context& context, bool draining, const SlowStartOptions& options);
  // By its own word. Not from draining, nor while it is ejected.
  void StopServing(const Context& context, std::string why);
  // The next probe is due now, and the back-off begins anew.
  void ResetBackoff(base::TimePoint now);
  // The back-off begins anew for an endpoint that has been up for options.max.
  void Age(base::TimePoint now, const EjectionOptions& options);

  // Times to first byte, as counted since the beginning.
  void TakeLatency(const LatencyWindow::Counts& counts, base::TimePoint now) {
    latency.Take(counts, now);
    latency_lately.Take(counts, now);
  }
  void ForgetLatency() {
    latency.Forget();
    latency_lately.Forget();
  }

  // --- What the judge remembers; it alone looks ---
  CallCounts last;                            // as counted at the last pass
  bool seen = false;                          // `last` is set
  uint32_t streak = 0;                        // failures in a row, over all workers
  uint32_t alone = 0;                         // of them, those since most others do not fail
  uint32_t alone_before = 0;                  // at the last pass
  uint32_t witnesses = 0;                     // good answers of others in the passes since `alone` was 0
  uint32_t sent_alone = 0;                    // calls sent in them
  uint32_t failed_row = 0;                    // failures of any kind since the pass that saw the last good answer
  CallCounts meanwhile;                       // of the others, since the pass that began it
  base::TimePoint plain_since{}, plain_at{};  // the first plain failure behind a pause, and the last one
  uint32_t plain_later = 0;                   // of those since plain_since, the ones that are no burst
  CallCounts more;                            // counted since the last pass
  Cause cause = Cause::kNone;                 // of the last failure
  base::TimePoint cause_at{};                 // the pass that has seen it
  base::TimePoint quiet_since{};              // no answer since
  base::TimePoint last_answer{};
  uint32_t sent_quiet = 0;  // calls sent since the last answer
  bool owes = false;        // an answer, as of the last pass
  bool held_up = false;     // most others owe answers too
  RateWindow window{std::chrono::seconds(1)}, newest_window{std::chrono::milliseconds(125)};
  LatencyWindow latency, latency_lately{kLatelyHalf};
  CallCounts sums;                     // of the window, at this pass
  Detector pending = Detector::kNone;  // evidence of the last pass
  base::TimePoint pending_since{};
  bool suppressed = false;     // its ejection was counted as suppressed
  bool doubt_in_vain = false;  // no call came that may be repeated

 private:
  void Change(const Context& context, HealthState to, std::string why);
  void ArmProbe(base::TimePoint now, double wait, base::Random& random);
  void ForgetCalls(base::TimePoint now);

  HealthState state_ = HealthState::kUp;
  Detector detector_ = Detector::kNone;
  bool silent_ = false;
  bool refused_ = false;  // by the last probe or failure
  bool joining_ = false;
  bool trial_needed_ = false, on_trial_ = false, spared_ = false, doubted_ = false;
  uint32_t trials_ = kTrials;
  bool returned_ = false;       // without a trial
  uint32_t tries_ = 0;          // ejections after such returns: the back-off's exponent
  uint32_t failed_probes_ = 0;  // since the ejection
  uint32_t good_since_return_ = 0;
  double warmed_ = 0;  // 0..1 of the window
  double share_ = 1, cap_ = 1;
  base::TimePoint since_{}, probe_at_ = base::kNever, warmed_at_{};
  std::string why_, last_error_;
  base::TimePoint last_error_at_{};

  friend class Judge;
};

}  // namespace sluice::upstream
