// The policies behind LoadBalancer: shares, refusals, cursors a worker, digests, moved shares.
#include "upstream/load_balancer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <thread>

#include "base/random.h"
#include "concurrent/doubly_buffered_data.h"
#include "upstream/round_robin.h"

namespace sluice::upstream {
namespace {

using Endpoints = std::vector<BalancerEndpoint>;
constexpr Policy kPolicies[] = {Policy::kRingHash, Policy::kRoundRobin, Policy::kLeastRequest};

constexpr auto kOk = [](uint32_t) { return true; };
constexpr auto kIdle = [](uint32_t) -> uint32_t { return 0; };

// Names that outlive every list.
std::string_view Keep(std::string name) {
  static std::set<std::string> names;
  return *names.insert(std::move(name)).first;
}

Endpoints Weighted(std::initializer_list<double> weights) {
  Endpoints endpoints;
  for (double weight : weights)
    endpoints.push_back({Keep(std::string(1, static_cast<char>('a' + endpoints.size()))), weight});
  return endpoints;
}

uint32_t PickWith(const LoadBalancer& balancer, base::Random& random, absl::FunctionRef<bool(uint32_t)> ok = kOk,
                  absl::FunctionRef<uint32_t(uint32_t)> load = kIdle, uint32_t worker = 0) {
  return balancer.Pick({.key = random.Next(), .random = random.Next(), .worker = worker, .ok = ok, .load = load});
}

std::string Letters(const LoadBalancer& balancer, const Endpoints& endpoints, int picks, uint64_t first_random = 0) {
  std::string out;
  for (int i = 0; i < picks; ++i) {
    out += endpoints[balancer.Pick({.key = 0, .random = first_random, .worker = 0, .ok = kOk, .load = kIdle})].name;
  }
  return out;
}

TEST(LoadBalancer, NothingToPickIsNone) {
  base::Random random(1);
  for (Policy policy : kPolicies) {
    auto none = MakeLoadBalancer(policy, 160, {}, 2);
    EXPECT_EQ(PickWith(*none, random), LoadBalancer::kNone);
    EXPECT_TRUE(none->Shares().empty());
  }
}

TEST(LoadBalancer, EveryPolicyAsksEachEndpointOnceAndFindsTheOneThatAccepts) {
  base::Random random(2);
  for (Policy policy : kPolicies) {
    for (uint32_t n : {1u, 2u, 3u, 10u, 200u}) {
      Endpoints endpoints;
      for (uint32_t i = 0; i < n; ++i) endpoints.push_back({Keep("n" + std::to_string(i)), 0.01 + random.Unit() * 20});
      auto balancer = MakeLoadBalancer(policy, 20, endpoints, 1);
      for (int round = 0; round < 30; ++round) {
        std::vector<int> asked(n, 0);
        EXPECT_EQ(PickWith(*balancer, random, [&](uint32_t i) { return ++asked[i], false; }), LoadBalancer::kNone);
        EXPECT_EQ(asked, std::vector<int>(n, 1));
        std::fill(asked.begin(), asked.end(), 0);
        uint32_t only = static_cast<uint32_t>(random.Below(n));
        EXPECT_EQ(PickWith(*balancer, random, [&](uint32_t i) { return ++asked[i], i == only; }), only);
        for (int times : asked) EXPECT_LE(times, 1);
      }
    }
  }
}

TEST(LoadBalancer, SharesAddUpAndArePicked) {
  base::Random random(3);
  Endpoints endpoints = Weighted({1, 2, 0.5, 4});
  for (Policy policy : kPolicies) {
    auto balancer = MakeLoadBalancer(policy, 400, endpoints, 1);
    std::vector<double> shares = balancer->Shares(), counted(4, 0);
    EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0), 1, 1e-12);
    constexpr int kPicks = 100000;
    for (int i = 0; i < kPicks; ++i) counted[PickWith(*balancer, random)] += 1.0 / kPicks;
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(counted[i], shares[i], 0.01) << static_cast<int>(policy);
      EXPECT_NEAR(shares[i], endpoints[i].weight / 7.5, 0.08);
    }
  }
}

