#include "server/endpoint_metrics.h"

#include <gtest/gtest.h>

#include <string>

#include "upstream/endpoint_series.h"

namespace sluice::server {
namespace {

using upstream::EndpointChange;
using upstream::EndpointSeries;
using Kind = EndpointChange::Kind;

class EndpointMetrics : public ::testing::Test {
 public:
  void Start(size_t endpoints) {
    config.clusters.resize(1);
    config.clusters[0].name = "c";
    config.routes.resize(1);
    config.routes[0].cluster = "c";
    for (size_t i = 0; i < endpoints; ++i)
      config.clusters[0].endpoints.push_back({"e" + std::to_string(i), *net::Address::Parse("10.0.0.1:1"), 1});
    ASSERT_TRUE(clusters.Init(config).ok());
    AddEndpointMetrics(registry, clusters);
  }
  EndpointSeries::Cell& Cell(size_t endpoint) {
    return clusters.States()[0]->endpoints[endpoint].endpoint->series().of(0);
  }
  void Change(Kind kind, const std::string& name) {
    EndpointChange change;
    change.kind = kind;
    change.cluster = "c";
    change.endpoints = {{name, "10.0.0.1:1", 1}};
    ASSERT_TRUE(clusters.Change(change).ok());
  }
  // Whether a scrape has this line.
  bool Has(const std::string& line) { return ("\n" + registry.RenderPrometheus()).find("\n" + line + "\n") != npos; }
  bool Mentions(const std::string& text) { return registry.RenderPrometheus().find(text) != npos; }

  static constexpr size_t npos = std::string::npos;
  config::Config config;
  metrics::Registry registry{1};
  Clusters clusters{registry, 1};
};

TEST_F(EndpointMetrics, AttemptsAreShownByEndpointAndStatus) {
  Start(2);
  Cell(0).Ended(0);
  Cell(0).Ended(0);
  Cell(0).Ended(14);
  EXPECT_TRUE(Has("# TYPE sluice_endpoint_calls_total counter"));
  EXPECT_TRUE(Has(R"(sluice_endpoint_calls_total{cluster="c",endpoint="e0",grpc_status="OK"} 2)"));
  EXPECT_TRUE(Has(R"(sluice_endpoint_calls_total{cluster="c",endpoint="e0",grpc_status="UNAVAILABLE"} 1)"));
  EXPECT_TRUE(Has(R"(sluice_endpoint_calls_total{cluster="c",endpoint="e1",grpc_status="OK"} 0)"));
  EXPECT_FALSE(Mentions(R"(endpoint="e1",grpc_status="UNAVAILABLE")"))
      << "a status has a series from its first attempt on";
}

TEST_F(EndpointMetrics, TimesAreShownInAFewBuckets) {
  Start(1);
  for (const uint64_t nanos : {uint64_t{1000}, uint64_t{300'000}, uint64_t{60'000'000'000}})
    Cell(0).Answered(metrics::Histogram::BucketOf(nanos), base::Nanos(static_cast<int64_t>(nanos)));
  const std::string name = "sluice_endpoint_latency_seconds", labels = R"(cluster="c",endpoint="e0")";
  EXPECT_TRUE(Has("# TYPE " + name + " histogram"));
  EXPECT_TRUE(Has(name + "_bucket{" + labels + R"(,le="0.000262144"} 1)"));
  EXPECT_TRUE(Has(name + "_bucket{" + labels + R"(,le="0.000524288"} 2)"));
  EXPECT_TRUE(Has(name + "_bucket{" + labels + R"(,le="17.17986918"} 2)"));
  EXPECT_TRUE(Has(name + "_bucket{" + labels + R"(,le="+Inf"} 3)"));
  EXPECT_TRUE(Has(name + "_sum{" + labels + "} 60.000301"));
  EXPECT_TRUE(Has(name + "_count{" + labels + "} 3"));
  EXPECT_TRUE(Has("sluice_endpoint_latency_max_seconds{" + labels + "} 60"));
  const std::string text = registry.RenderPrometheus();
  size_t lines = 0;
  for (size_t at = text.find(name + "_bucket"); at != npos; at = text.find(name + "_bucket", at + 1)) ++lines;
  EXPECT_EQ(lines, 18u);
}

TEST_F(EndpointMetrics, TheSeriesOfAnEndpointGoWithIt) {
  Start(2);
  Cell(0).Ended(0);
  Cell(1).Ended(0);
  Change(Kind::kRemove, "e0");
  EXPECT_FALSE(Mentions(R"(calls_total{cluster="c",endpoint="e0")"));
  EXPECT_FALSE(Mentions(R"(latency_seconds_count{cluster="c",endpoint="e0")"));
  EXPECT_TRUE(Has(R"(sluice_endpoint_calls_total{cluster="c",endpoint="e1",grpc_status="OK"} 1)"));
  Change(Kind::kAdd, "e0");
  EXPECT_TRUE(Has(R"(sluice_endpoint_calls_total{cluster="c",endpoint="e0",grpc_status="OK"} 0)"));
}

TEST_F(EndpointMetrics, StatesAreThoseOfTheList) {
  Start(2);
  EXPECT_TRUE(Has("# TYPE sluice_endpoint_state gauge"));
  EXPECT_TRUE(Has(R"(sluice_endpoint_state{cluster="c",endpoint="e0"} 0)"));
  const auto state = clusters.States()[0];
  ASSERT_TRUE(state->health
                  ->Command(state->endpoints, *state->endpoints[0].endpoint, upstream::ClusterHealth::Order::kEject,
                            base::TimePoint())
                  .ok());
  EXPECT_TRUE(Has(R"(sluice_endpoint_state{cluster="c",endpoint="e0"} 2)"));
  EXPECT_TRUE(Has(R"(sluice_endpoint_state{cluster="c",endpoint="e1"} 0)"));
  Change(Kind::kRemove, "e0");
  EXPECT_FALSE(Mentions(R"(sluice_endpoint_state{cluster="c",endpoint="e0")"));
}

TEST_F(EndpointMetrics, EndpointsOfALongListAreCountedTogether) {
  Start(EndpointSeries::kNamedMax + 2);
  EXPECT_FALSE(Mentions("overflow"));
  Cell(EndpointSeries::kNamedMax).Ended(0);
  Cell(EndpointSeries::kNamedMax + 1).Ended(0);
  Cell(EndpointSeries::kNamedMax + 1).Answered(0, base::Nanos(1));
  EXPECT_TRUE(Has(R"(sluice_endpoint_calls_total{cluster="c",endpoint="overflow",grpc_status="OK"} 2)"));
  EXPECT_TRUE(Has(R"(sluice_endpoint_latency_seconds_count{cluster="c",endpoint="overflow"} 1)"));
  EXPECT_FALSE(Mentions("calls_total{cluster=\"c\",endpoint=\"e" + std::to_string(EndpointSeries::kNamedMax)));
  // What was counted stays, so that a rate over the sum has no false reset.
  Change(Kind::kRemove, "e" + std::to_string(EndpointSeries::kNamedMax + 1));
  EXPECT_TRUE(Has(R"(sluice_endpoint_calls_total{cluster="c",endpoint="overflow",grpc_status="OK"} 2)"));
}

}  // namespace
}  // namespace sluice::server
