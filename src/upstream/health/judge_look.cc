// The judge's detectors: what is evidence against an endpoint.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <utility>

#include "upstream/health/judge.h"

namespace sluice::upstream {
namespace {

using base::Nanos;
using base::TimePoint;

// A verdict by times to first byte leaves the median this many standard deviations on either side: passes are many, and
// none of them may be wrong.
constexpr double kDeviations = 3.3;
// The odds that an endpoint is called stuck by chance.
constexpr double kStuckOdds = 1e-6;
// The others' share of calls without an answer yet is taken to be at least this.
constexpr double kUnansweredMin = 0.01;
constexpr double kUnansweredMax = 0.8;  // above it waiting is what calls do here
constexpr uint32_t kRowOnReturn = 2;    // failures in a row that may be evidence after a return
constexpr size_t kLately = 2;           // seconds at least, of which one is not over yet
constexpr size_t kNewest = 4;           // eighths of a second, the same

std::string Milliseconds(double nanos) {
  char text[32];
  std::snprintf(text, sizeof text, nanos < 1e7 ? "%.1f ms" : "%.0f ms", nanos / 1e6);
  return text;
}

std::string Percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f%%", share * 100);
  return text;
}

}  // namespace

// Whether the row is no share of what hits all: others have had good answers meanwhile, or have no calls, or it is so
// long that they would have failed too.
bool Judge::RowIsSure(const EndpointRecord& record, const Whole& whole) const {
  // Calls sent before may have been lost to what hit all.
  if (record.cause == Cause::kDeadline && record.sent_alone < options_.consecutive) return false;
  const uint32_t own = record.sums.ended() > 0 ? 1 : 0;
  return whole.active == own || record.witnesses >= kWitnesses || record.alone >= kSureTimes * options_.consecutive;
}

std::optional<Judge::Evidence> Judge::LookConsecutive(const EndpointRecord& record, const Whole& whole) const {
  if (options_.consecutive == 0) return std::nullopt;
  const bool just_back = record.state() == HealthState::kWarming && record.good_since_return() == 0;
  uint32_t limit = just_back ? std::min(kConsecutiveOnReturn, options_.consecutive) : options_.consecutive;
  if (record.spared()) limit = 1;
  // Failures that others shared say nothing of this one, also when the others have recovered a moment earlier.
  const uint32_t row = OthersFail(record, whole) ? record.streak : record.alone;
  if (row < limit) return std::nullopt;
  return Evidence{Detector::kConsecutive,
                  std::to_string(row) + " failures in a row: " + std::string(ToString(record.cause))};
}

// INTERNAL, UNKNOWN and CANCELLED come from applications too, so that single ones tell nothing, and a row of them only
// beside what the others have.
std::optional<Judge::Evidence> Judge::LookRow(const EndpointRecord& record, const Whole& whole) const {
  if (options_.consecutive == 0 || record.failed_row < kRowOnReturn || !IsSoft(record.cause)) return std::nullopt;
  const CallCounts others = whole.sums - record.sums;
  // Since the row began; in the pass that began it, of that pass.
  const CallCounts meanwhile = record.meanwhile.ended() > 0 ? record.meanwhile : whole.more - record.more;
  if (others.ended() < kCallsMin || meanwhile.failed() > kRowOthers * meanwhile.ended()) return std::nullopt;
  const double rate = WilsonBounds(static_cast<double>(others.failed()) / others.ended(), others.ended()).upper;
  const bool back = record.spared() || (record.state() == HealthState::kWarming && record.good_since_return() == 0);
  const double by_chance = rate >= 1 ? 1e9 : std::ceil(std::log(kRowOdds) / std::log(rate));
  const double limit =
      back && rate <= kRowRateOnReturn ? kRowOnReturn : std::max<double>(options_.consecutive, by_chance);
  if (record.failed_row < limit) return std::nullopt;
  Evidence evidence{Detector::kConsecutive,
                    std::to_string(record.failed_row) + " failures in a row: " + std::string(ToString(record.cause)) +
                        "; of the others' calls " + Percent(static_cast<double>(others.failed()) / others.ended())};
  evidence.sure = record.meanwhile.good >= std::max(kWitnesses, record.failed_row / 2);
  return evidence;
}

std::optional<Judge::Evidence> Judge::LookStuck(const Subject& subject, std::span<const Subject> all,
                                                const Whole& whole, TimePoint now, double times) const {
  const EndpointRecord& record = *subject.record;
  if (options_.stuck.count() == 0 || record.held_up || subject.in_flight == 0 ||
      now - record.quiet_since < options_.stuck)
    return std::nullopt;
  const CallCounts others = whole.sums - record.sums;
  if (others.answered < kCallsMin) return std::nullopt;
  const double unanswered =
      std::max(kUnansweredMin, 1.0 - static_cast<double>(others.answered) / std::max(others.sent, others.answered));
  if (unanswered > kUnansweredMax) return std::nullopt;
  const auto needed = static_cast<uint32_t>(std::ceil(std::log(kStuckOdds) / std::log(unanswered)));
  if (record.sent_quiet < needed) return std::nullopt;
  const LatencyWindow::Counts others_latency = Without(whole.latency, record.latency.counts());
  const double p99 = Quantile(others_latency, 0.99, 0);
  const double bound = std::max(static_cast<double>(Nanos(options_.stuck).count()), times * p99);
  const Nanos quiet = now - record.quiet_since;
  if (static_cast<double>(quiet.count()) < bound) return std::nullopt;
  // Whatever holds all of them up is not this one's fault: most others must have answered since, and owe little.
  uint32_t asked = 0, answering = 0;
  for (const Subject& other : all) {
    if (other.record == &record || other.record->out() || other.record->sums.sent == 0) continue;
    ++asked;
    const Nanos later = other.record->last_answer - record.quiet_since;
    answering += static_cast<double>(later.count()) >= bound && other.record->sent_quiet * 2 < needed ? 1 : 0;
  }
  if (answering * 2 <= asked) return std::nullopt;
  return Evidence{Detector::kStuck, "no answer for " + Milliseconds(static_cast<double>(quiet.count())) + ", " +
                                        std::to_string(subject.in_flight) +
                                        " calls out; 99% of the others' answers took at most " + Milliseconds(p99)};
}

