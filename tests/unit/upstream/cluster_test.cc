#include "upstream/cluster.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sluice::upstream {
namespace {

using base::ErrorKind;

WantedEndpoint Want(const std::string& name, const std::string& address, double weight = 1, bool draining = false) {
  return {name, *net::Address::Parse(address), weight, draining};
}

class ClusterTest : public ::testing::Test {
 public:
  using State = std::shared_ptr<const ClusterState>;
  base::Result<State> Build(const std::vector<WantedEndpoint>& wanted, const ClusterState* previous = nullptr) {
    return BuildClusterState(options, wanted, previous, ListSource::kConfig, 2, registry);
  }
  ClusterTest() { options->name = "c"; }
  metrics::Registry registry{2};
  std::shared_ptr<ClusterOptions> options = std::make_shared<ClusterOptions>();
};

TEST_F(ClusterTest, EndpointsWithTheSameNameAndAddressAreKept) {
  auto before = *Build({Want("a", "10.0.0.1:1"), Want("b", "10.0.0.2:1")});
  auto after =
      *Build({Want("b", "10.0.0.2:1", 2, true), Want("a", "10.0.0.9:1"), Want("c", "10.0.0.3:1")}, before.get());
  EXPECT_EQ(before->version, 1u);
  EXPECT_EQ(after->version, 2u);
  EXPECT_EQ(after->endpoints[0].endpoint, before->endpoints[1].endpoint);
  EXPECT_EQ(after->endpoints[0].weight, 2);
  EXPECT_TRUE(after->endpoints[0].draining);
  EXPECT_NE(after->endpoints[1].endpoint,
            before->endpoints[0].endpoint);  // another address is another endpoint
  auto removed = Removed(*before, after.get());
  ASSERT_EQ(removed.size(), 1u);
  EXPECT_EQ(removed[0], before->endpoints[0].endpoint);
  EXPECT_EQ(Removed(*before, nullptr).size(), 2u);
  EXPECT_EQ(Removed(*before, before.get()).size(), 0u);
}

TEST_F(ClusterTest, WithOtherOptionsEndpointsStayAndTheRingIsBuiltAnew) {
  auto before = *Build({Want("a", "10.0.0.1:1")});
  auto other = std::make_shared<ClusterOptions>(*options);
  other->ring_points = options->ring_points + 1;
  options = other;
  auto after = *Build({Want("a", "10.0.0.1:1")}, before.get());
  EXPECT_EQ(after->version, 2u);
  EXPECT_EQ(after->endpoints[0].endpoint, before->endpoints[0].endpoint);  // its calls go on
  auto fresh = *Build({Want("a", "10.0.0.1:1")});
  EXPECT_EQ(after->balancer->Digest(), fresh->balancer->Digest());
}

TEST_F(ClusterTest, ABadListIsRefusedAndSaysWhy) {
  const std::string address = "10.0.0.1:1";
  for (const auto& [wanted, text] : std::vector<std::pair<std::vector<WantedEndpoint>, std::string>>{
           {{Want("a", address), Want("b", address), Want("a", address)}, "a is in the list twice"},
           {{Want("", address)}, "needs a name"},
           {{Want("a", address, 0)}, "weight"},
           {{Want("a", address, 100.5)}, "weight"},
           {{Want("a", address, -1)}, "weight"},
           {{Want("a", address, std::nan(""))}, "weight"},
           {std::vector<WantedEndpoint>(kEndpointsMax + 1, Want("a", address)), "more than 10000"}}) {
    auto built = Build(wanted);
    ASSERT_FALSE(built.ok()) << text;
    EXPECT_EQ(built.error().kind, ErrorKind::kInvalidArgument);
    EXPECT_NE(built.error().detail.find(text), std::string::npos) << built.error().detail;
  }
}

TEST_F(ClusterTest, AnEmptyListIsAList) {
  auto state = *Build({});
  EXPECT_TRUE(state->endpoints.empty());
  auto yes = [](uint32_t) { return true; };
  auto none = [](uint32_t) { return 0u; };
  EXPECT_EQ(state->balancer->Pick(PickContext{1, 1, 0, yes, none}), LoadBalancer::kNone);
}

TEST_F(ClusterTest, ThePickIsAnIndexOfTheList) {
  for (Policy policy : {Policy::kRingHash, Policy::kRoundRobin, Policy::kLeastRequest}) {
    options = std::make_shared<ClusterOptions>(*options);
    options->policy = policy;
    auto state = *Build({Want("a", "10.0.0.1:1"), Want("b", "10.0.0.2:1"), Want("c", "10.0.0.3:1")});
    auto only_b = [&](uint32_t i) { return state->endpoints[i].endpoint->name() == "b"; };
    auto none = [](uint32_t) { return 0u; };
    for (uint64_t key = 0; key < 20; ++key) {
      EXPECT_EQ(state->balancer->Pick(PickContext{key, key, 1, only_b, none}), 1u) << ToString(policy);
    }
  }
}

TEST(Endpoint, ItsLinkIsTheBestOfItsWorkers) {
  metrics::Registry registry(3);
  Endpoint endpoint("c", "e", *net::Address::Parse("10.0.0.1:1"), std::make_shared<ClusterOptions>(),
                    std::make_shared<ClusterLoad>(3), 3, registry);
  using Link = EndpointLink;
  EXPECT_EQ(endpoint.link(), Link::kIdle);
  endpoint.set_link(0, Link::kBackoff);
  EXPECT_EQ(endpoint.link(), Link::kBackoff);
  endpoint.set_link(1, Link::kConnecting);
  EXPECT_EQ(endpoint.link(), Link::kConnecting);
  endpoint.set_link(2, Link::kConnected);
  EXPECT_EQ(endpoint.link(), Link::kConnected);
  EXPECT_EQ(ToString(endpoint.link()), "connected");
}

TEST(Endpoint, ItsHealthIsOneWordOfAllWorkers) {
  metrics::Registry registry(3);
  Endpoint endpoint("c", "e", *net::Address::Parse("10.0.0.1:1"), std::make_shared<ClusterOptions>(),
                    std::make_shared<ClusterLoad>(3), 3, registry);
  EXPECT_EQ(endpoint.health(), EndpointHealth::kHealthy);
  endpoint.set_link(0, EndpointLink::kBackoff);
  endpoint.set_link(0, EndpointLink::kBackoff);  // counted once
  endpoint.set_link(1, EndpointLink::kConnected);
  endpoint.set_link(2, EndpointLink::kBackoff);
  EXPECT_EQ(endpoint.health(), EndpointHealth::kBackoff);
  endpoint.set_link(2, EndpointLink::kConnecting);
  EXPECT_EQ(endpoint.health(), EndpointHealth::kBackoff);
  endpoint.set_link(0, EndpointLink::kIdle);
  EXPECT_EQ(endpoint.health(), EndpointHealth::kHealthy);
  endpoint.set_link(1, EndpointLink::kBackoff);
  endpoint.MarkRemoved();
  EXPECT_EQ(endpoint.health(), EndpointHealth::kRemoved);
  endpoint.set_link(1, EndpointLink::kIdle);
  EXPECT_EQ(endpoint.health(), EndpointHealth::kRemoved);
  EXPECT_TRUE(endpoint.removed());
}

}  // namespace
}  // namespace sluice::upstream
