// What a configuration makes of routes, clusters and lists: first a plan, which can fail and leaves nothing behind,
// then the states, which cannot.
#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/hash.h"
#include "base/log.h"
#include "proxy/access_log/access_log.h"
#include "proxy/call/forwarded_fields.h"
#include "proxy/call/hedge_delay.h"
#include "proxy/call/observer.h"
#include "proxy/insight/insight.h"
#include "server/clusters.h"

namespace sluice::server {

using base::ErrorKind;
using base::MakeError;
using upstream::ClusterState;
using upstream::ListSource;

namespace {

// The same but for the list itself.
bool SameOptions(upstream::ClusterOptions a, upstream::ClusterOptions b) {
  a.endpoints.clear();
  b.endpoints.clear();
  return a == b;
}

// Of the calls that go to `cluster`. Where others share the route's calls, their times are told apart, too.
proxy::RouteMetrics MakeRouteMetrics(metrics::Registry& registry, const proxy::RouteOptions& options,
                                     const std::string& cluster) {
  proxy::RouteMetrics out;
  std::array<std::string_view, proxy::kGrpcCodes> statuses;
  for (size_t code = 0; code < statuses.size(); ++code) statuses[code] = ToString(static_cast<proxy::GrpcCode>(code));
  const auto calls = registry.AddCounters("sluice_calls_total", "Calls ended, by route and gRPC status.",
                                          {{"route", options.name}, {"cluster", cluster}}, "grpc_status", statuses,
                                          metrics::Show::kFirst);
  for (size_t code = 0; code < statuses.size(); ++code) out.calls[code] = &calls[code];
  metrics::Labels labels = {{"route", options.name}};
  if (!options.clusters.empty()) labels.emplace_back("cluster", cluster);
  out.duration = registry.AddHistogram("sluice_call_duration_seconds", "Time from a call's first byte to its end.",
                                       1e-9, std::move(labels), metrics::Show::kTouched);
  if (!options.failover.empty()) {
    out.failovers = registry.AddCounter("sluice_failovers_total", "Calls that went to the route's failover cluster.",
                                        {{"route", options.name}, {"cluster", options.failover}});
  }
  return out;
}

// Null: the route has one cluster.
std::shared_ptr<const proxy::ClusterSplit> SplitOf(const proxy::RouteOptions& options,
                                                   const std::map<std::string_view, uint32_t>& index,
                                                   metrics::Registry& registry) {
  if (options.clusters.empty()) return nullptr;
  std::vector<uint32_t> places;
  std::vector<proxy::RouteMetrics> metrics;
  for (const proxy::WeightedCluster& cluster : options.clusters) {
    places.push_back(index.at(cluster.name));
    metrics.push_back(MakeRouteMetrics(registry, options, cluster.name));
  }
  return std::make_shared<const proxy::ClusterSplit>(options, places, std::move(metrics));
}

// `former`: the configuration before, whose mirrored calls still count; null: there was none.
std::shared_ptr<const proxy::RouteMirror> MirrorOf(const proxy::RouteOptions& options, uint32_t place,
                                                   const proxy::RouteConfig* former, metrics::Registry& registry) {
  auto mirror = std::make_shared<proxy::RouteMirror>();
  mirror->cluster = place;
  const auto results = registry.AddCounters(
      "sluice_mirrored_calls_total", "Calls that were to be made a second time elsewhere, by what became of them.",
      {{"route", options.name}, {"cluster", options.mirror.cluster}}, "result", proxy::kMirrorResults,
      metrics::Show::kTouched);
  for (size_t i = 0; i < mirror->results.size(); ++i) mirror->results[i] = &results[i];
  if (former != nullptr) {
    for (const proxy::Route& route : former->routes.routes()) {
      if (route.options.name == options.name && route.mirror != nullptr) mirror->under_way = route.mirror->under_way;
    }
  }
  if (mirror->under_way == nullptr) mirror->under_way = std::make_shared<std::atomic<uint32_t>>(0);
  return mirror;
}

// All clusters that it names.
std::vector<std::string_view> ClustersOf(const proxy::RouteOptions& route) {
  std::vector<std::string_view> names = {route.cluster};
  for (const proxy::WeightedCluster& cluster : route.clusters) names.push_back(cluster.name);
  for (const std::string* name : {&route.failover, &route.mirror.cluster}) {
    if (!name->empty()) names.push_back(*name);
  }
  return names;
}

// Those of the plan; the former object where its limiters are the same, null where there is no plan.
std::shared_ptr<const upstream::ClusterLimits> ClusterLimitsOf(const SnapshotInputs& inputs, const std::string& cluster,
                                                               const ClusterState* previous,
                                                               metrics::Registry& registry) {
  if (inputs.limits == nullptr) return nullptr;
  auto rate = inputs.limits->ClusterRate(cluster);
  auto concurrency = inputs.limits->ClusterConcurrency(cluster);
  if (previous != nullptr && previous->limits->rate == rate && previous->limits->concurrency == concurrency)
    return previous->limits;
  return std::make_shared<const upstream::ClusterLimits>(std::move(rate), std::move(concurrency), cluster, registry);
}

std::shared_ptr<const proxy::RouteLimits> RouteLimitsOf(const SnapshotInputs& inputs, const std::string& route,
                                                        metrics::Registry& registry) {
  if (inputs.limits == nullptr) return nullptr;
  return std::make_shared<const proxy::RouteLimits>(inputs.limits->RouteRate(route),
                                                    inputs.limits->RouteClientRate(route), route, registry);
}

}  // namespace

const discovery::DiscoveryOptions& DiscoveryOf(const config::Config& config, const std::string& cluster) {
  static const discovery::DiscoveryOptions kNone;
  const auto it = config.discovery.find(cluster);
  return it == config.discovery.end() ? kNone : it->second;
}

bool Clusters::Entry::Overridden() const {
  return state->source == ListSource::kRpc && !released &&
         (!discovery.enabled() || discovery.changes_by_rpc == discovery::RpcRule::kOverride);
}

bool Clusters::Keeps(const Entry& entry, const upstream::ClusterOptions& options, const config::Config& config) {
  const discovery::DiscoveryOptions& discovery = DiscoveryOf(config, options.name);
  // What a source has given does not depend on the configuration's list; while it has given none, that list is in
  // force.
  const bool begins = discovery.enabled() && entry.state->source == ListSource::kConfig;
  return SameOptions(*entry.state->options, options) && entry.discovery == discovery &&
         entry.configured == Fingerprint(options.endpoints, discovery.Name()) &&
         (!begins || entry.state->options->endpoints == options.endpoints);
}

// A reload leaves a list that a source keeps to the source, also where that is another one now: the configuration's is
// what a cluster begins with.
Clusters::PlannedList Clusters::PlanList(const upstream::ClusterOptions& options, const config::Config& config,
                                         const SavedLists& saved, const Entry* before) {
  const discovery::DiscoveryOptions& discovery = DiscoveryOf(config, options.name);
  const uint64_t configured = Fingerprint(options.endpoints, discovery.Name());
  if (const auto kept = saved.find(options.name); kept != saved.end() && kept->second.configured == configured) {
    const SavedList& list = kept->second;
    const auto fits = CheckList(options, list.endpoints);
    if (fits.ok() || list.source != ListSource::kDiscovery) return {configured, list.endpoints, list.source, list.at};
    SLUICE_LOG_WARN("cluster {}: the last list of its source cannot be taken: {}", options.name, fits.error().detail);
  }
  if (before != nullptr) {
    const ListSource source = before->state->source;
    const bool same = before->configured == configured && source != ListSource::kConfig;
    const bool lent = discovery.enabled() && !before->state->endpoints.empty() &&
                      (source != ListSource::kConfig || options.endpoints.empty());
    if (same || lent) return {configured, WantedOf(*before->state), source, before->put_at, same && before->released};
  }
  return {configured, WantedOf(options.endpoints), ListSource::kConfig};
}

base::Result<Clusters::Plan> Clusters::MakePlan(const config::Config& config, const SavedLists& saved,
                                                const Entries& before) {
  Plan plan;
  for (const upstream::ClusterOptions& options : config.clusters) {
    auto it = before.find(options.name);
    if (it != before.end() && Keeps(it->second, options, config)) continue;
    PlannedList list = PlanList(options, config, saved, it == before.end() ? nullptr : &it->second);
    if (auto status = CheckList(options, list.wanted); !status) {
      return MakeError(status.error().kind, "cluster " + options.name + ": " + status.error().detail);
    }
    plan.lists[options.name] = std::move(list);
  }
  for (const proxy::RouteOptions& route : config.routes) {
    for (const std::string_view name : ClustersOf(route)) {
      const bool known = std::any_of(config.clusters.begin(), config.clusters.end(),
                                     [&](const auto& cluster) { return cluster.name == name; });
      if (!known)
        return MakeError(ErrorKind::kInvalidArgument, "route " + route.name + ": no cluster " + std::string(name));
    }
  }
  plan.access_log = access_log();
  if (plan.access_log == nullptr || !(plan.access_log->options() == config.access_log)) {
    auto opened = proxy::AccessLog::Open(config.access_log, worker_count_);
    if (!opened) return opened.error();
    plan.access_log = std::move(*opened);
  }
  plan.insight = insight();
  if (plan.insight == nullptr || !(plan.insight->options == config.insight))
    plan.insight = std::make_shared<proxy::Insight>(config.insight, worker_count_);
  return plan;
}

Clusters::Entries Clusters::BuildEntries(const config::Config& config, const SnapshotInputs& inputs, const Plan& plan,
                                         const Entries& before) const {
  Entries entries;
  for (const upstream::ClusterOptions& options : config.clusters) {
    auto it = before.find(options.name);
    auto planned = plan.lists.find(options.name);
    if (planned == plan.lists.end()) {
      entries[options.name] = it->second;
      continue;
    }
    const PlannedList& list = planned->second;
    const ClusterState* previous = it == before.end() ? nullptr : it->second.state.get();
    // With the list that is configured now: a reset goes back to it.
    const bool same = previous != nullptr && *previous->options == options;
    auto shared = same ? previous->options : std::make_shared<const upstream::ClusterOptions>(options);
    auto state = upstream::BuildClusterState(shared, list.wanted, previous, list.source, worker_count_, registry_,
                                             ClusterLimitsOf(inputs, options.name, previous, registry_),
                                             list.version != 0 ? list.version : first_version_);
    SLUICE_CHECK(state.ok());  // the plan has checked the list
    auto lock = previous == nullptr ? std::make_shared<ClusterLock>(options.name) : it->second.lock;
    entries[options.name] = {std::move(*state), list.configured, std::move(lock), DiscoveryOf(config, options.name),
                             list.released,     list.put_at};
  }
  return entries;
}

std::shared_ptr<const proxy::RouteConfig> Clusters::BuildRouteConfig(const config::Config& config,
                                                                     const SnapshotInputs& inputs, const Plan& plan,
                                                                     const Entries& entries) const {
  std::map<std::string_view, uint32_t> index;
  for (const auto& [name, entry] : entries) index.emplace(name, static_cast<uint32_t>(index.size()));
  std::vector<proxy::Route> routes;
  const std::shared_ptr<const proxy::RouteConfig> former = route_config();
  for (const proxy::RouteOptions& options : config.routes) {
    routes.push_back({options, index.at(options.cluster), MakeRouteMetrics(registry_, options, options.cluster),
                      RouteLimitsOf(inputs, options.name, registry_)});
    if (inputs.gates != nullptr) {
      routes.back().gates = inputs.gates->Of(options.name);
      routes.back().key_has_credential = inputs.gates->key_has_credential.contains(options.name);
    } else {
      SLUICE_CHECK(options.access.empty() && !options.jwt.enabled());  // else every client could call
    }
    if (!options.failover.empty()) routes.back().failover = index.at(options.failover);
    routes.back().split = SplitOf(options, index, registry_);
    if (options.mirror.enabled())
      routes.back().mirror = MirrorOf(options, index.at(options.mirror.cluster), former.get(), registry_);
    if (options.hedge.automatic()) routes.back().hedge_delay = std::make_shared<proxy::HedgeDelay>(worker_count_);
  }
  std::vector<std::string> claims;
  for (const proxy::JwtProviderOptions& provider : config.jwt) {
    for (const proxy::JwtClaim& claim : provider.forward_claims) claims.push_back(claim.metadata);
  }
  std::shared_ptr<const proxy::ProcessLimits> process;
  if (inputs.limits != nullptr)
    process = std::make_shared<const proxy::ProcessLimits>(inputs.limits->Process(), registry_);
  std::vector<std::shared_ptr<proxy::CallObserver>> observers;
  if (plan.access_log->enabled()) observers.push_back(std::make_shared<proxy::AccessLogObserver>(plan.access_log));
  return std::make_shared<const proxy::RouteConfig>(proxy::RouteConfig{
      proxy::RouteTable(std::move(routes)), config.forwarding, plan.access_log, base::Hash64(config.hash_seed),
      std::move(process), inputs.cache, std::move(observers), plan.insight, inputs.tracer,
      proxy::MakeFieldGuard(config.forwarding, config.routes, std::move(claims))});
}

}  // namespace sluice::server
