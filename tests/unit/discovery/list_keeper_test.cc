#include "discovery/list_keeper.h"

#include <gtest/gtest.h>

#include <chrono>
#include <initializer_list>
#include <memory>
#include <string>

namespace sluice::discovery {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Kind = PutResult::Kind;

std::shared_ptr<const List> Listed(std::initializer_list<const char*> hosts) {
  auto list = std::make_shared<List>();
  for (const char* host : hosts) {
    upstream::EndpointOptions endpoint;
    endpoint.name = host;
    endpoint.address = *net::Address::Parse(std::string(host) + ":1");
    list->push_back(endpoint);
  }
  Sort(*list);
  return list;
}

class ListKeeperTest : public ::testing::Test {
 protected:
  ListKeeper& Keeper() {
    if (!keeper) keeper.emplace(options, in_force);
    return *keeper;
  }
  KeeperState State() { return Keeper().view().state; }
  // The list is found, due at once, and put in force.
  void Take(std::initializer_list<const char*> hosts) {
    now += seconds(1);
    Keeper().Found(Listed(hosts), now);
    ASSERT_NE(Keeper().Due(now), nullptr);
    Keeper().PutDone({Kind::kDone}, now);
    ASSERT_EQ(State(), KeeperState::kCurrent);
  }
  size_t DueSize() {
    const auto due = Keeper().Due(now);
    return due == nullptr ? 0 : due->size();
  }

