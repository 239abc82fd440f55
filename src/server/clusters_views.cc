// What is told of the clusters in force: to operators, to the page of metrics, to the health task.
#include <algorithm>
#include <charconv>

#include "proxy/canonical/request.h"
#include "server/cluster_view.h"
#include "server/clusters.h"

namespace sluice::server {

using base::ErrorKind;
using base::MakeError;
using sync::LockMode;
using upstream::ClusterState;

namespace {

// "a, b and 3 more"
std::string ListOf(const std::vector<std::string>& names) {
  constexpr size_t kShown = 8;
  std::string text;
  for (size_t i = 0; i < std::min(kShown, names.size()); ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() > kShown ? text + " and " + std::to_string(names.size() - kShown) + " more" : text;
}

}  // namespace

base::Result<std::vector<admin::ClusterView>> Clusters::List(std::string_view name) {
  std::vector<admin::ClusterView> out;
  const base::TimePoint deadline = base::DeadlineAfter(base::Clock::Steady().Now(), waits_.inspection);
  DropFormer();
  bool known = name.empty();
  for (const auto& [cluster, seen] : entries()) {
    if (!name.empty() && name != cluster) continue;
    known = true;
    auto held = ClusterLock::Lock(seen.lock, LockMode::kShared, "inspection", deadline);
    if (!held && held.error().kind == ErrorKind::kRemoved && name.empty()) continue;  // so it is not in the list
    if (!held) return held.error();
    std::shared_ptr<const ClusterState> state;
    {
      std::lock_guard lock(mutex_);
      state = entries_.find(cluster)->second.state;
    }
    held->lock->Sweep();
    out.push_back(MakeClusterView(*state, held->lock->Leaving(), base::Clock::Steady().Now()));
  }
  if (!known) return MakeError(ErrorKind::kNotFound, "no cluster " + std::string(name));
  return out;
}

std::shared_ptr<proxy::AccessLog> Clusters::access_log() {
  std::lock_guard lock(mutex_);
  return current_ == nullptr ? nullptr : current_->config->access_log;
}

std::shared_ptr<proxy::Insight> Clusters::insight() {
  std::lock_guard lock(mutex_);
  return current_ == nullptr ? nullptr : current_->config->insight;
}

std::shared_ptr<const proxy::RouteConfig> Clusters::route_config() const {
  std::lock_guard lock(mutex_);
  return current_ == nullptr ? nullptr : current_->config;
}

std::shared_ptr<const proxy::Snapshot> Clusters::snapshot() const {
  std::lock_guard lock(mutex_);
  return current_;
}

base::Result<std::string> Clusters::RouteOf(std::string_view name) {
  std::vector<std::string> names, leading;
  for (const proxy::Route& route : snapshot()->config->routes.routes()) {
    if (route.options.name == name) return route.options.name;
    names.push_back(route.options.name);
    if (route.options.cluster == name) leading.push_back(route.options.name);
  }
  size_t place = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), place);
  if (error == std::errc() && end == name.data() + name.size() && place < names.size()) return names[place];
  if (leading.size() == 1) return leading[0];
  const std::string shown = proxy::ShownText(name);
  if (!leading.empty())
    return MakeError(ErrorKind::kNotFound, std::to_string(leading.size()) + " routes lead to the cluster " + shown +
                                               ", name one of them: " + ListOf(leading));
  return MakeError(ErrorKind::kNotFound, "no route is named " + shown + "; there is " + ListOf(names));
}

std::vector<std::pair<std::string, uint64_t>> Clusters::Versions() {
  DropFormer();
  std::lock_guard lock(mutex_);
  std::vector<std::pair<std::string, uint64_t>> out;
  for (const auto& [name, entry] : entries_) out.emplace_back(name, entry.state->version);
  return out;
}

std::vector<admin::ClusterTraffic> Clusters::Traffic() {
  std::shared_ptr<const proxy::Snapshot> now;
  {
    std::lock_guard lock(mutex_);
    now = current_;
  }
  std::vector<admin::ClusterTraffic> out;
  for (const auto& cluster : now->clusters) {
    admin::ClusterTraffic& sum = out.emplace_back();
    sum.cluster = cluster->name();
    for (const upstream::ListedEndpoint& entry : cluster->endpoints)
      sum.endpoints.push_back({entry.endpoint->name(), entry.endpoint->calls()});
  }
  const auto add = [&](uint32_t cluster, const proxy::RouteMetrics& metrics) {
    admin::ClusterTraffic& sum = out[cluster];
    for (size_t code = 0; code < sum.statuses.size(); ++code) sum.statuses[code] += metrics.calls[code]->Value();
    sum.duration.Add(metrics.duration->Read());
  };
  for (const proxy::Route& route : now->config->routes.routes()) {
    if (route.split == nullptr) {
      add(route.cluster, route.metrics);
    } else {
      for (const proxy::ClusterSplit::Part& part : route.split->parts()) add(part.cluster, part.metrics);
    }
  }
  return out;
}

std::vector<std::shared_ptr<const ClusterState>> Clusters::States() {
  std::vector<std::shared_ptr<const ClusterState>> out;
  std::lock_guard lock(mutex_);  // for a short time: not for copies of whole entries
  out.reserve(entries_.size());
  for (const auto& [name, entry] : entries_) out.push_back(entry.state);
  return out;
}

}  // namespace sluice::server
