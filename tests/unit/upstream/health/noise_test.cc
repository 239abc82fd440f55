// The judge under simulated load: honest noise ejects no endpoint, each sick one is found in time, and none is out for
// ever. Time by hand, seeds printed.
#include <gtest/gtest.h>

#include <chrono>
#include <queue>

#include "judged_cluster.h"

namespace sluice::upstream {
namespace {

using base::Nanos;
using std::chrono::milliseconds;
using std::chrono::seconds;

// One thread and arithmetic: what more seeds show, they show without a sanitizer.
#ifdef SLUICE_SANITIZED
constexpr uint64_t Seeds(uint64_t) { return 1; }
#else
constexpr uint64_t Seeds(uint64_t wanted) { return wanted; }
#endif

// An endpoint's behaviour.
struct Nature {
  double calls_per_second = 50;
  double median_ms = 5;
  double sigma = 1;  // of the logarithm
  double error_rate = 0.005;
  bool hangs = false;
};

// Poisson arrivals, log-normal latency. Calls that hang end at their deadline.
class Simulation {
 public:
  static constexpr Nanos kDeadline = seconds(1);

  Simulation(size_t endpoints, uint64_t seed) : cluster(endpoints, seed), natures(endpoints), random(seed) {
    next_arrival.resize(endpoints, cluster.now);
  }
  // The calls until the next pass, and that.
  void Step() {
    const base::TimePoint end = cluster.now + cluster.Period();
    for (size_t i = 0; i < natures.size(); ++i) {
      const Nature& nature = natures[i];
      const double rate = nature.calls_per_second * cluster[i].record.share();
      if (rate <= 0) next_arrival[i] = end;
      if (cluster[i].record.wants_trial() && repeatable) Begin(i, cluster.now);
      for (; rate > 0 && next_arrival[i] < end; next_arrival[i] += Seconds(Exponential() / rate))
        Begin(i, next_arrival[i]);
    }
    while (!events.empty() && events.top().at < end) {
      const Event event = events.top();
      events.pop();
      Play(cluster[event.endpoint], event);
    }
    const Nanos period = cluster.Period();
    for (size_t i = 0; i < natures.size(); ++i) doubted += cluster[i].record.doubted() ? period : Nanos(0);
    cluster.PassAsAsked();
    for (const std::string& name : cluster.probing) {
      const size_t i = std::stoul(name.substr(1));
      cluster.judge.Probed(cluster[i].record, name, natures[i].hangs ? "hangs" : "", false, cluster.now);
    }
  }
  void Run(Nanos time) {
    for (const base::TimePoint end = cluster.now + time; cluster.now < end;) Step();
  }

  JudgedCluster cluster;
  Nanos doubted{0};        // time of all endpoints in which calls that may not be repeated passed them over
  bool repeatable = true;  // some calls may be repeated
  std::vector<Nature> natures;
  base::Random random;

