// ApplyChange: what each kind of change makes of a list, at its edges; and the share of keys that it moves.
#include "upstream/endpoint_change.h"

#include <gtest/gtest.h>

#include "upstream/cluster.h"

namespace sluice::upstream {
namespace {

using base::ErrorKind;
using Kind = EndpointChange::Kind;
using State = std::shared_ptr<const ClusterState>;
using Strings = std::vector<std::string>;

class EndpointChangeTest : public ::testing::Test {
 public:
  EndpointChangeTest() {
    options->name = "c";
    state = Build({{"a", "10.0.0.1:1"}, {"b", "10.0.0.2:1"}, {"", "10.0.0.3:1"}});
  }
  State Build(const std::vector<EndpointSpec>& specs) {
    std::vector<WantedEndpoint> list;
    for (const EndpointSpec& spec : specs) {
      list.push_back(
          {spec.name.empty() ? spec.address : spec.name, *net::Address::Parse(spec.address), spec.weight, false});
    }
    return *BuildClusterState(options, list, nullptr, ListSource::kConfig, 1, registry);
  }
  base::Result<ListChange> Ask(Kind kind, std::vector<EndpointSpec> specs) {
    EndpointChange change;
    change.kind = kind;
    change.cluster = "c";
    change.endpoints = std::move(specs);
    return ApplyChange(*state, change, now);
  }
  base::TimePoint now{std::chrono::hours(1)};
  // The share that moves; the change is in `state` then.
  double Do(Kind kind, std::vector<EndpointSpec> specs) {
    auto change = Ask(kind, std::move(specs));
    EXPECT_TRUE(change.ok()) << change.error().detail;
    auto after = ChangeClusterState(*state, *change, 1, registry);
    EXPECT_TRUE(after.ok()) << after.error().detail;
    EXPECT_EQ(Text(WantedOf(*state, *change)), Text(WantedOf(**after)));  // what the state file is told, before
    const double moved = MovedShare(*state, **after);
    state = *after;
    return moved;
  }
  static Strings Text(const std::vector<WantedEndpoint>& list) {
    Strings out;
    for (const WantedEndpoint& e : list) {
      std::string weight = e.weight == 1 ? "" : " x" + std::to_string(e.weight);
      out.push_back(e.name + " " + e.address.ToString() + weight + (e.draining ? " draining" : ""));
    }
    return out;
  }
  Strings List() { return Text(WantedOf(*state)); }
  ErrorKind Error(Kind kind, std::vector<EndpointSpec> specs) {
    auto change = Ask(kind, std::move(specs));
    EXPECT_FALSE(change.ok());
    return change.ok() ? ErrorKind::kInternal : change.error().kind;
  }

