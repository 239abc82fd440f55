#include "server/discovery_set.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "discovery/dns/dns_source.h"
#include "discovery/etcd/etcd_source.h"
#include "discovery/file/file_source.h"
#include "discovery/xds/xds_source.h"

namespace sluice::server {

using discovery::Bell;
using discovery::DiscoveryOptions;
using discovery::Follower;
using discovery::SourceKind;
using discovery::Update;

namespace {

base::Result<discovery::List> ReadList(const std::string& path) { return config::LoadEndpoints(path); }

base::Result<discovery::List> ReadSorted(const std::string& path) {
  auto list = ReadList(path);
  if (list.ok()) discovery::Sort(*list);
  return list;
}

// What should differ between processes is drawn by it.
uint64_t SeedOf(const runtime::Runtime& runtime) {
  return static_cast<uint64_t>(runtime.clock().Now().time_since_epoch().count());
}

discovery::DnsSource::Own OwnOf(const DiscoveryOptions& options, const discovery::List* in_force, uint64_t seed) {
  discovery::DnsSource::Own own{seed, {}, options.empty_after};
  const bool one = options.dns.mode == discovery::DnsMode::kOne && in_force != nullptr && in_force->size() == 1;
  if (one && in_force->front().name == options.dns.NamePort()) own.current = in_force->front().address.ToString();
  return own;
}

}  // namespace

DiscoverySet::DiscoverySet(runtime::Runtime& runtime, Clusters& clusters, metrics::Registry& registry)
    : runtime_(runtime), clusters_(clusters), registry_(registry), started_(runtime.clock().Now()) {
  AddMetrics();
}

std::shared_ptr<Follower> DiscoverySet::Make(const std::string& cluster, const DiscoveryOptions& options) {
  std::array<metrics::Counter*, discovery::kUpdates> updates{};
  std::array<std::string_view, discovery::kUpdates> results;
  for (size_t i = 0; i < results.size(); ++i) results[i] = ToString(Update(i));
  const auto counters =
      registry_.AddCounters("sluice_discovery_updates_total", "Answers of the cluster's source, by result.",
                            {{"cluster", cluster}}, "result", results, metrics::Show::kTouched);
  for (size_t i = 0; i < results.size(); ++i) updates[i] = &counters[i];
  const auto count = [updates, slot = registry_.shared_slot()](Update update) {
    updates[static_cast<size_t>(update)]->Add(slot);
  };
  const auto in_force = clusters_.Discovered(cluster);
  return std::make_shared<Follower>(cluster, options, in_force, SourceOf(options, in_force.get()), clusters_, puts_,
                                    count);
}

Follower::MakeSource DiscoverySet::SourceOf(const DiscoveryOptions& options, const discovery::List* in_force) const {
  using Made = std::unique_ptr<discovery::Source>;
  switch (options.kind) {
    case SourceKind::kNone:
    case SourceKind::kFile:
      break;
    case SourceKind::kDns:
      return [dns = options.dns, own = OwnOf(options, in_force, SeedOf(runtime_))](Bell& bell) -> Made {
        return std::make_unique<discovery::DnsSource>(dns, own, bell);
      };
    case SourceKind::kEtcd:
      return [etcd = options.etcd, seed = SeedOf(runtime_)](Bell& bell) -> Made {
        return std::make_unique<discovery::EtcdSource>(etcd, &config::ParseEndpointValue, seed, bell);
      };
    case SourceKind::kXds:
      return [client = xds_, xds = options.xds](Bell& bell) -> Made {
        return std::make_unique<discovery::XdsSource>(client, xds, bell);
      };
  }
  return [path = options.file.path, read = options.ordered ? &ReadList : &ReadSorted](Bell& bell) -> Made {
    return std::make_unique<discovery::FileSource>(path, read, bell);
  };
}

bool DiscoverySet::ApplyXds(const config::Config& config) {
  const bool needed = std::any_of(config.discovery.begin(), config.discovery.end(),
                                  [](const auto& each) { return each.second.kind == discovery::SourceKind::kXds; });
  std::shared_ptr<discovery::AdsClient> before;
  {
    std::lock_guard lock(mutex_);
    if (needed && xds_ != nullptr && xds_->bootstrap() == config.xds) return false;
    before = std::move(xds_);
    xds_ = needed ? std::make_shared<discovery::AdsClient>(config.xds) : nullptr;
    if (needed) xds_->Start(runtime_);
  }
  if (before != nullptr) before->Stop();
  return true;
}

void DiscoverySet::Apply(const config::Config& config) {
  const bool xds_changed = ApplyXds(config);
  std::map<std::string, std::shared_ptr<Follower>> next;
  std::vector<std::shared_ptr<Follower>> kept, added, ended;
  // Followers are made without the mutex, for which workers wait.
  for (const auto& [cluster, options] : config.discovery) {
    std::shared_ptr<Follower> follower = Find(cluster);
    const bool other = xds_changed && options.kind == discovery::SourceKind::kXds;
    if (follower != nullptr && follower->options() == options && !other)
      kept.push_back(follower);
    else
      added.push_back(follower = Make(cluster, options));
    next[cluster] = std::move(follower);
  }
  {
    std::lock_guard lock(mutex_);
    followers_.swap(next);
    applied_ = true;
    for (const auto& [cluster, follower] : next) {
      if (const auto it = followers_.find(cluster); it == followers_.end() || it->second != follower)
        ended.push_back(follower);
    }
  }
  for (const auto& follower : ended) follower->Stop();
  // The follower before may have put a list just now.
  for (const auto& follower : added) follower->Again();
  for (const auto& follower : added) follower->Start(runtime_);
  // A list that was refused may fit now.
  for (const auto& follower : kept) follower->Again();
}

void DiscoverySet::Stop() { Apply({}); }

bool DiscoverySet::ready() const {
  if (was_ready_.load(std::memory_order_relaxed)) return true;
  const base::Nanos up = runtime_.clock().Now() - started_;
  std::lock_guard lock(mutex_);
  const bool ready = std::all_of(followers_.begin(), followers_.end(), [&](const auto& each) {
    return each.second->had_list() || up >= each.second->options().ready_timeout;
  });
  if (ready && applied_) was_ready_.store(true, std::memory_order_relaxed);
  return ready;
}

std::shared_ptr<Follower> DiscoverySet::Find(const std::string& cluster) const {
  std::lock_guard lock(mutex_);
  const auto it = followers_.find(cluster);
  return it == followers_.end() ? nullptr : it->second;
}

std::optional<discovery::DiscoveryView> DiscoverySet::Describe(const std::string& cluster) const {
  const auto follower = Find(cluster);
  if (follower == nullptr) return std::nullopt;
  return follower->Describe(runtime_.clock().Now());
}

void DiscoverySet::Hurry(const std::string& cluster) const {
  if (const auto follower = Find(cluster)) follower->Hurry();
}

void DiscoverySet::Again(const std::string& cluster) const {
  if (const auto follower = Find(cluster)) follower->Again();
}

std::optional<discovery::XdsView> DiscoverySet::DescribeXds(bool resources) const {
  std::shared_ptr<discovery::AdsClient> client;
  {
    std::lock_guard lock(mutex_);
    client = xds_;
  }
  if (client == nullptr) return std::nullopt;
  return client->Describe(runtime_.clock().Now(), resources);
}

void DiscoverySet::AddXdsMetrics() {
  registry_.AddCallback("sluice_xds_connected",
                        "1 while the control plane of xDS can tell of changes, 0 while it is away.", "gauge", [this] {
                          std::vector<metrics::Sample> out;
                          if (const auto view = DescribeXds(false))
                            out.push_back({{}, view->stream == discovery::AdsStreamState::kConnected ? 1.0 : 0.0});
                          return out;
                        });
  registry_.AddCallback(
      "sluice_xds_responses_total", "Responses of the control plane of xDS, by how they were answered.", "counter",
      [this] {
        constexpr const char* kTypes[] = {"cluster", "endpoints"};
        std::vector<metrics::Sample> out;
        const auto view = DescribeXds(false);
        for (size_t i = 0; view && i < view->counts.size(); ++i) {
          const discovery::XdsCounts& counts = view->counts[i];
          out.push_back({{{"type", kTypes[i]}, {"result", "acked"}}, static_cast<double>(counts.acked)});
          out.push_back({{{"type", kTypes[i]}, {"result", "refused"}}, static_cast<double>(counts.refused)});
        }
        return out;
      });
}

void DiscoverySet::AddMetrics() {
  // Workers wait for the mutex: it is not held while each of a thousand followers is asked.
  registry_.AddCollector("sluice_discovery_age_seconds", "Time since the cluster's source gave an answer.", "gauge",
                         [this](metrics::Samples& out) {
                           std::map<std::string, std::shared_ptr<Follower>> followers;
                           {
                             std::lock_guard lock(mutex_);
                             followers = followers_;
                           }
                           const base::TimePoint now = runtime_.clock().Now();
                           for (const auto& [cluster, follower] : followers) {
                             const base::Nanos age = follower->Describe(now).answered_ago.value_or(now - started_);
                             out.Add({{"cluster", cluster}}, std::chrono::duration<double>(age).count());
                           }
                         });
  AddXdsMetrics();
}

}  // namespace sluice::server