TEST(LoadBalancer, DigestIsOfTheListAndNotOfItsOrder) {
  for (Policy policy : kPolicies) {
    Endpoints endpoints = Weighted({1, 2, 3}), turned(endpoints.rbegin(), endpoints.rend()), other = endpoints;
    other[1].weight = 2.5;
    uint64_t digest = MakeLoadBalancer(policy, 160, endpoints, 1)->Digest();
    EXPECT_EQ(MakeLoadBalancer(policy, 160, turned, 4)->Digest(), digest);
    EXPECT_NE(MakeLoadBalancer(policy, 160, other, 1)->Digest(), digest);
  }
}

TEST(LoadBalancer, MovedShareGoesByName) {
  Endpoints before = Weighted({1, 1, 1, 1}), after(before.rbegin(), before.rend());
  for (Policy policy : kPolicies) {
    auto a = MakeLoadBalancer(policy, 160, before, 1), b = MakeLoadBalancer(policy, 160, after, 1);
    EXPECT_NEAR(MovedShare(*a, before, *b, after), 0, 1e-12);
    auto none = MakeLoadBalancer(policy, 160, {}, 1);
    EXPECT_EQ(MovedShare(*a, before, *none, {}), 1);
    EXPECT_EQ(MovedShare(*none, {}, *a, before), 1);
    EXPECT_EQ(MovedShare(*none, {}, *none, {}), 0);
  }
  Endpoints grown = Weighted({1, 1, 1, 1, 1});
  for (Policy policy : {Policy::kRoundRobin, Policy::kLeastRequest}) {
    auto a = MakeLoadBalancer(policy, 160, before, 1), b = MakeLoadBalancer(policy, 160, grown, 1);
    EXPECT_NEAR(MovedShare(*a, before, *b, grown), 0.2, 1e-12);
  }
  auto ring = MakeLoadBalancer(Policy::kRingHash, 160, before, 1);
  auto merged = MakeLoadBalancer(Policy::kRingHash, 160, grown, 1, ring.get());
  EXPECT_NEAR(MovedShare(*ring, before, *merged, grown), merged->Shares()[4], 1e-12);
  EXPECT_EQ(merged->Digest(), MakeLoadBalancer(Policy::kRingHash, 160, grown, 1)->Digest());
}

TEST(RoundRobin, EqualWeightsTakeTurns) {
  Endpoints endpoints = Weighted({1, 1, 1});
  auto balancer = MakeLoadBalancer(Policy::kRoundRobin, 0, endpoints, 1);
  EXPECT_EQ(Letters(*balancer, endpoints, 7), "abcabca");
}

TEST(RoundRobin, WeightsAreMixedEvenly) {
  Endpoints endpoints = Weighted({5, 1, 1});
  EXPECT_EQ(Letters(RoundRobin(endpoints, 1), endpoints, 14), "aaabcaaaaabcaa");
  Endpoints thirds = Weighted({2, 1});
  EXPECT_EQ(Letters(RoundRobin(thirds, 1), thirds, 6), "abaaba");
  EXPECT_EQ(RoundRobin(Weighted({0.5, 0.25}), 1).schedule().size(), 3u);
}

TEST(RoundRobin, ScheduleIsBoundedAndNoEndpointIsLeftOut) {
  Endpoints endpoints;
  for (int i = 0; i < 1000; ++i) endpoints.push_back({Keep("n" + std::to_string(i)), i == 0 ? 0.01 : 99.99});
  RoundRobin balancer(endpoints, 1);
  EXPECT_LE(balancer.schedule().size(), RoundRobin::kScheduleMax + endpoints.size());
  for (double share : balancer.Shares()) EXPECT_GT(share, 0);
}

TEST(RoundRobin, FirstPickStartsAtARandomSlot) {
  Endpoints endpoints = Weighted({1, 1, 1});
  EXPECT_EQ(Letters(RoundRobin(endpoints, 1), endpoints, 3, 1), "bca");
}

TEST(RoundRobin, WorkersHaveCursorsOfTheirOwn) {
  Endpoints endpoints = Weighted({1, 1, 1});
  RoundRobin balancer(endpoints, 2);
  auto pick = [&](uint32_t worker) {
    return balancer.Pick({.key = 0, .random = 0, .worker = worker, .ok = kOk, .load = kIdle});
  };
  EXPECT_EQ(pick(0), 0u);
  EXPECT_EQ(pick(0), 1u);
  EXPECT_EQ(pick(1), 0u);
  EXPECT_EQ(pick(0), 2u);
  EXPECT_EQ(pick(1), 1u);
}

