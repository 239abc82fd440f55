#include "proxy/insight/hot_keys.h"

#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <utility>

#include "base/hash.h"

namespace sluice::proxy {

HotKeys::HotKeys(InsightOptions::HotKeys mode, uint32_t workers) : mode_(mode) {
  for (uint32_t i = 0; i < workers; ++i) workers_.push_back(std::make_unique<PerWorker>());
}

std::string HotKeys::TagOf(uint64_t key) {
  // With the ring's hash alone a guess at the key could be tried.
  static const uint64_t salt = base::Hash64(
      static_cast<uint64_t>(base::Clock::Steady().Now().time_since_epoch().count()), static_cast<uint64_t>(::getpid()));
  char text[20];
  std::snprintf(text, sizeof(text), "#%012" PRIx64, base::Hash64(key, salt) >> 16);
  return text;
}

// Null: there are too many.
HotKeys::OfCluster* HotKeys::Find(PerWorker& mine, std::string_view cluster, base::TimePoint now) {
  for (const auto& one : mine.clusters) {
    if (one->cluster == cluster) return one.get();
  }
  const auto over = [now](const auto& one) { return now - one->began >= 2 * kPeriod; };
  if (mine.clusters.size() >= kClustersMax) std::erase_if(mine.clusters, over);
  if (mine.clusters.size() >= kClustersMax) return nullptr;
  mine.clusters.push_back(std::make_unique<OfCluster>());
  mine.clusters.back()->cluster = cluster;
  mine.clusters.back()->began = now;
  return mine.clusters.back().get();
}

void HotKeys::Add(std::string_view cluster, uint64_t key, std::string_view text, base::TimePoint now, uint32_t worker) {
  PerWorker& mine = *workers_[worker];
  std::unique_lock lock(mine.mutex, std::try_to_lock);
  if (!lock.owns_lock()) return;
  OfCluster* const of = Find(mine, cluster, now);
  if (of == nullptr) return;
  if (const base::Nanos age = now - of->began; age >= kPeriod) {
    std::swap(of->before, of->now);
    of->now.Clear();
    if (age >= 2 * kPeriod) of->before.Clear();
    of->began = now;
  }
  of->now.Add(key, hidden() ? std::string_view() : text);
}

std::vector<HotKeys::Seen> HotKeys::Read(base::TimePoint now) const {
  struct Parts {
    std::vector<KeySummary> summaries;
    base::Nanos span{0};
  };
  std::map<std::string, Parts> by_cluster;
  for (const auto& worker : workers_) {
    std::lock_guard lock(worker->mutex);
    for (const auto& of : worker->clusters) {
      const base::Nanos age = now - of->began;
      if (age >= 2 * kPeriod || of->now.total() + of->before.total() == 0) continue;
      Parts& parts = by_cluster[of->cluster];
      parts.summaries.push_back(of->now.Read());
      // Once `now` is older than a period it takes the place of `before`, which is forgotten.
      const bool with_before = age < kPeriod && of->before.total() > 0;
      if (with_before) parts.summaries.push_back(of->before.Read());
      parts.span = std::max(parts.span, with_before ? age + kPeriod : age);
    }
  }
  std::vector<Seen> out;
  for (const auto& [cluster, parts] : by_cluster)
    out.push_back({cluster, KeySummary::Merge(parts.summaries, kCounters), parts.span});
  return out;
}

}  // namespace sluice::proxy
