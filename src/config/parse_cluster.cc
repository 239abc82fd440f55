// Clusters and their endpoints.
#include "config/parsers.h"
#include "config/text.h"
#include "config/values.h"
#include "limits/option_table.h"
#include "upstream/health/option_table.h"
#include "upstream/option_table.h"

namespace sluice::config {
namespace {

using upstream::Policy;
using upstream::Ring;

void ParseList(Section& section, bool required, upstream::ClusterOptions* cluster) {
  if (required) section.Require("endpoints");
  const double points = ParseEndpoints(section, &cluster->endpoints) * cluster->ring_points;
  const bool by_points = cluster->policy == Policy::kRingHash && cluster->ring == Ring::kSluice;
  if (by_points && points > static_cast<double>(upstream::kRingPointsMax)) {
    section.Fail("endpoints",
                 Cat("the ring would have ", static_cast<uint64_t>(points),
                     " points (weights times ring_points); at most ", upstream::kRingPointsMax, " are allowed"));
  }
}

void ParseEjection(Section& section, upstream::EjectionOptions* out) {
  section.Options(upstream::kEjectionOptions, out);
  section.Map("slow", upstream::kSlowOptions, &out->slow);
  if (out->base > out->max) {
    section.Fail(section.Find("max") != nullptr ? "max" : "base",
                 Cat("base ", FormatDuration(out->base), " is above max ", FormatDuration(out->max)));
  }
}

void ParseHealth(Section& section, upstream::HealthOptions* out) {
  section.Choice("mode", upstream::kHealthModes, &out->mode);
  section.Options(upstream::kHealthOptions, out);
  if (section.Text("service", &out->service) && out->service.size() > upstream::HealthOptions::kServiceBytesMax) {
    section.Fail("service", Cat("has ", out->service.size(), " bytes; at most ",
                                upstream::HealthOptions::kServiceBytesMax, " are allowed"));
  }
}

// The one endpoint that is a name whose addresses are the list; null: there is none.
const std::string* DnsTargetOf(Section& section) {
  if (section.Find("discovery") != nullptr) return nullptr;
  const Node* list = section.Find("endpoints");
  if (list == nullptr || list->kind != Node::Kind::kList || list->items.size() != 1) return nullptr;
  const Node& only = *list->items[0];
  return only.kind == Node::Kind::kScalar && only.text.starts_with(kDnsScheme) ? &only.text : nullptr;
}

// What a connection to another host needs, which can go without a word.
void CheckKeepalive(Section& section, const upstream::ClusterOptions& cluster, bool discovered) {
  constexpr std::chrono::milliseconds kGrpcBears{300000};  // the default of gRPC's servers
  std::string remote = discovered ? "an endpoint" : "";
  for (const upstream::EndpointOptions& endpoint : cluster.endpoints) {
    if (!remote.empty()) break;
    if (endpoint.address.kind() != net::Address::Kind::kUnix && !endpoint.address.is_loopback())
      remote = endpoint.address.ToString();
  }
  if (remote.empty()) return;
  const auto [interval, timeout, repeat] = cluster.keepalive;
  const auto warn = [&](std::string_view key, std::string what) {
    const Node* at = ValueOf(*section.Find("keepalive"), key);
    if (at != nullptr) section.reader().Warn(*at, Cat(section.PathOf("keepalive"), ".", key), std::move(what));
  };
  if (section.Find("keepalive") == nullptr) return;
  if (interval.count() == 0) {
    warn("interval",
         Cat("0: a connection to ", remote,
             " that is lost without a word (a host that is gone, a firewall that has forgotten it) keeps its "
             "calls until their deadlines; the default of 10s finds it"));
  } else if ((repeat.count() == 0 ? interval : repeat) < kGrpcBears) {
    warn("repeat", Cat(FormatDuration(repeat),
                       ": servers of gRPC end a connection with more than two PINGs in 5 minutes of their own silence "
                       "(too_many_pings), unless they are told to bear them"));
  }
}

void ParseCluster(Section& section, upstream::ClusterOptions* out, discovery::DiscoveryOptions* discovery) {
  if (section.Require("name") != nullptr) ParseName(section, "name", &out->name);
  section.Choice("policy", upstream::kPolicies, &out->policy);
  section.Choice("ring", upstream::kRings, &out->ring);
  section.Options(upstream::kClusterOptions, out);
  section.Map("discovery", [&](Section& source) { ParseDiscovery(source, discovery); });
  if (const std::string* name = DnsTargetOf(section))
    ParseDnsTarget(section, *name, discovery);
  else
    ParseList(section, /*required=*/section.Find("discovery") == nullptr, out);
  if (out->backoff_base > out->backoff_max) {
    section.Fail(section.Find("backoff_max") != nullptr ? "backoff_max" : "backoff_base",
                 Cat("backoff_base ", FormatDuration(out->backoff_base), " is above backoff_max ",
                     FormatDuration(out->backoff_max)));
  }
  if (out->ring == Ring::kXds && out->policy != Policy::kRingHash) {
    section.Fail("ring", "xds is only allowed with policy ring_hash");
  }
  if (out->ring_size_min > out->ring_size_max) {
    section.Fail(section.Find("ring_size_max") != nullptr ? "ring_size_max" : "ring_size_min",
                 Cat("ring_size_min ", out->ring_size_min, " is above ring_size_max ", out->ring_size_max));
  }
  ParseConnections(section, out);
  CheckKeepalive(section, *out, discovery->enabled());
  section.Map("tls", [&](Section& tls) { ParseClusterTls(tls, *discovery, out); });
  section.Map("rate_limit", [&](Section& rate) { ParseRate(rate, &out->rate_limit); });
  section.Map("concurrency", limits::kConcurrencyOptions, &out->concurrency);
  section.Map("endpoint_concurrency", limits::kConcurrencyOptions, &out->endpoint_concurrency);
  if (const auto& rate = out->rate_limit; rate.enabled() && rate.capped && out->concurrency.max > rate.burst) {
    section.reader().Warn(section.node(), section.PathOf("concurrency") + ".max",
                          Cat(out->concurrency.max, " is never reached: of a capped rate at most its burst, ",
                              rate.burst, ", is under way"));
  }
  section.Map("retry_budget", upstream::kRetryBudgetOptions, &out->retry_budget);
  section.Map("ejection", [&](Section& ejection) { ParseEjection(ejection, &out->ejection); });
  section.Map("slow_start", upstream::kSlowStartOptions, &out->slow_start);
  ParseLocality(section, &out->locality);
  section.Map("spill", upstream::kSpillOptions, &out->spill);
  section.Map("health", [&](Section& health) { ParseHealth(health, &out->health); });
  if (out->bounded_load > 0 && out->policy != Policy::kRingHash) {
    section.Fail("bounded_load", "is only allowed with policy ring_hash: it moves keys on along the ring");
  }
}

}  // namespace

void ParseClusters(Section& root, std::vector<upstream::ClusterOptions>* out, Discoveries* discoveries) {
  UniqueNames names;
  std::string locality;  // of the process: of the clusters that have none of their own
  ParseLocality(root, &locality);
  if (root.Require("clusters") == nullptr) return;
  const bool listed = root.Each("clusters", kClustersMax, [&](const Node& node, std::string path) {
    upstream::ClusterOptions cluster;
    cluster.locality = locality;
    discovery::DiscoveryOptions discovery;
    {
      Section section(root.reader(), node, path);
      ParseCluster(section, &cluster, &discovery);
    }
    if (!cluster.name.empty()) {
      names.Add(root.reader(), node, path, Cat("name ", Shown(cluster.name)), cluster.name);
    }
    discovery.ordered = cluster.ring == Ring::kXds;
    FinishXdsSource(cluster, &discovery);
    if (discovery.enabled()) discoveries->emplace(cluster.name, std::move(discovery));
    out->push_back(std::move(cluster));
  });
  if (listed && out->empty()) root.Fail("clusters", "is empty; at least one cluster is needed");
}

}  // namespace sluice::config
