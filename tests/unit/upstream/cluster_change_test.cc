// ChangeClusterState and BuildClusterState from a previous state: the result is that of a build from nothing,
// however long the chain of changes, whatever former states are still held, and while other threads read and preview.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <thread>

#include "base/hash.h"
#include "base/random.h"
#include "upstream/cluster.h"

namespace sluice::upstream {
namespace {

using base::ErrorKind;
using State = std::shared_ptr<const ClusterState>;

constexpr Policy kPolicies[] = {Policy::kRingHash, Policy::kRoundRobin, Policy::kLeastRequest};
constexpr auto kIdle = [](uint32_t) -> uint32_t { return 0; };

std::vector<WantedEndpoint> WantedOf(const ClusterState& state) {
  std::vector<WantedEndpoint> out;
  for (const ListedEndpoint& e : state.endpoints)
    out.push_back({e.endpoint->name(), e.endpoint->address(), e.weight, e.draining});
  return out;
}

WantedEndpoint Want(uint64_t name, uint64_t host = 0, double weight = 1) {
  return {"n" + std::to_string(name), *net::Address::Parse("10.0.0." + std::to_string(host) + ":1"), weight, false};
}

// Random changes of a list, by hand and by whole lists.
class Changer {
 public:
  Changer(metrics::Registry& registry, uint64_t seed) : registry_(registry), random_(seed) {}
  base::Random& random() { return random_; }

  State Next(const State& before) {
    switch (random_.Below(10)) {
      case 0:
      case 1:
        return Whole(before);
      case 2:
        return Checked(ChangeClusterState(*before, NoChange(*before), 2, registry_));
      default:
        return ByHand(before);
    }
  }

  State ByHand(const State& before) {
    ListChange change = NoChange(*before);
    const uint64_t times = 1 + random_.Below(4);
    for (uint64_t i = 0; i < times; ++i) {
      ListChange::Entry* some =
          change.entries.empty() ? nullptr : &change.entries[random_.Below(change.entries.size())];
      switch (random_.Below(5)) {
        case 0:
          if (some != nullptr && !some->is_new)
            change.entries.erase(change.entries.begin() + (some - change.entries.data()));
          break;
        case 1:
          if (some != nullptr) some->weight = Weight();
          break;
        case 2:
          if (some != nullptr) some->draining = !some->draining;
          break;
        default:
          Add(*before, change);
          break;
      }
    }
    return Checked(ChangeClusterState(*before, change, 2, registry_));
  }

  // Another order, some gone, some under another address, some new; at times none or only new ones.
  State Whole(const State& before) {
    std::vector<WantedEndpoint> list = WantedOf(*before);
    if (random_.Below(10) == 0) list.clear();
    for (size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[random_.Below(i)]);
    if (!list.empty()) list.resize(list.size() - random_.Below(list.size()) / 2);
    for (WantedEndpoint& want : list) {
      if (random_.Below(8) == 0)
        want.address = *net::Address::Parse("10.0.1." + std::to_string(random_.Below(200)) + ":1");
    }
    for (uint64_t i = random_.Below(6); i > 0; --i) {
      const WantedEndpoint want = Want(random_.Below(90), random_.Below(3), Weight());
      const bool there = std::any_of(list.begin(), list.end(), [&](const auto& e) { return e.name == want.name; });
      if (!there) list.insert(list.begin() + static_cast<ptrdiff_t>(random_.Below(list.size() + 1)), want);
    }
    return Checked(BuildClusterState(before->options, list, before.get(), ListSource::kRpc, 2, registry_));
  }

 private:
  double Weight() {
    const double odd[] = {0.01, 0.02, 1, 1, 2, 7.77};
    return odd[random_.Below(std::size(odd))];
  }
  void Add(const ClusterState& before, ListChange& change) {
    const WantedEndpoint want = Want(random_.Below(90), random_.Below(3), Weight());
    if (before.Find(want.name) != ClusterState::kNowhere) return;
    for (const WantedEndpoint& other : change.added) {
      if (other.name == want.name) return;
    }
    change.entries.insert(change.entries.begin() + static_cast<ptrdiff_t>(random_.Below(change.entries.size() + 1)),
                          {static_cast<uint32_t>(change.added.size()), true, random_.Below(5) == 0, want.weight});
    change.added.push_back(want);
  }
  static State Checked(base::Result<State> state) {
    EXPECT_TRUE(state.ok()) << state.error().detail;
    return *state;
  }

