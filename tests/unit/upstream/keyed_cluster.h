// KeyedCluster: a cluster with its ring and its health, on a clock that the test turns, and where each of 10,000 keys
// goes. Calls are counted by hand.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "metrics/registry.h"
#include "upstream/cluster.h"
#include "upstream/cluster_health.h"
#include "upstream/endpoint_change.h"

namespace sluice::upstream {

class KeyedCluster {
 public:
  static constexpr size_t kKeys = 10000;
  using Owners = std::vector<std::string>;  // by key

  explicit KeyedCluster(const std::vector<std::string>& names, Policy policy = Policy::kRingHash) {
    options->name = "c";
    options->policy = policy;
    Replace(names);
  }
  static WantedEndpoint Want(const std::string& name) {
    return {name, *net::Address::Parse("10.0.0.1:" + std::to_string(1 + base::Hash64(name) % 60000))};
  }

  static WantedEndpoint At(const std::string& name, uint32_t priority, const std::string& locality = "") {
    WantedEndpoint want = Want(name);
    want.standing = {priority, locality};
    return want;
  }

  // The list as a change by RPC or a reload makes it.
  void Replace(const std::vector<std::string>& names) {
    std::vector<WantedEndpoint> wanted;
    for (const std::string& name : names) wanted.push_back(Want(name));
    ReplaceWith(wanted);
  }
  void ReplaceWith(const std::vector<WantedEndpoint>& wanted) {
    auto next = BuildClusterState(options, wanted, state.get(), ListSource::kRpc, 1, registry);
    ASSERT_TRUE(next.ok()) << next.error().detail;
    if (state != nullptr) {
      (*next)->health->Join(*options, state->endpoints, (*next)->endpoints, Removed(**next, state.get()), now);
    }
    state = std::move(*next);
  }

  // By RPC.
  void Change(EndpointChange::Kind kind, const std::string& name, std::chrono::milliseconds over = {}) {
    EndpointChange change;
    change.kind = kind;
    change.cluster = "c";
    change.endpoints = {{name, "", 1}};
    change.over = over;
    auto list = ApplyChange(*state, change, now);
    ASSERT_TRUE(list.ok()) << list.error().detail;
    state = *ChangeClusterState(*state, *list, 1, registry);
  }

  // Periods pass, with good answers from all that are in rotation.
  void Pass(int n = 1) {
    for (int i = 0; i < n; ++i) {
      now += Judge::kPeriod;
      for (const ListedEndpoint& listed : state->endpoints) {
        if (!listed.TakesCalls() || listed.endpoint->record().out()) continue;
        Count(*listed.endpoint, /*good=*/10, /*bad=*/0);
      }
      state->health->Pass(*options, state->endpoints, *state->spill, now);
    }
  }
  void Count(Endpoint& endpoint, uint32_t good, uint32_t bad) {
    OutcomeCell& cell = endpoint.MakeCell(0);
    cell.sent.store(cell.sent.load() + good + bad);
    cell.answered.store(cell.answered.load() + good + bad);
    cell.good.store(cell.good.load() + good);
    cell.bad.store(cell.bad.load() + bad);
  }
  base::Status Order(const std::string& name, ClusterHealth::Order order) {
    return state->health->Command(state->endpoints, Get(name), order, now);
  }
  Endpoint& Get(const std::string& name) { return *state->endpoints[state->Find(name)].endpoint; }
  HealthState State(const std::string& name) { return Get(name).record().state(); }

  // As a call's first attempt picks (proxy/call/call_admit.cc), where no pool is in back-off.
  std::string OwnerOf(uint64_t key) const {
    using Choosiness = Endpoint::Choosiness;
    std::vector<const Tier*> tiers;  // in the order in which the call asks them; null: all endpoints
    for (const Tier& tier : state->tiers) tiers.push_back(&tier);
    if (!tiers.empty()) {
      const auto own = tiers.begin() + static_cast<std::ptrdiff_t>(state->spill->TierOf(key, state->tiers));
      std::reverse(tiers.begin(), own);
      std::rotate(tiers.begin(), own, tiers.end());
    } else {
      tiers.push_back(nullptr);
    }
    for (const Tier* tier : tiers) {
      for (const Choosiness choosiness : {Choosiness::kShare, Choosiness::kOut}) {
        if (const std::string owner = PickOf(tier, key, choosiness); !owner.empty()) return owner;
      }
    }
    return PickOf(nullptr, key, Choosiness::kNone);
  }
  Owners Place() const {
    Owners owners;
    for (uint64_t i = 0; i < kKeys; ++i) owners.push_back(OwnerOf(base::Hash64(i, 42)));
    return owners;
  }
  static double ShareOf(const Owners& owners, const std::string& name) {
    return static_cast<double>(std::count(owners.begin(), owners.end(), name)) / kKeys;
  }

  std::string PickOf(const Tier* tier, uint64_t key, Endpoint::Choosiness choosiness) const {
    auto place = [&](uint32_t i) { return tier == nullptr ? i : tier->places[i]; };
    auto ok = [&](uint32_t i) {
      const ListedEndpoint& listed = state->endpoints[place(i)];
      return listed.TakesCalls() && listed.endpoint->Admits(choosiness, key);
    };
    auto load = [](uint32_t) { return 0u; };
    const LoadBalancer& balancer = tier == nullptr ? *state->balancer : *tier->balancer;
    const uint32_t i = balancer.Pick({key, base::Hash64(key, 7), 0, ok, load});
    return i == LoadBalancer::kNone ? "" : state->endpoints[place(i)].endpoint->name();
  }

  metrics::Registry registry{1};
  std::shared_ptr<ClusterOptions> options = std::make_shared<ClusterOptions>();
  std::shared_ptr<const ClusterState> state;
  base::TimePoint now{std::chrono::hours(1)};
};

// How often each key has moved.
class Moves {
 public:
  explicit Moves(KeyedCluster::Owners owners) : owners_(std::move(owners)) {}
  void See(const KeyedCluster::Owners& now) {
    for (size_t i = 0; i < now.size(); ++i) moves_[i] += now[i] != owners_[i] ? 1 : 0;
    owners_ = now;
  }
  int most() const { return *std::max_element(moves_.begin(), moves_.end()); }

 private:
  KeyedCluster::Owners owners_;
  std::array<int, KeyedCluster::kKeys> moves_{};
};

}  // namespace sluice::upstream