TEST(RoundRobin, CallsOfARefusingEndpointGoRoundAllOthers) {
  RoundRobin balancer(Weighted({1, 1, 1, 1}), 1);
  base::Random random(4);
  std::vector<int> counted(4, 0);
  for (int i = 0; i < 300; ++i) ++counted[PickWith(balancer, random, [](uint32_t index) { return index != 1; })];
  EXPECT_EQ(counted, (std::vector<int>{100, 0, 100, 100}));
}

// One of two fails all its calls, which are tried again: half of the calls begin with it, not all.
TEST(RoundRobin, AnotherAttemptTakesNoTurn) {
  RoundRobin balancer(Weighted({1, 1}), 1);
  std::vector<int> first(2, 0);
  for (int i = 0; i < 100; ++i) {
    const uint32_t picked = balancer.Pick({.key = 0, .random = 0, .worker = 0, .ok = kOk, .load = kIdle});
    ++first[picked];
    if (picked != 0) continue;
    const auto other = [](uint32_t index) { return index == 1; };
    EXPECT_EQ(balancer.Pick({.key = 0, .random = 0, .worker = 0, .ok = other, .load = kIdle, .again = true}), 1u);
  }
  EXPECT_EQ(first, (std::vector<int>{50, 50}));
}

// The repeats of its calls go round the others.
TEST(RoundRobin, OtherAttemptsAreSpread) {
  RoundRobin balancer(Weighted({1, 1, 1, 1}), 1);
  base::Random random(5);
  std::vector<int> counted(4, 0);
  const auto others = [](uint32_t index) { return index != 0; };
  for (int i = 0; i < 4000; ++i) {
    ++counted[balancer.Pick(
        {.key = 0, .random = random.Next(), .worker = 0, .ok = others, .load = kIdle, .again = true})];
  }
  EXPECT_EQ(counted[0], 0);
  for (size_t i = 1; i < 4; ++i) EXPECT_GT(counted[i], 800) << i;
}

// The order of the names is taken over from the list before; the schedule is as if it were sorted anew, also where
// `from` says nothing.
TEST(RoundRobin, FromAPreviousListTheScheduleIsTheSame) {
  base::Random random(14);
  Endpoints before;
  auto previous = std::make_unique<RoundRobin>(before, 1);
  for (int step = 0; step < 300; ++step) {
    Endpoints after;
    std::set<std::string_view> names;
    const bool all_equal = random.Below(2) == 0;
    auto add = [&](std::string_view name, uint32_t from) {
      if (!names.insert(name).second) return;
      const double weight = all_equal ? 1 : 0.25 * static_cast<double>(1 + random.Below(8));
      after.insert(after.begin() + static_cast<ptrdiff_t>(random.Below(after.size() + 1)),
                   {name, weight, base::Hash64(name), from});
    };
    for (uint32_t i = 0; i < before.size(); ++i) {
      const uint64_t fate = random.Below(10);
      if (fate == 0 || step % 50 == 49) continue;  // gone; at times all of them
      const uint32_t from = fate == 1 ? BalancerEndpoint::kNew : fate == 2 ? BalancerEndpoint::kByName : i;
      add(before[i].name, from);
    }
    for (uint64_t i = random.Below(5); i > 0; --i)
      add(Keep("n" + std::to_string(random.Below(60))), BalancerEndpoint::kByName);
    auto merged = std::make_unique<RoundRobin>(after, 1, previous.get());
    const RoundRobin fresh(after, 1);
    ASSERT_EQ(merged->schedule(), fresh.schedule()) << step;
    ASSERT_EQ(merged->Digest(), fresh.Digest());
    before = std::move(after);
    previous = std::move(merged);
  }
}

