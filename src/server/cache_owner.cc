#include "server/cache_owner.h"

#include <algorithm>

namespace sluice::server {
namespace {

bool Caches(const config::Config& config) {
  return std::any_of(config.routes.begin(), config.routes.end(),
                     [](const auto& route) { return route.cache.enabled(); });
}

}  // namespace

std::shared_ptr<proxy::ResponseCache> CacheOwner::CacheFor(const config::Config& config) {
  if (auto made = cache()) return made;
  return Caches(config) ? std::make_shared<proxy::ResponseCache>(config.cache, registry_) : nullptr;
}

void CacheOwner::Take(std::shared_ptr<proxy::ResponseCache> cache, const config::Config& config) {
  if (cache != nullptr) cache->Configure(config.cache);
  std::lock_guard lock(mutex_);
  cache_ = std::move(cache);
  caches_ = Caches(config);
}

std::shared_ptr<proxy::ResponseCache> CacheOwner::cache() const {
  std::lock_guard lock(mutex_);
  return cache_;
}

admin::CacheView CacheOwner::Describe() const {
  admin::CacheView view;
  std::shared_ptr<proxy::ResponseCache> cache;
  {
    std::lock_guard lock(mutex_);
    cache = cache_;
    view.enabled = caches_;
  }
  if (cache != nullptr) view.stats = cache->stats();
  return view;
}

uint64_t CacheOwner::Purge(const proxy::CachePurge& what) {
  const auto made = cache();
  return made == nullptr ? 0 : made->Purge(what);
}

}  // namespace sluice::server