  DiscoveryOptions options;
  std::shared_ptr<const List> in_force;
  std::optional<ListKeeper> keeper;
  base::TimePoint now{std::chrono::hours(1)};
};

TEST_F(ListKeeperTest, TheFirstListIsDueAtOnceWhateverItMoves) {
  EXPECT_EQ(State(), KeeperState::kWaiting);
  EXPECT_FALSE(Keeper().view().had_list);
  Keeper().Found(Listed({"a", "b"}), now);
  EXPECT_EQ(DueSize(), 2u);
  EXPECT_EQ(Keeper().moved_max(), 1);
  Keeper().PutDone({Kind::kDone}, now);
  EXPECT_TRUE(Keeper().view().had_list);
  EXPECT_EQ(Keeper().view().changed_at, now);
}

TEST_F(ListKeeperTest, TheSameListAgainIsNoChange) {
  Take({"a", "b"});
  now += seconds(1);
  Keeper().Found(Listed({"b", "a"}), now);
  EXPECT_EQ(Keeper().Due(now), nullptr);
  EXPECT_EQ(Keeper().view().answered_at, now);
}

TEST_F(ListKeeperTest, AListOfTheProcessBeforeIsInForceFromTheBeginning) {
  in_force = Listed({"a"});
  EXPECT_TRUE(Keeper().view().had_list);
  Keeper().Found(Listed({"a"}), now);
  EXPECT_EQ(State(), KeeperState::kCurrent);
  EXPECT_EQ(Keeper().Due(now), nullptr);
  EXPECT_FALSE(Keeper().view().changed_at);
  Keeper().Found(Listed({"b"}), now);
  EXPECT_EQ(Keeper().moved_max(), 0.5) << "it is worth keeping";
}

TEST_F(ListKeeperTest, NoEndpointsAreBelievedAfterATime) {
  Take({"a"});
  const base::TimePoint from = now;
  Keeper().Found(Listed({}), now);
  EXPECT_EQ(State(), KeeperState::kHeld);
  EXPECT_NE(Keeper().view().error, "");
  EXPECT_EQ(Keeper().ask_at(), from + seconds(30));
  now = from + seconds(30) - milliseconds(1);
  Keeper().Found(Listed({}), now);
  EXPECT_EQ(State(), KeeperState::kHeld);
  now = from + seconds(30);
  Keeper().Found(Listed({}), now);
  ASSERT_NE(Keeper().Due(now), nullptr);
  EXPECT_EQ(Keeper().moved_max(), 1);
  Keeper().PutDone({Kind::kDone}, now);
  Keeper().Found(Listed({"a"}), now += seconds(1));
  EXPECT_EQ(DueSize(), 1u) << "good news is believed at once";
  EXPECT_EQ(Keeper().moved_max(), 1) << "there is nothing to lose";
}

TEST_F(ListKeeperTest, AListInBetweenBeginsTheTimeAnew) {
  Take({"a"});
  Keeper().Found(Listed({}), now);
  Keeper().Found(Listed({"a"}), now += seconds(20));
  EXPECT_EQ(State(), KeeperState::kCurrent);
  Keeper().Found(Listed({}), now += seconds(20));
  EXPECT_EQ(State(), KeeperState::kHeld);
  EXPECT_EQ(Keeper().ask_at(), now + seconds(30));
}

TEST_F(ListKeeperTest, NoEndpointsAreHeldAlsoAsAFirstAnswer) {
  Keeper().Found(Listed({}), now);
  EXPECT_EQ(State(), KeeperState::kHeld);
  EXPECT_FALSE(Keeper().view().had_list);
}

// A failed answer tells nothing of the endpoints: what was empty stays held, and is asked again, not in a loop.
TEST_F(ListKeeperTest, AFailedAnswerChangesNothing) {
  Take({"a"});
  Keeper().Found(Listed({}), now);
  now += seconds(31);
  Keeper().Failed("away", now);
  EXPECT_EQ(State(), KeeperState::kHeld);
  EXPECT_EQ(Keeper().view().error, "away");
  EXPECT_EQ(Keeper().ask_at(), now + ListKeeper::kConfirm);
  EXPECT_EQ(Keeper().Due(now), nullptr);
  Keeper().Found(Listed({"a"}), now);
  EXPECT_EQ(State(), KeeperState::kCurrent);
  EXPECT_EQ(Keeper().view().error, "");
}

TEST_F(ListKeeperTest, AListThatMovesMuchIsSeenTwice) {
  Take({"a", "b"});
  now += seconds(1);
  Keeper().Found(Listed({"c", "d"}), now);
  ASSERT_NE(Keeper().Due(now), nullptr);
  EXPECT_EQ(Keeper().moved_max(), 0.5);
  Keeper().PutDone({Kind::kMovesTooMuch, 1}, now);
  EXPECT_EQ(State(), KeeperState::kUnconfirmed);
  EXPECT_EQ(Keeper().ask_at(), now + ListKeeper::kConfirm);
  Keeper().Found(Listed({"c", "d"}), now += milliseconds(500));
  EXPECT_EQ(State(), KeeperState::kUnconfirmed) << "too early";
  Keeper().Found(Listed({"c", "d"}), now += milliseconds(500));
  ASSERT_NE(Keeper().Due(now), nullptr);
  EXPECT_EQ(Keeper().moved_max(), 1);
  Keeper().PutDone({Kind::kDone, 1}, now);
  EXPECT_EQ(State(), KeeperState::kCurrent);
}

// A fleet that is replaced step by step gives another list each time; the change as a whole is what was seen.
TEST_F(ListKeeperTest, AnotherListThatMovesMuchConfirmsTheChange) {
  Take({"a", "b"});
  Keeper().Found(Listed({"c"}), now += seconds(1));
  Keeper().PutDone({Kind::kMovesTooMuch, 1}, now);
  now += milliseconds(100);
  Keeper().Found(Listed({"c", "d"}), now);
  ASSERT_NE(Keeper().Due(now), nullptr) << "it may move less";
  EXPECT_EQ(Keeper().moved_max(), 0.5);
  Keeper().PutDone({Kind::kMovesTooMuch, 1}, now);
  Keeper().Found(Listed({"c", "d", "e"}), now += milliseconds(900));
  EXPECT_EQ(Keeper().moved_max(), 1);
}

TEST_F(ListKeeperTest, BackToTheListInForceNothingIsUnconfirmed) {
  Take({"a", "b"});
  Keeper().Found(Listed({"c"}), now += seconds(1));
  Keeper().PutDone({Kind::kMovesTooMuch, 1}, now);
  Keeper().Found(Listed({"a", "b"}), now += milliseconds(200));
  EXPECT_EQ(State(), KeeperState::kCurrent);
  Keeper().Found(Listed({"c"}), now += seconds(5));
  EXPECT_EQ(Keeper().moved_max(), 0.5);
}

TEST_F(ListKeeperTest, ChangesAreMerged) {
  Take({"a"});
  const base::TimePoint from = now;
  for (int i = 1; i <= 4; ++i) {
    now = from + milliseconds(10 * i);
    Keeper().Found(i % 2 == 0 ? Listed({"a", "b"}) : Listed({"a", "b", "c"}), now);
    EXPECT_EQ(Keeper().Due(now), nullptr);
    EXPECT_EQ(Keeper().due_at(), from + ListKeeper::kMerge);
  }
  now = from + ListKeeper::kMerge;
  EXPECT_EQ(DueSize(), 2u) << "the last one";
}

TEST_F(ListKeeperTest, ARefusedListIsTriedOnce) {
  Take({"a"});
  Keeper().Found(Listed({"a", "b"}), now += seconds(1));
  Keeper().PutDone({Kind::kRefused, 0, "too many"}, now);
  EXPECT_EQ(State(), KeeperState::kRefused);
  EXPECT_EQ(Keeper().view().error, "too many");
  Keeper().Found(Listed({"a", "b"}), now += seconds(1));
  EXPECT_EQ(Keeper().Due(now), nullptr);
  Keeper().Found(Listed({"a", "c"}), now += seconds(1));
  EXPECT_EQ(DueSize(), 2u);
}

TEST_F(ListKeeperTest, WhatCannotBePutNowIsPutLater) {
  Take({"a"});
  Keeper().Found(Listed({"a", "b"}), now += seconds(1));
  Keeper().PutDone({Kind::kLater, 0, "busy"}, now);
  EXPECT_EQ(Keeper().due_at(), now + ListKeeper::kConfirm);
  EXPECT_EQ(Keeper().Due(now), nullptr);
  now += ListKeeper::kConfirm;
  EXPECT_EQ(DueSize(), 2u);
}

TEST_F(ListKeeperTest, AListByRpcStaysUntilItIsReset) {
  Take({"a"});
  Keeper().Found(Listed({"a", "b"}), now += seconds(1));
  Keeper().PutDone({Kind::kOverridden}, now);
  Keeper().Found(Listed({"a", "b", "c"}), now += seconds(1));
  EXPECT_EQ(State(), KeeperState::kOverridden);
  EXPECT_EQ(Keeper().Due(now), nullptr);
  Keeper().Again(now);
  EXPECT_EQ(DueSize(), 3u);
  EXPECT_EQ(Keeper().moved_max(), 1);
}

// The source has nothing new to say: its list comes back all the same.
TEST_F(ListKeeperTest, TheSameListIsPutAgainWhereAnotherMayBeInForce) {
  Take({"a"});
  now += seconds(1);
  Keeper().Again(now);  // a list by RPC has come
  EXPECT_EQ(DueSize(), 1u);
  Keeper().PutDone({Kind::kOverridden}, now);
  EXPECT_EQ(State(), KeeperState::kOverridden);
  Keeper().Found(Listed({"a"}), now += seconds(1));
  EXPECT_EQ(State(), KeeperState::kOverridden);
  Keeper().Again(now += seconds(1));  // and is to go
  EXPECT_EQ(DueSize(), 1u);
  EXPECT_EQ(Keeper().moved_max(), 1);
  Keeper().PutDone({Kind::kDone}, now);
  EXPECT_EQ(State(), KeeperState::kCurrent);
  EXPECT_EQ(Keeper().view().changed_at, now);
}

TEST_F(ListKeeperTest, AListThatWasInForceIsNoChange) {
  Take({"a"});
  const base::TimePoint taken = now;
  Keeper().Again(now += seconds(1));
  Keeper().PutDone({.changed = false}, now);
  EXPECT_EQ(State(), KeeperState::kCurrent);
  EXPECT_EQ(Keeper().view().changed_at, taken);
}

// To look again is no second sight, and does not make an empty list good.
TEST_F(ListKeeperTest, AgainKeepsWhatIsHeldAndUnconfirmed) {
  Take({"a", "b"});
  Keeper().Found(Listed({}), now += seconds(1));
  Keeper().Again(now += seconds(1));
  EXPECT_EQ(State(), KeeperState::kHeld);
  EXPECT_EQ(Keeper().Due(now), nullptr);
  Keeper().Found(Listed({"c"}), now += seconds(1));
  Keeper().PutDone({Kind::kMovesTooMuch, 1}, now);
  Keeper().Again(now += milliseconds(500));
  EXPECT_EQ(Keeper().moved_max(), 0.5);
}

// A reload while the source is away: time that passes without an answer shows nothing.
TEST_F(ListKeeperTest, AgainIsNoAnswerHoweverLateItComes) {
  Take({"a", "b"});
  Keeper().Found(Listed({}), now += seconds(1));
  Keeper().Failed("away", now += seconds(5));
  Keeper().Again(now += seconds(60));
  EXPECT_EQ(State(), KeeperState::kHeld);
  EXPECT_EQ(Keeper().Due(now), nullptr);
  Keeper().Found(Listed({"c"}), now += seconds(1));
  Keeper().PutDone({Kind::kMovesTooMuch, 1}, now);
  Keeper().Failed("away", now += seconds(1));
  Keeper().Again(now += seconds(60));
  EXPECT_EQ(State(), KeeperState::kUnconfirmed);
  EXPECT_EQ(Keeper().Due(now), nullptr);
}

TEST_F(ListKeeperTest, BeforeAnAnswerAgainHasNothingToPut) {
  Keeper().Again(now);
  EXPECT_EQ(State(), KeeperState::kWaiting);
  EXPECT_EQ(Keeper().Due(now), nullptr);
}

TEST_F(ListKeeperTest, ARefusedListIsTriedAgainWhenTheConfigurationHasChanged) {
  Take({"a"});
  Keeper().Found(Listed({"a", "b"}), now += seconds(1));
  Keeper().PutDone({Kind::kRefused, 0, "too many"}, now);
  Keeper().Again(now += seconds(1));
  EXPECT_EQ(DueSize(), 2u);
}

TEST_F(ListKeeperTest, AnErrorBetweenTwoSightsMakesTheNextOneTheFirst) {
  Take({"a", "b"});
  Keeper().Found(Listed({"c"}), now += seconds(1));
  Keeper().PutDone({Kind::kMovesTooMuch, 1}, now);
  Keeper().Failed("away", now += seconds(1));
  Keeper().Found(Listed({"d"}), now += std::chrono::hours(1));
  EXPECT_EQ(Keeper().moved_max(), 0.5);
  Keeper().PutDone({Kind::kMovesTooMuch, 1}, now);
  Keeper().Found(Listed({"d"}), now += ListKeeper::kConfirm);
  EXPECT_EQ(Keeper().moved_max(), 1);
}

TEST_F(ListKeeperTest, AnErrorBetweenTwoEmptyAnswersBeginsTheTimeAnew) {
  Take({"a"});
  Keeper().Found(Listed({}), now += seconds(1));
  Keeper().Failed("away", now += seconds(1));
  Keeper().Found(Listed({}), now += std::chrono::minutes(10));
  EXPECT_EQ(State(), KeeperState::kHeld);
  EXPECT_EQ(Keeper().ask_at(), now + seconds(30));
  Keeper().Found(Listed({}), now += seconds(30));
  EXPECT_EQ(State(), KeeperState::kDue);
}

TEST_F(ListKeeperTest, BehindAnEmptyAnswerAListIsSeenForTheFirstTime) {
  Take({"a", "b"});
  Keeper().Found(Listed({"c"}), now += seconds(1));
  Keeper().PutDone({Kind::kMovesTooMuch, 1}, now);
  Keeper().Found(Listed({}), now += seconds(2));
  Keeper().Found(Listed({"c"}), now += seconds(2));
  EXPECT_EQ(Keeper().moved_max(), 0.5);
}

TEST_F(ListKeeperTest, AnErrorThatIsOverDoesNotHideWhyAListIsRefused) {
  Take({"a"});
  Keeper().Found(Listed({"a", "b"}), now += seconds(1));
  Keeper().PutDone({Kind::kRefused, 0, "too many"}, now);
  Keeper().Failed("line 3", now += seconds(1));
  EXPECT_EQ(Keeper().view().error, "line 3");
  Keeper().Found(Listed({"a", "b"}), now += seconds(1));
  EXPECT_EQ(State(), KeeperState::kRefused);
  EXPECT_EQ(Keeper().view().error, "too many");
}

}  // namespace
}  // namespace sluice::discovery
