// HashRing: what a pick means, by brute force; building, merging, edges. Numeric properties:
// hash_ring_properties_test.cc.
#include "upstream/hash_ring.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <numeric>
#include <set>

#include "base/hash.h"
#include "base/random.h"
#include "unit/upstream/ring_support.h"

namespace sluice::upstream {
namespace {

using Points = std::vector<std::pair<uint64_t, std::string>>;

// The circle by its definition: all points in order, by point, then name.
Points BruteForce(const Members& members, uint32_t base, HashRing::PointHash hash = &HashRing::Point) {
  std::set<std::pair<uint64_t, std::string>> points;
  for (const auto& [name, weight] : members) {
    uint32_t count = std::max(1u, static_cast<uint32_t>(std::round(base * weight)));
    for (uint32_t i = 0; i < count; ++i) points.emplace(hash(HashRing::Seed(name), i), name);
  }
  return {points.begin(), points.end()};
}

// Distinct names in the order in which a walk from `key` meets them.
std::vector<std::string> Walk(const Points& points, uint64_t key) {
  auto start = std::lower_bound(points.begin(), points.end(), std::make_pair(key, std::string()));
  size_t at = static_cast<size_t>(start - points.begin());
  std::vector<std::string> order;
  std::set<std::string_view> met;
  for (size_t i = 0; i < points.size(); ++i) {
    const std::string& name = points[(at + i) % points.size()].second;
    if (met.insert(name).second) order.push_back(name);
  }
  return order;
}

// The same as the ring tells it: each endpoint refuses and is written down.
std::vector<std::string> Asked(const HashRing& ring, uint64_t key) {
  std::vector<std::string> order;
  uint32_t picked = ring.Pick(key, [&](uint32_t index) {
    order.push_back(ring.name(index));
    return false;
  });
  EXPECT_EQ(picked, HashRing::kNone);
  return order;
}

void ExpectMatches(const HashRing& ring, const Points& points) {
  const auto found = ring.Points();
  ASSERT_EQ(found.size(), points.size());
  for (size_t i = 0; i < points.size(); ++i) {
    ASSERT_EQ(found[i].first, points[i].first);
    ASSERT_EQ(ring.name(found[i].second), points[i].second);
  }
}

TEST(HashRing, EmptyRingPicksNobody) {
  HashRing ring = MakeRing({}, 160);
  EXPECT_EQ(ring.Pick(42, kAll), HashRing::kNone);
  EXPECT_TRUE(ring.Shares().empty());
  EXPECT_EQ(HashRing().Pick(0, kAll), HashRing::kNone);
}

TEST(HashRing, OneEndpointTakesEveryKey) {
  for (uint32_t base : {1u, 160u}) {
    HashRing ring = MakeRing({{"only", 1}}, base);
    for (uint64_t key : {uint64_t{0}, uint64_t{1} << 63, UINT64_MAX}) EXPECT_EQ(ring.Pick(key, kAll), 0u);
    EXPECT_DOUBLE_EQ(ring.Shares()[0], 1.0);
    EXPECT_EQ(ring.Pick(7, [](uint32_t) { return false; }), HashRing::kNone);
  }
}

TEST(HashRing, EveryEndpointHasAPointHoweverLightItIs) {
  HashRing ring = MakeRing({{"light", 0.01}, {"heavy", 100}, {"none", 0}}, 10);
  EXPECT_EQ(ring.point_count(), 1u + 1000u + 1u);
}

TEST(HashRing, PickAndItsOrderOfAskingMatchTheDefinition) {
  base::Random random(1);
  for (int round = 0; round < 40; ++round) {
    Members members;
    for (uint64_t i = 0, n = 1 + random.Below(40); i < n; ++i) {
      members["10.0.0." + std::to_string(i) + ":50051"] = round % 2 == 0 ? 1.0 : 0.01 + random.Unit() * 5;
    }
    uint32_t base = static_cast<uint32_t>(1 + random.Below(60));
    HashRing ring = MakeRing(members, base);
    Points points = BruteForce(members, base);
    ExpectMatches(ring, points);
    for (int i = 0; i < 100; ++i) {
      uint64_t key = i % 4 == 0 ? points[random.Below(points.size())].first + random.Below(3) - 1 : random.Next();
      ASSERT_EQ(Asked(ring, key), Walk(points, key)) << "round " << round << " key " << key;
    }
  }
}

TEST(HashRing, WrapsAtBothEndsOfTheCircle) {
  // Points by hand: endpoint "a" at 0 and 10, "b" at 2^64 - 1 and 5, by the seeds of their names.
  HashRing::PointHash hash = [](uint64_t seed, uint32_t i) -> uint64_t {
    bool a = seed == HashRing::Seed("a");
    if (i == 0) return a ? 0 : UINT64_MAX;
    return a ? 10 : 5;
  };
  HashRing ring = MakeRing({{"a", 1}, {"b", 1}}, 2, nullptr, hash);
  auto pick = [&](uint64_t key) { return ring.name(ring.Pick(key, kAll)); };
  EXPECT_EQ(pick(0), "a");
  EXPECT_EQ(pick(1), "b");
  EXPECT_EQ(pick(5), "b");
  EXPECT_EQ(pick(6), "a");
  EXPECT_EQ(pick(10), "a");
  EXPECT_EQ(pick(11), "b");
  EXPECT_EQ(pick(UINT64_MAX - 1), "b");
  EXPECT_EQ(pick(UINT64_MAX), "b");
  EXPECT_EQ(Asked(ring, UINT64_MAX), (std::vector<std::string>{"b", "a"}));
  // Without the point at 2^64 - 1 the last key wraps to the first point.
  HashRing::PointHash low = [](uint64_t seed, uint32_t) -> uint64_t { return seed == HashRing::Seed("a") ? 3 : 9; };
  HashRing low_ring = MakeRing({{"a", 1}, {"b", 1}}, 1, nullptr, low);
  EXPECT_EQ(low_ring.name(low_ring.Pick(UINT64_MAX, kAll)), "a");
  EXPECT_EQ(Asked(low_ring, UINT64_MAX), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(low_ring.name(low_ring.Pick(10, [&](uint32_t i) { return low_ring.name(i) == "b"; })), "b");
}

TEST(HashRing, EqualPointsGoToTheFirstName) {
  HashRing::PointHash constant = [](uint64_t, uint32_t) -> uint64_t { return 77; };
  for (Members members : {Members{{"c", 1}, {"a", 1}, {"b", 2}}, Members{{"b", 2}, {"a", 1}, {"c", 1}}}) {
    HashRing ring = MakeRing(members, 4, nullptr, constant);
    EXPECT_EQ(ring.point_count(), 3u);  // an endpoint's equal points are kept once
    EXPECT_EQ(Asked(ring, 5), (std::vector<std::string>{"a", "b", "c"}));
    EXPECT_EQ(Asked(ring, 78), (std::vector<std::string>{"a", "b", "c"}));
    std::vector<double> shares = ring.Shares();
    for (uint32_t i = 0; i < 3; ++i) EXPECT_DOUBLE_EQ(shares[i], ring.name(i) == "a" ? 1.0 : 0.0);
    EXPECT_DOUBLE_EQ(HashRing::MovedShare(ring, ring), 0);
  }
}

TEST(HashRing, BadHashesStillFollowTheDefinition) {
  HashRing::PointHash crowded = [](uint64_t seed, uint32_t i) -> uint64_t { return HashRing::Point(seed, i) & 15; };
  HashRing::PointHash top = [](uint64_t seed, uint32_t i) -> uint64_t {
    return HashRing::Point(seed, i) | ~uint64_t{63};
  };
  for (HashRing::PointHash hash : {crowded, top}) {
    Members members;
    for (int i = 0; i < 30; ++i) members["n" + std::to_string(i)] = 1;
    HashRing ring = MakeRing(members, 20, nullptr, hash);
    Points points = BruteForce(members, 20, hash);
    ExpectMatches(ring, points);
    for (uint64_t key = 0; key < 20; ++key) ASSERT_EQ(Asked(ring, key), Walk(points, key));
    for (uint64_t key = 0; key < 70; ++key) ASSERT_EQ(Asked(ring, UINT64_MAX - key), Walk(points, UINT64_MAX - key));
  }
}

TEST(HashRing, RefusedByAllAsksEachOnceInBoundedSteps) {
  Members members = Named(1000);
  members["feather"] = 0.001;  // one point of 160,001: a plain walk would visit half of all points to find it
  HashRing ring = MakeRing(members, 160);
  Points points = BruteForce(members, 160);
  base::Random random(3);
  for (int i = 0; i < 3; ++i) {
    uint64_t key = random.Next();
    std::vector<std::string> asked = Asked(ring, key);
    EXPECT_EQ(std::set<std::string>(asked.begin(), asked.end()).size(), 1001u);
    EXPECT_EQ(asked, Walk(points, key));
  }
  for (int i = 0; i < 50; ++i) {
    uint32_t picked = ring.Pick(random.Next(), [&](uint32_t index) { return ring.name(index) == "feather"; });
    ASSERT_NE(picked, HashRing::kNone);
    EXPECT_EQ(ring.name(picked), "feather");
  }
}

TEST(HashRing, PermutedListsBuildTheIdenticalRing) {
  std::vector<RingEndpoint> list;
  Members members = Named(50);
  for (const auto& [name, weight] : members) list.push_back({name, weight});
  HashRing ring = HashRing::Build(list, 100);
  base::Random random(4);
  for (int round = 0; round < 10; ++round) {
    for (size_t i = list.size() - 1; i > 0; --i) std::swap(list[i], list[random.Below(i + 1)]);
    HashRing permuted = HashRing::Build(list, 100);
    EXPECT_TRUE(permuted == ring);
    EXPECT_EQ(permuted.Digest(), ring.Digest());
    EXPECT_EQ(HashRing::MovedShare(ring, permuted), 0);
    // Index i is the place in the list given.
    for (uint32_t i = 0; i < list.size(); ++i) ASSERT_EQ(permuted.name(i), list[i].name);
  }
}

TEST(HashRing, DigestTellsRingsApart) {
  Members members = Named(10);
  std::set<uint64_t> digests = {MakeRing(members, 100).Digest(), MakeRing(members, 101).Digest(),
                                MakeRing({}, 100).Digest()};
  Members heavier = members, other = members, fewer = members;
  heavier.begin()->second = 1.5;
  other.erase(other.begin());
  other["new"] = 1;
  fewer.erase(fewer.begin());
  for (const Members& changed : {heavier, other, fewer}) digests.insert(MakeRing(changed, 100).Digest());
  EXPECT_EQ(digests.size(), 6u);
}

// Random adds, removes and reweights: the merged ring is the fresh ring, and both are what the definition says.
TEST(HashRing, MergedRingsEqualFreshOnesOverRandomChanges) {
  HashRing::PointHash crowded = [](uint64_t seed, uint32_t i) -> uint64_t { return HashRing::Point(seed, i) & 1023; };
  for (HashRing::PointHash hash : {HashRing::PointHash{&HashRing::Point}, crowded}) {
    base::Random random(5);
    Members members = Named(5);
    HashRing ring = MakeRing(members, 30, nullptr, hash);
    for (int step = 0; step < 300; ++step) {
      uint64_t changes = 1 + random.Below(3);
      for (uint64_t c = 0; c < changes; ++c) {
        auto some = members.begin();
        if (!members.empty()) std::advance(some, static_cast<ptrdiff_t>(random.Below(members.size())));
        uint64_t action = random.Below(3);
        if (action == 0 && !members.empty()) members.erase(some);
        if (action == 1) members["n" + std::to_string(random.Below(60))] = 1;
        if (action == 2 && !members.empty()) some->second = 0.1 + random.Unit() * 3;
      }
      HashRing merged = MakeRing(members, 30, &ring, hash);
      HashRing fresh = MakeRing(members, 30, nullptr, hash);
      ASSERT_TRUE(merged == fresh) << step;
      ASSERT_EQ(merged.Digest(), fresh.Digest());
      ASSERT_EQ(merged.Points(), fresh.Points());
      ASSERT_EQ(merged.Shares(), fresh.Shares());
      ASSERT_DOUBLE_EQ(HashRing::MovedShare(ring, merged), HashRing::MovedShare(ring, fresh));
      if (step % 10 == 0) {
        Points points = BruteForce(members, 30, hash);
        ExpectMatches(merged, points);
        uint64_t key = random.Next();
        ASSERT_EQ(Asked(merged, key), Walk(points, key));
        ASSERT_EQ(Asked(merged, key & 1023), Walk(points, key & 1023));
      }
      ring = std::move(merged);
    }
  }
}

// One of 1,000 endpoints touches one block in 26; the rest is shared, also among rings made side by side from one, as a
// preview and a change are, and stays when the others go.
TEST(HashRing, AChangeSharesWhatItLeavesAlone) {
  Members members = Named(1000), grown = members, lighter = members;
  grown["new"] = 1;
  lighter.begin()->second = 0.5;
  HashRing ring = MakeRing(members, 160), copy = ring;
  HashRing preview = MakeRing(grown, 160, &ring), change = MakeRing(lighter, 160, &ring);
  EXPECT_GE(HashRing::SharedBlocks(ring, preview), ring.block_count() - 160);
  EXPECT_GE(HashRing::SharedBlocks(ring, change), ring.block_count() - 240);
  EXPECT_EQ(HashRing::SharedBlocks(ring, copy), ring.block_count());
  EXPECT_NEAR(HashRing::MovedShare(ring, preview), HashRing::MovedShare(ring, MakeRing(grown, 160)), 1e-15);
  EXPECT_NEAR(HashRing::MovedShare(preview, change), HashRing::MovedShare(preview, MakeRing(lighter, 160)), 1e-15);
  ring = HashRing();
  preview = HashRing();
  EXPECT_TRUE(copy == MakeRing(members, 160));
  EXPECT_TRUE(change == MakeRing(lighter, 160));
  copy = HashRing();
  HashRing later = MakeRing(grown, 160, &change);  // numbers that are free again
  change = HashRing();
  EXPECT_TRUE(later == MakeRing(grown, 160));
}

// Rings that are still read keep their members' numbers. Where the 16 bits of the store run out, the next ring begins a
// store of its own, which shows only in what is shared.
TEST(HashRing, ARingBeginsAnewWhenTheStoreHasNoNumbersLeft) {
  constexpr size_t kSize = 30000, kStep = 10000;
  auto ring_of = [](size_t first, const HashRing* previous) {
    std::vector<std::string> names;
    for (size_t i = first; i < first + kSize; ++i) names.push_back("n" + std::to_string(i));
    std::vector<RingEndpoint> list;
    for (const std::string& name : names) list.push_back({name});
    return HashRing::Build(list, 1, previous);
  };
  std::vector<HashRing> held;
  held.push_back(ring_of(0, nullptr));
  for (size_t first = kStep; first <= 5 * kStep; first += kStep) {
    HashRing next = ring_of(first, &held.back());
    const HashRing fresh = ring_of(first, nullptr);
    ASSERT_TRUE(next == fresh) << first;
    ASSERT_EQ(next.Digest(), fresh.Digest());
    ASSERT_DOUBLE_EQ(HashRing::MovedShare(held.back(), next), HashRing::MovedShare(held.back(), fresh));
    held.push_back(std::move(next));
  }
  while (held.size() > 1) held.erase(held.begin());
  EXPECT_TRUE(held[0] == ring_of(5 * kStep, nullptr));
}

TEST(HashRing, SharesAreTheArcsAndAddUpToTheCircle) {
  Members members = Named(20);
  HashRing ring = MakeRing(members, 50);
  std::vector<double> shares = ring.Shares();
  EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0), 1.0, 1e-12);
  std::vector<double> counted(shares.size(), 0);
  base::Random random(6);
  constexpr int kKeys = 200000;
  for (int i = 0; i < kKeys; ++i) counted[ring.Pick(random.Next(), kAll)] += 1.0 / kKeys;
  for (size_t i = 0; i < shares.size(); ++i) EXPECT_NEAR(counted[i], shares[i], 0.003);
}

TEST(HashRing, MovedShareIsExactForOneChange) {
  Members members = Named(20);
  HashRing before = MakeRing(members, 100);
  Members grown = members;
  grown["new"] = 1.7;
  HashRing after = MakeRing(grown, 100, &before);
  double share_of_new = 0;
  for (uint32_t i = 0; i < after.endpoints(); ++i) {
    if (after.name(i) == "new") share_of_new = after.Shares()[i];
  }
  EXPECT_NEAR(HashRing::MovedShare(before, after), share_of_new,
              1e-12);  // what moved is what the new one has
  EXPECT_NEAR(HashRing::MovedShare(after, before), share_of_new, 1e-12);
  EXPECT_EQ(HashRing::MovedShare(before, HashRing()), 1);
  EXPECT_EQ(HashRing::MovedShare(HashRing(), before), 1);
  EXPECT_EQ(HashRing::MovedShare(HashRing(), HashRing()), 0);
}

TEST(HashRing, MovedShareMatchesCountedKeysForUnrelatedRings) {
  HashRing before = MakeRing(Named(8), 20);
  Members half;
  for (const auto& [name, weight] : Named(12)) {
    if (half.size() < 8) half[name] = 1 + static_cast<double>(half.size()) / 4;
  }
  half["other"] = 1;
  HashRing after = MakeRing(half, 33);
  base::Random random(7);
  constexpr int kKeys = 200000;
  double moved = 0;
  for (int i = 0; i < kKeys; ++i) {
    uint64_t key = random.Next();
    if (before.name(before.Pick(key, kAll)) != after.name(after.Pick(key, kAll))) moved += 1.0 / kKeys;
  }
  EXPECT_NEAR(HashRing::MovedShare(before, after), moved, 0.005);
  EXPECT_DOUBLE_EQ(HashRing::MovedShare(MakeRing({{"a", 1}}, 1), MakeRing({{"b", 1}}, 1)), 1);
}

TEST(HashRing, TooManyPointsHalveTheBaseUntilTheyFit) {
  Members members;
  for (int i = 0; i < 100; ++i) members["n" + std::to_string(i)] = 10;
  HashRing ring = MakeRing(members, 10000);  // asks for 10^7
  EXPECT_LE(ring.point_count(), HashRing::kRingPointsMax);
  EXPECT_TRUE(ring == MakeRing(members, 2500));
}

// The file changes only together with HashRing::kVersion: proxies of two releases must agree on every key. To
// write it anew, run with SLUICE_WRITE_GOLDEN=1.
TEST(HashRing, GoldenFileOfAThousandKeys) {
  Members members;
  for (int i = 0; i < 16; ++i) members["10.0." + std::to_string(i) + ".7:50051"] = 1.0 + (i % 4) * 0.5;
  members["[2001:db8::1]:50051"] = 1;
  members["unix:/run/backend.sock"] = 0.25;
  HashRing ring = MakeRing(members, 160);
  const std::string path = std::string(SLUICE_SOURCE_DIR) + "/tests/unit/upstream/testdata/ring_v1.txt";
  auto key_of = [](int i) { return "user-" + std::to_string(i); };
  if (getenv("SLUICE_WRITE_GOLDEN") != nullptr) {
    std::ofstream out(path);
    for (int i = 0; i < 1000; ++i)
      out << key_of(i) << ' ' << ring.name(ring.Pick(base::Hash64(key_of(i)), kAll)) << '\n';
  }
  EXPECT_EQ(HashRing::kVersion, 1u) << "a new version needs a new file";
  std::ifstream in(path);
  std::string key, name;
  int lines = 0;
  for (; in >> key >> name; ++lines) {
    ASSERT_EQ(key, key_of(lines));
    ASSERT_EQ(ring.name(ring.Pick(base::Hash64(key), kAll)), name) << key;
  }
  EXPECT_EQ(lines, 1000);
}

}  // namespace
}  // namespace sluice::upstream
