// Where the calls of a route go: its cluster, or several that share them, the one that steps in, and the
// one where they are made a second time.
#include <algorithm>

#include "config/parsers.h"
#include "config/text.h"
#include "config/values.h"
#include "proxy/option_table.h"

namespace sluice::config {
namespace {

using proxy::RouteOptions;
using proxy::WeightedCluster;

void ParseWeighted(Section& section, const std::vector<upstream::ClusterOptions>& clusters, RouteOptions* out) {
  uint64_t sum = 0;
  const size_t errors_before = section.reader().error_count();
  const bool listed = section.Each("clusters", kRouteClustersMax, [&](const Node& node, std::string path) {
    Section item(section.reader(), node, std::move(path));
    WeightedCluster parsed;
    item.Require("name");
    item.Require("weight");
    item.Options(proxy::kWeightedClusterOptions, &parsed);
    sum += parsed.weight;
    if (!ParseClusterName(item, "name", clusters, &parsed.name)) return;
    if (std::ranges::find(out->clusters, parsed.name, &WeightedCluster::name) != out->clusters.end())
      return item.Fail("name", Cat(Shown(parsed.name), " is there twice"));
    out->clusters.push_back(std::move(parsed));
  });
  if (!listed || section.reader().error_count() != errors_before) return;
  if (out->clusters.empty()) return section.Fail("clusters", "is empty; at least one is needed, or `cluster`");
  if (sum == 0)
    section.Fail("clusters", "has no weight above 0, so that no cluster takes a call; at least one is needed");
  out->cluster = out->clusters.front().name;
}

}  // namespace

void ParseMirror(Section& section, const std::vector<upstream::ClusterOptions>& clusters, const RouteOptions& route,
                 proxy::MirrorOptions* out) {
  section.Require("cluster");
  section.Options(proxy::kMirrorOptions, out);
  if (!ParseClusterName(section, "cluster", clusters, &out->cluster)) return;
  const bool own = out->cluster == route.cluster || out->cluster == route.failover ||
                   std::ranges::find(route.clusters, out->cluster, &WeightedCluster::name) != route.clusters.end();
  if (own)
    section.Fail("cluster",
                 Cat(Shown(out->cluster), " takes the route's calls already, or as failover; another one is needed"));
}

void ParseRouteClusters(Section& section, const std::vector<upstream::ClusterOptions>& clusters, RouteOptions* out) {
  ParseClusterName(section, "failover", clusters, &out->failover);
  if (section.Find("clusters") == nullptr) {
    section.Require("cluster");
    ParseClusterName(section, "cluster", clusters, &out->cluster);
  } else {
    ParseWeighted(section, clusters, out);
    if (section.Find("cluster") != nullptr) section.Fail("cluster", "is not allowed together with clusters");
  }
  // There are no longer circles: a cluster has no failover of its own. One of several may step in for the others.
  const bool only = out->clusters.size() <= 1;
  if (only && !out->failover.empty() && out->failover == out->cluster) {
    section.Fail("failover", Cat(Shown(out->failover), " is the route's own cluster; another one is needed"));
  }
}

}  // namespace sluice::config