  metrics::Registry registry{1};
  std::shared_ptr<ClusterOptions> options = std::make_shared<ClusterOptions>();
  State state;
};

TEST_F(EndpointChangeTest, ReplaceKeepsWhatStaysUnderItsNameAndAddress) {
  const State before = state;
  EXPECT_EQ(Do(Kind::kReplace, {{"", "10.0.0.3:1"}, {"a", "10.0.0.1:1"}, {"b", "10.0.0.2:1"}}), 0);
  EXPECT_EQ(List(), (Strings{"10.0.0.3:1 10.0.0.3:1", "a 10.0.0.1:1", "b 10.0.0.2:1"}));
  EXPECT_EQ(Removed(*before, state.get()).size(), 0u);
  // The names change their addresses: keys go by name, connections do not.
  EXPECT_EQ(Do(Kind::kReplace, {{"", "10.0.0.3:1"}, {"a", "10.0.0.2:1"}, {"b", "10.0.0.1:1"}}), 0);
  EXPECT_EQ(Removed(*before, state.get()).size(), 2u);
  EXPECT_EQ(state->balancer->Digest(), before->balancer->Digest());
}

TEST_F(EndpointChangeTest, WhatIsSavedHasTheWeights) {  // compared in Do()
  Do(Kind::kAdd, {{"heavy", "10.0.1.1:1", 3}});
  Do(Kind::kReweight, {{"a", "", 0.5}});
  Do(Kind::kReplace, {{"a", "10.0.0.1:1", 2}, {"light", "10.0.1.2:1", 0.1}});
  EXPECT_EQ(List(), (Strings{"a 10.0.0.1:1 x2.000000", "light 10.0.1.2:1 x0.100000"}));
}

TEST_F(EndpointChangeTest, ReplaceByNoneAndByOthersOnly) {
  EXPECT_EQ(Do(Kind::kReplace, {{"x", "10.0.1.1:1"}, {"y", "10.0.1.1:1"}}), 1);
  EXPECT_EQ(List(), (Strings{"x 10.0.1.1:1", "y 10.0.1.1:1"}));
  EXPECT_EQ(Do(Kind::kReplace, {}), 1);
  EXPECT_EQ(List(), Strings());
  EXPECT_EQ(Do(Kind::kReplace, {}), 0);
  EXPECT_EQ(Error(Kind::kRemove, {{"x", ""}}), ErrorKind::kNotFound);
  EXPECT_EQ(Do(Kind::kAdd, {{"x", "10.0.1.1:1"}}), 1);
  EXPECT_EQ(Do(Kind::kRemove, {{"x", ""}}), 1);
  EXPECT_EQ(List(), Strings());
}

TEST_F(EndpointChangeTest, ReplaceEndsADrain) {
  const double share = Do(Kind::kDrain, {{"b", ""}});
  EXPECT_NEAR(share, state->balancer->Shares()[1], 1e-12);
  EXPECT_EQ(state->active_weight, 2);
  EXPECT_EQ(Do(Kind::kDrain, {{"b", ""}, {"b", ""}}), 0);
  EXPECT_NEAR(Do(Kind::kReplace, {{"a", "10.0.0.1:1"}, {"b", "10.0.0.2:1"}, {"", "10.0.0.3:1"}}), share, 1e-12);
  EXPECT_EQ(List()[1], "b 10.0.0.2:1");
  EXPECT_EQ(state->active_weight, 3);
}

TEST_F(EndpointChangeTest, ANameTwiceInOneChange) {
  EXPECT_EQ(Error(Kind::kAdd, {{"n", "10.0.1.1:1"}, {"n", "10.0.1.2:1"}}), ErrorKind::kInvalidArgument);
  EXPECT_EQ(Error(Kind::kAdd, {{"10.0.1.1:1", "10.0.1.9:1"}, {"", "10.0.1.1:1"}}), ErrorKind::kInvalidArgument);
  EXPECT_EQ(Error(Kind::kAdd, {{"", "10.0.0.3:1"}}), ErrorKind::kInvalidArgument);
  EXPECT_EQ(Error(Kind::kReplace, {{"n", "10.0.1.1:1"}, {"n", "10.0.1.1:1"}}), ErrorKind::kInvalidArgument);
  EXPECT_EQ(Error(Kind::kRemove, {{"a", ""}, {"b", ""}, {"a", ""}}), ErrorKind::kNotFound);
  Do(Kind::kReweight, {{"a", "", 2}, {"a", "", 3}});
  EXPECT_EQ(state->endpoints[0].weight, 3);
}

TEST_F(EndpointChangeTest, AllAreRemovedAtOnceAndByAddress) {
  Do(Kind::kRemove, {{"", "10.0.0.3:1"}, {"b", ""}, {"a", ""}});
  EXPECT_EQ(List(), Strings());
  EXPECT_EQ(state->active_weight, 0);
}

TEST_F(EndpointChangeTest, AWeightOutOfBoundsIsRefusedByTheState) {
  for (Kind kind : {Kind::kReweight, Kind::kAdd}) {
    for (double weight : {0.0, -1.0, 1000.0}) {
      auto change = Ask(kind, {{kind == Kind::kAdd ? "n" : "a", "10.0.1.1:1", weight}});
      ASSERT_TRUE(change.ok());
      EXPECT_FALSE(ChangeClusterState(*state, *change, 1, registry).ok()) << weight;
    }
  }
  EXPECT_EQ(Error(Kind::kReplace, {{"n", "10.0.1.1:1", 0}}), ErrorKind::kInvalidArgument);
}

// As long as a list may be, and a change that names all of it.
TEST_F(EndpointChangeTest, AllOfALongList) {
  options->ring_points = 1;
  std::vector<EndpointSpec> specs;
  for (int i = 0; i < 10000; ++i) specs.push_back({"n" + std::to_string(i), "10.0.0.1:1"});
  state = Build(specs);
  EXPECT_NEAR(Do(Kind::kDrain, specs), 1, 1e-9);
  EXPECT_EQ(state->active_weight, 0);
  EXPECT_NEAR(Do(Kind::kUndrain, specs), 1, 1e-9);
  Do(Kind::kRemove, specs);
  EXPECT_EQ(List(), Strings());
}

}  // namespace
}  // namespace sluice::upstream
