// The ring of Envoy and gRPC: its points by its definition, what it promises, and owners that @grpc/grpc-js-xds named.
#include "upstream/xds_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/random.h"
#include "upstream/hash_ring.h"
#include "upstream/load_balancer.h"

namespace sluice::upstream {
namespace {

using List = std::vector<std::pair<std::string, double>>;  // name, weight
using Points = std::vector<std::pair<uint64_t, std::string>>;

HashRing Build(const List& list, XdsRingSize size = {}, const HashRing* previous = nullptr) {
  std::vector<RingEndpoint> endpoints;
  for (const auto& [name, weight] : list) endpoints.push_back({name, weight});
  return HashRing::BuildXds(endpoints, size, previous);
}

// As gRFC A42 says it, point by point.
Points ByDefinition(const List& list, XdsRingSize size) {
  double sum = 0, smallest = 1;
  for (const auto& [name, weight] : list) sum += weight;
  for (const auto& [name, weight] : list) smallest = std::min(smallest, weight / sum);
  const double scale = std::min(std::ceil(smallest * size.min) / smallest, static_cast<double>(size.max));
  Points points;
  double made = 0, wanted = 0;
  for (const auto& [name, weight] : list) {
    wanted += scale * (weight / sum);
    for (int i = 0; made < wanted; ++i, ++made)
      points.emplace_back(base::XxHash64(name + "_" + std::to_string(i)), name);
  }
  std::sort(points.begin(), points.end());
  return points;
}

List RandomList(base::Random& random, size_t n, uint32_t weight_max) {
  List list;
  const uint64_t fleet = random.Below(1000);
  for (size_t i = 0; i < n; ++i) {
    list.emplace_back("10." + std::to_string(fleet) + "." + std::to_string(i) + ".1:80",
                      1 + static_cast<double>(random.Below(weight_max)));
  }
  return list;
}

size_t Total(const std::vector<uint32_t>& counts) { return std::accumulate(counts.begin(), counts.end(), size_t{0}); }

TEST(XdsRing, TheSmallestWeightGetsAWholeNumberOfPoints) {
  EXPECT_EQ(XdsPointCounts(std::vector<double>{}, {}), std::vector<uint32_t>{});
  EXPECT_EQ(XdsPointCounts(std::vector<double>{5}, {}), std::vector<uint32_t>{1024});
  EXPECT_EQ(XdsPointCounts(std::vector<double>{1, 1, 1}, {}), (std::vector<uint32_t>{342, 342, 342}));
  EXPECT_EQ(XdsPointCounts(std::vector<double>{1, 2, 3}, {}), (std::vector<uint32_t>{171, 342, 513}));
  EXPECT_EQ(XdsPointCounts(std::vector<double>{3, 1}, {4, 4096}), (std::vector<uint32_t>{3, 1}));
}

TEST(XdsRing, TheLargestSizeCutsAndSomeHaveNoPoints) {
  const auto counts = XdsPointCounts(std::vector<double>(10000, 1), {1024, 4096});
  EXPECT_GE(Total(counts), 4096u);
  EXPECT_LE(Total(counts), 4097u);  // a sum that was rounded up may bring one more
  EXPECT_LE(*std::max_element(counts.begin(), counts.end()), 1u);
  EXPECT_EQ(Total(XdsPointCounts(std::vector<double>(10000, 1), {})), 10000u);
  // Ranges of weights that no ring can follow stay within the bound all the same.
  std::vector<double> wide(10000, 100);
  wide[5000] = 0.01;
  EXPECT_LE(Total(XdsPointCounts(wide, {})), kXdsRingSizeMax + size_t{1});
  EXPECT_EQ(Total(XdsPointCounts(std::vector<double>{1, 1000}, {1, 1})), 1u);
}

TEST(XdsRing, IsTheRingByItsDefinition) {
  base::Random random(7);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    const List list =
        RandomList(random, 1 + random.Below(round % 10 == 0 ? 1500 : 40), round % 3 == 0 ? 1 : 1 + round * 7);
    const XdsRingSize size{1 + static_cast<uint32_t>(random.Below(3000)),
                           3000 + static_cast<uint32_t>(random.Below(3000))};
    const HashRing ring = Build(list, size);
    const Points want = ByDefinition(list, size);
    const auto found = ring.Points();
    ASSERT_EQ(found.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_EQ(found[i].first, want[i].first);
      ASSERT_EQ(ring.name(found[i].second), want[i].second);
    }
  }
}

TEST(XdsRing, AChangeGivesTheRingThatABuildFromNothingGives) {
  base::Random random(11);
  List list = RandomList(random, 60, 5);
  HashRing ring = Build(list);
  size_t shared = 0;
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    const size_t at = random.Below(list.size());
    switch (random.Below(4)) {
      case 0:
        list.insert(list.begin() + static_cast<std::ptrdiff_t>(at), {"new" + std::to_string(round) + ":80", 1});
        break;
      case 1:
        if (list.size() > 2) list.erase(list.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 2:
        list[at].second = 1 + static_cast<double>(random.Below(5));
        break;
      case 3:
        std::swap(list[at], list[0]);
        break;
    }
    HashRing next = Build(list, {}, &ring);
    const HashRing fresh = Build(list);
    ASSERT_TRUE(next == fresh);
    ASSERT_EQ(next.Digest(), fresh.Digest());
    ASSERT_NEAR(HashRing::MovedShare(ring, next), HashRing::MovedShare(Build(list), ring), 1e-12);
    shared += HashRing::SharedBlocks(ring, next);
    ring = std::move(next);
  }
  EXPECT_GT(shared, 0u);
}

TEST(XdsRing, OneOfAKindDoesNotShareWithAnother) {
  base::Random random(3);
  const List list = RandomList(random, 20, 3);
  const HashRing ours = HashRing::Build(std::vector<RingEndpoint>{{list[0].first, 1}, {list[1].first, 1}}, 160);
  EXPECT_TRUE(Build(list, {}, &ours) == Build(list));
}

TEST(XdsRing, SharesFollowTheWeights) {
  List list;
  for (int i = 0; i < 20; ++i) list.emplace_back("10.0.0." + std::to_string(i) + ":80", 1 + i % 4);
  // With 20,000 points the deviation of a share is 1 / sqrt(400) and less.
  const HashRing ring = Build(list, {20000, 8 * 1024 * 1024});
  const auto shares = ring.Shares();
  for (size_t i = 0; i < shares.size(); ++i) EXPECT_NEAR(shares[i] * 50 / list[i].second, 1, 0.2) << i;
  EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0), 1, 1e-12);
}

