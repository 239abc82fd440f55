// The response cache's counters, and the names of the reasons.
#include "proxy/response_cache/cache.h"

namespace sluice::proxy {

std::string_view ToString(NotCached reason) {
  switch (reason) {
    case NotCached::kRequestTooLarge:
      return "request_too_large";
    case NotCached::kNotUnary:
      return "not_unary";
    case NotCached::kAuthorization:
      return "authorization";
    case NotCached::kCookie:
      return "cookie";
    case NotCached::kNoStore:
      return "no_store";
    case NotCached::kStatus:
      return "status";
    case NotCached::kResponseTooLarge:
      return "response_too_large";
    case NotCached::kNotAdmitted:
      return "not_admitted";
    case NotCached::kFull:
      return "full";
    case NotCached::kPurged:
      return "purged";
    case NotCached::kSuperseded:
      return "superseded";
    case NotCached::kFetchesFull:
      return "fetches_full";
    case NotCached::kVary:
      return "vary";
    case NotCached::kSetCookie:
      return "set_cookie";
    case NotCached::kEncoding:
      return "encoding";
  }
  return "?";
}

CacheMetrics::CacheMetrics(metrics::Registry& registry)
    : hits(registry.AddCounter("sluice_cache_hits_total", "Calls answered by a fresh stored response.")),
      misses(registry.AddCounter("sluice_cache_misses_total", "Calls that found no response to serve at once.")),
      stale(registry.AddCounter("sluice_cache_stale_total", "Calls answered by a stale stored response.")),
      coalesced(registry.AddCounter("sluice_cache_coalesced_total", "Calls that shared another call's fetch.")),
      fetches(registry.AddCounter("sluice_cache_fetches_total", "Upstream calls made for all calls of a key.")) {
  for (size_t i = 0; i < kNotCachedReasons; ++i) {
    not_cached[i] =
        registry.AddCounter("sluice_cache_not_cached_total", "Responses not stored, and calls that did not look.",
                            {{"reason", std::string(ToString(static_cast<NotCached>(i)))}});
  }
}

}  // namespace sluice::proxy
