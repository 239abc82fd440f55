// The store: what is found, for how long, and what a purge, a refresh and a limit do to it.
#include "proxy/response_cache/cache.h"

#include <gtest/gtest.h>

#include "unit/http2/allocation_counter.h"
#include "unit/proxy/response_cache/response_cache_support.h"

namespace sluice::proxy {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::CacheFixture;
using test::Message;
using Kind = ResponseCache::Found::Kind;
using Joined = ResponseCache::Joined;

TEST(ResponseCache, FindsTheRuleOfAMethod) {
  CacheRule rule;
  rule.methods = {{"/a/A", seconds(1)}, {"/a/B", seconds(2)}};
  EXPECT_EQ(ResponseCache::Find(rule, "/a/B")->ttl, seconds(2));
  EXPECT_EQ(ResponseCache::Find(rule, "/a/"), nullptr);
  EXPECT_EQ(ResponseCache::Find(rule, "/a/C"), nullptr);
  EXPECT_EQ(ResponseCache::Find(CacheRule(), "/a/A"), nullptr);
}

TEST(ResponseCache, AStoredResponseIsServedByteForByte) {
  CacheFixture f;
  const CacheKey key = f.Key();
  EXPECT_EQ(f.KindOf(key), Kind::kMiss);
  const test::ResponseSpec spec{
      .message = std::string("\0\x01 bytes", 8), .headers = {{"x", "1"}, {"x", "2"}}, .trailers = {{"t-bin", "\xff"}}};
  f.Store(key, spec);
  const auto found = f.Look(key);
  ASSERT_EQ(found.kind, Kind::kFresh);
  const CachedResponsePtr original = test::Response(spec, f.clock.Now());
  EXPECT_EQ(found.response->message.view(), original->message.view());
  for (const auto part : {&CachedResponse::headers, &CachedResponse::trailers}) {
    http2::HeaderList got, want;
    ((*found.response).*part).AppendTo(got);
    ((*original).*part).AppendTo(want);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].name(), want[i].name());
      EXPECT_EQ(got[i].value(), want[i].value());
    }
  }
  EXPECT_EQ(f.KindOf(f.Key("two")), Kind::kMiss);
  EXPECT_EQ(f.cache.stats().hits, 1u);
  EXPECT_EQ(f.cache.stats().misses, 2u);
}

TEST(ResponseCache, TheBordersOfPiecesDoNotCount) {
  CacheFixture f;
  f.Store(f.Key("hello"));
  const std::string whole = Message("hello");
  for (size_t cut = 0; cut <= whole.size(); ++cut) {
    const auto key = f.KeyOf(test::Request(), test::Pieces(whole, cut));
    EXPECT_EQ(f.KindOf(*key), Kind::kFresh) << cut;
  }
}

TEST(ResponseCache, WhatIsNotOneMessageHasNoKey) {
  CacheOptions options = CacheFixture::Defaults();
  options.request_bytes_max = 100;
  CacheFixture f(options);
  const auto make = [&](std::string_view bytes) { return f.KeyOf(test::Request(), test::Pieces(bytes)).has_value(); };
  EXPECT_TRUE(make(Message(std::string(100, 'x'))));
  EXPECT_FALSE(make(Message(std::string(101, 'x'))));
  EXPECT_EQ(f.NotCachedFor(NotCached::kRequestTooLarge), 1u);
  EXPECT_FALSE(make(""));
  EXPECT_FALSE(make(Message("a") + Message("b")));
  EXPECT_EQ(f.NotCachedFor(NotCached::kNotUnary), 2u);
}

// Trap: a hash is not a key. Every key has the same hash here.
TEST(ResponseCache, ACollisionIsAMissAndNeverAnothersResponse) {
  CacheFixture f;
  f.cache.SetHashForTest([](std::string_view) { return cache::Key128{1, 2}; });
  const CacheKey one = f.Key("one"), two = f.Key("two");
  f.Store(one, {.message = "1"});
  EXPECT_EQ(f.Text(one), "1");
  EXPECT_EQ(f.KindOf(two), Kind::kMiss);
  // Their fetches are two as well.
  std::shared_ptr<Fetch> fetch1, fetch2;
  CacheFixture::Caller caller1, caller2;
  f.clock.Advance(seconds(20));
  EXPECT_EQ(f.Join(one, &caller1, &fetch1), Joined::kStarted);
  EXPECT_EQ(f.Join(two, &caller2, &fetch2), Joined::kStarted);
  f.Complete(fetch1, {.message = "1b"});
  f.Complete(fetch2, {.message = "2"});
  EXPECT_EQ(CacheFixture::TextOf(caller1.participant.result()->response), "1b");
  EXPECT_EQ(CacheFixture::TextOf(caller2.participant.result()->response), "2");
  EXPECT_EQ(f.KindOf(one), Kind::kMiss);
  EXPECT_EQ(f.Text(two), "2");
}