// 1,001 endpoints have two points each, as 1,000 have: nothing moves but what the new one takes.
TEST(XdsRing, OneMoreMovesLittleWhereTheOthersKeepTheirPoints) {
  base::Random random(5);
  List list = RandomList(random, 1000, 1);
  const HashRing before = Build(list);
  list.emplace_back("10.255.0.1:80", 1);
  const HashRing after = Build(list, {}, &before);
  const double moved = HashRing::MovedShare(before, after);
  EXPECT_GT(moved, 0);
  EXPECT_LT(moved, 0.01);
  EXPECT_NEAR(moved, after.Shares().back(), 1e-12);
}

// Where all counts change, keys move between the others too, but only as many as have lost their point.
TEST(XdsRing, OneMoreMovesAFewPercentWhereAllCountsChange) {
  base::Random random(5);
  List list = RandomList(random, 51, 1);
  const HashRing before = Build(list);
  list.emplace_back("10.255.0.1:80", 1);
  const HashRing after = Build(list, {}, &before);
  ASSERT_EQ(before.point_count(), 51u * 21);
  ASSERT_EQ(after.point_count(), 52u * 20);
  const double moved = HashRing::MovedShare(before, after);
  EXPECT_GT(moved, 1.0 / 52);
  EXPECT_LT(moved, 0.12);
}

