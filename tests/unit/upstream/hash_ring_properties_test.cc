// HashRing: properties with numbers, at fixed seeds and the bounds that the ring promises
// (docs/hash-ring.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/random.h"
#include "unit/upstream/ring_support.h"
#include "upstream/hash_ring.h"

namespace sluice::upstream {
namespace {

struct Bounds {
  uint32_t points;
  double deviation, max_of_10, max_of_100, min;
};

// Twelve lists of names, the fixed seeds of this file. The bounds are where one ring in 200 falls outside by chance.
constexpr int kFirstFleet = 20, kFleets = 12;

class Balance : public testing::TestWithParam<Bounds> {};

// Shares over weights, divided by their mean.
std::vector<double> Evenness(const HashRing& ring, const Members& members) {
  double weights = 0;
  for (const auto& [name, weight] : members) weights += weight;
  std::vector<double> shares = ring.Shares();
  for (uint32_t i = 0; i < shares.size(); ++i) shares[i] *= weights / members.at(ring.name(i));
  return shares;
}

void ExpectEven(const std::vector<double>& shares, const Bounds& bounds, double max) {
  double squares = 0;
  for (double share : shares) squares += (share - 1) * (share - 1);
  EXPECT_LE(std::sqrt(squares / static_cast<double>(shares.size())), bounds.deviation);
  EXPECT_LE(*std::max_element(shares.begin(), shares.end()), max);
  EXPECT_GE(*std::min_element(shares.begin(), shares.end()), bounds.min);
}

TEST_P(Balance, SharesStayNearTheMean) {
  for (int fleet = kFirstFleet; fleet < kFirstFleet + kFleets; ++fleet) {
    SCOPED_TRACE(fleet);
    for (int n : {10, 100}) {
      Members members = Named(n, fleet);
      ExpectEven(Evenness(MakeRing(members, GetParam().points), members), GetParam(),
                 n == 10 ? GetParam().max_of_10 : GetParam().max_of_100);
    }
  }
}

TEST_P(Balance, SharesFollowTheWeightsWithinTheSameBounds) {
  for (int fleet = kFirstFleet; fleet < kFirstFleet + kFleets; ++fleet) {
    SCOPED_TRACE(fleet);
    Members members = Named(100, fleet);
    int i = 0;
    for (auto& [name, weight] : members) weight = 1 + i++ % 4;
    ExpectEven(Evenness(MakeRing(members, GetParam().points), members), GetParam(), GetParam().max_of_100);
  }
}

INSTANTIATE_TEST_SUITE_P(Points, Balance,
                         testing::Values(Bounds{100, 0.15, 1.35, 1.45, 0.58}, Bounds{160, 0.14, 1.27, 1.36, 0.68},
                                         Bounds{400, 0.09, 1.19, 1.21, 0.78}, Bounds{1000, 0.06, 1.12, 1.15, 0.86}),
                         [](const auto& info) { return std::to_string(info.param.points); });

// Exact: every change of owner over the whole circle has the changed endpoint on one side. Looks at both
// rings at each point of either, where every arc ends.
template <class Allowed>
void ExpectMovesOnly(const HashRing& before, const HashRing& after, Allowed&& allowed) {
  for (const HashRing* ring : {&before, &after}) {
    for (const auto& [key, owner] : ring->Points()) {
      const std::string& from = before.name(before.Pick(key, kAll));
      const std::string& to = after.name(after.Pick(key, kAll));
      ASSERT_TRUE(from == to || allowed(from, to)) << from << " -> " << to;
    }
  }
}

TEST(HashRingProperties, ChangesMoveKeysOnlyFromOrToTheChangedEndpoint) {
  for (int fleet = 0; fleet < 5; ++fleet) {
    Members members = Named(20, fleet), grown = members, heavier = members;
    grown["new"] = 1;
    const std::string changed = members.begin()->first;
    heavier[changed] = 2.5;
    HashRing ring = MakeRing(members, 160), more = MakeRing(grown, 160), reweighted = MakeRing(heavier, 160);
    ExpectMovesOnly(ring, more, [](auto& from, auto& to) { return to == "new"; });
    ExpectMovesOnly(more, ring, [](auto& from, auto& to) { return from == "new"; });
    ExpectMovesOnly(ring, reweighted, [&](auto& from, auto& to) { return to == changed; });
    ExpectMovesOnly(reweighted, ring, [&](auto& from, auto& to) { return from == changed; });
  }
}

TEST(HashRingProperties, RemovingOneOfTwentyMovesAboutATwentieth) {
  for (int fleet = kFirstFleet; fleet < kFirstFleet + kFleets; ++fleet) {
    Members members = Named(20, fleet);
    HashRing ring = MakeRing(members, 160);
    Members fewer = members;
    fewer.erase(fewer.begin());
    double moved = HashRing::MovedShare(ring, MakeRing(fewer, 160, &ring));
    EXPECT_GE(moved, 0.03);
    EXPECT_LE(moved, 0.08);
  }
}

TEST(HashRingProperties, RefusalPicksWhatTheRingWithoutTheEndpointPicks) {
  Members members = Named(20);
  HashRing ring = MakeRing(members, 160);
  base::Random random(11);
  for (int round = 0; round < 10; ++round) {
    Members up = members;
    for (auto it = up.begin(); it != up.end();) it = random.Below(3) == 0 ? up.erase(it) : std::next(it);
    HashRing without = MakeRing(up, 160);
    for (int i = 0; i < 1000; ++i) {
      uint64_t key = random.Next();
      uint32_t index = ring.Pick(key, [&](uint32_t candidate) { return up.count(ring.name(candidate)) == 1; });
      ASSERT_EQ(ring.name(index), without.name(without.Pick(key, kAll)));
    }
  }
}

TEST(HashRingProperties, KeysOfAFailedEndpointSpreadOverTheOthers) {
  Members members = Named(20);
  HashRing ring = MakeRing(members, 160);
  base::Random random(12);
  for (uint32_t failed = 0; failed < 20; ++failed) {
    std::vector<double> takers(20, 0);
    double keys = 0;
    while (keys < 2000) {
      uint64_t key = random.Next();
      if (ring.Pick(key, kAll) != failed) continue;
      ++keys;
      ++takers[ring.Pick(key, [&](uint32_t index) { return index != failed; })];
    }
    EXPECT_EQ(takers[failed], 0);
    EXPECT_GE(std::count_if(takers.begin(), takers.end(), [](double taken) { return taken > 0; }),
              18);  // 90% of 19
    EXPECT_LE(*std::max_element(takers.begin(), takers.end()) / keys, 0.20);
  }
}

// 100 observers each miss 10% of 20 endpoints: how many endpoints does one key meet, and how even is the load?
TEST(HashRingProperties, SpreadAndLoadStaySmallWhenObserversDisagree) {
  constexpr int kObservers = 100, kKeys = 2000;
  HashRing ring = MakeRing(Named(20), 160);
  base::Random random(13);
  std::vector<std::set<uint32_t>> missing(kObservers);
  for (auto& view : missing) {
    while (view.size() < 2) view.insert(static_cast<uint32_t>(random.Below(20)));
  }
  std::vector<double> load(20, 0);
  double met_sum = 0;
  size_t met_max = 0;
  for (int k = 0; k < kKeys; ++k) {
    uint64_t key = random.Next();
    std::set<uint32_t> met;
    for (const auto& view : missing) {
      uint32_t index = ring.Pick(key, [&](uint32_t candidate) { return view.count(candidate) == 0; });
      met.insert(index);
      ++load[index];
    }
    met_sum += static_cast<double>(met.size());
    met_max = std::max(met_max, met.size());
  }
  EXPECT_LE(met_sum / kKeys, 3);
  EXPECT_LE(met_max, 6u);
  EXPECT_LE(*std::max_element(load.begin(), load.end()) / (kObservers * kKeys / 20.0), 1.45);
}

}  // namespace
}  // namespace sluice::upstream
