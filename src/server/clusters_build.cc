// What a configuration makes of routes, clusters and lists: first a plan, which can fail and leaves nothing behind,
// then the states, which cannot.
#include <algorithm>
#include <map>
#include <utility>

#include "base/hash.h"
#include "server/clusters.h"
#include "server/endpoint_change.h"

namespace sluice::server {

using base::ErrorKind;
using base::MakeError;
using upstream::ClusterState;

namespace {

// The same but for the list itself.
bool SameOptions(upstream::ClusterOptions a, upstream::ClusterOptions b) {
  a.endpoints.clear();
  b.endpoints.clear();
  return a == b;
}

proxy::RouteMetrics MakeRouteMetrics(metrics::Registry& registry, const std::string& route,
                                     const std::string& cluster) {
  proxy::RouteMetrics out;
  for (size_t code = 0; code < proxy::kGrpcCodes; ++code) {
    out.calls[code] = registry.AddCounter("sluice_calls_total", "Calls ended, by route and gRPC status.",
                                          {{"route", route},
                                           {"cluster", cluster},
                                           {"grpc_status", std::string(ToString(static_cast<proxy::GrpcCode>(code)))}});
  }
  out.duration = registry.AddHistogram("sluice_call_duration_seconds", "Time from a call's first byte to its end.",
                                       1e-9, {{"route", route}});
  return out;
}

// Those of the plan; the former object where its limiters are the same, null where there is no plan.
std::shared_ptr<const upstream::ClusterLimits> ClusterLimitsOf(const CallGear& gear, const std::string& cluster,
                                                               const ClusterState* previous,
                                                               metrics::Registry& registry) {
  if (gear.limits == nullptr) return nullptr;
  auto rate = gear.limits->ClusterRate(cluster);
  auto concurrency = gear.limits->ClusterConcurrency(cluster);
  if (previous != nullptr && previous->limits->rate == rate && previous->limits->concurrency == concurrency)
    return previous->limits;
  return std::make_shared<const upstream::ClusterLimits>(std::move(rate), std::move(concurrency), cluster, registry);
}

std::shared_ptr<const proxy::RouteLimits> RouteLimitsOf(const CallGear& gear, const std::string& route,
                                                        metrics::Registry& registry) {
  if (gear.limits == nullptr) return nullptr;
  return std::make_shared<const proxy::RouteLimits>(gear.limits->RouteRate(route), gear.limits->RouteClientRate(route),
                                                    route, registry);
}

}  // namespace

bool Clusters::Keeps(const Entry& entry, const upstream::ClusterOptions& options) {
  return SameOptions(*entry.state->options, options) && entry.configured == Fingerprint(options.endpoints);
}

base::Result<Clusters::Plan> Clusters::MakePlan(const config::Config& config, const SavedLists& saved,
                                                const Entries& before) {
  Plan plan;
  for (const upstream::ClusterOptions& options : config.clusters) {
    auto it = before.find(options.name);
    if (it != before.end() && Keeps(it->second, options)) continue;
    const ClusterState* previous = it == before.end() ? nullptr : it->second.state.get();
    const uint64_t configured = Fingerprint(options.endpoints);
    const bool same_list = previous != nullptr && it->second.configured == configured;
    PlannedList list{configured, {}, same_list && previous->overridden};
    if (auto kept = saved.find(options.name); kept != saved.end() && kept->second.configured == configured) {
      list.wanted = kept->second.endpoints;
      list.overridden = true;
    } else {
      list.wanted = list.overridden ? WantedOf(*previous) : WantedOf(options.endpoints);
    }
    if (auto status = CheckList(options, list.wanted); !status) {
      return MakeError(status.error().kind, "cluster " + options.name + ": " + status.error().detail);
    }
    plan.lists[options.name] = std::move(list);
  }
  for (const proxy::RouteOptions& route : config.routes) {
    const bool known = std::any_of(config.clusters.begin(), config.clusters.end(),
                                   [&](const auto& cluster) { return cluster.name == route.cluster; });
    if (!known) return MakeError(ErrorKind::kInvalidArgument, "route " + route.name + ": no cluster " + route.cluster);
  }
  plan.access_log = access_log();
  if (plan.access_log == nullptr || !(plan.access_log->options() == config.access_log)) {
    auto opened = proxy::AccessLog::Open(config.access_log);
    if (!opened) return opened.error();
    plan.access_log = std::move(*opened);
  }
  return plan;
}

Clusters::Entries Clusters::BuildEntries(const config::Config& config, const CallGear& gear, const Plan& plan,
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
    const bool same_options = previous != nullptr && SameOptions(*previous->options, options);
    auto shared = same_options ? previous->options : std::make_shared<const upstream::ClusterOptions>(options);
    auto state = upstream::BuildClusterState(shared, list.wanted, previous, list.overridden, worker_count_, registry_,
                                             ClusterLimitsOf(gear, options.name, previous, registry_));
    SLUICE_CHECK(state.ok());  // the plan has checked the list
    auto life = previous == nullptr ? std::make_shared<ClusterLife>(options.name) : it->second.life;
    entries[options.name] = {std::move(*state), list.configured, std::move(life)};
  }
  return entries;
}

std::shared_ptr<const proxy::RouteConfig> Clusters::BuildRouteConfig(const config::Config& config, const CallGear& gear,
                                                                     std::shared_ptr<proxy::AccessLog> log,
                                                                     const Entries& entries) const {
  std::map<std::string_view, uint32_t> index;
  for (const auto& [name, entry] : entries) index.emplace(name, static_cast<uint32_t>(index.size()));
  std::vector<proxy::Route> routes;
  for (const proxy::RouteOptions& options : config.routes) {
    routes.push_back({options, index.at(options.cluster), MakeRouteMetrics(registry_, options.name, options.cluster),
                      RouteLimitsOf(gear, options.name, registry_)});
  }
  std::shared_ptr<const proxy::ProcessLimits> process;
  if (gear.limits != nullptr) process = std::make_shared<const proxy::ProcessLimits>(gear.limits->Process(), registry_);
  return std::make_shared<const proxy::RouteConfig>(
      proxy::RouteConfig{proxy::RouteTable(std::move(routes)), config.forwarding, std::move(log),
                         base::Hash64(config.hash_seed), std::move(process), gear.cache});
}

}  // namespace sluice::server
