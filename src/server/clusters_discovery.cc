// Lists that a source keeps: how they are put in force, and what gives way to what.
#include "base/log.h"
#include "server/cluster_view.h"
#include "server/clusters.h"

namespace sluice::server {

using base::ErrorKind;
using sync::LockMode;
using upstream::ClusterState;
using upstream::ListSource;

namespace {

// In the order that sources have (DiscoveryOptions::ordered).
discovery::List ListOf(const ClusterState& state) {
  discovery::List list;
  for (upstream::WantedEndpoint& endpoint : WantedOf(state)) {
    list.push_back({std::move(endpoint.name), std::move(endpoint.address), endpoint.weight, endpoint.standing.priority,
                    std::move(endpoint.standing.locality)});
  }
  if (state.options->ring != upstream::Ring::kXds) discovery::Sort(list);
  return list;
}

}  // namespace

// Back to the configuration's list, or to the source's, which its follower puts in force when it is told.
base::Result<admin::ChangeResult> Clusters::ResetList(LockedCluster held, const std::string& cluster,
                                                      const Entry& entry, bool preview) {
  const ClusterState& before = *entry.state;
  if (!entry.discovery.enabled()) {
    auto wanted = upstream::ChangeTo(upstream::WantedOf(before.options->endpoints), &before);
    if (!wanted) return wanted.error();
    return PutList(std::move(held), cluster, entry, *wanted, ListSource::kConfig, preview);
  }
  if (!preview && before.source != ListSource::kDiscovery) {
    // After a restart the list by RPC is not in force again.
    if (state_.keeps()) {
      if (auto saved = state_.Update({{cluster, std::nullopt}}); !saved) return saved.error();
    }
    std::lock_guard lock(mutex_);
    entries_.find(cluster)->second.released = true;
  }
  return admin::ChangeResult{before.version, ListDigest(before), 0};
}

discovery::PutResult Clusters::Put(const std::string& cluster, const discovery::DiscoveryOptions& source,
                                   const discovery::List& said, double moved_max) {
  using Kind = discovery::PutResult::Kind;
  const auto failed = [](const base::Error& error) {
    const bool later = error.kind == ErrorKind::kBusy || error.kind == ErrorKind::kIo;
    return discovery::PutResult{.kind = later ? Kind::kLater : Kind::kRefused, .error = error.detail};
  };
  auto held = Hold(cluster, LockMode::kExclusive, "list of its source");
  if (!held) return failed(held.error());
  const Entry& entry = held->entry;
  const ClusterState& before = *entry.state;
  if (!(entry.discovery == source)) return {.kind = Kind::kRefused, .error = "another source is configured by now"};
  if (entry.Overridden()) return {.kind = Kind::kOverridden};
  const discovery::List list = own_listeners_.Without(cluster, said);
  if (before.source == ListSource::kDiscovery && ListOf(before) == list) return {.changed = false};
  auto wanted = upstream::ChangeTo(upstream::WantedOf(list), &before);
  if (!wanted) return failed(wanted.error());
  if (moved_max < 1) {
    if (auto status = CheckChange(before, *wanted); !status) return failed(status.error());
    metrics::Registry unseen(worker_count_);
    auto state = upstream::ChangeClusterState(before, *wanted, worker_count_, unseen, ListSource::kDiscovery);
    const double moved = state.ok() ? MovedShare(before, **state) : 0;
    if (moved > moved_max) return {.kind = Kind::kMovesTooMuch, .moved = moved};
  }
  auto result = PutList(std::move(held->cluster), cluster, entry, *wanted, ListSource::kDiscovery, false);
  if (!result) return failed(result.error());
  return {.moved = result->moved_share};
}

std::shared_ptr<const discovery::List> Clusters::Discovered(const std::string& cluster) {
  const Entry entry = entries().find(cluster)->second;
  if (entry.state->source != ListSource::kDiscovery) return nullptr;
  return std::make_shared<const discovery::List>(ListOf(*entry.state));
}

// The source may be away: then this is what there is.
void Clusters::TellAge(const std::string& cluster, const PlannedList& list) {
  SLUICE_LOG_INFO("cluster {}: begins with the last list of its source, {} endpoints, put in force {} s ago", cluster,
                  list.wanted.size(), UnixSeconds() - list.put_at);
}

}  // namespace sluice::server