 private:
  struct Event {
    enum Kind : uint8_t { kSend, kAnswer, kFail, kExpire };
    base::TimePoint at;
    size_t endpoint;
    Kind kind;
    Nanos took;
    bool operator<(const Event& other) const { return at > other.at; }  // the earliest on top
  };
  // A call to endpoint `i`, and its end.
  void Begin(size_t i, base::TimePoint at) {
    const Nature& nature = natures[i];
    const Nanos takes = nature.hangs ? kDeadline : Seconds(nature.median_ms / 1000 * std::exp(nature.sigma * Normal()));
    events.push({at, i, Event::kSend, {}});
    events.push({at + std::min(takes, kDeadline), i,
                 takes >= kDeadline                  ? Event::kExpire
                 : random.Unit() < nature.error_rate ? Event::kFail
                                                     : Event::kAnswer,
                 takes});
  }
  static Nanos Seconds(double s) { return Nanos(static_cast<int64_t>(s * 1e9)); }
  double Exponential() { return -std::log(1 - random.Unit()); }
  double Normal() { return std::sqrt(2 * Exponential()) * std::cos(2 * 3.14159265358979 * random.Unit()); }
  static void Play(JudgedEndpoint& endpoint, const Event& event) {
    if (event.kind == Event::kSend) return endpoint.Sent();
    if (event.kind == Event::kExpire) return endpoint.Bad(Cause::kDeadline);
    endpoint.Answered(event.took);
    if (event.kind == Event::kAnswer)
      endpoint.Good();
    else
      endpoint.Bad(Cause::kUnavailable);
  }
  std::priority_queue<Event> events;
  std::vector<base::TimePoint> next_arrival;
};

std::string Told(const Simulation& simulation) {
  std::string text;
  for (const HealthChange& change : simulation.cluster.judge.changes().changes())
    text += "\n" + change.endpoint + " " + std::string(ToString(change.to)) + ": " + change.why;
  return text;
}

TEST(HealthNoiseTest, TenMinutesOfHonestNoiseEjectNone) {
  for (uint64_t seed = 1; seed <= Seeds(3); ++seed) {
    for (size_t endpoints : {2, 5}) {
      for (double rate : {2.0, 50.0, 200.0}) {
        if (rate > 100 && seed > 1) continue;  // two million calls
        Simulation simulation(endpoints, seed);
        for (Nature& nature : simulation.natures) nature.calls_per_second = rate;
        simulation.natures[0].median_ms = 10;  // twice as slow as the others
        simulation.natures[0].error_rate = 0.01;
        simulation.Run(seconds(600));
        EXPECT_EQ(simulation.cluster.Ejections(), 0u)
            << "seed " << seed << " endpoints " << endpoints << " rate " << rate << Told(simulation);
        EXPECT_LT(simulation.doubted, seconds(600) * endpoints / 1000)
            << "seed " << seed << " endpoints " << endpoints << " rate " << rate;
      }
    }
  }
}

// Slow answers too, where a factor of two is far above the floor.
TEST(HealthNoiseTest, TwiceAsSlowAtHundredsOfMillisecondsEjectsNone) {
  for (uint64_t seed = 1; seed <= Seeds(6); ++seed) {
    Simulation simulation(4, seed);
    for (Nature& nature : simulation.natures) nature = {20, 150, 0.8, 0.005, false};
    simulation.natures[0].median_ms = 300;
    simulation.Run(seconds(600));
    EXPECT_EQ(simulation.cluster.Ejections(), 0u) << "seed " << seed << Told(simulation);
  }
}

// What they all stand on fails, hangs or is slow for a while, again and again.
TEST(HealthNoiseTest, WhatHitsAllAtOnceEjectsNone) {
  for (uint64_t seed = 1; seed <= Seeds(3); ++seed) {
    for (size_t endpoints : {2, 5}) {
      for (double rate : {5.0, 100.0}) {
        Simulation simulation(endpoints, seed);
        for (Nature& nature : simulation.natures) nature.calls_per_second = rate;
        for (int round = 0; round < 30; ++round) {
          simulation.Run(seconds(10) + milliseconds(simulation.random.Below(3000)));
          const std::vector<Nature> before = simulation.natures;
          for (Nature& nature : simulation.natures) {
            if (round % 3 == 0) nature.error_rate = 1;
            if (round % 3 == 1) nature.hangs = true;
            if (round % 3 == 2) nature.median_ms *= 40;
          }
          simulation.Run(seconds(5));
          simulation.natures = before;
        }
        EXPECT_EQ(simulation.cluster.Ejections(), 0u)
            << "seed " << seed << " endpoints " << endpoints << " rate " << rate << Told(simulation);
      }
    }
  }
}

// Caches that are cold: those of all endpoints at once, as after a purge or a roll-out; and the one of an endpoint that
// is back after an ejection, which is the only one.
TEST(HealthNoiseTest, ColdCachesEjectNone) {
  for (uint64_t seed = 1; seed <= Seeds(3); ++seed) {
    for (size_t endpoints : {2, 5}) {
      for (double rate : {5.0, 100.0}) {
        Simulation simulation(endpoints, seed);
        for (Nature& nature : simulation.natures) nature.calls_per_second = rate;
        simulation.natures[0].median_ms = 10;
        // Answers that miss: `cold` times as slow at first, half of that after each ten seconds.
        auto warm_up = [&](size_t first, size_t end, double cold) {
          const std::vector<Nature> warm = simulation.natures;
          for (; cold > 1.1; cold *= std::exp2(-0.1)) {
            for (size_t i = first; i < end; ++i) simulation.natures[i].median_ms = warm[i].median_ms * cold;
            simulation.Run(seconds(1));
          }
          simulation.natures = warm;
        };
        const std::string where = "seed " + std::to_string(seed) + " endpoints " + std::to_string(endpoints) +
                                  " rate " + std::to_string(rate);
        simulation.Run(seconds(60));
        for (int purge = 0; purge < 5; ++purge) {
          warm_up(0, endpoints, 8);
          simulation.Run(seconds(60));
        }
        EXPECT_EQ(simulation.cluster.Ejections(), 0u) << where << Told(simulation);
        simulation.natures[1].error_rate = 1;
        while (!simulation.cluster[1].record.out()) simulation.Step();
        simulation.natures[1].error_rate = 0.005;
        while (simulation.cluster[1].record.out()) simulation.Step();
        warm_up(1, 2, 30);
        simulation.Run(seconds(150));
        EXPECT_EQ(simulation.cluster.Ejections(), 1u) << where << Told(simulation);
        EXPECT_EQ(simulation.cluster.State(1), HealthState::kUp) << where << Told(simulation);
      }
    }
  }
}

TEST(HealthNoiseTest, EachSicknessIsFoundInTime) {
  struct Case {
    const char* name;
    Nature nature;
    Nanos within;
  };
  const Case cases[] = {{"fails", {200, 5, 1, 1.0, false}, milliseconds(400)},
                        {"fails 30%", {200, 5, 1, 0.3, false}, seconds(3)},
                        {"fails 5%", {200, 5, 1, 0.05, false}, seconds(10)},
                        // ten times the others' 99th percentile is 570 ms
                        {"hangs", {200, 5, 1, 0, true}, milliseconds(900)},
                        {"hangs, and they answer fast", {200, 1, 0.3, 0, true}, milliseconds(300)},
                        {"is 300 ms late", {200, 300, 0.1, 0, false}, seconds(3)}};
  for (uint64_t seed = 1; seed <= Seeds(2); ++seed) {
    for (size_t endpoints : {2, 5, 20}) {
      for (const Case& each : cases) {
        Simulation simulation(endpoints, seed);
        for (Nature& nature : simulation.natures) {
          nature.calls_per_second = 200;
          if (each.nature.hangs) nature.median_ms = each.nature.median_ms, nature.sigma = each.nature.sigma;
        }
        simulation.Run(seconds(10));
        simulation.natures[0] = each.nature;
        const base::TimePoint from = simulation.cluster.now;
        while (!simulation.cluster[0].record.out() && simulation.cluster.now - from < each.within) simulation.Step();
        EXPECT_TRUE(simulation.cluster[0].record.out())
            << each.name << " seed " << seed << " endpoints " << endpoints << Told(simulation);
        EXPECT_EQ(simulation.cluster.Ejections(), 1u) << Told(simulation);
      }
    }
  }
}

// Faults come and go at random; the bound holds at all times, and once all are well all are up in the end.
TEST(HealthNoiseTest, NoEndpointIsOutForEver) {
  for (uint64_t seed = 1; seed <= Seeds(10); ++seed) {
    Simulation simulation(4, seed);
    for (int round = 0; round < 60; ++round) {
      Nature& nature = simulation.natures[simulation.random.Below(4)];
      switch (simulation.random.Below(5)) {
        case 0:
          nature.error_rate = simulation.random.Unit();
          break;
        case 1:
          nature.hangs = true;
          break;
        case 2:
          nature.median_ms = 500;
          break;
        default:
          nature = {};
      }
      for (int i = 0; i < 50; ++i) {
        simulation.Step();
        ASSERT_GE(simulation.cluster.InRotation(), 2u) << "seed " << seed;
      }
    }
    for (Nature& nature : simulation.natures) nature = {};
    simulation.Run(seconds(72 + 120 + 20));  // the longest back-off, and the slowest warming
    for (size_t i = 0; i < 4; ++i)
      EXPECT_EQ(simulation.cluster.State(i), HealthState::kUp) << "seed " << seed << Told(simulation);
  }
}

}  // namespace
}  // namespace sluice::upstream
