// JudgedCluster: endpoints whose calls a test counts by hand or by a seeded simulation, and the judge's passes over
// them, on a clock that the test turns.
#pragma once

#include <chrono>
#include <cmath>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "metrics/registry.h"
#include "upstream/health/judge.h"

namespace sluice::upstream {

struct JudgedEndpoint {
  std::string name;
  double weight = 1;
  bool draining = false;
  CallCounts counts;
  uint32_t row = 0, in_flight = 0;
  Cause cause = Cause::kNone;
  LatencyWindow::Counts first_bytes{};
  EndpointRecord record;
  ActiveHealth own_word;                                 // set by Says
  base::TimePoint answered_at = base::TimePoint::min();  // as of Judge::Subject
  EndpointPort port = EndpointPort::kSame;               // the same; kRestarted is of one pass

  void Sent(uint32_t n = 1) {
    counts.sent += n;
    in_flight += n;
  }
  // With requests that have not ended.
  void Opened(uint32_t n = 1) {
    counts.unended += n;
    in_flight += n;
  }
  // So many of those have ended.
  void Owes(uint32_t n = 1) {
    counts.sent += n;
    counts.ended_later += n;
  }
  void Answered(base::Nanos after) {
    ++counts.answered;
    ++first_bytes[metrics::Histogram::BucketOf(static_cast<uint64_t>(after.count()))];
  }
  void Good() {
    ++counts.good;
    --in_flight;
    row = 0;
  }
  void Bad(Cause why) {
    ++counts.bad;
    counts.apart += why == Cause::kDeadline || why == Cause::kLost ? 1 : 0;
    ++row;
    --in_flight;
    cause = why;
  }
  void Soft() {
    ++counts.soft;
    --in_flight;
    cause = Cause::kInternal;
  }
  // Their clients take back so many that have no answer.
  void Withdrawn(uint32_t n) {
    counts.withdrawn += n;
    in_flight -= n;
  }
  // Its health service says so: by a Watch that is begun, if there is none yet.
  void Says(ServingStatus status, base::TimePoint now) {
    HealthOptions asked;
    asked.mode = HealthMode::kWatch;
    base::Random random(1);
    if (own_word.Next(asked, now, random) == ActiveHealth::Act::kWatch) watch = std::make_unique<HealthReport>();
    watch->Answered(status);
    own_word.Read(*watch, now, random);
  }
  std::unique_ptr<HealthReport> watch;
  // One whole call.
  void Call(bool good, base::Nanos after = std::chrono::milliseconds(2)) {
    Sent();
    Answered(after);
    if (good)
      Good();
    else
      Bad(Cause::kUnavailable);
  }
};

class JudgedCluster {
 public:
  explicit JudgedCluster(size_t endpoints, uint64_t seed = 1) : judge(seed) {
    for (size_t i = 0; i < endpoints; ++i) {
      all.push_back(std::make_unique<JudgedEndpoint>());
      all.back()->name = "e" + std::to_string(i);
    }
    Configure();
    Pass();  // the first one sees where the counts stand
  }
  void Configure() { judge.Configure(options, slow_start); }

  // A period passes, or the time until the closer look that the judge asked for, and a pass is made.
  void Pass() { PassAfter(Judge::kPeriod); }
  void PassAsAsked() { PassAfter(Period()); }
  base::Nanos Period() const { return judge.looks_closer() ? Judge::kCloser : Judge::kPeriod; }
  void PassAfter(base::Nanos period) {
    now += period;
    std::vector<Judge::Subject> subjects;
    for (auto& e : all) {
      if (now >= latency_at) e->record.TakeLatency(e->first_bytes, now);
      // As Endpoint::Look has it: the row of a worker that has counted no failure since the last pass is old.
      const uint32_t row = e->counts.bad != e->record.last.bad ? e->row : 0;
      subjects.push_back({&e->record, e->name, e->weight, e->draining, e->counts, row, e->in_flight, e->cause, 1,
                          e->own_word.active() ? &e->own_word : nullptr, e->answered_at, e->port});
      if (e->port == EndpointPort::kRestarted) e->port = EndpointPort::kSame;
    }
    if (now >= latency_at) latency_at = now + std::chrono::milliseconds(500);
    probing.clear();
    for (const uint32_t place : judge.Pass(subjects, now)) probing.push_back(all[place]->name);
  }
  void Pass(int n) {
    for (int i = 0; i < n; ++i) Pass();
  }
  JudgedEndpoint& operator[](size_t i) { return *all[i]; }
  HealthState State(size_t i) const { return all[i]->record.state(); }
  size_t InRotation() const {
    size_t n = 0;
    for (const auto& e : all) n += e->record.out() ? 0 : 1;
    return n;
  }
  uint64_t Ejections() const {
    uint64_t n = 0;
    for (const uint64_t each : judge.counts().ejections) n += each;
    return n;
  }
  std::string Why(size_t i) const { return all[i]->record.why(); }

  EjectionOptions options;
  SlowStartOptions slow_start;
  Judge judge;
  base::TimePoint now{std::chrono::hours(1)};
  base::TimePoint latency_at{};
  std::vector<std::unique_ptr<JudgedEndpoint>> all;
  std::vector<std::string> probing;
};

// Each of the endpoints answers `n` calls well.
inline void GoodCalls(JudgedCluster& cluster, std::initializer_list<size_t> places, int n,
                      base::Nanos after = std::chrono::milliseconds(2)) {
  for (const size_t place : places) {
    for (int i = 0; i < n; ++i) cluster[place].Call(true, after);
  }
}

}  // namespace sluice::upstream
