// Single flight: calls that start, join and leave a fetch, and what a purge between any two steps changes.
#include "proxy/response_cache/fetch.h"

#include <gtest/gtest.h>

#include "runtime/runtime.h"
#include "support/manual_worker.h"
#include "sync/event.h"
#include "unit/proxy/response_cache/response_cache_support.h"

namespace sluice::proxy {
namespace {

using std::chrono::seconds;
using test::CacheFixture;
using Caller = CacheFixture::Caller;
using Joined = ResponseCache::Joined;
using Kind = ResponseCache::Found::Kind;

std::string TextOf(const Caller& caller) {
  const auto result = caller.participant.result();
  return result == nullptr ? "(waiting)" : CacheFixture::TextOf(result->response);
}

TEST(Fetch, EqualCallsShareOneAndEachIsWokenOnce) {
  CacheFixture f;
  const CacheKey key = f.Key();
  std::shared_ptr<Fetch> fetch, none;
  std::vector<std::unique_ptr<Caller>> callers;
  for (int i = 0; i < 200; ++i) {  // more than one batch of wake-ups
    callers.push_back(std::make_unique<Caller>());
    EXPECT_EQ(f.Join(key, callers.back().get(), i == 0 ? &fetch : &none), i == 0 ? Joined::kStarted : Joined::kJoined);
    EXPECT_TRUE(callers.back()->participant.in_fetch());
    EXPECT_EQ(callers.back()->participant.result(), nullptr);
  }
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(f.cache.stats().fetches, 1u);
  EXPECT_EQ(f.cache.stats().coalesced, 199u);
  f.Complete(fetch, {.message = "shared"});
  for (const auto& caller : callers) {
    EXPECT_EQ(caller->woken(), 1);
    EXPECT_EQ(TextOf(*caller), "shared");
    EXPECT_EQ(caller->participant.result(), callers[0]->participant.result());
  }
  EXPECT_EQ(f.cache.stats().fetches, 0u);
  EXPECT_EQ(f.KindOf(key), Kind::kFresh);
}

TEST(Fetch, OtherKeysDoNotJoin) {
  CacheFixture f;
  Caller one, two;
  std::shared_ptr<Fetch> fetch1, fetch2;
  EXPECT_EQ(f.Join(f.Key("1"), &one, &fetch1), Joined::kStarted);
  EXPECT_EQ(f.Join(f.Key("2"), &two, &fetch2), Joined::kStarted);
  f.Complete(fetch2, {.message = "2"});
  EXPECT_EQ(TextOf(one), "(waiting)");
  EXPECT_EQ(TextOf(two), "2");
  f.Complete(fetch1, {.message = "1"});
  EXPECT_EQ(TextOf(one), "1");
}

TEST(Fetch, TheLeaderMayLeaveAndTheOthersGetTheirs) {
  CacheFixture f;
  const CacheKey key = f.Key();
  int abandoned = 0;
  std::shared_ptr<Fetch> fetch, none;
  Caller follower;
  {
    Caller leader;
    EXPECT_EQ(f.Join(key, &leader, &fetch, [&] { ++abandoned; }), Joined::kStarted);
    EXPECT_EQ(f.Join(key, &follower, &none), Joined::kJoined);
    leader.participant.Leave();
    leader.participant.Leave();
    EXPECT_FALSE(leader.participant.in_fetch());
    EXPECT_EQ(leader.participant.result(), nullptr);
    f.Complete(fetch, {.message = "x"});
    EXPECT_EQ(leader.woken(), 0);
  }
  EXPECT_EQ(abandoned, 0);
  EXPECT_EQ(TextOf(follower), "x");
  follower.participant.Leave();
  EXPECT_EQ(abandoned, 0);
}

TEST(Fetch, TheLastCallThatLeavesCancelsItAndNoCallJoinsIt) {
  CacheFixture f;
  const CacheKey key = f.Key();
  int abandoned = 0;
  std::shared_ptr<Fetch> fetch, none, second;
  auto leader = std::make_unique<Caller>();
  Caller follower, late;
  f.Join(key, leader.get(), &fetch, [&] {
    ++abandoned;
    f.cache.Purge({.service = "pkg.Other"});  // runs outside of the locks: may call the cache
  });
  f.Join(key, &follower, &none);
  follower.participant.Leave();
  EXPECT_EQ(abandoned, 0);
  leader.reset();  // the destructor leaves too
  EXPECT_EQ(abandoned, 1);
  EXPECT_EQ(f.cache.stats().fetches, 1u);  // until its call has ended
  EXPECT_EQ(f.Join(key, &late, &second), Joined::kStarted);
  f.Complete(second, {.message = "new"});
  f.Complete(fetch, {.message = "old"});  // its answer came all the same: older than what is there
  EXPECT_EQ(TextOf(late), "new");
  EXPECT_EQ(f.Text(key), "new");
  EXPECT_EQ(abandoned, 1);
}

TEST(Fetch, OnAbandonedIsDestroyedAtTheEnd) {
  CacheFixture f;
  auto held = std::make_shared<int>(1);
  Caller leader;
  std::shared_ptr<Fetch> fetch;
  f.Join(f.Key(), &leader, &fetch, [held] {});
  EXPECT_EQ(held.use_count(), 2);
  f.Complete(fetch);
  EXPECT_EQ(held.use_count(), 1);
}

TEST(Fetch, AFailureGoesToAllOnceAndIsNotStored) {
  CacheFixture f;
  const CacheKey key = f.Key();
  Caller one, two, after;
  std::shared_ptr<Fetch> fetch, none, second;
  f.Join(key, &one, &fetch);
  f.Join(key, &two, &none);
  f.Complete(fetch, {.status = GrpcCode::kUnavailable, .trailers_only = true},
             base::MakeError(base::ErrorKind::kNoEndpoint, "none"));
  for (Caller* caller : {&one, &two}) {
    EXPECT_EQ(caller->woken(), 1);
    EXPECT_EQ(caller->participant.result()->response->status, GrpcCode::kUnavailable);
    EXPECT_EQ(caller->participant.result()->cause->kind, base::ErrorKind::kNoEndpoint);
  }
  EXPECT_EQ(f.Look(key).response, nullptr);
  EXPECT_EQ(f.Join(key, &after, &second), Joined::kStarted);  // the failure is spent
  f.Complete(second);
}

TEST(Fetch, WithoutAResponseAllGoByThemselves) {
  CacheFixture f;
  const CacheKey key = f.Key();
  Caller one, two;
  std::shared_ptr<Fetch> fetch, none;
  f.Join(key, &one, &fetch);
  f.Join(key, &two, &none);
  f.cache.Complete(fetch, f.Plan(), FetchResult{}, f.clock.Now(), 0);
  for (Caller* caller : {&one, &two}) {
    EXPECT_EQ(caller->woken(), 1);
    ASSERT_NE(caller->participant.result(), nullptr);
    EXPECT_EQ(caller->participant.result()->response, nullptr);
  }
}

TEST(Fetch, ItsTimeIsTheFirstCallsAndEveryCallMayJoin) {
  CacheFixture f;
  const CacheKey key = f.Key();
  Caller one, later, never;
  std::shared_ptr<Fetch> fetch, none;
  f.Join(key, &one, &fetch, nullptr, seconds(5));
  EXPECT_EQ(fetch->deadline(), f.clock.Now() + seconds(5));
  EXPECT_EQ(f.Join(key, &later, &none, nullptr, seconds(100)), Joined::kJoined);
  EXPECT_EQ(fetch->deadline(), f.clock.Now() + seconds(100));
  EXPECT_EQ(fetch->FixDeadline(), f.clock.Now() + seconds(100)) << "now the backend has been told";
  EXPECT_EQ(f.cache.Join(key, f.Plan(), &never.participant, base::kNever, f.clock.Now(), nullptr, &none, 0),
            Joined::kJoined);
  EXPECT_EQ(fetch->deadline(), f.clock.Now() + seconds(100));
  f.Complete(fetch);
  // A call that may take for ever has a fetch that may.
  Caller patient;
  EXPECT_EQ(
      f.cache.Join(f.Key("other"), f.Plan(), &patient.participant, base::kNever, f.clock.Now(), nullptr, &fetch, 0),
      Joined::kStarted);
  EXPECT_EQ(fetch->deadline(), base::kNever);
  f.Complete(fetch);
}

TEST(Fetch, ACallThatHasWaitedInVainJoinsNoneThatEndsBeforeHalfOfItsTime) {
  CacheFixture f;
  const CacheKey key = f.Key();
  const base::TimePoint now = f.clock.Now();
  CachePlan again = f.Plan();
  again.joined_before = true;
  const auto join = [&](Caller& caller, seconds time, std::shared_ptr<Fetch>* fetch) {
    return f.cache.Join(key, again, &caller.participant, now + time, now, nullptr, fetch, 0);
  };
  Caller hurried, first, second, third, newcomer;
  std::shared_ptr<Fetch> running, next, none;
  f.Join(key, &hurried, &running, nullptr, seconds(5));
  EXPECT_EQ(join(first, seconds(6), &none), Joined::kJoined) << "a deadline that may still be moved is enough";
  EXPECT_EQ(running->FixDeadline(), now + seconds(6));
  EXPECT_EQ(join(second, seconds(12), &none), Joined::kJoined);
  EXPECT_EQ(join(third, seconds(13), &next), Joined::kStarted);
  EXPECT_EQ(f.Join(key, &newcomer, &none), Joined::kJoined);
  f.Complete(running, {.message = "for its participants"});
  EXPECT_NE(second.participant.result(), nullptr);
  EXPECT_EQ(third.participant.result(), nullptr);
  EXPECT_EQ(newcomer.participant.result(), nullptr);
  f.Complete(next);
  EXPECT_NE(third.participant.result(), nullptr);
  EXPECT_NE(newcomer.participant.result(), nullptr);
}

TEST(Fetch, FetchesAreBoundedAndJoiningIsNot) {
  CacheOptions options = CacheFixture::Defaults();
  options.fetches_max = 2;
  CacheFixture f(options);
  Caller callers[5];
  std::shared_ptr<Fetch> fetches[2], none;
  f.Join(f.Key("0"), &callers[0], &fetches[0]);
  f.Join(f.Key("1"), &callers[1], &fetches[1]);
  EXPECT_EQ(f.Join(f.Key("2"), &callers[2], &none), Joined::kAlone);
  EXPECT_EQ(f.Join(f.Key("3"), nullptr, &none), Joined::kAlone);
  EXPECT_EQ(f.NotCachedFor(NotCached::kFetchesFull), 2u);
  EXPECT_EQ(f.Join(f.Key("1"), &callers[3], &none), Joined::kJoined);
  f.Complete(fetches[0]);
  EXPECT_EQ(f.Join(f.Key("2"), &callers[4], &fetches[0]), Joined::kStarted);
  f.Complete(fetches[0]);
  f.Complete(fetches[1]);
}

TEST(Fetch, ARefreshGoesOnWithoutParticipants) {
  CacheFixture f;
  f.rule.stale_while_revalidate = seconds(60);
  const CacheKey key = f.Key();
  f.Store(key, {.message = "old"});
  f.clock.Advance(seconds(11));
  int abandoned = 0;
  std::shared_ptr<Fetch> fetch, none;
  EXPECT_EQ(f.Join(key, nullptr, &fetch, [&] { ++abandoned; }), Joined::kStarted);
  EXPECT_EQ(fetch->deadline(), f.clock.Now() + seconds(60));
  EXPECT_EQ(f.Join(key, nullptr, &none), Joined::kJoined);
  EXPECT_EQ(f.cache.stats().coalesced, 0u);
  {
    Caller passing;
    EXPECT_EQ(f.Join(key, &passing, &none), Joined::kJoined);
  }
  EXPECT_EQ(abandoned, 0);
  f.Complete(fetch, {.message = "new"});
  EXPECT_EQ(f.Text(key), "new");
}

// The call looked, then another call stored a response, then the call joins.
// Else a call without a deadline that joins and leaves would let it run for ever.
TEST(Fetch, ARefreshKeepsItsOwnBoundWhatJoins) {
  CacheFixture f;
  const CacheKey key = f.Key();
  std::shared_ptr<Fetch> fetch, none;
  EXPECT_EQ(f.cache.Join(key, f.Plan(), nullptr, base::kNever, f.clock.Now(), nullptr, &fetch, 0), Joined::kStarted);
  const base::TimePoint bound = fetch->deadline();
  EXPECT_NE(bound, base::kNever);
  {
    Caller patient;
    EXPECT_EQ(f.cache.Join(key, f.Plan(), &patient.participant, base::kNever, f.clock.Now(), nullptr, &none, 0),
              Joined::kJoined);
    EXPECT_EQ(fetch->deadline(), bound);
    patient.participant.Leave();
  }
  EXPECT_EQ(fetch->FixDeadline(), bound);
  f.Complete(fetch);
}

TEST(Fetch, AResponseStoredBetweenLookAndJoinIsTheAnswer) {
  CacheFixture f;
  const CacheKey key = f.Key();
  EXPECT_EQ(f.KindOf(key), Kind::kMiss);
  f.Store(key, {.message = "x"});
  Caller caller;
  std::shared_ptr<Fetch> fetch;
  EXPECT_EQ(f.Join(key, &caller, &fetch), Joined::kJoined);
  EXPECT_EQ(fetch, nullptr);
  EXPECT_FALSE(caller.participant.in_fetch());
  EXPECT_EQ(TextOf(caller), "x");
  EXPECT_EQ(f.Join(key, nullptr, &fetch), Joined::kJoined);  // nor does it need a refresh
  EXPECT_EQ(fetch, nullptr);
  caller.participant.Leave();
  EXPECT_EQ(caller.participant.result(), nullptr);
}

// It runs beside the one that is there, which calls go on to join.
TEST(Fetch, NoCacheStartsANewerOneWhoseAnswerWins) {
  for (const bool older_ends_last : {false, true}) {
    CacheFixture f;
    const CacheKey key = f.Key();
    const test::Fields no_cache = {{"cache-control", "no-cache"}};
    Caller one, strict, third;
    std::shared_ptr<Fetch> older, newer, none;
    f.Join(key, &one, &older);
    EXPECT_EQ(f.Join(key, &strict, &newer, nullptr, seconds(5), no_cache), Joined::kStarted);
    EXPECT_EQ(f.Join(key, &third, &none), Joined::kJoined);
    f.Complete(older_ends_last ? newer : older, {.message = older_ends_last ? "newer" : "older"});
    f.Complete(older_ends_last ? older : newer, {.message = older_ends_last ? "older" : "newer"});
    EXPECT_EQ(TextOf(one), "older");
    EXPECT_EQ(TextOf(strict), "newer");
    EXPECT_EQ(TextOf(third), "older");
    EXPECT_EQ(f.Text(key), "newer");
    EXPECT_EQ(f.NotCachedFor(NotCached::kSuperseded), older_ends_last ? 1u : 0u);
    // Not even a fresh one does for that client.
    Caller again;
    EXPECT_EQ(f.Join(key, &again, &newer, nullptr, seconds(5), no_cache), Joined::kStarted);
    f.Complete(newer);
  }
}

TEST(Fetch, AFailureThatIsTheLeadersAloneSendsTheOthersByThemselves) {
  CacheFixture f;
  const CacheKey key = f.Key();
  const auto limited = base::MakeError(base::ErrorKind::kRateLimited, "no token");
  for (const auto& [status, cause] : std::vector<std::pair<GrpcCode, std::optional<base::Error>>>{
           {GrpcCode::kInvalidArgument, std::nullopt}, {GrpcCode::kResourceExhausted, limited}}) {
    Caller leader, follower, left;
    std::shared_ptr<Fetch> fetch, none;
    f.Join(key, &leader, &fetch);
    f.Join(key, &follower, &none);
    f.Complete(fetch, {.status = status, .trailers_only = true}, cause);
    EXPECT_EQ(leader.participant.result()->response->status, status);
    ASSERT_NE(follower.participant.result(), nullptr);
    EXPECT_EQ(follower.participant.result()->response, nullptr);
    EXPECT_EQ(follower.participant.result()->cause.has_value(), cause.has_value());
    EXPECT_EQ(f.Look(key).response, nullptr);
  }
}

// RFC 9111 4: a response that may not be stored satisfies no other request.
TEST(Fetch, AnAnswerThatSaysItIsForOneCallerIsItsLeadersAlone) {
  for (const test::Fields& said : std::vector<test::Fields>{{{"cache-control", "private"}},
                                                            {{"cache-control", "max-age=60, no-store"}},
                                                            {{"cache-control", "no-cache"}},
                                                            {{"set-cookie", "a=b"}},
                                                            {{"vary", "x-tenant"}}}) {
    for (const bool in_trailers : {false, true}) {
      CacheFixture f;
      Caller leader, follower;
      std::shared_ptr<Fetch> fetch, none;
      f.Join(f.Key(), &leader, &fetch);
      f.Join(f.Key(), &follower, &none);
      f.Complete(fetch, in_trailers ? test::ResponseSpec{.trailers = said} : test::ResponseSpec{.headers = said});
      EXPECT_EQ(TextOf(leader), "hello");
      EXPECT_EQ(TextOf(follower), "(none)") << said[0].second << in_trailers;
    }
  }
  // The failure of a service that is down is not one caller's, whatever else it says.
  {
    CacheFixture f;
    Caller leader, follower;
    std::shared_ptr<Fetch> fetch, none;
    f.Join(f.Key(), &leader, &fetch);
    f.Join(f.Key(), &follower, &none);
    f.Complete(fetch,
               {.status = GrpcCode::kUnavailable, .headers = {{"cache-control", "no-store"}}, .trailers_only = true});
    ASSERT_NE(follower.participant.result()->response, nullptr);
  }
  // Not so one whose time is over when it comes: it is what all of them asked for.
  CacheFixture f;
  Caller leader, follower;
  std::shared_ptr<Fetch> fetch, none;
  f.Join(f.Key(), &leader, &fetch);
  f.Join(f.Key(), &follower, &none);
  f.Complete(fetch, {.headers = {{"cache-control", "max-age=0"}}});
  EXPECT_EQ(TextOf(follower), "hello");
}

// A loop of proxies brings the call that a fetch has sent back to it: with more proxies passed.
TEST(Fetch, ACallThatHasPassedMoreProxiesIsNotHeldByIt) {
  CacheFixture f;
  const CacheKey key = f.Key();
  Caller first, back, same, again, other;
  std::shared_ptr<Fetch> fetch, own, third, none;
  f.Join(key, &first, &fetch);
  CachePlan plan = f.Plan();
  const auto join = [&](uint32_t hops, Caller& caller, std::shared_ptr<Fetch>* in) {
    plan.hops = hops;
    return f.cache.Join(key, plan, &caller.participant, f.clock.Now() + seconds(5), f.clock.Now(), nullptr, in, 0);
  };
  EXPECT_EQ(join(1, back, &own), Joined::kStarted);
  EXPECT_EQ(join(1, same, &none), Joined::kJoined) << "calls through the same proxies share one";
  EXPECT_EQ(join(2, again, &third), Joined::kStarted);
  EXPECT_EQ(join(0, other, &none), Joined::kJoined);
  for (const auto& each : {third, own, fetch}) f.Complete(each);
  for (const Caller* caller : {&first, &back, &same, &again, &other}) EXPECT_EQ(TextOf(*caller), "hello");
}

TEST(Fetch, OneThatIsLeftToItsClientIsNotWaitedForByOthers) {
  CacheFixture f;
  const CacheKey key = f.Key();
  CachePlan plans[2] = {f.Plan(), f.Plan()};
  plans[0].client = 1;
  plans[1].client = 2;
  int abandoned = 0;
  const auto join = [&](Caller& caller, int client, std::shared_ptr<Fetch>* fetch) {
    return f.cache.Join(
        key, plans[client], &caller.participant, f.clock.Now() + seconds(5), f.clock.Now(),
        [&abandoned] { ++abandoned; }, fetch, 0);
  };
  Caller leader, same, other, later;
  std::shared_ptr<Fetch> fetch, second, none;
  join(leader, 0, &fetch);
  join(same, 0, &none);
  join(other, 1, &none);
  fetch->LeaveToClient();
  fetch->LeaveToClient();
  EXPECT_EQ(other.woken(), 1);
  ASSERT_NE(other.participant.result(), nullptr);
  EXPECT_EQ(other.participant.result()->response, nullptr);
  EXPECT_EQ(same.participant.result(), nullptr);
  other.participant.Leave();
  EXPECT_EQ(join(later, 1, &second), Joined::kStarted);
  f.Complete(fetch, {.message = "late"});
  EXPECT_EQ(TextOf(leader), "late");
  EXPECT_EQ(TextOf(same), "late");
  EXPECT_EQ(f.Text(key), "late");
  f.Complete(second, {.message = "second"});
  EXPECT_EQ(TextOf(later), "second");
  EXPECT_EQ(f.Text(key), "second");
  EXPECT_EQ(abandoned, 0);
}

TEST(Fetch, OneThatIsLeftToAClientThatHasGoneIsAbandoned) {
  CacheFixture f;
  CachePlan plan = f.Plan();
  plan.client = 1;
  int abandoned = 0;
  Caller other;
  std::shared_ptr<Fetch> fetch, none;
  {
    Caller leader;
    f.cache.Join(
        f.Key(), plan, &leader.participant, f.clock.Now() + seconds(5), f.clock.Now(), [&abandoned] { ++abandoned; },
        &fetch, 0);
    f.Join(f.Key(), &other, &none);
  }
  EXPECT_EQ(abandoned, 0);
  fetch->LeaveToClient();
  EXPECT_EQ(abandoned, 1);
  EXPECT_EQ(other.woken(), 1);
  f.Complete(fetch);
}

// A fetch that runs beside another is not found by a purge, whatever that is of: it stores nothing after one.
TEST(Fetch, APurgeHoldsForOneThatRunsBesideAnother) {
  CacheFixture f;
  const CacheKey key = f.Key();
  Caller one, strict;
  std::shared_ptr<Fetch> older, newer;
  f.Join(key, &one, &older);
  EXPECT_EQ(f.Join(key, &strict, &newer, nullptr, seconds(5), {{"cache-control", "no-cache"}}), Joined::kStarted);
  f.cache.Purge({});
  f.Complete(newer, {.message = "newer"});
  f.Complete(older, {.message = "older"});
  EXPECT_EQ(TextOf(strict), "newer");
  EXPECT_EQ(f.Text(key), "(none)");
  EXPECT_EQ(f.NotCachedFor(NotCached::kPurged), 2u);
}

// A purge before each step of: start, join, complete, look. What began before it must not be seen by what begins after
// it.
TEST(Fetch, APurgeAtEveryStep) {
  for (int at = 0; at < 5; ++at) {
    SCOPED_TRACE(at);
    CacheFixture f;
    const CacheKey key = f.Key();
    Caller one, two;
    std::shared_ptr<Fetch> first, second;
    if (at == 0) f.cache.Purge({});
    EXPECT_EQ(f.Join(key, &one, &first), Joined::kStarted);
    if (at == 1) f.cache.Purge({});
    EXPECT_EQ(f.Join(key, &two, &second), at == 1 ? Joined::kStarted : Joined::kJoined);
    if (at == 2) f.cache.Purge({});
    f.Complete(first, {.message = "first"});
    if (at == 3) f.cache.Purge({});
    if (second != nullptr) {
      EXPECT_EQ(f.KindOf(key), Kind::kMiss);
      f.Complete(second, {.message = "second"});
    }
    EXPECT_EQ(TextOf(one), "first");  // a call that joined before the purge gets its answer all the same
    EXPECT_EQ(TextOf(two), at == 1 ? "second" : "first");
    const bool gone = at == 2 || at == 3;
    EXPECT_EQ(f.Text(key), gone ? "(none)" : at == 1 ? "second" : "first");
    EXPECT_EQ(f.NotCachedFor(NotCached::kPurged), at == 1 || at == 2 ? 1u : 0u);
    if (at == 4) {
      f.cache.Purge({});
      EXPECT_EQ(f.KindOf(key), Kind::kMiss);
    }
  }
}

TEST(Fetch, APurgeOfOthersDoesNotConcernIt) {
  CacheFixture f;
  const CacheKey key = f.Key("one");
  Caller one, two;
  std::shared_ptr<Fetch> fetch, none;
  f.Join(key, &one, &fetch);
  f.cache.Purge({.service = "pkg.Users", .method = "Get", .key = "two"});
  f.cache.Purge({.service = "pkg.Other"});
  EXPECT_EQ(f.Join(key, &two, &none), Joined::kJoined);
  f.Complete(fetch);
  EXPECT_EQ(f.KindOf(key), Kind::kFresh);
}

TEST(Fetch, AnAbandonedOneThatWasPurgedBeforeLeavesItsSuccessorAlone) {
  CacheFixture f;
  const CacheKey key = f.Key();
  int abandoned = 0;
  Caller one, two, three;
  std::shared_ptr<Fetch> first, second, none;
  f.Join(key, &one, &first, [&] { ++abandoned; });
  f.cache.Purge({});
  f.Join(key, &two, &second);
  one.participant.Leave();
  EXPECT_EQ(abandoned, 1);
  EXPECT_EQ(f.Join(key, &three, &none), Joined::kJoined);
  f.Complete(first, {.message = "first"});
  f.Complete(second, {.message = "second"});
  EXPECT_EQ(TextOf(three), "second");
  EXPECT_EQ(f.Text(key), "second");
}

// A wake-up may destroy its participant, and others that were not woken yet.
TEST(Fetch, TheWokenMayDestroyTheParticipants) {
  CacheFixture f;
  struct Group {
    std::vector<std::unique_ptr<Fetch::Participant>> all;
    int woken = 0;
  } group;
  std::shared_ptr<Fetch> fetch, none;
  for (int i = 0; i < 150; ++i) {
    group.all.push_back(std::make_unique<Fetch::Participant>());
    group.all.back()->SetWakeForTest([&group] {
      ++group.woken;
      group.all.clear();
    });
    f.cache.Join(f.Key(), f.Plan(), group.all.back().get(), f.clock.Now() + seconds(1), f.clock.Now(), nullptr,
                 i == 0 ? &fetch : &none, 0);
  }
  f.Complete(fetch);
  EXPECT_TRUE(group.all.empty());
  EXPECT_GE(group.woken, 1);
  EXPECT_LE(group.woken, 64);  // the first batch; the others had left
}

runtime::Task<void> WaitForResult(CacheFixture& f, const CacheKey& key, std::shared_ptr<Fetch>* fetch,
                                  std::string* text) {
  Fetch::Participant participant;
  f.cache.Join(key, f.Plan(), &participant, f.clock.Now() + seconds(5), f.clock.Now(), nullptr, fetch, 0);
  sync::Event event;
  while (participant.result() == nullptr) co_await event.Wait();
  *text = CacheFixture::TextOf(participant.result()->response);
}

TEST(Fetch, ATaskIsWokenWhereverItWaits) {
  CacheFixture f;
  test::ManualWorker worker;
  const CacheKey key = f.Key();
  std::shared_ptr<Fetch> fetch, none;
  std::string text[2];
  worker.runtime.Spawn(WaitForResult(f, key, &fetch, &text[0]));
  worker.Run();
  worker.runtime.Spawn(WaitForResult(f, key, &none, &text[1]));
  worker.Run();
  ASSERT_NE(fetch, nullptr);
  EXPECT_EQ(text[0], "");
  f.Complete(fetch, {.message = "x"});
  worker.Run();
  EXPECT_EQ(text[0], "x");
  EXPECT_EQ(text[1], "x");
}

}  // namespace
}  // namespace sluice::proxy
