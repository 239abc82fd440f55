#include "proxy/response_cache/policy.h"

#include <gtest/gtest.h>

#include "unit/proxy/response_cache/response_cache_support.h"

namespace sluice::proxy::cache_policy {
namespace {

using std::chrono::seconds;
using test::Fields;
using test::ResponseSpec;

constexpr base::TimePoint kNow = base::TimePoint(std::chrono::hours(1));
constexpr size_t kBytesMax = 4096;

CacheRule Rule() {
  CacheRule rule;
  rule.methods = {{"/pkg.Users/Get", seconds(10)}};
  rule.errors = {static_cast<uint8_t>(GrpcCode::kNotFound), static_cast<uint8_t>(GrpcCode::kUnavailable)};
  rule.error_ttl = seconds(2);
  rule.stale_while_revalidate = seconds(3);
  rule.stale_if_unavailable = seconds(30);
  return rule;
}

CacheControl Parse(std::string_view value) {
  CacheControl control;
  control.Add(value);
  return control;
}

TEST(CacheControl, ReadsTheDirectivesOfAResponse) {
  EXPECT_TRUE(Parse("no-store").no_store);
  EXPECT_TRUE(Parse("NO-Store").no_store);
  EXPECT_TRUE(Parse(" public , no-store ").no_store);
  EXPECT_TRUE(Parse("no-cache").no_cache);
  EXPECT_TRUE(Parse("no-cache=\"x-a, x-b\"").no_cache);
  EXPECT_TRUE(Parse("private").is_private);
  EXPECT_TRUE(Parse("private=\"x\"").is_private);
  EXPECT_TRUE(Parse("must-revalidate").must_revalidate);
  EXPECT_TRUE(Parse("proxy-revalidate").must_revalidate);
  EXPECT_EQ(Parse("max-age=5").max_age, 5u);
  EXPECT_EQ(Parse("Max-Age=5,s-maxage=6").max_age, 5u);
  EXPECT_EQ(Parse("max-age=5,s-maxage=6").s_maxage, 6u);
  EXPECT_EQ(Parse("max-age=\"5\"").max_age, 5u);
  EXPECT_EQ(Parse("max-age = 5").max_age, 5u);
}

TEST(CacheControl, IgnoresWhatItDoesNotKnow) {
  for (const char* text : {"", ",", " , ,", "public", "no-storex", "x-no-store", "no_store", "immutable",
                           "ext=\"no-store\"", "ext=\"a, no-store, b\"", "ext=\"\\\", no-store\"", "ext=\"no-store"}) {
    const CacheControl control = Parse(text);
    EXPECT_FALSE(control.no_store || control.no_cache || control.is_private || control.must_revalidate) << text;
    EXPECT_FALSE(control.max_age || control.s_maxage) << text;
  }
}

TEST(CacheControl, OfTwoTheStricterCountsAndNonsenseIsZero) {
  EXPECT_EQ(Parse("max-age=5, max-age=3").max_age, 3u);
  EXPECT_EQ(Parse("max-age=3, max-age=5").max_age, 3u);
  for (const char* text : {"max-age", "max-age=", "max-age=x", "max-age=-1", "max-age=1.5", "max-age=\"", "max-age=5s"})
    EXPECT_EQ(Parse(text).max_age, 0u) << text;
  EXPECT_EQ(Parse("max-age=2147483649").max_age, 1u << 31);
  EXPECT_EQ(Parse("max-age=99999999999999999999").max_age, 1u << 31);
}

// Requests.

std::optional<NotCached> WhyNot(const CacheRule& rule, const Fields& more, CachePlan* out = nullptr) {
  CachePlan plan;
  const auto why = PlanFor(rule, rule.methods[0], test::Request(more), plan);
  if (out != nullptr) *out = plan;
  return why;
}

TEST(CachePolicy, AuthorizationNeedsVaryOrSharing) {
  CacheRule rule = Rule();
  EXPECT_EQ(WhyNot(rule, {}), std::nullopt);
  EXPECT_EQ(WhyNot(rule, {{"authorization", "Bearer x"}}), NotCached::kAuthorization);
  EXPECT_EQ(WhyNot(rule, {{"authorization", ""}}), NotCached::kAuthorization);
  rule.vary = {"accept-language"};
  EXPECT_EQ(WhyNot(rule, {{"authorization", "x"}}), NotCached::kAuthorization);
  rule.vary = {"accept-language", "authorization", "x"};
  EXPECT_EQ(WhyNot(rule, {{"authorization", "x"}}), std::nullopt);
  rule.vary = {};
  rule.shared = true;
  EXPECT_EQ(WhyNot(rule, {{"authorization", "x"}}), std::nullopt);
}

TEST(CachePolicy, ACookieNeedsVaryOrSharingToo) {
  CacheRule rule = Rule();
  EXPECT_EQ(WhyNot(rule, {{"cookie", "session=1"}}), NotCached::kCookie);
  rule.vary = {"authorization"};
  EXPECT_EQ(WhyNot(rule, {{"cookie", "session=1"}}), NotCached::kCookie);
  rule.vary = {"cookie"};
  EXPECT_EQ(WhyNot(rule, {{"cookie", "session=1"}}), std::nullopt);
  rule.vary = {};
  rule.shared = true;
  EXPECT_EQ(WhyNot(rule, {{"cookie", "session=1"}}), std::nullopt);
}

TEST(CachePolicy, AClientMayRefuseWhatIsStored) {
  const CacheRule rule = Rule();
  CachePlan plan;
  EXPECT_EQ(WhyNot(rule, {{"cache-control", "no-store"}}), NotCached::kNoStore);
  EXPECT_EQ(WhyNot(rule, {{"cache-control", "max-age=1"}, {"cache-control", "no-store"}}), NotCached::kNoStore);
  EXPECT_EQ(WhyNot(rule, {}, &plan), std::nullopt);
  EXPECT_FALSE(plan.revalidate);
  EXPECT_EQ(plan.age_max, std::nullopt);
  EXPECT_EQ(plan.ttl, seconds(10));
  EXPECT_EQ(plan.rule, &rule);
  for (const char* text : {"no-cache", "max-age=0", "max-age=x"}) {
    EXPECT_EQ(WhyNot(rule, {{"cache-control", text}}, &plan), std::nullopt);
    EXPECT_TRUE(plan.revalidate) << text;
  }
  EXPECT_EQ(WhyNot(rule, {{"cache-control", "max-age=5"}}, &plan), std::nullopt);
  EXPECT_FALSE(plan.revalidate);
  EXPECT_EQ(plan.age_max, seconds(5));
}

// Responses.

Lifetime LifeOf(const CacheRule& rule, const ResponseSpec& spec, bool ours = false) {
  const CachePlan plan{.ttl = rule.methods[0].ttl, .rule = &rule};
  FetchResult result;
  result.response = test::Response(spec, kNow);
  if (ours) result.cause = base::MakeError(base::ErrorKind::kNoEndpoint, "none");
  return LifetimeOf(result, plan, kBytesMax, kNow);
}

TEST(CachePolicy, WhichResponsesAreRefusedAndWhy) {
  const struct {
    const char* what;
    ResponseSpec spec;
    std::optional<NotCached> why;
  } cases[] = {
      {"plain", {}, std::nullopt},
      {"empty message", {.message = ""}, std::nullopt},
      {"unknown control", {.headers = {{"cache-control", "public, immutable"}}}, std::nullopt},
      {"no-store", {.headers = {{"cache-control", "no-store"}}}, NotCached::kNoStore},
      {"no-cache", {.headers = {{"cache-control", "no-cache"}}}, NotCached::kNoStore},
      {"private", {.headers = {{"cache-control", "private"}}}, NotCached::kNoStore},
      {"second field",
       {.headers = {{"cache-control", "max-age=5"}, {"cache-control", "no-store"}}},
       NotCached::kNoStore},
      {"in trailers", {.trailers = {{"cache-control", "no-store"}}}, NotCached::kNoStore},
      {"trailers too",
       {.headers = {{"cache-control", "max-age=9"}}, .trailers = {{"cache-control", "private"}}},
       NotCached::kNoStore},
      {"OK without message", {.trailers_only = true}, NotCached::kNotUnary},
      {"chosen error", {.status = GrpcCode::kNotFound, .trailers_only = true}, std::nullopt},
      {"chosen error with message", {.status = GrpcCode::kNotFound}, std::nullopt},
      {"chosen error, no-store",
       {.status = GrpcCode::kNotFound, .headers = {{"cache-control", "no-store"}}, .trailers_only = true},
       NotCached::kNoStore},
      {"other error", {.status = GrpcCode::kInternal, .trailers_only = true}, NotCached::kStatus},
      {"unknown status", {.status = GrpcCode::kUnknown}, NotCached::kStatus},
      {"too large", {.message = std::string(kBytesMax, 'x')}, NotCached::kResponseTooLarge},
      {"too large metadata", {.trailers = {{"x", std::string(kBytesMax, 'x')}}}, NotCached::kResponseTooLarge},
  };
  const CacheRule rule = Rule();
  for (const auto& c : cases) EXPECT_EQ(LifeOf(rule, c.spec).refused, c.why) << c.what;
}

TEST(CachePolicy, OurOwnErrorsAreNeverStored) {
  EXPECT_EQ(LifeOf(Rule(), {.status = GrpcCode::kUnavailable, .trailers_only = true}).refused, std::nullopt);
  EXPECT_EQ(LifeOf(Rule(), {.status = GrpcCode::kUnavailable, .trailers_only = true}, true).refused,
            NotCached::kStatus);
}

TEST(CachePolicy, ABrokenShapeIsNotStored) {
  const CacheRule rule = Rule();
  const CachePlan plan{.ttl = seconds(10), .rule = &rule};
  const auto why = [&](auto change) {
    auto response = std::make_shared<CachedResponse>(*test::Response({}, kNow));
    change(*response);
    FetchResult result;
    result.response = response;
    return LifetimeOf(result, plan, kBytesMax, kNow).refused;
  };
  EXPECT_EQ(why([](CachedResponse&) {}), std::nullopt);
  EXPECT_EQ(why([](CachedResponse& r) {
              r.headers = FlatHeaders(test::List({{":status", "502"}}));
            }),
            NotCached::kEncoding);
  EXPECT_EQ(why([](CachedResponse& r) {
              r.headers = FlatHeaders(test::List({{":status", "200"}, {"content-type", "text/html"}}));
            }),
            NotCached::kEncoding);
  EXPECT_EQ(why([](CachedResponse& r) { r.trailers = FlatHeaders(); }), NotCached::kEncoding);
  EXPECT_EQ(why([](CachedResponse& r) { r.trailers = FlatHeaders(test::List({{"x", "y"}})); }), NotCached::kEncoding);
  EXPECT_EQ(why([](CachedResponse& r) { r.message = base::Slice::Copy(test::Message("a") + test::Message("b")); }),
            NotCached::kNotUnary);
  EXPECT_EQ(why([](CachedResponse& r) { r.message = base::Slice::Copy(test::Message("abc").substr(0, 6)); }),
            NotCached::kNotUnary);
}

TEST(CachePolicy, HowLongAResponseIsFresh) {
  const struct {
    const char* what;
    Fields headers, trailers;
    int fresh;
  } cases[] = {
      {"the operator's TTL", {}, {}, 10},
      {"max-age, shorter", {{"cache-control", "max-age=4"}}, {}, 4},
      {"max-age, longer", {{"cache-control", "max-age=400"}}, {}, 400},
      {"in trailers", {}, {{"cache-control", "max-age=4"}}, 4},
      {"the stricter of both", {{"cache-control", "max-age=6"}}, {{"cache-control", "max-age=4"}}, 4},
      {"s-maxage first", {{"cache-control", "s-maxage=7, max-age=4"}}, {}, 7},
      {"spent on the way", {{"cache-control", "max-age=60"}, {"age", "50"}}, {}, 10},
      {"age alone", {{"age", "50"}}, {}, 10},
      {"spent all", {{"cache-control", "max-age=60"}, {"age", "90"}}, {}, 0},
      {"none", {{"cache-control", "max-age=0"}}, {}, 0},
      {"nonsense", {{"cache-control", "max-age=soon"}}, {}, 0},
  };
  const CacheRule rule = Rule();
  for (const auto& c : cases) {
    const Lifetime life = LifeOf(rule, {.headers = c.headers, .trailers = c.trailers});
    ASSERT_EQ(life.refused, std::nullopt) << c.what;
    EXPECT_EQ(life.fresh_until, kNow + seconds(c.fresh)) << c.what;
  }
}

TEST(CachePolicy, StaleWindowsFollowTheFreshTime) {
  const Lifetime life = LifeOf(Rule(), {});
  EXPECT_EQ(life.revalidate_until, kNow + seconds(13));
  EXPECT_EQ(life.unavailable_until, kNow + seconds(40));
  EXPECT_EQ(life.end(), kNow + seconds(40));
  for (const char* text : {"must-revalidate", "proxy-revalidate", "s-maxage=10"}) {
    const Lifetime strict = LifeOf(Rule(), {.headers = {{"cache-control", text}}});
    EXPECT_EQ(strict.end(), kNow + seconds(10)) << text;
  }
}

TEST(CachePolicy, ErrorsHaveTheirOwnTtlAndNoStaleWindow) {
  const Lifetime life = LifeOf(Rule(), {.status = GrpcCode::kNotFound, .trailers_only = true});
  EXPECT_EQ(life.fresh_until, kNow + seconds(2));
  EXPECT_EQ(life.end(), kNow + seconds(2));
}

TEST(CachePolicy, WithoutTimeToLiveNothingIsStored) {
  CacheRule rule = Rule();
  rule.stale_while_revalidate = rule.stale_if_unavailable = std::chrono::milliseconds(0);
  EXPECT_EQ(LifeOf(rule, {.headers = {{"cache-control", "max-age=0"}}}).refused, NotCached::kNoStore);
  rule.methods[0].ttl = seconds(0);
  EXPECT_EQ(LifeOf(rule, {}).refused, NotCached::kNoStore);
  EXPECT_EQ(LifeOf(rule, {.headers = {{"cache-control", "max-age=1"}}}).refused, std::nullopt);
}

TEST(CachePolicy, TimesBeyondTheEndOfTimeAreNever) {
  CacheRule rule = Rule();
  rule.methods[0].ttl = std::chrono::hours(24 * 365 * 200);
  rule.stale_if_unavailable = std::chrono::hours(24 * 365 * 200);
  EXPECT_EQ(LifeOf(rule, {}).end(), base::kNever);
}

TEST(CachePolicy, AnUpstreamThatFailedHasNotAnswered) {
  EXPECT_TRUE(Answered(GrpcCode::kOk));
  EXPECT_TRUE(Answered(GrpcCode::kNotFound));
  for (GrpcCode code : {GrpcCode::kUnavailable, GrpcCode::kInternal, GrpcCode::kDeadlineExceeded, GrpcCode::kUnknown,
                        GrpcCode::kUnauthenticated, GrpcCode::kPermissionDenied})
    EXPECT_FALSE(Answered(code)) << ToString(code);
}

}  // namespace
}  // namespace sluice::proxy::cache_policy
