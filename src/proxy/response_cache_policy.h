// The response cache's policy: which calls may look, which responses may be stored, and for how long. RFC 9111 where
// gRPC metadata says what HTTP headers say.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "proxy/response_cache.h"

namespace sluice::proxy::cache_policy {

// What the cache-control fields of one side say (RFC 9111 5.2), of all fields together: of a directive given twice the
// stricter counts. Unknown directives are ignored (5.2.3). no-cache="x" and private="x" count as without argument.
struct CacheControl {
  bool no_store = false, no_cache = false, is_private = false, must_revalidate = false;
  // Seconds, at most 2^31. What is no number counts as 0: 4.2.1 wants such a response seen as stale.
  std::optional<uint32_t> max_age, s_maxage;

  void Add(std::string_view value);  // one field's value
};

// The plan for a call, or why there is none.
std::optional<NotCached> PlanFor(const CacheRule& rule, const CachedMethod& method, const http2::HeaderList& request,
                                 CachePlan& plan);

// The upstream has answered the question, and did not merely fail: what was stored before is out of date.
bool Answered(GrpcCode status);

// Until when a response may be used; `refused` set: not at all.
struct Lifetime {
  std::optional<NotCached> refused;
  base::TimePoint fresh_until{};
  base::TimePoint revalidate_until{};   // stale, while it is fetched anew. No earlier than fresh_until
  base::TimePoint unavailable_until{};  // stale, where fetching failed with UNAVAILABLE. No earlier than fresh_until
  base::TimePoint end() const { return revalidate_until > unavailable_until ? revalidate_until : unavailable_until; }
};
// `result.response` must not be null. `now`: when it was complete.
Lifetime LifetimeOf(const FetchResult& result, const CachePlan& plan, size_t response_bytes_max, base::TimePoint now);

}  // namespace sluice::proxy::cache_policy
