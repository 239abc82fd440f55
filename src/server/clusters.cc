#include "server/clusters.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

#include "runtime/worker.h"
#include "server/cluster_view.h"
#include "server/endpoint_change.h"

namespace sluice::server {

using base::ErrorKind;
using base::MakeError;
using sync::LockMode;
using upstream::ClusterState;

namespace {

void ConfigureEach(const ClusterState& state, const limits::ConcurrencyOptions& options) {
  for (const upstream::ListedEndpoint& listed : state.endpoints) listed.endpoint->concurrency()->Configure(options);
}

base::TimePoint After(base::Nanos wait) { return base::DeadlineAfter(base::Clock::Steady().Now(), wait); }

}  // namespace

Clusters::Clusters(metrics::Registry& registry, uint32_t workers, ClusterWaits waits, const LimitSet* limits)
    : registry_(registry), worker_count_(workers), waits_(waits), limits_(limits), snapshots_(workers) {}

base::Status Clusters::Init(const config::Config& config, const CallGear& gear) {
  SavedLists saved;
  if (!config.state_file.empty()) {
    auto loaded = LoadState(config.state_file);
    if (!loaded) return loaded.error();
    saved = std::move(*loaded);
  }
  auto plan = MakePlan(config, saved, {});
  if (!plan) return plan.error();
  Entries entries = BuildEntries(config, gear, *plan, {});
  SavedLists kept;
  for (auto& [name, list] : plan->lists) {
    if (list.overridden) kept[name] = {list.configured, std::move(list.wanted)};
  }
  // Of a cluster that is gone, or configured otherwise now: it goes from the file with the next change, and must not
  // come back.
  const bool in_file = kept.size() == saved.size();
  state_.Start(config.state_file, std::move(kept), in_file);
  auto route_config = BuildRouteConfig(config, gear, std::move(plan->access_log), entries);
  std::lock_guard lock(mutex_);
  entries_ = std::move(entries);
  PublishLocked(std::move(route_config));
  return base::Ok();
}

base::Result<std::vector<HeldCluster>> Clusters::HoldForReload(const config::Config& config,
                                                               const Entries& before) const {
  std::set<std::string_view> kept;
  for (const upstream::ClusterOptions& options : config.clusters) {
    if (auto it = before.find(options.name); it != before.end() && Keeps(it->second, options))
      kept.insert(options.name);
  }
  std::vector<HeldCluster> held;
  const base::TimePoint deadline = After(waits_.reload);
  for (const auto& [name, entry] : before) {  // by name: no two requests can wait for each other
    if (kept.contains(name)) continue;
    auto cluster = ClusterLife::Hold(entry.life, LockMode::kExclusive, "reload", deadline);
    if (!cluster) return cluster.error();
    held.push_back(std::move(*cluster));
  }
  return held;
}

base::Status Clusters::Apply(const config::Config& config, const CallGear& gear) {
  std::lock_guard reload(reload_mutex_);
  // 1. Nobody else changes what this reload changes.
  auto held = HoldForReload(config, entries());
  if (!held) return held.error();
  // 2. All that can fail. `before` is read under the locks: for the clusters held it stays true.
  const Entries before = entries();
  auto plan = MakePlan(config, {}, before);
  if (!plan) return plan.error();
  StateKeeper::Changes changes;
  for (const HeldCluster& cluster : *held) {
    std::optional<SavedList>& list = changes[cluster.life->name()];
    auto it = plan->lists.find(cluster.life->name());
    if (it != plan->lists.end() && it->second.overridden) list = {it->second.configured, it->second.wanted};
  }
  if (auto saved = state_.Update(std::move(changes)); !saved) return saved.error();
  // 3. From here on nothing fails. Build aside; only now, because series of metrics last as long as the process.
  Entries built = BuildEntries(config, gear, *plan, before);
  auto route_config = BuildRouteConfig(config, gear, std::move(plan->access_log), built);
  // Who waits for a cluster that goes is told so.
  std::vector<Left> left;
  for (HeldCluster& cluster : *held) {
    auto it = built.find(cluster.life->name());
    const ClusterState* after = it == built.end() ? nullptr : it->second.state.get();
    left.push_back({cluster.life, Removed(*before.find(cluster.life->name())->second.state, after)});
    cluster.life->AddLeaving(left.back().endpoints);
    if (after == nullptr) cluster.life->Remove(cluster.guard);
  }
  // 4. Publish. Clusters that are kept may have been changed meanwhile: by what they are now.
  {
    std::lock_guard lock(mutex_);
    for (auto& [name, entry] : built) {
      auto it = before.find(name);
      if (it != before.end() && it->second.state == entry.state) entry.state = entries_.find(name)->second.state;
    }
    entries_.swap(built);
    // New endpoints were made with what is configured; calls must not meet them before what is in force.
    if (gear.limits != nullptr) {
      for (const auto& [name, entry] : entries_) ConfigureEach(*entry.state, gear.limits->EndpointConcurrency(name));
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
  // Nobody sees the old value once this returns: what has left can be drained.
  snapshots_.Publish(snapshot);
  for (proxy::WorkerContext* worker : workers_) {
    worker->worker().Post([worker] { worker->Refresh(); });
  }
  if (current_ != nullptr) former_.push_back(std::move(current_));
  current_ = std::move(snapshot);
}

// A list of 1,000 endpoints takes some 20 us to be dropped: not on a worker, so the last count is kept here. Nobody can
// take a new one of a former snapshot, so one that only this thread counts stays so.
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

void Clusters::Drain(std::vector<HeldCluster> held, const std::vector<Left>& all) {
  for (HeldCluster& cluster : held) cluster.guard.Downgrade();  // a removed one's guard is empty
  for (size_t i = 0; i < held.size(); ++i) {
    DrainStep(Endpoints(all[i].endpoints).first(std::min(kDrainStep, all[i].endpoints.size())));
    held[i].life->Sweep();
    held[i].guard.Release();
  }
  for (const Left& left : all) {
    for (size_t from = kDrainStep; from < left.endpoints.size(); from += kDrainStep) {
      // Drained in any case: a cluster that was removed meanwhile has no lock to take any more.
      auto step = ClusterLife::Hold(left.life, LockMode::kShared, "drain", base::kNever);
      DrainStep(Endpoints(left.endpoints).subspan(from, std::min(kDrainStep, left.endpoints.size() - from)));
    }
  }
}

void Clusters::DrainStep(Endpoints endpoints) {
  {
    std::lock_guard lock(mutex_);  // the workers are not destroyed meanwhile
    for (const auto& endpoint : endpoints) {
      endpoint->MarkRemoved();
      for (proxy::WorkerContext* worker : workers_) {
        worker->worker().Post([worker, endpoint] { worker->pools.Drain(*endpoint); });
      }
    }
  }
  // After the mark: calls that wait for it wake, see it and pick another. Else they would stay until its own calls end.
  for (const auto& endpoint : endpoints) endpoint->concurrency()->Close();
}

base::Result<admin::ChangeResult> Clusters::Change(const admin::EndpointChange& change) {
  const LockMode mode = change.preview ? LockMode::kShared : LockMode::kExclusive;
  Entries now = entries();
  auto it = now.find(change.cluster);
  if (it == now.end()) return MakeError(ErrorKind::kNotFound, "no cluster " + change.cluster);
  auto held = ClusterLife::Hold(it->second.life, mode, change.preview ? "preview" : "change of endpoints",
                                After(waits_.change));
  if (!held) return held.error();
  now = entries();
  it = now.find(change.cluster);
  // Who takes a cluster out of the table removes its lock first.
  SLUICE_CHECK(it != now.end() && it->second.life == held->life);
  const Entry entry = it->second;
  const ClusterState& before = *entry.state;
  if (change.expected_version && *change.expected_version != before.version) {
    return MakeError(ErrorKind::kConflict, "cluster " + change.cluster + " is at version " +
                                               std::to_string(before.version) + ", not " +
                                               std::to_string(*change.expected_version));
  }
  auto wanted = ApplyChange(before, change);
  if (!wanted) return wanted.error();
  // All that can fail comes first: series of metrics, which new endpoints have, last as long as the process and are
  // bounded.
  if (auto status = CheckChange(before, *wanted); !status) return status.error();
  if (!change.preview && state_.keeps()) {
    auto saved = state_.Update({{change.cluster, SavedList{entry.configured, WantedOf(before, *wanted)}}});
    if (!saved) return saved.error();
  }
  // A preview's endpoints are never in force, so they leave no series.
  std::optional<metrics::Registry> unseen;
  if (change.preview) unseen.emplace(worker_count_);
  auto state = upstream::ChangeClusterState(before, *wanted, worker_count_, unseen ? *unseen : registry_);
  SLUICE_CHECK(state.ok());
  admin::ChangeResult result;
  result.version = (*state)->version;
  result.digest = (*state)->balancer->Digest();
  result.moved_share = MovedShare(before, **state);
  if (change.preview) return result;

  const auto added = Removed(**state, &before);
  std::vector<Left> left;
  left.push_back({held->life, Removed(before, state->get())});
  held->life->AddLeaving(left[0].endpoints);
  {
    std::lock_guard lock(mutex_);
    entries_.find(change.cluster)->second.state = std::move(*state);
    if (limits_ != nullptr && !added.empty()) {  // they were made with what is configured
      const limits::ConcurrencyOptions in_force = limits_->EndpointConcurrency(change.cluster);
      for (const auto& endpoint : added) endpoint->concurrency()->Configure(in_force);
    }
    PublishLocked(current_->config);
  }
  DropFormer();
  std::vector<HeldCluster> all;
  all.push_back(std::move(*held));
  Drain(std::move(all), left);
  return result;
}

base::Result<std::vector<admin::ClusterView>> Clusters::List(std::string_view name) {
  std::vector<admin::ClusterView> out;
  const base::TimePoint deadline = After(waits_.inspection);
  DropFormer();
  bool known = name.empty();
  for (const auto& [cluster, seen] : entries()) {
    if (!name.empty() && name != cluster) continue;
    known = true;
    auto held = ClusterLife::Hold(seen.life, LockMode::kShared, "inspection", deadline);
    if (!held && held.error().kind == ErrorKind::kRemoved && name.empty()) continue;  // so it is not in the list
    if (!held) return held.error();
    std::shared_ptr<const ClusterState> state;
    {
      std::lock_guard lock(mutex_);
      state = entries_.find(cluster)->second.state;
    }
    held->life->Sweep();
    out.push_back(MakeClusterView(*state, held->life->Leaving()));
  }
  if (!known) return MakeError(ErrorKind::kNotFound, "no cluster " + std::string(name));
  return out;
}

Clusters::Entries Clusters::entries() {
  std::lock_guard lock(mutex_);
  return entries_;
}

std::shared_ptr<proxy::AccessLog> Clusters::access_log() {
  std::lock_guard lock(mutex_);
  return current_ == nullptr ? nullptr : current_->config->access_log;
}

std::vector<std::pair<std::string, uint64_t>> Clusters::Versions() {
  DropFormer();
  std::lock_guard lock(mutex_);
  std::vector<std::pair<std::string, uint64_t>> out;
  for (const auto& [name, entry] : entries_) out.emplace_back(name, entry.state->version);
  return out;
}

base::Result<HeldCluster> Clusters::HoldForTest(std::string_view name, LockMode mode, std::string_view what) {
  const Entries now = entries();
  auto it = now.find(name);
  if (it == now.end()) return MakeError(ErrorKind::kNotFound, "no cluster " + std::string(name));
  auto held = ClusterLife::Hold(it->second.life, mode, what, After(waits_.change));
  if (held) held->guard.PassOn();  // the test's thread may ask again
  return held;
}

}  // namespace sluice::server
