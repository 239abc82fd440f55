#include "proxy/response_cache/entry.h"

#include <gtest/gtest.h>

#include "unit/proxy/response_cache/response_cache_support.h"

namespace sluice::proxy {
namespace {

using test::Fields;

Fields All(const http2::HeaderList& list) {
  Fields out;
  for (const http2::Field* field : list) out.emplace_back(field->name(), field->value());
  return out;
}

constexpr base::TimePoint kThen = base::TimePoint(std::chrono::hours(1));

TEST(FlatHeaders, GivesBackWhatWentInInOrder) {
  const Fields fields = {{":status", "200"}, {"b", ""}, {"a-bin", std::string("\0\xff,", 3)}, {"b", "2"}, {"", "x"}};
  const FlatHeaders flat(test::List(fields));
  http2::HeaderList out;
  flat.AppendTo(out);
  EXPECT_EQ(All(out), fields);
  EXPECT_EQ(flat.size(), 5u);
  EXPECT_EQ(flat.Find("b"), "");
  EXPECT_TRUE(flat.Has("b"));
  EXPECT_FALSE(flat.Has("c"));
  EXPECT_EQ(flat.Find("c"), "");
}

TEST(FlatHeaders, KeepsTheIndexingThatTheUpstreamAskedFor) {
  http2::InternTable table;
  {
    http2::HeaderList list;
    list.Add("open", "1", http2::Indexing::kIndexed);
    list.Add("plain", "2", http2::Indexing::kLiteral);
    list.Add("secret", "3", http2::Indexing::kNever);
    const FlatHeaders flat(list);
    for (http2::InternTable* with : {static_cast<http2::InternTable*>(nullptr), &table}) {
      http2::HeaderList out(with);
      flat.AppendTo(out, with);
      ASSERT_EQ(out.size(), 3u);
      EXPECT_EQ(out[0].indexing, http2::Indexing::kIndexed);
      EXPECT_EQ(out[0].interned(), with != nullptr);
      EXPECT_EQ(out[1].indexing, http2::Indexing::kLiteral);
      EXPECT_EQ(out[2].indexing, http2::Indexing::kNever);
      EXPECT_FALSE(out[2].interned());
    }
  }
  EXPECT_EQ(table.size(), 0u);  // every reference was given back
}

TEST(FlatHeaders, ListsOfTwoWorkersDoNotShareFields) {
  const FlatHeaders flat(test::List({{"x", "1"}}));
  http2::HeaderList one, two;
  flat.AppendTo(one);
  flat.AppendTo(two);
  EXPECT_NE(&one[0], &two[0]);
}

TEST(CachedResponse, AMissHasTheOriginalsHeadersAlone) {
  const auto response = test::Response({.headers = {{"age", "7"}, {"sluice-cache", "hit"}, {"x", "y"}}}, kThen);
  const Fields original = {
      {":status", "200"}, {"content-type", "application/grpc"}, {"age", "7"}, {"sluice-cache", "hit"}, {"x", "y"}};
  for (CacheOutcome outcome : {CacheOutcome::kNone, CacheOutcome::kMiss})
    EXPECT_EQ(All(response->HeadersFor(outcome, kThen + std::chrono::hours(1), nullptr)), original);
}

TEST(CachedResponse, AHitSaysSoAndItsAgeInWholeSeconds) {
  const auto response = test::Response({.headers = {{"x", "y"}}}, kThen);
  const Fields hit = {
      {":status", "200"}, {"content-type", "application/grpc"}, {"x", "y"}, {"sluice-cache", "hit"}, {"age", "2"}};
  EXPECT_EQ(All(response->HeadersFor(CacheOutcome::kHit, kThen + std::chrono::milliseconds(2999), nullptr)), hit);
  http2::InternTable table;
  EXPECT_EQ(All(response->HeadersFor(CacheOutcome::kHit, kThen + std::chrono::milliseconds(2999), &table)), hit);
  for (CacheOutcome outcome : {CacheOutcome::kStale, CacheOutcome::kCoalesced}) {
    const http2::HeaderList list = response->HeadersFor(outcome, kThen, nullptr);
    EXPECT_EQ(list.Find("sluice-cache")->value(), ToString(outcome));
    EXPECT_EQ(list.Find("age")->value(), "0");
  }
}

TEST(CachedResponse, AnUpstreamsAgeAddsUpAndIsReplaced) {
  const auto response = test::Response({.headers = {{"age", "30"}, {"sluice-cache", "hit"}}}, kThen);
  EXPECT_EQ(
      All(response->HeadersFor(CacheOutcome::kStale, kThen + std::chrono::seconds(5), nullptr)),
      (Fields{{":status", "200"}, {"content-type", "application/grpc"}, {"sluice-cache", "stale"}, {"age", "35"}}));
}

TEST(CachedResponse, AgesThatAreNoNumbersAreIgnored) {
  const std::pair<const char*, uint32_t> cases[] = {{"0", 0},
                                                    {"12", 12},
                                                    {"12 ", 12},
                                                    {"12, 99", 12},
                                                    {"-1", 0},
                                                    {"+1", 0},
                                                    {"1.5", 0},
                                                    {"", 0},
                                                    {"soon", 0},
                                                    {",3", 0},
                                                    {"2147483648", 1u << 31},
                                                    {"99999999999999999999999", 1u << 31}};
  for (const auto& [text, age] : cases)
    EXPECT_EQ(test::Response({.headers = {{"age", text}}}, kThen)->age_at_arrival(), age) << text;
}

TEST(CachedResponse, AnotherWorkersLateClockGivesNoNegativeAge) {
  const auto response = test::Response({}, kThen);
  const http2::HeaderList list =
      response->HeadersFor(CacheOutcome::kCoalesced, kThen - std::chrono::seconds(3), nullptr);
  EXPECT_EQ(list.Find("age")->value(), "0");
}

TEST(CachedResponse, ItsBytesAreNoLessThanWhatItHolds) {
  const auto response =
      test::Response({.message = std::string(1000, 'x'), .headers = {{"k", std::string(500, 'v')}}}, kThen);
  EXPECT_GE(response->bytes(), 1500u);
  EXPECT_LE(response->bytes(), 2200u);
}

}  // namespace
}  // namespace sluice::proxy
