#include "proxy/response_cache/stored_header_memo.h"

#include <gtest/gtest.h>

#include "unit/proxy/response_cache/response_cache_support.h"

namespace sluice::proxy {
namespace {

using std::chrono::seconds;
using test::Fields;

constexpr base::TimePoint kThen = base::TimePoint(std::chrono::hours(1));

Fields All(const http2::HeaderList& list) {
  Fields out;
  for (const http2::Field* field : list) out.emplace_back(field->name(), field->value());
  return out;
}

// Whatever was sent before, and however often, a block is what CachedResponse says it is.
TEST(StoredHeaderMemo, EveryBlockIsTheResponsesOwnAtAnyTime) {
  http2::InternTable table;
  {
    StoredHeaderMemo ready(table);
    std::vector<CachedResponsePtr> responses;
    // More than there are slots, so that they take each other's, and some that are too long for a run.
    for (int i = 0; i < 200; ++i) {
      Fields headers = {{"etag", std::to_string(i)}, {"age", std::to_string(i % 3)}};
      for (int more = 0; more < (i % 20 == 0 ? 40 : 0); ++more) headers.emplace_back("x", std::string(20, 'x'));
      responses.push_back(test::Response({.headers = headers, .trailers = {{"t", std::to_string(i)}}}, kThen));
    }
    for (int round = 0; round < 3; ++round) {
      for (const CachedResponsePtr& response : responses) {
        for (int again = 0; again < 3; ++again) {
          for (CacheOutcome outcome :
               {CacheOutcome::kMiss, CacheOutcome::kHit, CacheOutcome::kStale, CacheOutcome::kCoalesced}) {
            const base::TimePoint now = kThen + seconds(round * 10 + again);
            EXPECT_EQ(All(ready.HeadersFor(*response, outcome, now)), All(response->HeadersFor(outcome, now, nullptr)));
          }
          http2::HeaderList trailers;
          response->trailers.AppendTo(trailers);
          EXPECT_EQ(All(ready.Plain(response->trailers)), All(trailers));
        }
      }
    }
  }
  EXPECT_EQ(table.size(), 0u);  // every reference was given back
}

TEST(StoredHeaderMemo, TheSecondTimeItIsOneRunForAllResponsesWithTheseHeaders) {
  http2::InternTable table;
  StoredHeaderMemo ready(table);
  const auto one = test::Response({.message = "1"}, kThen);
  const auto two = test::Response({.message = "2"}, kThen + seconds(1));
  EXPECT_EQ(ready.HeadersFor(*one, CacheOutcome::kHit, kThen).run(), nullptr);
  EXPECT_EQ(ready.HeadersFor(*two, CacheOutcome::kHit, kThen).run(), nullptr);  // learnt here
  const http2::HeaderList first = ready.HeadersFor(*one, CacheOutcome::kHit, kThen + seconds(5));
  const http2::HeaderList second = ready.HeadersFor(*two, CacheOutcome::kHit, kThen + seconds(5));
  ASSERT_NE(first.run(), nullptr);
  EXPECT_EQ(first.run(), second.run());
  EXPECT_EQ(first.Find("age")->value(), "5");
  EXPECT_EQ(second.Find("age")->value(), "4");
}

// What may not be indexed may not be in the run either: it would be once it was interned.
TEST(StoredHeaderMemo, ARunKeepsTheIndexingThatTheUpstreamAskedFor) {
  http2::InternTable table;
  StoredHeaderMemo ready(table);
  CachedResponse response;
  for (http2::Indexing indexing : {http2::Indexing::kNever, http2::Indexing::kLiteral, http2::Indexing::kIndexed}) {
    http2::HeaderList list;
    list.Add("secret", "3", indexing);
    response.headers = FlatHeaders(list);
    for (int i = 0; i < 4; ++i) {
      const http2::HeaderList out = ready.HeadersFor(response, CacheOutcome::kHit, kThen);
      EXPECT_EQ(out[0].indexing, indexing);
      EXPECT_EQ(out[0].interned(), indexing == http2::Indexing::kIndexed);
    }
  }
}

}  // namespace
}  // namespace sluice::proxy
