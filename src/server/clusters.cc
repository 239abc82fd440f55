#include "server/clusters.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/log.h"
#include "runtime/worker.h"
#include "server/cluster_view.h"
#include "upstream/cluster_health.h"

namespace sluice::server {

using base::ErrorKind;
using base::MakeError;
using sync::LockMode;
using upstream::ClusterState;
using upstream::ListSource;

namespace {

void ConfigureEach(const ClusterState& state, const limits::ConcurrencyOptions& options) {
  for (const upstream::ListedEndpoint& listed : state.endpoints) listed.endpoint->concurrency()->Configure(options);
}

base::TimePoint Now() { return base::Clock::Steady().Now(); }
base::TimePoint After(base::Nanos wait) { return base::DeadlineAfter(Now(), wait); }

}  // namespace

Clusters::Clusters(metrics::Registry& registry, uint32_t workers, ClusterWaits waits, const LimitSet* limits,
                   uint64_t first_version)
    : registry_(registry),
      worker_count_(workers),
      waits_(waits),
      limits_(limits),
      snapshots_(workers),
      first_version_(first_version) {}

base::Status Clusters::Init(const config::Config& config, const SnapshotInputs& inputs,
                            const InheritedLists* inherited) {
  SavedLists saved;
  if (inherited != nullptr) {
    for (const auto& [name, was] : *inherited) {
      if (was.list.source != ListSource::kConfig) saved.emplace(name, was.list);
    }
  } else if (!config.state_file.empty()) {
    auto loaded = LoadStateOrSetAside(config.state_file);
    if (!loaded) return loaded.error();
    saved = std::move(*loaded);
  }
  own_listeners_.Set(config.listeners);
  auto plan = MakePlan(config, saved, {});
  if (!plan) return plan.error();
  if (inherited != nullptr) Inherit(*inherited, *plan);
  Entries entries = BuildEntries(config, inputs, *plan, {});
  SavedLists kept;
  for (auto& [name, list] : plan->lists) {
    if (list.source == ListSource::kConfig) continue;
    if (list.source == ListSource::kDiscovery) TellAge(name, list);
    kept[name] = {list.configured, std::move(list.wanted), list.source, list.put_at};
  }
  // Of a cluster that is gone, or configured otherwise now: it goes from the file with the next change, and must not
  // come back.
  const bool in_file = kept.size() == saved.size();
  state_.Start(config.state_file, std::move(kept), in_file);
  if (inherited != nullptr) state_.Leave();
  auto route_config = BuildRouteConfig(config, inputs, *plan, entries);
  std::lock_guard lock(mutex_);
  entries_ = std::move(entries);
  PublishLocked(std::move(route_config));
  return base::Ok();
}

base::Result<std::vector<LockedCluster>> Clusters::LockForReload(const config::Config& config,
                                                                 const Entries& before) const {
  std::set<std::string_view> kept;
  for (const upstream::ClusterOptions& options : config.clusters) {
    if (auto it = before.find(options.name); it != before.end() && Keeps(it->second, options, config))
      kept.insert(options.name);
  }
  std::vector<LockedCluster> held;
  const base::TimePoint deadline = After(waits_.reload);
  for (const auto& [name, entry] : before) {  // by name: no two requests can wait for each other
    if (kept.contains(name)) continue;
    auto cluster = ClusterLock::Lock(entry.lock, LockMode::kExclusive, "reload", deadline);
    if (!cluster) return cluster.error();
    held.push_back(std::move(*cluster));
  }
  return held;
}

base::Status Clusters::Apply(const config::Config& config, const SnapshotInputs& inputs) {
  std::lock_guard reload(reload_mutex_);
  // 1. No other request changes what this reload changes.
  auto held = LockForReload(config, entries());
  if (!held) return held.error();
  // 2. All that can fail. `before` is read under the locks: for the clusters held it stays true.
  const Entries before = entries();
  auto plan = MakePlan(config, {}, before);
  if (!plan) return plan.error();
  StateFileWriter::Changes changes;
  for (const LockedCluster& cluster : *held) {
    std::optional<SavedList>& list = changes[cluster.lock->name()];
    auto it = plan->lists.find(cluster.lock->name());
    if (it != plan->lists.end() && it->second.source != ListSource::kConfig)
      list = {it->second.configured, it->second.wanted, it->second.source, it->second.put_at};
  }
  if (auto saved = state_.Update(std::move(changes)); !saved) return saved.error();
  own_listeners_.Set(config.listeners);
  // 3. From here on nothing fails. Build aside; only now, because series of metrics last as long as the process.
  Entries built = BuildEntries(config, inputs, *plan, before);
  auto route_config = BuildRouteConfig(config, inputs, *plan, built);
  // Requests that wait for a cluster that is removed get kRemoved.
  std::vector<Left> left;
  for (LockedCluster& cluster : *held) {
    auto it = built.find(cluster.lock->name());
    const ClusterState* after = it == built.end() ? nullptr : it->second.state.get();
    const ClusterState& former = *before.find(cluster.lock->name())->second.state;
    if (after != nullptr)
      after->health->Join(*after->options, former.endpoints, after->endpoints, Removed(*after, &former), Now());
    left.push_back({cluster.lock, Removed(former, after)});
    cluster.lock->AddLeaving(left.back().endpoints);
    if (after != nullptr) continue;
    first_version_ = std::max(first_version_, former.version + 1);
    cluster.lock->Remove(cluster.guard);
  }
  // 4. Publish. Clusters that are kept may have been changed meanwhile: by what they are now.
  {
    std::lock_guard lock(mutex_);
    for (auto& [name, entry] : built) {
      auto it = before.find(name);
      if (it != before.end() && it->second.state == entry.state) entry = entries_.find(name)->second;
    }
    entries_.swap(built);
    // New endpoints were made with what is configured; calls must not meet them before what is in force.
    if (inputs.limits != nullptr) {
      for (const auto& [name, entry] : entries_) ConfigureEach(*entry.state, inputs.limits->EndpointConcurrency(name));
    }
    PublishLocked(std::move(route_config));
  }
  DropFormer();
  Drain(std::move(*held), left);
  return base::Ok();
}

void Clusters::ConfigureEndpoints(std::string_view cluster) {
  std::lock_guard lock(mutex_);
  ConfigureEndpointsLocked(cluster);
}

// The limit is read here, under the mutex: of two changes the later one stays.
void Clusters::ConfigureEndpointsLocked(std::string_view cluster) {
  if (limits_ == nullptr) return;
  for (const auto& [name, entry] : entries_) {
    if (!cluster.empty() && cluster != name) continue;
    ConfigureEach(*entry.state, limits_->EndpointConcurrency(name));
  }
}

LimitSet::EndpointUse Clusters::UseOfEndpoints(std::string_view cluster) {
  LimitSet::EndpointUse use;
  std::lock_guard lock(mutex_);
  auto it = entries_.find(cluster);
  if (it == entries_.end()) return use;
  for (const upstream::ListedEndpoint& listed : it->second.state->endpoints) {
    use.waiting += listed.endpoint->concurrency()->waiting();
    use.in_use += listed.endpoint->concurrency()->in_use();
  }
  return use;
}

void Clusters::PublishLocked(std::shared_ptr<const proxy::RouteConfig> config) {
  auto snapshot = std::make_shared<proxy::Snapshot>();
  snapshot->config = std::move(config);
  for (const auto& [name, entry] : entries_) snapshot->clusters.push_back(entry.state);
  // No call reads the old value once this returns: endpoints that have left can be drained.
  snapshots_.Publish(snapshot);
  for (proxy::CallContext* worker : workers_) {
    worker->worker().Post([worker] { worker->Refresh(); });
  }
  if (current_ != nullptr) former_.push_back(std::move(current_));
  current_ = std::move(snapshot);
}

// To drop a list of 1,000 endpoints takes some 20 us: too long for a worker, so the last count is kept here. A former
// snapshot cannot be counted anew, so a count of one stays one.
void Clusters::DropFormer() {
  std::vector<std::shared_ptr<const proxy::Snapshot>> unused;  // dropped without the mutex
  {
    std::lock_guard lock(mutex_);
    auto kept =
        std::partition(former_.begin(), former_.end(), [](const auto& snapshot) { return snapshot.use_count() > 1; });
    unused.assign(std::move_iterator(kept), std::move_iterator(former_.end()));
    former_.erase(kept, former_.end());
  }
}

void Clusters::Drain(std::vector<LockedCluster> held, const std::vector<Left>& all) {
  for (LockedCluster& cluster : held) cluster.guard.Downgrade();  // a removed one's guard is empty
  for (size_t i = 0; i < held.size(); ++i) {
    DrainStep(Endpoints(all[i].endpoints).first(std::min(kDrainStep, all[i].endpoints.size())));
    held[i].lock->Sweep();
    held[i].guard.Release();
  }
  for (const Left& left : all) {
    for (size_t from = kDrainStep; from < left.endpoints.size(); from += kDrainStep) {
      // Drained in any case: a cluster that was removed meanwhile has no lock to take any more.
      auto step = ClusterLock::Lock(left.lock, LockMode::kShared, "drain", base::kNever);
      DrainStep(Endpoints(left.endpoints).subspan(from, std::min(kDrainStep, left.endpoints.size() - from)));
    }
  }
}

void Clusters::DrainStep(Endpoints endpoints) {
  {
    std::lock_guard lock(mutex_);  // the workers are not destroyed meanwhile
    for (const auto& endpoint : endpoints) {
      endpoint->MarkRemoved();
      for (proxy::CallContext* worker : workers_) {
        worker->worker().Post([worker, endpoint] { worker->pools.Drain(*endpoint); });
      }
    }
  }
  // After the mark: calls that wait for it wake, see it and pick another. Else they would stay until its own calls end.
  for (const auto& endpoint : endpoints) endpoint->concurrency()->Close();
}

base::Result<Clusters::Held> Clusters::Hold(const std::string& cluster, LockMode mode, std::string_view what) {
  Entries now = entries();
  auto it = now.find(cluster);
  if (it == now.end()) return MakeError(ErrorKind::kNotFound, "no cluster " + cluster);
  auto held = ClusterLock::Lock(it->second.lock, mode, what, After(waits_.change));
  if (!held) return held.error();
  now = entries();
  it = now.find(cluster);
  // A reload that takes a cluster out of the table removes its lock first.
  SLUICE_CHECK(it != now.end() && it->second.lock == held->lock);
  return Held{std::move(*held), it->second};
}

base::Result<admin::ChangeResult> Clusters::Change(const upstream::EndpointChange& change) {
  const LockMode mode = change.preview ? LockMode::kShared : LockMode::kExclusive;
  auto held = Hold(change.cluster, mode, change.preview ? "preview" : "change of endpoints");
  if (!held) return held.error();
  const Entry& entry = held->entry;
  const ClusterState& before = *entry.state;
  if (change.expected_version && *change.expected_version != before.version) {
    return MakeError(ErrorKind::kConflict, "cluster " + change.cluster + " is at version " +
                                               std::to_string(before.version) + ", not " +
                                               std::to_string(*change.expected_version));
  }
  if (change.kind == upstream::EndpointChange::Kind::kReset)
    return ResetList(std::move(held->cluster), change.cluster, entry, change.preview);
  if (entry.discovery.enabled() && entry.discovery.changes_by_rpc == discovery::RpcRule::kRefuse) {
    return MakeError(ErrorKind::kConflict,
                     "the list of cluster " + change.cluster + " comes from " + entry.discovery.Name() +
                         ": change it there, or allow changes_by_rpc: override; `endpoint eject` needs neither");
  }
  auto wanted = upstream::ApplyChange(before, change, Now());
  if (!wanted) return wanted.error();
  if (auto status = own_listeners_.Check(*wanted); !status) return status.error();
  return PutList(std::move(held->cluster), change.cluster, entry, *wanted, ListSource::kRpc, change.preview);
}

base::Result<admin::ChangeResult> Clusters::PutList(LockedCluster held, const std::string& cluster, const Entry& entry,
                                                    const upstream::ListChange& wanted, ListSource source,
                                                    bool preview) {
  const ClusterState& before = *entry.state;
  // All that can fail comes first: series of metrics, which new endpoints have, last as long as the process and are
  // bounded.
  if (auto status = CheckChange(before, wanted); !status) return status.error();
  const int64_t put_at = UnixSeconds();
  if (!preview && state_.keeps()) {
    std::optional<SavedList> list;
    if (source != ListSource::kConfig) list = {entry.configured, WantedOf(before, wanted), source, put_at};
    const bool must = source != ListSource::kDiscovery;
    if (auto saved = state_.Update({{cluster, std::move(list)}}, must); !saved) {
      if (must) return saved.error();
      std::lock_guard lock(mutex_);
      if (const auto suffix = unsaved_log_.Allow(Now()))
        SLUICE_LOG_WARN("{}; lists of sources are in force all the same{}", saved.error().detail, *suffix);
    }
  }
  // A preview's endpoints are never in force, so they leave no series.
  std::optional<metrics::Registry> unseen;
  if (preview) unseen.emplace(worker_count_);
  auto state = upstream::ChangeClusterState(before, wanted, worker_count_, unseen ? *unseen : registry_, source);
  SLUICE_CHECK(state.ok());
  admin::ChangeResult result;
  result.version = (*state)->version;
  result.digest = ListDigest(**state);
  result.moved_share = MovedShare(before, **state);
  if (preview) return result;

  const auto added = Removed(**state, &before);
  (*state)->health->Join(*(*state)->options, before.endpoints, (*state)->endpoints, added, Now());
  std::vector<Left> left;
  left.push_back({held.lock, Removed(before, state->get())});
  held.lock->AddLeaving(left[0].endpoints);
  {
    std::lock_guard lock(mutex_);
    Entry& current = entries_.find(cluster)->second;
    current.state = std::move(*state);
    current.released = false;
    current.put_at = put_at;
    if (limits_ != nullptr && !added.empty()) {  // they were made with what is configured
      const limits::ConcurrencyOptions in_force = limits_->EndpointConcurrency(cluster);
      for (const auto& endpoint : added) endpoint->concurrency()->Configure(in_force);
    }
    PublishLocked(current_->config);
  }
  DropFormer();
  std::vector<LockedCluster> all;
  all.push_back(std::move(held));
  Drain(std::move(all), left);
  return result;
}

base::Status Clusters::SetHealth(const admin::HealthOrder& order) {
  const Entries now = entries();
  auto it = now.find(order.cluster);
  if (it == now.end()) return MakeError(ErrorKind::kNotFound, "no cluster " + order.cluster);
  const ClusterState& state = *it->second.state;
  const uint32_t place = state.Find(order.endpoint);
  if (place == ClusterState::kNowhere)
    return MakeError(ErrorKind::kNotFound, "no endpoint " + order.endpoint + " in cluster " + order.cluster);
  return state.health->Command(state.endpoints, *state.endpoints[place].endpoint, order.order, Now());
}

Clusters::Entries Clusters::entries() {
  std::lock_guard lock(mutex_);
  return entries_;
}

base::Result<LockedCluster> Clusters::LockForTest(std::string_view name, LockMode mode, std::string_view what) {
  const Entries now = entries();
  auto it = now.find(name);
  if (it == now.end()) return MakeError(ErrorKind::kNotFound, "no cluster " + std::string(name));
  auto held = ClusterLock::Lock(it->second.lock, mode, what, After(waits_.change));
  if (held) held->guard.PassOn();  // the test's thread may ask again
  return held;
}

}  // namespace sluice::server
