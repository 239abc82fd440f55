// Counting is exact under threads, and reading may go on beside it.
#include "metrics/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>

namespace sluice::metrics {
namespace {

TEST(Counter, SumsWorkersAndOtherThreadsExactly) {
  constexpr size_t kWorkers = 3, kStrangers = 3;
  constexpr uint64_t kAdds = 50'000;
  Registry registry(kWorkers);
  Counter* counter = registry.AddCounter("calls_total", "Calls.");
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kWorkers + kStrangers; ++i) {
    const size_t slot = i < kWorkers ? i : registry.shared_slot();
    threads.emplace_back([=] {
      for (uint64_t n = 0; n < kAdds; ++n) counter->Add(slot, 1 + n % 2);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(counter->Value(), (kWorkers + kStrangers) * kAdds * 3 / 2);
}

TEST(Counter, NeighboursDoNotDisturbEachOther) {
  Registry registry(2);
  // Enough to need several chunks.
  std::vector<Counter*> counters;
  for (int i = 0; i < 2'000; ++i) {
    counters.push_back(registry.AddCounter("c_total", "C.", {{"i", std::to_string(i)}}));
    for (size_t slot = 0; slot <= registry.shared_slot(); ++slot) counters.back()->Add(slot, uint64_t(i));
  }
  EXPECT_EQ(std::set<Counter*>(counters.begin(), counters.end()).size(), counters.size());
  for (int i = 0; i < 2'000; ++i) EXPECT_EQ(counters[size_t(i)]->Value(), uint64_t(3 * i));
}

TEST(Counter, IsTheSameForTheSameNameAndLabelsInAnyOrder) {
  Registry registry(1);
  Counter* first = registry.AddCounter("c_total", "C.", {{"a", "1"}, {"b", "2"}});
  EXPECT_EQ(first, registry.AddCounter("c_total", "C.", {{"b", "2"}, {"a", "1"}}));
  EXPECT_NE(first, registry.AddCounter("c_total", "C.", {{"a", "2"}, {"b", "1"}}));
}

TEST(Counter, StaysWhereItIsWhileTheRegistryGrowsUnderWriters) {
  Registry registry(2);
  Counter* counter = registry.AddCounter("steady_total", "S.");
  Histogram* histogram = registry.AddHistogram("steady_seconds", "S.", 1e-9);
  constexpr uint64_t kAdds = 20'000;
  std::thread writer([&] {
    for (uint64_t n = 0; n < kAdds; ++n) {
      counter->Add(0);
      histogram->Observe(0, n);
    }
  });
  std::thread grower([&] {
    for (int i = 0; i < 500; ++i) {
      registry.AddHistogram("growing_seconds", "G.", 1e-9, {{"i", std::to_string(i)}})->Observe(1, 1);
    }
  });
  for (int i = 0; i < 20; ++i) EXPECT_NE(registry.RenderPrometheus().find("steady_total "), std::string::npos);
  writer.join();
  grower.join();
  EXPECT_EQ(counter->Value(), kAdds);
  EXPECT_EQ(histogram->Read().count, kAdds);
  EXPECT_EQ(histogram->Read().sum, kAdds * (kAdds - 1) / 2);
}

TEST(Gauge, IsTheSumOfPositiveAndNegativeSlots) {
  Registry registry(2);
  Gauge* gauge = registry.AddGauge("in_flight", "Calls.");
  gauge->Add(0, 5);
  gauge->Add(1, -3);                       // ended on another worker than it began
  gauge->Add(registry.shared_slot(), -4);  // below zero altogether
  EXPECT_EQ(gauge->Value(), -2);
  EXPECT_NE(registry.RenderPrometheus().find("\nin_flight -2\n"), std::string::npos);
}

TEST(Registry, CountsNewSeriesTogetherPastItsLimit) {
  Registry registry(1);
  for (size_t i = 0; i < Registry::kSeriesPerNameMax; ++i) {
    registry.AddCounter("c_total", "C.", {{"endpoint", std::to_string(i)}})->Add(0);
  }
  Counter* over = registry.AddCounter("c_total", "C.", {{"endpoint", "one more"}});
  over->Add(0, 7);
  EXPECT_EQ(over, registry.AddCounter("c_total", "C.", {{"endpoint", "and another"}}));
  EXPECT_NE(over, registry.AddCounter("c_total", "C.", {{"endpoint", "3"}}));  // known ones are still found
  EXPECT_NE(registry.RenderPrometheus().find("c_total{endpoint=\"overflow\"} 7\n"), std::string::npos);
}

TEST(Registry, CountersOfOneRowAreFoundByTheirLabels) {
  Registry registry(1);
  constexpr std::string_view kValues[] = {"OK", "NOT_\"FOUND\""};
  const auto row =
      registry.AddCounters("c_total", "C.", {{"route", "r"}, {"cluster", "c"}}, "grpc", kValues, Show::kFirst);
  ASSERT_EQ(row.size(), 2u);
  EXPECT_EQ(&row[1],
            registry.AddCounter("c_total", "C.", {{"grpc", "NOT_\"FOUND\""}, {"cluster", "c"}, {"route", "r"}}));
  EXPECT_EQ(
      row.data(),
      registry.AddCounters("c_total", "C.", {{"cluster", "c"}, {"route", "r"}}, "grpc", kValues, Show::kFirst).data());
  EXPECT_NE(row.data(),
            registry.AddCounters("c_total", "C.", {{"cluster", "c"}, {"route", "s"}}, "grpc", kValues, Show::kTouched)
                .data());
  EXPECT_EQ(registry.RenderPrometheus(),
            "# HELP c_total C.\n# TYPE c_total counter\n"
            "c_total{cluster=\"c\",grpc=\"OK\",route=\"r\"} 0\n");
  row[1].Add(0, 3);
  EXPECT_EQ(registry.RenderPrometheus(),
            "# HELP c_total C.\n# TYPE c_total counter\n"
            "c_total{cluster=\"c\",grpc=\"OK\",route=\"r\"} 0\n"
            "c_total{cluster=\"c\",grpc=\"NOT_\\\"FOUND\\\"\",route=\"r\"} 3\n");
}

TEST(Registry, RowsCountAsOneSeriesEach) {
  Registry registry(1);
  constexpr std::string_view kValues[] = {"a", "b", "c"};
  const auto row = [&](size_t i) {
    return registry.AddCounters("c_total", "C.", {{"route", std::to_string(i)}}, "v", kValues, Show::kTouched);
  };
  for (size_t i = 0; i < Registry::kSeriesPerNameMax; ++i) row(i);
  const auto over = row(Registry::kSeriesPerNameMax);
  over[2].Add(0, 5);
  EXPECT_EQ(over.data(), row(Registry::kSeriesPerNameMax + 1).data());
  EXPECT_NE(over.data(), row(7).data());
  EXPECT_NE(registry.RenderPrometheus().find("\nc_total{route=\"overflow\",v=\"c\"} 5\n"), std::string::npos);
}

TEST(Registry, WhatNothingHasCountedInCostsNoLine) {
  Registry registry(1);
  Counter* counter = registry.AddCounter("a_total", "A.", {{"x", "1"}}, Show::kTouched);
  Gauge* gauge = registry.AddGauge("b", "B.", {{"x", "1"}}, Show::kTouched);
  Histogram* histogram = registry.AddHistogram("c_seconds", "C.", 1e-9, {{"x", "1"}}, Show::kTouched);
  const auto has = [&](const std::string& line, Show least = Show::kTouched) {
    return registry.RenderPrometheus(least).find("\n" + line + "\n") != std::string::npos;
  };
  EXPECT_EQ(registry.RenderPrometheus().find('{'), std::string::npos);
  for (const char* line : {"a_total{x=\"1\"} 0", "b{x=\"1\"} 0", "c_seconds_count{x=\"1\"} 0"})
    EXPECT_TRUE(has(line, Show::kAlways)) << line;
  EXPECT_EQ(registry.RenderPrometheus().find('{'), std::string::npos) << "to look is not to count";
  counter->Add(0);
  gauge->Add(0, 1);
  histogram->Observe(registry.shared_slot(), 5);
  for (const char* line : {"a_total{x=\"1\"} 1", "b{x=\"1\"} 1", "c_seconds_count{x=\"1\"} 1"})
    EXPECT_TRUE(has(line)) << line;
  gauge->Add(0, -1);
  EXPECT_TRUE(has("b{x=\"1\"} 0")) << "a line that was there stays";
}

TEST(Registry, RendersMoreSeriesThanItLocksForAtOnce) {
  for (const size_t count : {Registry::kBatch - 1, Registry::kBatch, Registry::kBatch + 1, 3 * Registry::kBatch}) {
    Registry registry(1);
    for (size_t i = 0; i < count; ++i) registry.AddGauge("g", "G.", {{"i", std::to_string(i)}});
    const std::string text = registry.RenderPrometheus();
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), static_cast<std::ptrdiff_t>(count + 2));
  }
}

TEST(Histogram, SlotsThatBeginAtOnceLoseNothing) {
  for (int round = 0; round < 50; ++round) {
    Registry registry(2);
    Histogram* histogram = registry.AddHistogram("h_seconds", "H.", 1e-9, {}, Show::kTouched);
    std::vector<std::thread> threads;
    for (size_t slot : {size_t{0}, size_t{1}, registry.shared_slot(), registry.shared_slot()})
      threads.emplace_back([=] {
        for (int i = 0; i < 100; ++i) histogram->Observe(slot, 1);
      });
    uint64_t seen = 0;
    while (seen < 100) {
      const uint64_t now = histogram->Read().count;
      EXPECT_GE(now, seen);
      seen = now;
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(histogram->Read().count, 400u);
    EXPECT_EQ(histogram->Read().sum, 400u);
  }
}

TEST(RegistryDeathTest, RowsOfANameAreAlike) {
  Registry registry(1);
  constexpr std::string_view kValues[] = {"a", "b"}, kOthers[] = {"a", "c"};
  registry.AddCounters("x_total", "X.", {}, "v", kValues, Show::kTouched);
  EXPECT_DEATH(registry.AddCounters("x_total", "X.", {}, "v", kOthers, Show::kTouched), "values");
  EXPECT_DEATH(registry.AddCounters("x_total", "X.", {}, "w", kValues, Show::kTouched), "by");
  EXPECT_DEATH(registry.AddCounter("x_total", "X.", {{"v", "c"}}), "value");
}

TEST(RegistryDeathTest, ANameHasOneKindAndHelp) {
  Registry registry(1);
  registry.AddCounter("x", "X.");
  EXPECT_DEATH(registry.AddGauge("x", "X."), "kind");
  EXPECT_DEATH(registry.AddCounter("x", "Y."), "help");
  EXPECT_DEATH(registry.AddCounter("9x", "X."), "IsMetricName");
  EXPECT_DEATH(registry.AddCounter("y", "Y.", {{"le", "1"}}), "IsLabelName");
  EXPECT_DEATH(registry.AddCounter("z", "Z.", {{"__a", "1"}}), "IsLabelName");
}

// All of one registry, as another one that goes on from it.
TEST(RegistryCounts, AnotherRegistryCountsOn) {
  const std::string_view values[] = {"a", "b"};
  const auto fill = [&](Registry& registry) {
    registry.AddCounter("c_total", "h", {{"x", "1"}})->Add(0, 5);
    registry.AddCounters("row_total", "h", {{"z", "q"}}, "by", values, Show::kTouched)[1].Add(1, 7);
    registry.AddGauge("g", "h")->Add(0, 9);
    registry.AddHistogram("d_seconds", "h", 1e-9)->Observe(0, 5000);
    registry.AddCallback("line_total", "h", "counter", [] {
      return std::vector<Sample>{{{{"l", "a b"}}, 3}, {{{"l", "zero"}}, 0}};
    });
  };
  Registry former(1), next(1);
  fill(former);
  const std::vector<Counted> counts = former.Counts();
  // Half of it is there before the series are.
  for (const Counted& counted : counts) next.AddCounts(counted);
  fill(next);
  for (const Counted& counted : counts) {
    if (counted.kind == Counted::Kind::kLine) next.AddCounts(counted);
  }
  EXPECT_EQ(next.AddCounter("c_total", "h", {{"x", "1"}})->Value(), 10u);
  EXPECT_EQ(next.AddCounters("row_total", "h", {{"z", "q"}}, "by", values, Show::kTouched)[1].Value(), 14u);
  EXPECT_EQ(next.AddGauge("g", "h")->Value(), 9) << "gauges are of a process";
  const Histogram::Snapshot observed = next.AddHistogram("d_seconds", "h", 1e-9)->Read();
  EXPECT_EQ(observed.count, 2u);
  EXPECT_EQ(observed.sum, 10'000u);
  const std::string text = next.RenderPrometheus();
  EXPECT_NE(text.find("line_total{l=\"a b\"} 6\n"), std::string::npos) << text;
  EXPECT_NE(text.find("line_total{l=\"zero\"} 0\n"), std::string::npos) << text;
  // A third one gets the sum.
  Registry third(1);
  fill(third);
  for (const Counted& counted : next.Counts()) third.AddCounts(counted);
  EXPECT_EQ(third.AddCounter("c_total", "h", {{"x", "1"}})->Value(), 15u);
  EXPECT_NE(third.RenderPrometheus().find("line_total{l=\"a b\"} 9\n"), std::string::npos);
}

TEST(RegistryCounts, ALineThatIsNotWrittenHereStaysThere) {
  Registry registry(1);
  registry.AddCallback("line_total", "h", "counter", [] { return std::vector<Sample>{}; });
  registry.AddCounts(
      {.kind = Counted::Kind::kLine, .name = "line_total", .labels = "line_total{l=\"gone\"}", .line = 4});
  EXPECT_NE(registry.RenderPrometheus().find("line_total{l=\"gone\"} 4\n"), std::string::npos);
  EXPECT_EQ(registry.Counts().size(), 1u);
}

TEST(RegistryCounts, WhatFitsNothingIsLeftOut) {
  Registry registry(1);
  registry.AddCounter("c_total", "h")->Add(0, 1);
  registry.AddGauge("g", "h")->Add(0, 1);
  const std::string before = registry.RenderPrometheus();
  Counted histogram{.kind = Counted::Kind::kHistogram, .name = "c_total"};
  histogram.observed.buckets[3] = 1;
  registry.AddCounts(histogram);
  registry.AddCounts({.name = "g", .count = 5});
  registry.AddCounts({.kind = Counted::Kind::kLine, .name = "c_total", .labels = "other_total", .line = 1});
  registry.AddCounts({.kind = Counted::Kind::kLine, .name = "unknown_total", .labels = "unknown_total", .line = 1});
  EXPECT_EQ(registry.RenderPrometheus(), before);
}

}  // namespace
}  // namespace sluice::metrics