std::optional<Judge::Evidence> Judge::LookErrorRate(const EndpointRecord& record, const Whole& whole) const {
  if (options_.error_rate <= 0 || std::max(record.sums.ended(), record.failed_row) < kCallsMin) return std::nullopt;
  // The newest calls first: what is wrong since then shows there.
  CallCounts row;
  row.soft = record.failed_row;
  RateMatch match;
  match.Add(row, record.meanwhile);
  if (auto evidence = CompareRates(record, match, false)) return evidence;
  match = {};
  for (size_t back = 0; back < kNewest; ++back) {
    const CallCounts& own = record.newest_window.bucket(back);
    match.Add(own, whole.newest[back] - own);
  }
  if (auto evidence = CompareRates(record, match, false)) return evidence;
  // Then more and more of them: a rate of few in a hundred takes many calls to show, and those from before it began,
  // which may be good, tell nothing of it.
  match = {};
  for (size_t back = 0; back < RateWindow::kBuckets; ++back) {
    const CallCounts& own = record.window.bucket(back);
    match.Add(own, whole.window[back] - own);
    if (back + 1 < kLately) continue;
    if (auto evidence = CompareRates(record, match, true)) return evidence;
  }
  return std::nullopt;
}

std::optional<Judge::Evidence> Judge::CompareRates(const EndpointRecord& record, const RateMatch& match,
                                                   bool plain) const {
  const CallCounts& own = match.own();
  if (own.failed() == 0 || own.ended() < kCallsMin || match.others() < kCallsMin) return std::nullopt;
  const double calls = own.ended();
  const auto above = [&](uint32_t failed, double of_others, double margin) {
    return WilsonBounds(failed / calls, calls).lower > WilsonBounds(of_others, match.others()).upper + margin;
  };
  if (!above(own.failed(), match.failed(), options_.error_rate) &&
      (!plain || record.plain_later < kPlainLater || own.plain() < kPlainFailures ||
       !above(own.plain(), match.plain(), options_.error_rate * kPlainMargin)))
    return std::nullopt;
  return Evidence{Detector::kErrorRate,
                  std::to_string(own.failed()) + " of " + std::to_string(own.ended()) + " calls failed (" +
                      std::string(ToString(record.cause)) + "), the others " + Percent(match.failed()),
                  own.failed() / calls};
}

std::optional<Judge::Evidence> Judge::LookSlow(const EndpointRecord& record, const Whole& whole) const {
  // A cache that is cold is no illness: while it warms it gets little, and Held sees to that.
  if (options_.slow.factor <= 0 || record.state() == HealthState::kWarming) return std::nullopt;
  if (auto evidence = CompareLatency(record.latency_lately, whole.latency_lately)) return evidence;
  return CompareLatency(record.latency, whole.latency);
}

std::optional<Judge::Evidence> Judge::CompareLatency(const LatencyWindow& window,
                                                     const LatencyWindow::Counts& all) const {
  if (window.samples() < kSamplesMin) return std::nullopt;
  const LatencyWindow::Counts own = window.counts();
  const LatencyWindow::Counts others = Without(all, own);
  if (SumOf(others) < kSamplesMin) return std::nullopt;
  if (!IsSlow(own, others, kDeviations)) return std::nullopt;
  return Evidence{Detector::kSlow, "median time to first byte " + Milliseconds(Quantile(own, 0.5, 0)) + " in " +
                                       std::to_string(window.samples()) + " calls, the others " +
                                       Milliseconds(Quantile(others, 0.5, 0))};
}

bool Judge::IsSlow(const LatencyWindow::Counts& own, const LatencyWindow::Counts& others, double deviations) const {
  const double lower = Quantile(own, 0.5, -deviations);
  const double upper = Quantile(others, 0.5, deviations);
  return lower > options_.slow.factor * upper &&
         lower >= upper + static_cast<double>(Nanos(options_.slow.floor).count());
}

Judge::Evidence Judge::Look(const Subject& subject, std::span<const Subject> all, const Whole& whole,
                            TimePoint now) const {
  const EndpointRecord& record = *subject.record;
  auto row = LookConsecutive(record, whole);
  if (row && !OthersFail(record, whole)) return std::move(*row);
  auto soft_row = LookRow(record, whole);
  if (soft_row && soft_row->sure) return std::move(*soft_row);
  if (auto evidence = LookStuck(subject, all, whole, now, kStuckTimes)) return std::move(*evidence);
  if (auto evidence = LookErrorRate(record, whole)) return std::move(*evidence);
  if (soft_row) return std::move(*soft_row);
  if (row) return std::move(*row);  // to be suppressed
  if (auto evidence = LookSlow(record, whole)) return std::move(*evidence);
  Evidence none;
  none.doubt = LookStuck(subject, all, whole, now, kDoubtTimes).has_value();
  return none;
}

// The last outcome of most others is a failure.
bool Judge::OthersFail(const EndpointRecord& record, const Whole& whole) {
  const uint32_t own = record.sums.ended() > 0 ? 1 : 0;
  const uint32_t failing = whole.failing - (record.streak > 0 ? own : 0);
  return failing * 2 > whole.active - own;
}

}  // namespace sluice::upstream
