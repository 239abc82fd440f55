// Judge: whether the endpoints of a cluster do their work, by what is counted of their calls. A value: it is told the
// counts and the time, and names the endpoints to be probed. It has detectors and bounds, no sockets or threads.
//
// A pass every 100 ms (kPeriod) or, under load, 25 (kBusy), and every 20 ms (kCloser) while there is something to look
// at more closely: failures, or calls that are not answered. Evidence of one pass makes a suspect; the same kConfirm
// later an ejection, if enough weight stays. The detectors, in the order in which they are asked:
//   consecutive  so many failures in a row, while most of the others that have calls do not fail; of statuses that
//                applications give too, so many that it is no chance by the others' error rate
//   stuck        calls are out and none is answered, while the others answer theirs
//   error_rate   its error rate is above the others', and not by chance: of the last calls if all of them failed, or
//                of the last seconds
//   slow         its median time to first byte is above the others', and not by chance
// The first two act on what is now, slow on the last seconds.
//
// A doubt is less than evidence: calls that may not be repeated pass the endpoint over, as far as there is room for
// them elsewhere. A suspect is doubted, unless it is slow, and one that owes answers before it is called stuck.
//
// What an endpoint's health service says is obeyed as it is: neither the bounds nor the detectors have a say in it, and
// an endpoint that does not serve by its own word counts as little as one that drains.
//
// One thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "upstream/health/active_health.h"
#include "upstream/health/endpoint_record.h"

namespace sluice::upstream {

class Judge {
 public:
  static constexpr base::Nanos kPeriod = std::chrono::milliseconds(100);
  static constexpr base::Nanos kCloser = std::chrono::milliseconds(20);
  static constexpr base::Nanos kBusy = std::chrono::milliseconds(25);
  // Between the first evidence and the ejection at least, so that what hits all endpoints is seen at the others too.
  static constexpr base::Nanos kConfirm = std::chrono::milliseconds(40);
  // Calls that a verdict by rates takes, of the endpoint and of the others.
  static constexpr uint32_t kCallsMin = 20;
  // Samples that a verdict by time to first byte takes.
  static constexpr uint64_t kSamplesMin = 30;
  // An endpoint that has just come back is out again after this many failures in a row before the first good answer;
  // one while it gets only calls that may be repeated.
  static constexpr uint32_t kConsecutiveOnReturn = 2;

  // A row of failures is the endpoint's own where the others had this many good answers meanwhile; and without them
  // where it is this many times as long.
  static constexpr uint32_t kWitnesses = 3, kSureTimes = 5;

  // A row of failures that applications make too is evidence where chance makes one in so many such rows, by the upper
  // bound of the others' error rate in the last 10 s. After a return two are enough where that bound is low.
  static constexpr double kRowOdds = 1e-7, kRowRateOnReturn = 0.1;
  // And as long as the others fail no larger share of their calls meanwhile.
  static constexpr double kRowOthers = 0.05;

  // In the last 2 to 10 s plain failures (CallCounts) count where they are this many and above the others' rate by
  // this part of the margin: one call in twenty is what clients see.
  static constexpr uint32_t kPlainFailures = 10;
  static constexpr double kPlainMargin = 0.2;
  // And where so many of them have come later than kPlainBurst after the first one, with no pause above kPlainPause: a
  // burst is one event, and no rate.
  static constexpr uint32_t kPlainLater = 5;
  static constexpr base::Nanos kPlainBurst = std::chrono::milliseconds(500), kPlainPause = std::chrono::seconds(2);

  // An endpoint is stuck after this many times the others' 99th percentile, and a trial has failed. It is doubted after
  // fewer.
  static constexpr double kStuckTimes = 10, kDoubtTimes = 3;

  // An endpoint of the list as it is now.
  struct Subject {
    EndpointRecord* record;
    std::string_view name;
    double weight = 1;
    bool draining = false;
    CallCounts counts;  // since its beginning, of all workers; each wraps
    uint32_t row = 0;   // the longest row of failures of those workers that have counted one since the last pass
    uint32_t in_flight = 0;
    Cause cause = Cause::kNone;            // of the last failure
    double cap = 1;                        // it is being drained and takes at most this share of its keys
    const ActiveHealth* active = nullptr;  // its own word; null: it is not asked
    base::TimePoint answered_at = base::TimePoint::min();  // when the last response began; unset: as of this pass
    EndpointPort port = EndpointPort::kSame;               // kRestarted: seen since the last pass
  };
  struct Counts {
    std::array<uint64_t, kDetectors> ejections{};
    std::array<uint64_t, kSuppressions> suppressed{};
    uint64_t doubts = 0;  // begun
  };

  explicit Judge(uint64_t seed) : random_(seed) {}
  void Configure(const EjectionOptions& ejection, const SlowStartOptions& slow_start) {
    options_ = ejection;
    slow_start_ = slow_start;
  }

