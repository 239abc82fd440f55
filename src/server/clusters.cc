#include "server/clusters.h"

#include <algorithm>

#include "base/hash.h"
#include "base/log.h"
#include "runtime/worker.h"

namespace sluice::server {

using base::ErrorKind;
using base::MakeError;
using upstream::ClusterState;
using upstream::WantedEndpoint;

namespace {

std::vector<WantedEndpoint> WantedOf(const std::vector<upstream::EndpointOptions>& endpoints) {
  std::vector<WantedEndpoint> out;
  for (const upstream::EndpointOptions& e : endpoints) out.push_back({e.name, e.address, e.weight, false});
  return out;
}

std::vector<WantedEndpoint> WantedOf(const ClusterState& state) {
  std::vector<WantedEndpoint> out;
  for (const upstream::ListedEndpoint& e : state.endpoints) {
    out.push_back({e.endpoint->name(), e.endpoint->address(), e.weight, e.draining});
  }
  return out;
}

// The same but for the list itself.
bool SameOptions(upstream::ClusterOptions a, upstream::ClusterOptions b) {
  a.endpoints.clear();
  b.endpoints.clear();
  return a == b;
}

base::Result<WantedEndpoint> ToWanted(const admin::EndpointSpec& spec) {
  auto address = net::Address::Parse(spec.address);
  if (!address) return MakeError(ErrorKind::kInvalidArgument, "endpoint " + spec.name + ": " + address.error().detail);
  if (address->port() == 0 && address->kind() != net::Address::Kind::kUnix) {
    return MakeError(ErrorKind::kInvalidArgument, "endpoint " + spec.address + ": port 0 cannot be connected to; allowed: 1 to 65535");
  }
  return WantedEndpoint{spec.name.empty() ? address->ToString() : spec.name, *address, spec.weight, false};
}

// The list after the change; names that are not there, or are there already, are errors, so nothing happens by mistake.
base::Result<std::vector<WantedEndpoint>> ApplyChange(std::vector<WantedEndpoint> list, const admin::EndpointChange& change) {
  using Kind = admin::EndpointChange::Kind;
  if (change.kind == Kind::kReplace) list.clear();
  if (change.kind != Kind::kReplace && change.endpoints.empty()) {
    return MakeError(ErrorKind::kInvalidArgument, "the change names no endpoint");
  }
  for (const admin::EndpointSpec& spec : change.endpoints) {
    std::string name = spec.name.empty() ? spec.address : spec.name;
    if (change.kind == Kind::kReplace || change.kind == Kind::kAdd) {
      auto wanted = ToWanted(spec);
      if (!wanted) return wanted.error();
      name = wanted->name;
      if (std::any_of(list.begin(), list.end(), [&](const auto& e) { return e.name == name; })) {
        return MakeError(ErrorKind::kInvalidArgument, "endpoint " + name + " is in the list already");
      }
      list.push_back(std::move(*wanted));
      continue;
    }
    auto it = std::find_if(list.begin(), list.end(), [&](const auto& e) { return e.name == name; });
    if (it == list.end()) {
      return MakeError(ErrorKind::kNotFound, "no endpoint " + name + " in cluster " + change.cluster);
    }
    switch (change.kind) {
      case Kind::kRemove: list.erase(it); break;
      case Kind::kReweight: it->weight = spec.weight; break;
      case Kind::kDrain: it->draining = true; break;
      case Kind::kUndrain: it->draining = false; break;
      case Kind::kReplace:
      case Kind::kAdd: break;
    }
  }
  return list;
}

// Keys that draining endpoints keep on the ring go elsewhere all the same, so their share counts as moved.
double DrainShare(const ClusterState& before, const ClusterState& after) {
  double moved = 0;
  std::vector<double> shares = after.balancer->Shares();
  for (size_t i = 0; i < after.endpoints.size(); ++i) {
    for (const upstream::ListedEndpoint& old : before.endpoints) {
      if (old.endpoint == after.endpoints[i].endpoint && old.draining != after.endpoints[i].draining) moved += shares[i];
    }
  }
  return moved;
}

proxy::RouteMetrics MakeRouteMetrics(metrics::Registry& registry, const std::string& route, const std::string& cluster) {
  proxy::RouteMetrics out;
  for (size_t code = 0; code < proxy::kGrpcCodes; ++code) {
    out.calls[code] = registry.AddCounter(
        "sluice_calls_total", "Calls ended, by route and gRPC status.",
        {{"route", route}, {"cluster", cluster}, {"grpc_status", std::string(ToString(static_cast<proxy::GrpcCode>(code)))}});
  }
  out.duration = registry.AddHistogram("sluice_call_duration_seconds", "Time from a call's first byte to its end.", 1e-9,
                                       {{"route", route}});
  return out;
}

}  // namespace

Clusters::Clusters(metrics::Registry& registry, uint32_t workers)
    : registry_(registry), worker_count_(workers), snapshots_(workers) {}

base::Status Clusters::Init(const config::Config& config) {
  std::lock_guard lock(mutex_);
  state_file_ = config.state_file;
  SavedLists saved;
  if (!state_file_.empty()) {
    auto loaded = LoadState(state_file_);
    if (!loaded) return loaded.error();
    saved = std::move(*loaded);
  }
  auto entries = BuildEntries(config, saved);
  if (!entries) return entries.error();
  auto snapshot = BuildSnapshot(config, *entries);
  if (!snapshot) return snapshot.error();
  Publish(std::move(*snapshot), std::move(*entries));
  return base::Ok();
}

base::Status Clusters::Apply(const config::Config& config) {
  std::lock_guard lock(mutex_);
  auto entries = BuildEntries(config, {});
  if (!entries) return entries.error();
  auto snapshot = BuildSnapshot(config, *entries);
  if (!snapshot) return snapshot.error();
  if (auto saved = Save(*entries); !saved) return saved.error();
  Publish(std::move(*snapshot), std::move(*entries));
  return base::Ok();
}

base::Result<Clusters::Entries> Clusters::BuildEntries(const config::Config& config, const SavedLists& saved) const {
  Entries entries;
  for (const upstream::ClusterOptions& options : config.clusters) {
    auto it = entries_.find(options.name);
    const ClusterState* previous = it == entries_.end() ? nullptr : it->second.state.get();
    uint64_t configured = Fingerprint(options.endpoints);
    bool same_options = previous != nullptr && SameOptions(*previous->options, options);
    bool same_list = previous != nullptr && it->second.configured == configured;
    if (same_options && same_list) {
      entries[options.name] = it->second;
      continue;
    }
    bool overridden = previous != nullptr && previous->overridden && same_list;
    std::vector<WantedEndpoint> wanted = overridden ? WantedOf(*previous) : WantedOf(options.endpoints);
    if (auto kept = saved.find(options.name); kept != saved.end() && kept->second.configured == configured) {
      wanted = kept->second.endpoints;
      overridden = true;
    }
    auto shared = same_options ? previous->options : std::make_shared<const upstream::ClusterOptions>(options);
    auto state = upstream::BuildClusterState(shared, wanted, previous, overridden, worker_count_, registry_);
    if (!state) return MakeError(state.error().kind, "cluster " + options.name + ": " + state.error().detail);
    entries[options.name] = {std::move(*state), configured};
  }
  return entries;
}

base::Result<std::shared_ptr<const proxy::Snapshot>> Clusters::BuildSnapshot(const config::Config& config, const Entries& entries) {
  auto snapshot = std::make_shared<proxy::Snapshot>();
  std::map<std::string_view, uint32_t> index;
  for (const auto& [name, entry] : entries) {
    index[name] = static_cast<uint32_t>(snapshot->clusters.size());
    snapshot->clusters.push_back(entry.state);
  }
  std::vector<proxy::Route> routes;
  for (const proxy::RouteOptions& options : config.routes) {
    auto it = index.find(options.cluster);
    if (it == index.end()) return MakeError(ErrorKind::kInvalidArgument, "route " + options.name + ": no cluster " + options.cluster);
    routes.push_back({options, it->second, MakeRouteMetrics(registry_, options.name, options.cluster)});
  }
  std::shared_ptr<proxy::AccessLog> access_log;
  if (current_ != nullptr && current_->config->access_log->options() == config.access_log) {
    access_log = current_->config->access_log;
  } else {
    auto opened = proxy::AccessLog::Open(config.access_log);
    if (!opened) return opened.error();
    access_log = std::move(*opened);
  }
  snapshot->config = std::make_shared<const proxy::RouteConfig>(proxy::RouteConfig{
      proxy::RouteTable(std::move(routes)), config.forwarding, std::move(access_log), base::Hash64(config.hash_seed)});
  return std::shared_ptr<const proxy::Snapshot>(std::move(snapshot));
}

void Clusters::Publish(std::shared_ptr<const proxy::Snapshot> snapshot, Entries entries) {
  // Nobody sees the old value once this returns: what has left can be drained.
  snapshots_.Publish(proxy::SnapshotPointers(snapshot, worker_count_));
  current_ = std::move(snapshot);
  std::vector<std::shared_ptr<upstream::Endpoint>> removed;
  for (const auto& [name, entry] : entries_) {
    auto it = entries.find(name);
    for (auto& endpoint : Removed(*entry.state, it == entries.end() ? nullptr : it->second.state.get())) removed.push_back(endpoint);
  }
  entries_ = std::move(entries);
  std::erase_if(leaving_, [](const auto& endpoint) { return endpoint.expired(); });
  for (const auto& endpoint : removed) {
    endpoint->MarkRemoved();
    leaving_.push_back(endpoint);
    for (proxy::WorkerContext* worker : workers_) {
      worker->worker().Post([worker, endpoint] { worker->pools.Drain(*endpoint); });
    }
  }
}

base::Status Clusters::Save(const Entries& entries) const {
  if (state_file_.empty()) return base::Ok();
  SavedLists lists;
  for (const auto& [name, entry] : entries) {
    if (entry.state->overridden) lists[name] = {entry.configured, WantedOf(*entry.state)};
  }
  return SaveState(state_file_, lists);
}

base::Result<admin::ChangeResult> Clusters::Change(const admin::EndpointChange& change) {
  std::lock_guard lock(mutex_);
  auto it = entries_.find(change.cluster);
  if (it == entries_.end()) return MakeError(ErrorKind::kNotFound, "no cluster " + change.cluster);
  const ClusterState& before = *it->second.state;
  if (change.expected_version && *change.expected_version != before.version) {
    return MakeError(ErrorKind::kConflict, "cluster " + change.cluster + " is at version " + std::to_string(before.version) +
                                               ", not " + std::to_string(*change.expected_version));
  }
  auto wanted = ApplyChange(WantedOf(before), change);
  if (!wanted) return wanted.error();
  auto state = upstream::BuildClusterState(before.options, *wanted, &before, /*overridden=*/true, worker_count_, registry_);
  if (!state) return state.error();
  admin::ChangeResult result;
  result.version = (*state)->version;
  result.digest = (*state)->balancer->Digest();
  result.moved_share = std::min(1.0, upstream::MovedShare(*before.balancer, before.BalancerEndpoints(), *(*state)->balancer,
                                                          (*state)->BalancerEndpoints()) +
                                         DrainShare(before, **state));
  if (change.preview) return result;

  Entries entries = entries_;
  entries[change.cluster].state = *state;
  if (auto saved = Save(entries); !saved) return saved.error();
  auto snapshot = std::make_shared<proxy::Snapshot>(*current_);
  for (auto& cluster : snapshot->clusters) {
    if (cluster->name() == change.cluster) cluster = *state;
  }
  Publish(std::move(snapshot), std::move(entries));
  return result;
}

admin::ClusterView Clusters::View(const ClusterState& state) const {
  admin::ClusterView view;
  view.name = state.name();
  view.policy = ToString(state.options->policy);
  view.version = state.version;
  view.digest = state.balancer->Digest();
  view.overridden = state.overridden;
  auto describe = [](upstream::Endpoint& endpoint) {
    admin::EndpointView out;
    out.name = endpoint.name();
    out.address = endpoint.address().ToString();
    out.connection = ToString(endpoint.link());
    out.in_flight = static_cast<uint64_t>(std::max<int64_t>(0, endpoint.metrics().in_flight->Value()));
    out.calls = endpoint.metrics().calls->Value();
    out.failures = endpoint.metrics().failures->Value();
    out.connections = static_cast<uint64_t>(std::max<int64_t>(0, endpoint.metrics().connections->Value()));
    return out;
  };
  std::vector<double> shares = state.balancer->Shares();
  for (size_t i = 0; i < state.endpoints.size(); ++i) {
    const upstream::ListedEndpoint& entry = state.endpoints[i];
    admin::EndpointView out = describe(*entry.endpoint);
    out.weight = entry.weight;
    out.share = entry.draining ? 0 : shares[i];
    out.state = entry.draining ? "draining" : "active";
    view.endpoints.push_back(std::move(out));
  }
  for (const auto& weak : leaving_) {
    auto endpoint = weak.lock();
    if (endpoint == nullptr || endpoint->cluster() != state.name() || endpoint->metrics().in_flight->Value() <= 0) continue;
    admin::EndpointView out = describe(*endpoint);
    out.state = "removed";
    view.endpoints.push_back(std::move(out));
  }
  return view;
}

base::Result<std::vector<admin::ClusterView>> Clusters::List(std::string_view name) {
  std::lock_guard lock(mutex_);
  std::vector<admin::ClusterView> out;
  for (const auto& [cluster, entry] : entries_) {
    if (name.empty() || name == cluster) out.push_back(View(*entry.state));
  }
  if (out.empty() && !name.empty()) return MakeError(ErrorKind::kNotFound, "no cluster " + std::string(name));
  return out;
}

std::shared_ptr<proxy::AccessLog> Clusters::access_log() {
  std::lock_guard lock(mutex_);
  return current_->config->access_log;
}

std::vector<std::pair<std::string, uint64_t>> Clusters::Versions() {
  std::lock_guard lock(mutex_);
  std::vector<std::pair<std::string, uint64_t>> out;
  for (const auto& [name, entry] : entries_) out.emplace_back(name, entry.state->version);
  return out;
}

}  // namespace sluice::server
