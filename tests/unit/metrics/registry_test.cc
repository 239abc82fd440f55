// Counting is exact under threads, and reading may go on beside it.
#include "metrics/registry.h"

#include <gtest/gtest.h>

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

TEST(RegistryDeathTest, ANameHasOneKindAndHelp) {
  Registry registry(1);
  registry.AddCounter("x", "X.");
  EXPECT_DEATH(registry.AddGauge("x", "X."), "kind");
  EXPECT_DEATH(registry.AddCounter("x", "Y."), "help");
  EXPECT_DEATH(registry.AddCounter("9x", "X."), "IsMetricName");
  EXPECT_DEATH(registry.AddCounter("y", "Y.", {{"le", "1"}}), "IsLabelName");
  EXPECT_DEATH(registry.AddCounter("z", "Z.", {{"__a", "1"}}), "IsLabelName");
}

}  // namespace
}  // namespace sluice::metrics