TEST(LeastRequest, TakesTheLighterOfTwoForItsWeight) {
  base::Random random(5);
  auto equal = MakeLoadBalancer(Policy::kLeastRequest, 0, Weighted({1, 1}), 1);
  auto weighted = MakeLoadBalancer(Policy::kLeastRequest, 0, Weighted({1, 4}), 1);
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(PickWith(*equal, random, kOk, [](uint32_t index) { return index == 0 ? 3u : 2u; }), 1u);
    EXPECT_EQ(PickWith(*weighted, random, kOk, [](uint32_t index) { return index == 0 ? 3u : 11u; }), 1u);
    EXPECT_EQ(PickWith(*weighted, random, kOk, [](uint32_t index) { return index == 0 ? 3u : 13u; }), 0u);
  }
}

TEST(LeastRequest, BothRefusedTakesTheLighterOfTheNextTwo) {
  base::Random random(6);
  auto balancer = MakeLoadBalancer(Policy::kLeastRequest, 0, Weighted({1, 1, 1, 1}), 1);
  int scans = 0;
  for (int i = 0; i < 200; ++i) {
    std::vector<uint32_t> asked;
    uint32_t index = PickWith(
        *balancer, random, [&](uint32_t candidate) { return asked.push_back(candidate), candidate >= 2; },
        [](uint32_t candidate) { return candidate == 2 ? 9u : 1u; });
    if (asked[0] >= 2 || asked[1] >= 2) continue;
    EXPECT_EQ(index, 3u);
    ++scans;
  }
  EXPECT_GT(scans, 10);
}

// Balls into bins: the emptier of two keeps the fullest bin near the mean; one draw would be 30 above it.
TEST(LeastRequest, KeepsLoadsEven) {
  constexpr uint32_t kEndpoints = 50, kCalls = 5000;
  Endpoints endpoints;
  for (uint32_t i = 0; i < kEndpoints; ++i) endpoints.push_back({Keep("n" + std::to_string(i)), 1.0 + (i % 2)});
  auto balancer = MakeLoadBalancer(Policy::kLeastRequest, 0, endpoints, 1);
  base::Random random(7);
  std::vector<uint32_t> loads(kEndpoints, 0);
  for (uint32_t i = 0; i < kCalls; ++i)
    ++loads[PickWith(*balancer, random, kOk, [&](uint32_t index) { return loads[index]; })];
  for (uint32_t i = 0; i < kEndpoints; ++i) {
    EXPECT_NEAR(loads[i], kCalls / 75.0 * endpoints[i].weight, 8 * endpoints[i].weight) << i;
  }
}

// As clusters publish it: readers pick while a writer replaces list and balancer.
TEST(LoadBalancer, PicksBesidePublishSeeAWholeList) {
  struct Snapshot {
    Endpoints endpoints;
    std::unique_ptr<LoadBalancer> balancer;
  };
  auto make = [](size_t size, const Snapshot* previous) {
    auto snapshot = std::make_shared<Snapshot>();
    for (size_t i = 0; i < size; ++i) snapshot->endpoints.push_back({Keep("n" + std::to_string(i)), 1.0});
    snapshot->balancer =
        MakeLoadBalancer(size % 2 == 0 ? Policy::kRingHash : Policy::kRoundRobin, 20, snapshot->endpoints, 2,
                         previous == nullptr ? nullptr : previous->balancer.get());
    return std::shared_ptr<const Snapshot>(snapshot);
  };
  concurrent::DoublyBufferedData<std::shared_ptr<const Snapshot>> data(2, make(3, nullptr));
  std::atomic<bool> stop{false};
  std::vector<std::thread> workers;
  for (uint32_t worker = 0; worker < 2; ++worker) {
    workers.emplace_back([&, worker] {
      base::Random random(worker);
      while (!stop.load(std::memory_order_relaxed)) {
        data.Read(worker, [&](const std::shared_ptr<const Snapshot>& snapshot) {
          uint32_t index = PickWith(*snapshot->balancer, random, kOk, kIdle, worker);
          EXPECT_LT(index, snapshot->endpoints.size());
        });
      }
    });
  }
  for (size_t i = 0; i < 300; ++i) {
    auto now = data.Read(data.shared_slot(), [](const auto& snapshot) { return snapshot; });
    data.Publish(make(1 + i % 17, now.get()));
  }
  stop.store(true, std::memory_order_relaxed);
  for (std::thread& worker : workers) worker.join();
}

}  // namespace
}  // namespace sluice::upstream
