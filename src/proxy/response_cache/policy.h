// The response cache's policy: which calls may look, which responses may be stored, and for how long. RFC 9111 where
// gRPC metadata says what HTTP headers say.
//
// Thread safety: pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "proxy/canonical/request.h"
#include "proxy/options.h"
#include "proxy/response_cache/fetch.h"

namespace sluice::proxy {

// Why a response was not cached, or a call did not look. Labels of sluice_cache_not_cached_total.
enum class NotCached : uint8_t {
  kRequestTooLarge,   // the request message is above request_bytes_max
  kNotUnary,          // request or response is not exactly one message
  kAuthorization,     // authorization is not in vary and the method is not shared
  kCookie,            // the same of cookie
  kNoStore,           // the client's or the upstream's cache-control
  kStatus,            // a status that is not cached
  kResponseTooLarge,  // above entry_bytes_max
  kNotAdmitted,       // the doorkeeper has not seen the key before
  kFull,              // no room could be made
  kPurged,            // a purge came while it was fetched
  kSuperseded,        // the answer of a fetch of the same key that began later is stored already
  kFetchesFull,       // fetches_max fetches were under way
  kVary,              // the upstream's vary: "*", or a field that the key does not have
  kSetCookie,         // the response sets a cookie, which is one caller's
  kEncoding,          // a response this cache does not keep (no trailers, :status not 200, not gRPC)
};
inline constexpr size_t kNotCachedReasons = static_cast<size_t>(NotCached::kEncoding) + 1;
std::string_view ToString(NotCached reason);

// What the cache may do for a call, from its headers alone.
struct CachePlan {
  std::chrono::milliseconds ttl{0};
  const CacheRule* rule = nullptr;  // must live as long as the plan
  // The client's `cache-control: no-cache` or `max-age=0`: fetch anew, then store. no-store never gets a plan.
  bool revalidate = false;
  // The client's max-age (RFC 9111 5.2.1.1): nothing older, and nothing stale.
  std::optional<std::chrono::seconds> age_max;
  // A fetch that this call took part in ended before the call's own deadline: it joins none that ends much sooner.
  bool joined_before = false;
  // What the route's client_rate_limit tells the call's client by, where it has one: FetchTable::Request::client.
  uint64_t client = 0;
  // Proxies that the call has passed: FetchTable::Request::hops.
  uint32_t hops = 0;
};

}  // namespace sluice::proxy

namespace sluice::proxy::cache_policy {

// What the cache-control fields of one side say (RFC 9111 5.2), of all fields together: of a directive given twice the
// stricter counts. Unknown directives are ignored (5.2.3). no-cache="x" and private="x" count as without argument.
struct CacheControl {
  bool no_store = false, no_cache = false, is_private = false, must_revalidate = false;
  // Seconds, at most 2^31. What is no number counts as 0: 4.2.1 wants such a response seen as stale.
  std::optional<uint32_t> max_age, s_maxage;

  void Add(std::string_view value);  // one field's value
  // A response that says so may satisfy no request but the one that it answers (5.2.2.4, 5, 7).
  bool one_caller() const { return no_store || no_cache || is_private; }
};

// The plan for a call, or why there is none.
std::optional<NotCached> PlanFor(const CacheRule& rule, const CachedMethod& method, const CanonicalRequest& request,
                                 CachePlan& plan);

// The upstream has answered the question, and did not merely fail.
bool Answered(GrpcCode status);

// Why a response that begins with `headers` is only for the caller that it was fetched for (RFC 9111 4.1).
// `directives`: also because of its cache-control.
std::optional<NotCached> NotShared(const CacheRule& rule, const http2::HeaderList& headers, bool directives);

// Whether a response that is complete says so (RFC 9111 4). One whose time is over as it comes does not.
bool IsForOneCaller(const CacheRule& rule, const CachedResponse& response);

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
