// What may stand in listeners, routes, the cache and `forwarding`, besides their lists and maps.
#pragma once

#include "base/option.h"
#include "cache/cache_shape.h"
#include "proxy/options.h"

namespace sluice::proxy {

inline constexpr base::Option<ListenerOptions> kListenerOptions[] = {
    {"connections_max", &ListenerOptions::connections_max, 1, 1e6},
    {"connections_per_peer_max", &ListenerOptions::connections_per_peer_max, 0, 1e6},
    {"backlog", &ListenerOptions::backlog, 1, 65535},
};
inline constexpr base::Option<TrustedProxies> kTrustedProxiesOptions[] = {{"hops", &TrustedProxies::hops, 1, 16}};
inline constexpr base::Option<CorsOptions> kCorsOptions[] = {
    {"max_age", &CorsOptions::max_age, 0, base::kDay},
    {"credentials", &CorsOptions::credentials},
};
inline constexpr base::Option<RouteOptions> kRouteOptions[] = {{"timeout", &RouteOptions::timeout, 0, base::kDay}};
inline constexpr base::Option<RetryOptions> kRetryOptions[] = {
    {"attempts", &RetryOptions::attempts_max, 1, 10},
    {"buffer", &RetryOptions::buffer_bytes_max, 0, 16 * base::kMiB, base::kBytes},
    {"per_try_timeout", &RetryOptions::per_try_timeout, 0, base::kDay},
};
inline constexpr base::Option<RetryOptions> kRetryBackoffOptions[] = {
    {"base", &RetryOptions::backoff_base, 1, base::kHour},
    {"max", &RetryOptions::backoff_max, 1, base::kHour},
};
inline constexpr base::Option<HedgeOptions> kHedgeDelayOptions[] = {{"delay", &HedgeOptions::delay, 1, base::kHour}};
inline constexpr base::Option<HedgeOptions> kHedgeOptions[] = {{"max", &HedgeOptions::max, 0, 1}};
inline constexpr base::Option<HashBy> kHashByOptions[] = {
    {"bytes_max", &HashBy::field_bytes_max, 1, base::kMiB, base::kBytes},
};
inline constexpr base::Option<ClientRateOptions> kClientRateOptions[] = {
    {"clients_max", &ClientRateOptions::clients_max, 16, 1e6},
};
inline constexpr base::Option<CachedMethod> kCachedMethodOptions[] = {{"ttl", &CachedMethod::ttl, 1, 365 * base::kDay}};
inline constexpr base::Option<CacheRule> kCacheRuleOptions[] = {
    {"shared", &CacheRule::shared},
    {"error_ttl", &CacheRule::error_ttl, 1, base::kDay},
    {"stale_while_revalidate", &CacheRule::stale_while_revalidate, 0, base::kDay},
    {"stale_if_unavailable", &CacheRule::stale_if_unavailable, 0, base::kDay},
    {"fetch_timeout", &CacheRule::fetch_timeout, 1, base::kDay},
};
// The largest entry that the cache stores, with its key. Bytes; may be below entry_bytes_max.
inline size_t CacheEntryBytesMax(const CacheOptions& options) {
  cache::ClockCacheOptions table;
  table.capacity = options.capacity_bytes;
  return cache::EntryChargeMax(table);
}
// Another capacity is another table (response_cache/store.h); what else sizes it needs a restart.
inline constexpr base::Option<CacheOptions> kCacheOptions[] = {
    {"capacity", &CacheOptions::capacity_bytes, base::kMiB, base::kTiB, base::kBytes},
    {"entry_max", &CacheOptions::entry_bytes_max, base::kKiB, 64 * base::kMiB, base::kBytes},
    {"request_max", &CacheOptions::request_bytes_max, 0, base::kMiB, base::kBytes},
    {"entry_expected", &CacheOptions::entry_bytes_expected, 256, base::kMiB, base::kBytes | base::kRestart},
    {"strict", &CacheOptions::strict, 0, 1, base::kRestart},
    {"doorkeeper", &CacheOptions::doorkeeper, 0, 1, base::kRestart},
    {"fetches_max", &CacheOptions::fetches_max, 1, 1e6},
};
inline constexpr base::Option<AccessLogOptions> kAccessLogOptions[] = {
    {"buffer", &AccessLogOptions::buffer_bytes, 256 * base::kKiB, 1024 * base::kMiB, base::kBytes},
};
inline constexpr base::Option<TracingOptions> kTracingOptions[] = {
    {"buffer", &TracingOptions::buffer_bytes, 64 * base::kKiB, 256 * base::kMiB, base::kBytes},
    {"batch", &TracingOptions::batch_max, 1, 10000},
    {"export_timeout", &TracingOptions::export_timeout, 100, base::kMinute},
};
inline constexpr base::Option<TracingOptions> kTraceSampleOptions[] = {
    {"parent", &TracingOptions::parent},
    {"errors", &TracingOptions::errors},
    {"slower_than", &TracingOptions::slower_than, 0, base::kHour},
    {"ratio", &TracingOptions::ratio, 0, 1},
};
inline constexpr base::Option<InsightOptions> kInsightOptions[] = {
    {"failed_calls", &InsightOptions::failed_calls, 0, 10000},
};
inline constexpr base::Option<JwtProviderOptions> kJwtProviderOptions[] = {
    {"leeway", &JwtProviderOptions::leeway, 0, 5 * base::kMinute},
    {"forward_token", &JwtProviderOptions::forward_token},
    {"tokens_max", &JwtProviderOptions::tokens_max, 1, 1e6},
    {"token_bytes_max", &JwtProviderOptions::token_bytes_max, 256, 64 * base::kKiB, base::kBytes},
};
inline constexpr base::Option<WeightedCluster> kWeightedClusterOptions[] = {
    {"weight", &WeightedCluster::weight, 0, 1e6},
};
inline constexpr base::Option<MirrorOptions> kMirrorOptions[] = {
    {"percent", &MirrorOptions::percent, 0, 100},
    {"compare", &MirrorOptions::compare},
    {"calls_max", &MirrorOptions::calls_max, 1, 100000},
    {"bytes_max", &MirrorOptions::bytes_max, 0, 16 * base::kMiB, base::kBytes},
    {"timeout", &MirrorOptions::timeout, 1, base::kHour},
};
inline constexpr base::Option<JwtRule> kJwtRuleOptions[] = {{"required", &JwtRule::required}};
inline constexpr base::Option<ForwardingOptions> kForwardingOptions[] = {
    {"x_forwarded", &ForwardingOptions::x_forwarded},
    {"via", &ForwardingOptions::via},
    {"client_cert", &ForwardingOptions::client_cert},
};

}  // namespace sluice::proxy