TEST(ResponseCache, FreshThenStaleThenForUnavailableThenGone) {
  CacheFixture f;
  f.rule.stale_while_revalidate = seconds(5);
  f.rule.stale_if_unavailable = seconds(30);
  const CacheKey key = f.Key();
  f.Store(key);
  const auto stored = f.clock.Now();
  const auto at = [&](base::Nanos after) {
    f.clock.Advance(stored + after - f.clock.Now());
    return f.Look(key);
  };
  EXPECT_EQ(at(base::Nanos(0)).kind, Kind::kFresh);
  EXPECT_EQ(at(seconds(10) - base::Nanos(1)).kind, Kind::kFresh);
  EXPECT_EQ(at(seconds(10)).kind, Kind::kStale);
  EXPECT_EQ(at(seconds(15) - base::Nanos(1)).kind, Kind::kStale);
  auto found = at(seconds(15));
  EXPECT_EQ(found.kind, Kind::kMiss);
  EXPECT_NE(found.response, nullptr);
  found = at(seconds(40) - base::Nanos(1));
  EXPECT_EQ(found.kind, Kind::kMiss);
  EXPECT_NE(found.response, nullptr);
  found = at(seconds(40));
  EXPECT_EQ(found.kind, Kind::kMiss);
  EXPECT_EQ(found.response, nullptr);
  EXPECT_EQ(f.cache.stats().expired, 1u);
  EXPECT_EQ(f.cache.stats().stale, 2u);
  f.cache.CountStale(0);
  EXPECT_EQ(f.cache.stats().stale, 3u);
}

TEST(ResponseCache, AClientsMaxAgeRefusesOlderAndStaleOnes) {
  CacheFixture f;
  f.rule.stale_while_revalidate = seconds(5);
  const CacheKey key = f.Key();
  f.Store(key, {.headers = {{"age", "2"}}});
  f.clock.Advance(seconds(3));
  const auto look = [&](const char* control) {
    return f.cache.Lookup(key, f.Plan({{"cache-control", control}}), f.clock.Now(), 0);
  };
  EXPECT_EQ(look("max-age=5").kind, Kind::kFresh);
  EXPECT_EQ(look("max-age=4").kind, Kind::kMiss);
  EXPECT_EQ(look("max-age=4").response, nullptr);
  EXPECT_EQ(look("no-cache").kind, Kind::kMiss);
  EXPECT_EQ(look("no-cache").response, nullptr);
  f.clock.Advance(seconds(8));
  EXPECT_EQ(f.KindOf(key), Kind::kStale);
  EXPECT_EQ(look("max-age=1000").kind, Kind::kMiss);
}

TEST(ResponseCache, ARefreshReplacesWhatWasThere) {
  CacheFixture f;
  f.rule.stale_while_revalidate = seconds(60);
  const CacheKey key = f.Key();
  for (int i = 0; i < 5; ++i) {
    f.Store(key, {.message = std::to_string(i)});
    EXPECT_EQ(f.Text(key), std::to_string(i));
    f.clock.Advance(seconds(11));
    EXPECT_EQ(f.KindOf(key), Kind::kStale);
  }
  EXPECT_EQ(f.cache.stats().replaced, 4u);
  EXPECT_EQ(f.cache.stats().entries, 1u);
}

TEST(ResponseCache, ARefreshThatMayNotBeStoredLeavesNoOldAnswer) {
  CacheFixture f;
  f.rule.stale_while_revalidate = seconds(60);
  const CacheKey key = f.Key();
  for (const test::ResponseSpec& spec : {test::ResponseSpec{.headers = {{"cache-control", "no-store"}}},
                                         test::ResponseSpec{.message = std::string(65 << 10, 'x')}}) {
    f.Store(key);
    f.clock.Advance(seconds(11));
    EXPECT_EQ(f.KindOf(key), Kind::kStale);
    f.Store(key, spec);
    EXPECT_EQ(f.Look(key).response, nullptr);
  }
}

