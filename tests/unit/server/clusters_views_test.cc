// What operators see of clusters: shares as calls have them, and the routes that they mean.
#include <gtest/gtest.h>

#include <optional>

#include "server/clusters.h"
#include "support/manual_worker.h"

namespace sluice::server {
namespace {

class ClustersViewsTest : public ::testing::Test {
 public:
  ClustersViewsTest() {
    config.clusters.resize(2);
    config.clusters[0].name = "c";
    config.clusters[1].name = "other";
    config.routes.resize(1);
    config.routes[0].name = "r";
    config.routes[0].cluster = "c";
  }
  ~ClustersViewsTest() override {
    if (context) {
      context->pools.CloseAll();
      time.Run();
    }
    time.runtime.Shutdown();
  }
  void Configure(const std::vector<std::pair<std::string, std::string>>& endpoints) {
    for (const auto& [name, address] : endpoints)
      config.clusters[0].endpoints.push_back({name, *net::Address::Parse(address), 1});
  }
  void Init() {
    clusters.emplace(registry, 1);
    auto status = clusters->Init(config);
    ASSERT_TRUE(status.ok()) << status.error().detail;
    context.emplace(time.worker, clusters->snapshots(), metrics);
    clusters->SetWorkers({&*context});
  }
  admin::ClusterView View() { return (*clusters->List("c"))[0]; }

  config::Config config;
  test::ManualWorker time;
  metrics::Registry registry{1};
  proxy::ProxyMetrics metrics{registry};
  std::optional<Clusters> clusters;
  std::optional<proxy::CallContext> context;
};

// Routes without a name are called routes[0]: a person thinks of the cluster.
TEST_F(ClustersViewsTest, ARouteIsMeantByItsNameItsPlaceOrTheClusterThatItAloneLeadsTo) {
  config.routes.push_back({});
  config.routes[1].name = "routes[1]";
  config.routes[1].cluster = "other";
  config.routes[1].service = "s";
  std::swap(config.routes[0], config.routes[1]);
  Init();
  const auto meant = [&](const char* name) {
    const auto route = clusters->RouteOf(name);
    return route.ok() ? *route : route.error().detail;
  };
  EXPECT_EQ(meant("r"), "r");
  EXPECT_EQ(meant("other"), "routes[1]");
  EXPECT_EQ(meant("c"), "r");
  EXPECT_EQ(meant("0"), "routes[1]") << "by its place";
  EXPECT_EQ(meant("1"), "r");
  EXPECT_EQ(meant("2"), "no route is named 2; there is routes[1], r");
  EXPECT_EQ(meant("none"), "no route is named none; there is routes[1], r");
  EXPECT_EQ(clusters->RouteOf("none").error().kind, base::ErrorKind::kNotFound);
  config.routes[0].cluster = "c";
  ASSERT_TRUE(clusters->Apply(config).ok());
  EXPECT_EQ(meant("c"), "2 routes lead to the cluster c, name one of them: routes[1], r");
}

// Every view shows the share of keys that calls have now.
TEST_F(ClustersViewsTest, WhatAnEjectedEndpointDoesNotTakeIsTheOthersShare) {
  Configure({{"a", "10.0.0.1:1"}, {"b", "10.0.0.2:1"}, {"c", "10.0.0.3:1"}});
  Init();
  const auto shares = [&] {
    std::vector<double> out;
    for (const admin::EndpointView& each : View().endpoints) out.push_back(each.share);
    return out;
  };
  const std::vector<double> before = shares();
  ASSERT_TRUE(clusters->SetHealth({"c", "b", upstream::ClusterHealth::Order::kEject}).ok());
  const std::vector<double> after = shares();
  EXPECT_EQ(after[1], 0);
  EXPECT_NEAR(after[0] + after[2], 1, 1e-9);
  EXPECT_NEAR(after[0] / after[2], before[0] / before[2], 1e-9);
  EXPECT_EQ(View().endpoints[1].state, upstream::EndpointState::kActive) << "in the list it is what it was";
  EXPECT_EQ(View().endpoints[1].health->state, upstream::HealthState::kEjected);
}

}  // namespace
}  // namespace sluice::server