  metrics::Registry& registry_;
  base::Random random_;
};

class ClusterChangeTest : public ::testing::TestWithParam<Policy> {
 public:
  ClusterChangeTest() {
    options->name = "c";
    options->policy = GetParam();
    options->ring_points = 20;
  }
  State Fresh(const std::vector<WantedEndpoint>& wanted) {
    return *BuildClusterState(options, wanted, nullptr, ListSource::kRpc, 2, registry);
  }
  static void ExpectSame(const ClusterState& state, const ClusterState& fresh, base::Random& random) {
    ASSERT_NO_FATAL_FAILURE(ExpectSameList(state, fresh));
    ASSERT_NO_FATAL_FAILURE(ExpectSamePicks(state, fresh, random));
  }
  static void ExpectSameList(const ClusterState& state, const ClusterState& fresh) {
    ASSERT_EQ(state.endpoints.size(), fresh.endpoints.size());
    for (size_t i = 0; i < fresh.endpoints.size(); ++i) {
      ASSERT_EQ(state.endpoints[i].endpoint->name(), fresh.endpoints[i].endpoint->name());
      ASSERT_TRUE(state.endpoints[i].endpoint->address() == fresh.endpoints[i].endpoint->address());
      ASSERT_EQ(state.endpoints[i].weight, fresh.endpoints[i].weight);
      ASSERT_EQ(state.endpoints[i].draining, fresh.endpoints[i].draining);
      ASSERT_EQ(state.Find(fresh.endpoints[i].endpoint->name()), i);
    }
    ASSERT_EQ(state.Find("none"), ClusterState::kNowhere);
    ASSERT_EQ(state.name_hashes, fresh.name_hashes);
    ASSERT_EQ(state.active_weight, fresh.active_weight);
    ASSERT_EQ(state.balancer->Digest(), fresh.balancer->Digest());
    ASSERT_EQ(state.balancer->Shares(), fresh.balancer->Shares());
    ASSERT_EQ(MovedByBalancer(state, fresh), 0);
  }
  // Neither was picked from before: round robin's cursors move.
  static void ExpectSamePicks(const ClusterState& state, const ClusterState& fresh, base::Random& random) {
    const uint64_t refused = random.Below(4);  // of 4
    const uint64_t salt = random.Next();
    auto ok = [&](uint32_t i) { return base::Hash64(state.name_hashes[i], salt) % 4 >= refused; };
    for (int i = 0; i < 40; ++i) {
      const PickContext pick{random.Next(), random.Next(), static_cast<uint32_t>(i % 2), ok, kIdle};
      ASSERT_EQ(state.balancer->Pick(pick), fresh.balancer->Pick(pick));
    }
  }
  // What stays under its name and address is the same endpoint, and Removed has the others, in their order.
  static void ExpectKept(const ClusterState& before, const ClusterState& after) {
    std::vector<std::shared_ptr<Endpoint>> gone;
    for (const ListedEndpoint& old : before.endpoints) {
      const uint32_t place = after.Find(old.endpoint->name());
      const bool stays =
          place != ClusterState::kNowhere && after.endpoints[place].endpoint->address() == old.endpoint->address();
      if (stays) {
        ASSERT_EQ(after.endpoints[place].endpoint, old.endpoint);
      } else {
        gone.push_back(old.endpoint);
      }
    }
    ASSERT_EQ(Removed(before, &after), gone);
  }

  metrics::Registry registry{2};
  std::shared_ptr<ClusterOptions> options = std::make_shared<ClusterOptions>();
};

TEST_P(ClusterChangeTest, AChainOfChangesGivesWhatABuildFromNothingGives) {
  for (uint64_t seed : {1, 2, 3}) {
    Changer changer(registry, seed);
    State now = Fresh({});
    std::vector<State> former;
    for (int step = 0; step < 250; ++step) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << " step " << step);
      State preview = changer.Next(now);
      if (changer.random().Below(2) == 0) preview = nullptr;
      State after = changer.Next(now);
      preview = nullptr;
      State fresh = Fresh(WantedOf(*after));
      ASSERT_NO_FATAL_FAILURE(ExpectSame(*after, *fresh, changer.random()));
      ASSERT_NO_FATAL_FAILURE(ExpectKept(*now, *after));
      ASSERT_EQ(after->version, now->version + 1);
      ASSERT_EQ(after->limits, now->limits);
      ASSERT_EQ(after->load, now->load);
      const double moved = MovedByBalancer(*now, *after);
      ASSERT_NEAR(moved, MovedByBalancer(*Fresh(WantedOf(*now)), *fresh), 1e-12);
      if (!former.empty()) {
        const State& old = former[changer.random().Below(former.size())];
        ASSERT_NEAR(MovedByBalancer(*old, *after), MovedByBalancer(*Fresh(WantedOf(*old)), *fresh), 1e-12);
      }
      // Some former ones are read for long; they stay as they were.
      if (changer.random().Below(3) == 0) former.push_back(now);
      if (former.size() > 5) {
        const size_t gone = changer.random().Below(former.size());
        ASSERT_NO_FATAL_FAILURE(ExpectSameList(*former[gone], *Fresh(WantedOf(*former[gone]))));
        former.erase(former.begin() + static_cast<ptrdiff_t>(gone));
      }
      now = std::move(after);
    }
  }
}