// It may be the answer to metadata of the call that began the refresh; one that is in `errors` is stored instead.
TEST(ResponseCache, ARefreshThatIsAnsweredWithAnErrorKeepsTheOldAnswer) {
  CacheFixture f;
  f.rule.stale_while_revalidate = seconds(60);
  const CacheKey key = f.Key();
  const test::ResponseSpec gone{.status = GrpcCode::kNotFound, .trailers_only = true};
  f.Store(key, {.message = "old"});
  f.clock.Advance(seconds(11));
  f.Store(key, gone);
  EXPECT_EQ(f.Text(key), "old");
  f.rule.errors = {static_cast<uint8_t>(GrpcCode::kNotFound)};
  f.Store(key, gone);
  EXPECT_EQ(f.Look(key).response->status, GrpcCode::kNotFound);
}

TEST(ResponseCache, AFailedRefreshKeepsTheOldAnswer) {
  CacheFixture f;
  f.rule.stale_if_unavailable = seconds(60);
  f.rule.errors = {static_cast<uint8_t>(GrpcCode::kUnavailable)};  // even where the failure itself is cached
  const CacheKey key = f.Key();
  f.Store(key, {.message = "old"});
  f.clock.Advance(seconds(11));
  f.Store(key, {.status = GrpcCode::kUnavailable, .trailers_only = true});
  EXPECT_EQ(f.KindOf(key), Kind::kMiss);
  EXPECT_EQ(f.Text(key), "old");
  std::shared_ptr<Fetch> fetch;
  f.Join(key, nullptr, &fetch);
  f.Complete(fetch, {.status = GrpcCode::kNotFound, .trailers_only = true},
             base::MakeError(base::ErrorKind::kNoEndpoint, "ours"));
  EXPECT_EQ(f.Text(key), "old");
  EXPECT_EQ(f.NotCachedFor(NotCached::kStatus), 2u);
}

TEST(ResponseCache, ChosenErrorsAreServedForTheirOwnTime) {
  CacheFixture f;
  f.rule.errors = {static_cast<uint8_t>(GrpcCode::kNotFound)};
  f.rule.error_ttl = seconds(2);
  f.rule.stale_while_revalidate = seconds(60);
  const CacheKey key = f.Key();
  f.Store(key, {.status = GrpcCode::kNotFound, .trailers_only = true});
  const auto found = f.Look(key);
  EXPECT_EQ(found.kind, Kind::kFresh);
  EXPECT_EQ(found.response->status, GrpcCode::kNotFound);
  EXPECT_TRUE(found.response->trailers_only());
  f.clock.Advance(seconds(2));
  EXPECT_EQ(f.Look(key).response, nullptr);
}

TEST(ResponseCache, AHitAllocatesNothing) {
  CacheFixture f;
  const CacheKey key = f.Key();
  f.Store(key);
  const CachePlan plan = f.Plan();
  const uint64_t before = http2::AllocationsForTest();
  for (int i = 0; i < 100; ++i) f.cache.Lookup(key, plan, f.clock.Now(), 0);
  EXPECT_EQ(http2::AllocationsForTest(), before);
}