TEST(XdsRing, EachIsAskedOnceAndThoseWithoutPointsLast) {
  base::Random random(9);
  const List list = RandomList(random, 200, 1);
  const HashRing ring = Build(list, {16, 64});
  const auto shares = ring.Shares();
  std::set<uint32_t> last;
  for (int round = 0; round < 50; ++round) {
    std::vector<uint32_t> asked;
    EXPECT_EQ(ring.Pick(random.Next(),
                        [&](uint32_t i) {
                          asked.push_back(i);
                          return false;
                        }),
              HashRing::kNone);
    ASSERT_EQ(std::set<uint32_t>(asked.begin(), asked.end()).size(), 200u);
    ASSERT_EQ(asked.size(), 200u);
    const size_t with =
        static_cast<size_t>(std::count_if(shares.begin(), shares.end(), [](double share) { return share > 0; }));
    ASSERT_LE(with, 65u);  // a sum that was rounded up may bring one more
    for (size_t i = 0; i < asked.size(); ++i) ASSERT_EQ(shares[asked[i]] > 0, i < with) << i;
    last.insert(asked[with]);
  }
  EXPECT_GT(last.size(), 10u);  // keys without another choice go to many
}

TEST(XdsRing, TheDigestKnowsThoseWithoutPoints) {
  List list;
  for (int i = 0; i < 10; ++i) list.emplace_back("10.0.0." + std::to_string(i) + ":80", 1);
  const HashRing ring = Build(list, {1, 4});
  const auto shares = ring.Shares();
  const auto without = std::find(shares.begin(), shares.end(), 0.0) - shares.begin();
  ASSERT_LT(without, 10);
  list[static_cast<size_t>(without)].first = "10.0.0.99:80";
  EXPECT_NE(Build(list, {1, 4}).Digest(), ring.Digest());
}

TEST(XdsRing, TheBalancerHasIt) {
  base::Random random(21);
  const List list = RandomList(random, 50, 9);
  std::vector<BalancerEndpoint> endpoints;
  for (const auto& [name, weight] : list) endpoints.emplace_back(name, weight);
  ClusterOptions options;
  options.ring = Ring::kXds;
  options.ring_size_max = 4096;
  const auto balancer = MakeLoadBalancer(options.policy, RingShape(options), endpoints, 1);
  const HashRing ring = Build(list, {1024, 4096});
  EXPECT_EQ(balancer->Digest(), ring.Digest());
  auto ok = [](uint32_t) { return true; };
  auto load = [](uint32_t) { return 0u; };
  for (int i = 0; i < 1000; ++i) {
    const uint64_t key = random.Next();
    ASSERT_EQ(balancer->Pick({key, 0, 0, ok, load}), ring.Pick(key, ok));
  }
  // The same list on our own ring is another ring, and is not built from this one.
  options.ring = Ring::kSluice;
  const auto own = MakeLoadBalancer(options.policy, RingShape(options), endpoints, 1, balancer.get());
  EXPECT_EQ(own->Digest(), MakeLoadBalancer(options.policy, 160, endpoints, 1)->Digest());
}

// What @grpc/grpc-js-xds picked, in calls over its own channels. tests/xds/golden.sh writes the file:
//   ring MIN MAX PORT     endpoint i is 127.1.(i / 250).(1 + i % 250):PORT
//   weights W...
//   owners I...           of the values "key-0", "key-1", ... of the header that the route hashes by
TEST(XdsRing, OwnersAreThoseOfGrpcJs) {
  std::ifstream file(std::string(SLUICE_SOURCE_DIR) + "/tests/unit/upstream/testdata/xds_ring.txt");
  ASSERT_TRUE(file.is_open());
  List list;
  XdsRingSize size;
  int port = 0;
  std::set<size_t> sizes;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word == "ring") {
      words >> size.min >> size.max >> port;
      list.clear();
    } else if (word == "weights") {
      for (double weight; words >> weight;) {
        const size_t i = list.size();
        list.emplace_back(
            "127.1." + std::to_string(i / 250) + "." + std::to_string(1 + i % 250) + ":" + std::to_string(port),
            weight);
      }
    } else if (word == "owners") {
      const HashRing ring = Build(list, size);
      size_t key = 0;
      for (uint32_t owner; words >> owner; ++key) {
        const uint64_t hash = base::XxHash64("key-" + std::to_string(key));
        ASSERT_EQ(ring.Pick(hash, [](uint32_t) { return true; }), owner) << list.size() << " key-" << key;
      }
      EXPECT_GE(key, 200u);
      sizes.insert(list.size());
    }
  }
  EXPECT_EQ(sizes, (std::set<size_t>{3, 50, 1000}));
}

}  // namespace
}  // namespace sluice::upstream
