// The server's response cache: made when a route first caches, looked at and purged by the admin RPC. And the bounds of
// the process, one of which goes by its capacity.
#include <algorithm>

#include "base/memory_budget.h"
#include "server/server.h"

namespace sluice::server {
namespace {

bool Caches(const config::Config& config) {
  return std::any_of(config.routes.begin(), config.routes.end(),
                     [](const auto& route) { return route.cache.enabled(); });
}

}  // namespace

std::shared_ptr<proxy::ResponseCache> Server::CacheFor(const config::Config& config) {
  if (auto made = cache()) return made;
  return Caches(config) ? std::make_shared<proxy::ResponseCache>(config.cache, *registry_) : nullptr;
}

void Server::TakeCacheAndBounds(std::shared_ptr<proxy::ResponseCache> cache, const config::Config& config) {
  if (cache != nullptr) cache->Configure(config.cache);
  std::lock_guard lock(cache_mutex_);
  cache_ = std::move(cache);
  caches_ = Caches(config);
  connection_limits_->SetMax(config.connections_max);
  // Cached messages are blocks too, and have a bound of their own.
  const uint64_t cached = cache_ != nullptr ? config.cache.capacity_bytes : 0;
  base::MemoryBudget::SetLimit(static_cast<int64_t>(config.buffered_bytes_max + cached));
}

std::shared_ptr<proxy::ResponseCache> Server::cache() const {
  std::lock_guard lock(cache_mutex_);
  return cache_;
}

admin::CacheView Server::DescribeCache() {
  admin::CacheView view;
  std::shared_ptr<proxy::ResponseCache> cache;
  {
    std::lock_guard lock(cache_mutex_);
    cache = cache_;
    view.enabled = caches_;
  }
  if (cache == nullptr) return view;
  const proxy::CacheStats stats = cache->stats();
  view.capacity_bytes = stats.capacity_bytes;
  view.usage_bytes = stats.usage_bytes;
  view.entries = stats.entries;
  view.fetches = stats.fetches;
  view.hits = stats.hits;
  view.misses = stats.misses;
  view.stale = stats.stale;
  view.coalesced = stats.coalesced;
  view.evicted = stats.evicted;
  view.expired = stats.expired;
  view.purged = stats.purged;
  for (size_t i = 0; i < proxy::kNotCachedReasons; ++i) {
    view.not_cached.emplace_back(ToString(static_cast<proxy::NotCached>(i)), stats.not_cached[i]);
  }
  return view;
}

base::Result<uint64_t> Server::PurgeCache(const admin::CachePurgeRequest& request) {
  if (!request.method.empty() && request.service.empty()) {
    return base::MakeError(base::ErrorKind::kInvalidArgument, "a method needs its service");
  }
  if (request.key && request.method.empty()) {
    return base::MakeError(base::ErrorKind::kInvalidArgument, "a key needs a service and a method");
  }
  auto held = cache();
  return held == nullptr ? uint64_t{0} : uint64_t{held->Purge({request.service, request.method, request.key})};
}

}  // namespace sluice::server
