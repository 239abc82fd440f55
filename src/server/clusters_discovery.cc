// Lists that a source keeps: how they are put in force, and what gives way to what.
#include "base/log.h"
#include "server/clusters.h"

namespace sluice::server {

using base::ErrorKind;
using sync::LockMode;
using upstream::ClusterState;
using upstream::ListSource;

// Back to the configuration's list, or to the source's, which its follower puts in force when it is told.
base::Result<admin::ChangeResult> Clusters::ResetList(LockedCluster held, const std::string& cluster,
                                                      const Entry& entry, bool preview) {
  const ClusterState& before = *entry.state;
  if (!entry.discovery.enabled()) {
    auto wanted = upstream::ChangeTo(upstream::WantedOf(before.options->endpoints), &before);
    if (!wanted) return wanted.error();
    return PutList(std::move(held), cluster, entry, *wanted, ListSource::kConfig, preview);
  }
  if (!preview) {
    std::lock_guard lock(mutex_);
    entries_.find(cluster)->second.released = true;
  }
  return admin::ChangeResult{before.version, before.balancer->Digest(), 0};
}

discovery::PutResult Clusters::Put(const std::string& cluster, const std::string& source, const discovery::List& list,
                                   double moved_max) {
  using Kind = discovery::PutResult::Kind;
  const auto failed = [](const base::Error& error) {
    const bool later = error.kind == ErrorKind::kBusy || error.kind == ErrorKind::kIo;
    return discovery::PutResult{later ? Kind::kLater : Kind::kRefused, 0, error.detail};
  };
  auto held = Hold(cluster, LockMode::kExclusive, "list of its source");
  if (!held) return failed(held.error());
  const Entry& entry = held->entry;
  const ClusterState& before = *entry.state;
  if (entry.discovery.Name() != source) return {Kind::kRefused, 0, "another source is configured by now"};
  if (entry.Overridden()) return {Kind::kOverridden, 0, {}};
  auto wanted = upstream::ChangeTo(upstream::WantedOf(list), &before);
  if (!wanted) return failed(wanted.error());
  if (moved_max < 1) {
    if (auto status = CheckChange(before, *wanted); !status) return failed(status.error());
    metrics::Registry unseen(worker_count_);
    auto state = upstream::ChangeClusterState(before, *wanted, worker_count_, unseen, ListSource::kDiscovery);
    const double moved = state.ok() ? MovedShare(before, **state) : 0;
    if (moved > moved_max) return {Kind::kMovesTooMuch, moved, {}};
  }
  auto result = PutList(std::move(held->cluster), cluster, entry, *wanted, ListSource::kDiscovery, false);
  if (!result) return failed(result.error());
  return {Kind::kDone, result->moved_share, {}};
}

std::shared_ptr<const discovery::List> Clusters::Discovered(const std::string& cluster) {
  const Entry entry = entries().find(cluster)->second;
  if (entry.state->source != ListSource::kDiscovery) return nullptr;
  auto list = std::make_shared<discovery::List>();
  for (upstream::WantedEndpoint& endpoint : WantedOf(*entry.state)) {
    list->push_back({std::move(endpoint.name), std::move(endpoint.address), endpoint.weight, endpoint.standing.priority,
                     std::move(endpoint.standing.locality)});
  }
  discovery::Sort(*list);
  return list;
}

// The source may be away: then this is what there is.
void Clusters::TellAge(const std::string& cluster, const SavedList& list) {
  SLUICE_LOG_INFO("cluster {}: begins with the last list of its source, {} endpoints, put in force {} s ago", cluster,
                  list.endpoints.size(), UnixSeconds() - list.at);
}

}  // namespace sluice::server
