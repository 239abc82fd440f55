// CacheOwner: the process's one response cache: made when a route first caches, then kept; its view and its purge.
//
// Thread safety: all of it. It has a mutex of its own, so that a purge does not wait behind a reload.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "admin/backend.h"
#include "config/config.h"
#include "metrics/registry.h"
#include "proxy/response_cache/cache.h"

namespace sluice::server {

class CacheOwner {
 public:
  explicit CacheOwner(metrics::Registry& registry) : registry_(registry) {}

  // The cache for this configuration; null if no route caches and none did before. Not in force until Take.
  std::shared_ptr<proxy::ResponseCache> CacheFor(const config::Config& config);
  // `cache`: of CacheFor with the same configuration.
  void Take(std::shared_ptr<proxy::ResponseCache> cache, const config::Config& config);

  std::shared_ptr<proxy::ResponseCache> cache() const;
  admin::CacheView Describe() const;
  // As admin::Backend::PurgeCache.
  uint64_t Purge(const proxy::CachePurge& what);

 private:
  metrics::Registry& registry_;
  mutable std::mutex mutex_;
  // Under mutex_:
  std::shared_ptr<proxy::ResponseCache> cache_;
  bool caches_ = false;  // some route does now
};

}  // namespace sluice::server