  // The records' latency windows have been told the latest. Returns the places of those that are probing from now on:
  // Probed is to follow for each. What is in `subjects` stays valid until it returns.
  std::vector<uint32_t> Pass(std::span<const Subject> subjects, base::TimePoint now);
  // After a pass: the next one is to follow after kCloser, not kPeriod.
  bool looks_closer() const { return looks_closer_; }
  // How a probe ended; `error` empty: well. `refused`: nothing listens at the address. Without effect if the endpoint
  // is not probing any more.
  void Probed(EndpointRecord& record, std::string_view name, const std::string& error, bool refused,
              base::TimePoint now);
  // By RPC. Restore does nothing for an endpoint that is not ejected.
  void Eject(EndpointRecord& record, std::string_view name, base::TimePoint now);
  void Restore(EndpointRecord& record, std::string_view name, base::TimePoint now);
  // It is new in the list, and enough others serve it: it warms.
  void Join(EndpointRecord& record, std::string_view name, base::TimePoint now);

  // As another process has left it.
  void Restore(EndpointRecord& record, std::string_view name, const EndpointRecord::Saved& saved, base::TimePoint now) {
    record.Restore({name, now, changes_}, saved, options_);
  }

  const ChangeLog& changes() const { return changes_; }
  const Counts& counts() const { return counts_; }

 private:
  struct Evidence {
    Detector detector = Detector::kNone;
    std::string text;
    double failing = 1;  // share of its calls, as far as it is known
    bool sure = false;   // the others have answered well meanwhile
    bool doubt = false;  // no evidence yet: it owes answers
  };
  // What a pass knows of all endpoints together.
  struct Whole {
    CallCounts sums;                         // of those in rotation
    RateWindow::Buckets window{}, newest{};  // the same, by time
    CallCounts more;                         // of all, since the last pass
    LatencyWindow::Counts latency{}, latency_lately{};
    uint32_t active = 0, failing = 0;  // with calls lately; of those, whose last outcome is a failure
    uint32_t asked = 0, quiet = 0;     // in rotation with calls lately; of those, that owe answers since a pass
    double weight = 0, available = 0;  // of those not draining; of those, not out
    uint32_t in_rotation = 0;
    double doubted = 0;  // weight that calls pass over which may not be repeated: spared, or doubted by this pass
  };

  void Count(const Subject& subject, base::TimePoint now);
  void Heed(const Subject& subject, base::TimePoint now);
  void WarmRestarted(std::span<const Subject> subjects, base::TimePoint now);
  bool NeedsCloserLook(const Subject& subject, base::Nanos p99, base::TimePoint now) const;
  Whole Sum(std::span<const Subject> subjects, base::TimePoint now) const;
  static bool Quiet(const EndpointRecord& record, base::TimePoint now);
  Evidence Look(const Subject& subject, std::span<const Subject> all, const Whole& whole, base::TimePoint now) const;
  static void Compare(EndpointRecord& record, const Whole& whole, base::TimePoint now);
  bool RowIsSure(const EndpointRecord& record, const Whole& whole) const;
  static bool OthersFail(const EndpointRecord& record, const Whole& whole);
  std::optional<Evidence> LookConsecutive(const EndpointRecord& record, const Whole& whole) const;
  std::optional<Evidence> LookRow(const EndpointRecord& record, const Whole& whole) const;
  std::optional<Evidence> LookStuck(const Subject& subject, std::span<const Subject> all, const Whole& whole,
                                    base::TimePoint now, double times) const;
  std::optional<Evidence> LookErrorRate(const EndpointRecord& record, const Whole& whole) const;
  std::optional<Evidence> CompareRates(const EndpointRecord& record, const RateMatch& match, bool plain) const;
  std::optional<Evidence> LookSlow(const EndpointRecord& record, const Whole& whole) const;
  std::optional<Evidence> CompareLatency(const LatencyWindow& window, const LatencyWindow::Counts& all) const;
  void Weigh(const Subject& subject, Evidence evidence, Whole& whole, base::TimePoint now);
  void Doubt(const Subject& subject, bool doubted, Whole& whole);
  Suppression MayEject(const Subject& subject, Detector detector, const Whole& whole) const;
  void JudgeTrial(const Subject& subject, const Whole& whole, base::TimePoint now);
  bool IsSlow(const LatencyWindow::Counts& own, const LatencyWindow::Counts& others, double deviations) const;
  void KeepEnough(std::span<const Subject> subjects, Whole& whole, base::TimePoint now);
  void ReleaseAll(std::span<const Subject> subjects, base::TimePoint now);
  bool Held(const EndpointRecord& record, const Whole& whole) const;

  EjectionOptions options_;
  SlowStartOptions slow_start_;
  base::Random random_;
  ChangeLog changes_;
  Counts counts_;
  bool looks_closer_ = false;
};

}  // namespace sluice::upstream
