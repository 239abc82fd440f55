// A cluster with ring: xds does what one with the other ring does: keys of an ejected endpoint come back to it, a new
// one takes them one by one, priorities have rings of their own, and a reload goes from one ring to the other.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "keyed_cluster.h"
#include "upstream/hash_ring.h"

namespace sluice::upstream {
namespace {

using Owners = KeyedCluster::Owners;
using Order = ClusterHealth::Order;

std::vector<std::string> Names(int count) {
  std::vector<std::string> out;
  for (int i = 0; i < count; ++i) out.push_back("10.0.0." + std::to_string(i) + ":80");
  return out;
}

// From the next list on.
void Use(KeyedCluster& cluster, Ring ring) {
  cluster.options = std::make_shared<ClusterOptions>(*cluster.options);
  cluster.options->ring = ring;
}

TEST(ClusterXdsRing, KeysOfAnEjectedEndpointGoToTheNextOnesAndComeBack) {
  KeyedCluster cluster(Names(10));
  Use(cluster, Ring::kXds);
  cluster.options->slow_start.window = std::chrono::seconds(0);
  cluster.Replace(Names(10));
  cluster.Pass();
  const Owners before = cluster.Place();
  const std::string sick = Names(10)[3];
  ASSERT_TRUE(cluster.Order(sick, Order::kEject).ok());
  const Owners without = cluster.Place();
  // As the ring has it when its points are walked past, which a ring of nine would not: its counts are others.
  std::vector<RingEndpoint> list;
  const std::vector<std::string> names = Names(10);
  for (const std::string& name : names) list.push_back({name, 1});
  const HashRing ring = HashRing::BuildXds(list, {});
  for (uint64_t i = 0; i < before.size(); ++i) {
    const uint32_t next = ring.Pick(base::Hash64(i, 42), [](uint32_t owner) { return owner != 3; });
    ASSERT_EQ(without[i], names[next]);
    if (before[i] != sick) {
      ASSERT_EQ(without[i], before[i]);
    }
  }
  ASSERT_TRUE(cluster.Order(sick, Order::kRestore).ok());
  cluster.Pass(200);
  EXPECT_EQ(cluster.Place(), before);
}

TEST(ClusterXdsRing, ANewEndpointTakesItsKeysOneByOne) {
  KeyedCluster cluster(Names(10));
  Use(cluster, Ring::kXds);
  cluster.Replace(Names(10));
  cluster.Pass();
  cluster.Replace(Names(11));
  const std::string added = Names(11)[10];
  const double first = KeyedCluster::ShareOf(cluster.Place(), added);
  EXPECT_LT(first, 0.02);
  while (cluster.State(added) == HealthState::kWarming) cluster.Pass(5);
  EXPECT_GT(KeyedCluster::ShareOf(cluster.Place(), added), 0.05);
}

TEST(ClusterXdsRing, EachPriorityHasARingOfItsOwn) {
  const std::vector<std::string> names = Names(9);
  KeyedCluster cluster(names);
  Use(cluster, Ring::kXds);
  std::vector<WantedEndpoint> wanted;
  for (size_t i = 0; i < names.size(); ++i) wanted.push_back(KeyedCluster::At(names[i], i < 4 ? 0 : 1));
  cluster.ReplaceWith(wanted);
  cluster.Pass();
  std::vector<RingEndpoint> high;
  for (size_t i = 0; i < 4; ++i) high.push_back({names[i], 1});
  const HashRing ring = HashRing::BuildXds(high, {});
  const Owners owners = cluster.Place();
  for (uint64_t i = 0; i < owners.size(); ++i) {
    ASSERT_EQ(owners[i], names[ring.Pick(base::Hash64(i, 42), [](uint32_t) { return true; })]);
  }
}

TEST(ClusterXdsRing, AReloadGoesFromOneRingToTheOtherAndToOtherSizes) {
  KeyedCluster cluster(Names(10));
  const auto own = cluster.state;
  Use(cluster, Ring::kXds);
  cluster.Replace(Names(10));
  const auto xds = cluster.state;
  EXPECT_NE(xds->balancer->Digest(), own->balancer->Digest());
  EXPECT_GT(MovedByBalancer(*own, *xds), 0.5);
  cluster.options = std::make_shared<ClusterOptions>(*cluster.options);
  cluster.options->ring_size_min = 5000;
  cluster.Replace(Names(10));
  EXPECT_NE(cluster.state->balancer->Digest(), xds->balancer->Digest());
  Use(cluster, Ring::kSluice);
  cluster.Replace(Names(10));
  EXPECT_EQ(cluster.state->balancer->Digest(), own->balancer->Digest());
  EXPECT_EQ(MovedByBalancer(*own, *cluster.state), 0);
}

TEST(ClusterXdsRing, WeightsThatOurOwnRingHasNoPointsForAreTaken) {
  KeyedCluster cluster(Names(10));
  Use(cluster, Ring::kXds);
  cluster.options->ring_points = 10000;
  std::vector<WantedEndpoint> wanted;
  for (const std::string& name : Names(50)) {
    wanted.push_back(KeyedCluster::Want(name));
    wanted.back().weight = 100;
  }
  EXPECT_TRUE(CheckList(*cluster.options, wanted).ok());
  Use(cluster, Ring::kSluice);
  EXPECT_FALSE(CheckList(*cluster.options, wanted).ok());
}

}  // namespace
}  // namespace sluice::upstream
