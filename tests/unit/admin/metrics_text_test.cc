// What `sluicectl top` reads of the metrics, and the percentiles that it makes of two looks.
#include "sluicectl/metrics_text.h"

#include <gtest/gtest.h>

#include <limits>

#include "metrics/registry.h"

namespace sluice::ctl {
namespace {

TEST(MetricsText, CallsAndErrorsAreSummedByCluster) {
  const CallMetrics metrics = ReadCallMetrics(
      "# HELP sluice_calls_total Calls.\n# TYPE sluice_calls_total counter\n"
      "sluice_calls_total{cluster=\"users\",grpc_status=\"OK\",route=\"a\"} 7\n"
      "sluice_calls_total{cluster=\"users\",grpc_status=\"INTERNAL\",route=\"a\"} 2\n"
      "sluice_calls_total{cluster=\"users\",grpc_status=\"OK\",route=\"b\"} 1\n"
      "sluice_calls_total{cluster=\"c\\\"\\\\d\",grpc_status=\"OK\",route=\"c\"} 4\n"
      "sluice_calls_in_flight 3\n"
      "sluice_calls_total{cluster=\"cut\nsluice_calls_total{\n");
  ASSERT_EQ(metrics.clusters.size(), 2u);
  EXPECT_EQ(metrics.clusters.at("users").calls, 10);
  EXPECT_EQ(metrics.clusters.at("users").errors, 2);
  EXPECT_EQ(metrics.clusters.at("c\"\\d").calls, 4);
}

TEST(MetricsText, BucketsAreOnTheirOwnAndOfAllRoutesOfACluster) {
  const std::string text =
      "sluice_calls_total{cluster=\"users\",grpc_status=\"OK\",route=\"a\"} 4\n"
      "sluice_calls_total{cluster=\"users\",grpc_status=\"OK\",route=\"b\"} 2\n"
      "sluice_call_duration_seconds_bucket{route=\"a\",le=\"0.001\"} 3\n"
      "sluice_call_duration_seconds_bucket{route=\"a\",le=\"0.01\"} 4\n"
      "sluice_call_duration_seconds_bucket{route=\"a\",le=\"+Inf\"} 4\n"
      "sluice_call_duration_seconds_bucket{route=\"b\",le=\"0.01\"} 1\n"
      "sluice_call_duration_seconds_bucket{route=\"b\",le=\"+Inf\"} 2\n"
      "sluice_endpoint_latency_seconds_bucket{cluster=\"users\",endpoint=\"e1\",le=\"0.5\"} 2\n";
  const CallMetrics metrics = ReadCallMetrics(text);
  const Buckets& users = metrics.clusters.at("users").duration;
  ASSERT_EQ(users.size(), 3u);
  EXPECT_EQ(users.begin()->second, 3);
  EXPECT_EQ(users.at(0.01), 2);
  EXPECT_EQ(users.rbegin()->second, 1);
  EXPECT_EQ(metrics.endpoints.at({"users", "e1"}).latency.at(0.5), 2);
}

TEST(MetricsText, QuantilesAreStraightBetweenBounds) {
  const Buckets buckets{{0.001, 50}, {0.01, 49}, {std::numeric_limits<double>::infinity(), 1}};
  EXPECT_DOUBLE_EQ(Quantile(buckets, 0.25), 0.0005);
  EXPECT_DOUBLE_EQ(Quantile(buckets, 0.5), 0.001);
  EXPECT_NEAR(Quantile(buckets, 0.99), 0.01, 1e-9);
  EXPECT_DOUBLE_EQ(Quantile(buckets, 1), 0.01);  // of what is beyond, no more is known
  EXPECT_EQ(Quantile({}, 0.5), 0);
  EXPECT_EQ(Quantile({{1.0, 0}}, 0.5), 0);
}

TEST(MetricsText, NoQuantileIsAboveTheLongestTime) {
  const CallMetrics metrics = ReadCallMetrics(
      "sluice_call_duration_max_seconds{cluster=\"users\",route=\"a\"} 1.5\n"
      "sluice_call_duration_max_seconds{cluster=\"users\",route=\"b\"} 2.001\n"
      "sluice_endpoint_latency_max_seconds{cluster=\"users\",endpoint=\"e1\"} 0.25\n");
  EXPECT_EQ(metrics.clusters.at("users").longest, 2.001);
  EXPECT_EQ(metrics.endpoints.at({"users", "e1"}).longest, 0.25);
  const Buckets buckets{{1.610612736, 0}, {2.147483648, 100}};
  EXPECT_GT(Quantile(buckets, 0.99), 2.1);
  EXPECT_EQ(Quantile(buckets, 0.99, 2.001), 2.001);
  EXPECT_LT(Quantile(buckets, 0.5, 2.001), 2.001);
}

TEST(MetricsText, OnlyWhatCameBetweenTwoLooksCounts) {
  const Buckets before{{0.001, 100}}, now{{0.001, 100}, {0.01, 5}};
  EXPECT_NEAR(Quantile(Since(now, before), 0.5), 0.005, 0.002);
  EXPECT_EQ(Quantile(Since(before, now), 0.5), 0);  // a daemon that was started anew counts from 0
}

// By what the daemon itself writes.
TEST(MetricsText, ReadsWhatTheRegistryRenders) {
  metrics::Registry registry(1);
  registry.AddCounter("sluice_calls_total", "Calls.", {{"route", "a"}, {"cluster", "x\"y"}, {"grpc_status", "OK"}})
      ->Add(0);
  metrics::Histogram* duration = registry.AddHistogram("sluice_call_duration_seconds", "Time.", 1e-9, {{"route", "a"}});
  for (int i = 0; i < 99; ++i) duration->Observe(0, 1'000'000);
  duration->Observe(0, 400'000'000);
  const CallMetrics metrics = ReadCallMetrics(registry.RenderPrometheus());
  ASSERT_EQ(metrics.clusters.count("x\"y"), 1u);
  EXPECT_EQ(metrics.clusters.at("x\"y").calls, 1);
  const Buckets& took = metrics.clusters.at("x\"y").duration;
  EXPECT_NEAR(Quantile(took, 0.5), 0.001, 0.0003);
  EXPECT_NEAR(Quantile(took, 1), 0.4, 0.1);
}

}  // namespace
}  // namespace sluice::ctl