// The same value is read, and built upon, by several threads while it is replaced; the last of them frees what only it
// held.
TEST_P(ClusterChangeTest, ReadersAndPreviewsBesideChanges) {
  Changer changer(registry, 4);
  std::vector<WantedEndpoint> wanted;
  for (uint64_t i = 0; i < 50; ++i) wanted.push_back(Want(i));
  std::mutex mutex;
  State published = Fresh(wanted);
  std::atomic<bool> done{false};
  std::atomic<uint32_t> looks{0};
  auto current = [&] {
    std::lock_guard lock(mutex);
    return published;
  };
  auto read = [&](uint32_t worker) {
    base::Random random(5 + worker);
    auto any = [](uint32_t) { return true; };
    do {
      const State state = current();
      for (int i = 0; i < 20; ++i) {
        const uint32_t at = state->balancer->Pick({random.Next(), random.Next(), worker, any, kIdle});
        if (state->endpoints.empty()) {
          EXPECT_EQ(at, LoadBalancer::kNone);
        } else {
          EXPECT_LT(at, state->endpoints.size());
        }
      }
      looks.fetch_add(1, std::memory_order_relaxed);
    } while (!done.load(std::memory_order_relaxed));
  };
  std::vector<std::thread> threads;
  for (uint32_t worker : {0u, 1u}) threads.emplace_back(read, worker);
  threads.emplace_back([&] {
    Changer previews(registry, 6);
    do {
      const State state = current();
      const State first = previews.ByHand(state), second = previews.ByHand(state);
      EXPECT_GE(MovedByBalancer(*first, *second), 0);
      looks.fetch_add(1, std::memory_order_relaxed);
    } while (!done.load(std::memory_order_relaxed));
  });
  for (int step = 0; step < 150; ++step) {
    State after = changer.Next(current());
    std::lock_guard lock(mutex);
    published.swap(after);
  }
  done.store(true, std::memory_order_relaxed);
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(looks.load(), 3u);
  ASSERT_NO_FATAL_FAILURE(ExpectSameList(*published, *Fresh(WantedOf(*published))));
}

TEST_P(ClusterChangeTest, ABadChangeIsRefusedAndNamesTheEndpoint) {
  const State before = Fresh({Want(1), Want(2)});
  for (double weight : {0.0, -1.0, 100.5, std::nan(""), HUGE_VAL}) {
    ListChange change = NoChange(*before);
    change.entries[1].weight = weight;
    auto state = ChangeClusterState(*before, change, 2, registry);
    ASSERT_FALSE(state.ok()) << weight;
    EXPECT_EQ(state.error().kind, ErrorKind::kInvalidArgument);
    if (weight < 1000) {
      EXPECT_NE(state.error().detail.find("n2: weight"), std::string::npos) << state.error().detail;
    }
    change = NoChange(*before);
    change.added.push_back(Want(3));
    change.entries.push_back({0, true, false, weight});
    state = ChangeClusterState(*before, change, 2, registry);
    ASSERT_FALSE(state.ok()) << weight;
    if (weight < 1000) {
      EXPECT_NE(state.error().detail.find("n3: weight"), std::string::npos) << state.error().detail;
    }
  }
  EXPECT_EQ(before->endpoints.size(), 2u);
}

// Two names at one address are two endpoints; one of them may leave without the other.
TEST_P(ClusterChangeTest, OneAddressUnderTwoNames) {
  const State before = Fresh({Want(1, 7), Want(2, 7), Want(3, 7)});
  ListChange change = NoChange(*before);
  change.entries.erase(change.entries.begin());
  const State after = *ChangeClusterState(*before, change, 2, registry);
  ASSERT_NO_FATAL_FAILURE(ExpectKept(*before, *after));
  EXPECT_EQ(Removed(*before, after.get()).size(), 1u);
  // The names change places: both are new endpoints, as their addresses differ from what was there.
  const State swapped =
      *BuildClusterState(options, {Want(2, 8), Want(3, 7)}, after.get(), ListSource::kRpc, 2, registry);
  EXPECT_NE(swapped->endpoints[0].endpoint, after->endpoints[0].endpoint);
  EXPECT_EQ(swapped->endpoints[1].endpoint, after->endpoints[1].endpoint);
  EXPECT_EQ(MovedByBalancer(*after, *swapped), 0);  // by name
  EXPECT_EQ(swapped->balancer->Digest(), after->balancer->Digest());
}

TEST_P(ClusterChangeTest, AnotherPolicyOrOtherPointsBeginAnew) {
  Changer changer(registry, 8);
  State now = Fresh({Want(1), Want(2), Want(3)});
  for (int step = 0; step < 30; ++step) {
    auto other = std::make_shared<ClusterOptions>(*options);
    other->policy = kPolicies[changer.random().Below(3)];
    other->ring_points = 20 + static_cast<uint32_t>(changer.random().Below(2));
    options = other;
    std::vector<WantedEndpoint> wanted = WantedOf(*changer.Next(now));
    now = *BuildClusterState(options, wanted, now.get(), ListSource::kConfig, 2, registry);
    ASSERT_NO_FATAL_FAILURE(ExpectSame(*now, *Fresh(wanted), changer.random()));
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, ClusterChangeTest, testing::ValuesIn(kPolicies),
                         [](const auto& info) { return std::string(ToString(info.param)); });

}  // namespace
}  // namespace sluice::upstream