// Trap: a slow reader pins the bytes of the response, and no slot.
TEST(ResponseCache, AResponseInUseDoesNotPinItsSlot) {
  CacheOptions options = CacheFixture::Defaults();
  options.strict = true;
  options.capacity_bytes = 1 << 20;
  CacheFixture f(options);
  std::vector<CachedResponsePtr> held;
  for (int i = 0; i < 200; ++i) {
    const CacheKey key = f.Key(std::to_string(i));
    f.Store(key, {.message = std::string(50'000, 'x')});
    held.push_back(f.Look(key).response);
    ASSERT_NE(held.back(), nullptr) << i;
    EXPECT_LE(f.cache.stats().usage_bytes, size_t{1} << 20);
  }
  EXPECT_EQ(f.NotCachedFor(NotCached::kFull), 0u);
  EXPECT_GT(f.cache.stats().evicted, 150u);
  EXPECT_EQ(held[0]->message.size(), 50'005u);
}

TEST(ResponseCache, LimitsRefuseAndSaySo) {
  CacheFixture f;
  f.Store(f.Key("large"), {.message = std::string(65 << 10, 'x')});
  EXPECT_EQ(f.NotCachedFor(NotCached::kResponseTooLarge), 1u);
  // Above an eighth of a shard: the table's own limit.
  CacheOptions options = CacheFixture::Defaults();
  options.entry_bytes_max = 2 << 20;
  f.cache.Configure(options);
  EXPECT_EQ(f.cache.response_bytes_max(), size_t{2} << 20);
  f.Store(f.Key("large"), {.message = std::string(1 << 20, 'x')});
  EXPECT_EQ(f.NotCachedFor(NotCached::kResponseTooLarge), 2u);
  EXPECT_EQ(f.cache.stats().entries, 0u);
  EXPECT_EQ(f.cache.stats().capacity_bytes, size_t{4} << 20);
  options.capacity_bytes = 8 << 20;
  options.request_bytes_max = 1;
  f.cache.Configure(options);
  EXPECT_EQ(f.cache.stats().capacity_bytes, size_t{8} << 20);
  EXPECT_EQ(f.cache.request_bytes_max(), 1u);
}

TEST(ResponseCache, TheChargeCoversKeyAndResponse) {
  CacheFixture f;
  const CacheKey key = f.Key(std::string(30'000, 'k'));
  f.Store(key, {.message = std::string(40'000, 'x')});
  EXPECT_GE(f.cache.stats().usage_bytes, 70'000u);
  EXPECT_LE(f.cache.stats().usage_bytes, 75'000u);
}

// Trap: the doorkeeper refuses a stranger once; a refresh has erased its entry, but is none.
TEST(ResponseCache, TheDoorkeeperLetsARefreshIn) {
  CacheOptions options = CacheFixture::Defaults();
  options.doorkeeper = true;
  options.capacity_bytes = 1 << 20;
  CacheFixture f(options);
  f.rule.stale_while_revalidate = seconds(1000);
  const auto fill = [&](int from) {
    for (int i = from; i < from + 200; ++i) {
      for (int twice = 0; twice < 2; ++twice) f.Store(f.Key(std::to_string(i)), {.message = std::string(20'000, 'x')});
    }
  };
  fill(0);
  const uint64_t strangers = f.NotCachedFor(NotCached::kNotAdmitted);
  EXPECT_GT(strangers, 100u);
  const CacheKey key = f.Key("199");
  ASSERT_EQ(f.KindOf(key), Kind::kFresh);
  // So many strangers that the doorkeeper has forgotten the key.
  for (int i = 0; i < 3000; ++i) f.Store(f.Key("other" + std::to_string(i)), {.message = std::string(20'000, 'x')});
  f.clock.Advance(seconds(11));
  ASSERT_EQ(f.KindOf(key), Kind::kStale);
  // Larger, so that the room of the erased one is not enough.
  f.Store(key, {.message = std::string(40'000, 'n')});
  EXPECT_EQ(f.Text(key), std::string(40'000, 'n'));
}

TEST(ResponseCache, APurgeErasesWhatItCoversAndCountsIt) {
  CacheFixture f;
  f.Store(f.Key("a"));
  f.Store(f.Key("b"));
  const auto other = f.KeyOf(test::Request({}, "/pkg.Other/Get"), test::Pieces(Message("a")));
  f.Store(*other);
  EXPECT_EQ(f.cache.Purge({.service = "pkg.Users", .method = "Get", .key = "a"}), 1u);
  EXPECT_EQ(f.KindOf(f.Key("a")), Kind::kMiss);
  EXPECT_EQ(f.KindOf(f.Key("b")), Kind::kFresh);
  EXPECT_EQ(f.cache.Purge({.service = "pkg.Users"}), 1u);
  EXPECT_EQ(f.KindOf(*other), Kind::kFresh);
  EXPECT_EQ(f.cache.Purge({}), 1u);
  EXPECT_EQ(f.cache.stats().purged, 3u);
  EXPECT_EQ(f.cache.stats().entries, 0u);
  EXPECT_EQ(f.cache.stats().usage_bytes, 0u);
}

TEST(ResponseCache, MetricsTellWhatStatsTell) {
  metrics::Registry registry(1);
  {
    CacheFixture f;
    f.Store(f.Key("a"));
    f.Look(f.Key("a"));
    f.cache.Count(NotCached::kFull, 0);
    f.cache.Purge({});
    const std::string text = f.registry.RenderPrometheus();
    for (const char* line :
         {"sluice_cache_hits_total 1\n", "sluice_cache_fetches_total 1\n", "sluice_cache_entries 0\n",
          "sluice_cache_not_cached_total{reason=\"full\"} 1\n", "sluice_cache_capacity_bytes 4194304\n",
          "sluice_cache_evictions_total{cause=\"purged\"} 1\n"})
      EXPECT_NE(text.find(line), text.npos) << line << text;
    ResponseCache gone(CacheFixture::Defaults(), registry);
  }
  EXPECT_EQ(registry.RenderPrometheus().find("\nsluice_cache_bytes "),
            std::string::npos);  // the cache is gone, and not read
  for (size_t i = 0; i < kNotCachedReasons; ++i) EXPECT_NE(ToString(static_cast<NotCached>(i)), "?");
}

}  // namespace
}  // namespace sluice::proxy
