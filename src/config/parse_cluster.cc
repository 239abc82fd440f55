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

// False after reporting. `at` is where: the endpoint itself, or its key `address`.
bool ParseEndpointAddress(Reader& reader, const Node& at, const std::string& path, const std::string& text,
                          net::Address* out) {
  auto address = net::Address::Parse(text);
  if (!address.ok()) {
    reader.Fail(at, path, address.error().detail);
    return false;
  }
  if (address->kind() != net::Address::Kind::kUnix && address->port() == 0) {
    reader.Fail(at, path, Cat(Shown(text), ": port 0 cannot be connected to; allowed: [1, 65535]"));
    return false;
  }
  *out = std::move(*address);
  return true;
}

void ParseLocality(Section& section, std::string* out) {
  std::string text;
  if (!section.Text("locality", &text)) return;
  if (upstream::IsLocality(text)) {
    *out = std::move(text);
  } else {
    section.Fail("locality",
                 Cat(Shown(text), " is not printable ASCII of at most ", upstream::kLocalityBytesMax, " bytes"));
  }
}

// Either "host:port" or a map. An endpoint with an empty name was wrong.
void ParseEndpoint(Reader& reader, const Node& node, const std::string& path, upstream::EndpointOptions* out) {
  if (node.kind == Node::Kind::kScalar) {
    if (ParseEndpointAddress(reader, node, path, node.text, &out->address)) out->name = out->address.ToString();
    return;
  }
  if (node.kind != Node::Kind::kMap) {
    reader.Fail(node, path, "is not an endpoint; allowed: host:port, or {address: host:port, name: ..., weight: ...}");
    return;
  }
  Section section(reader, node, path);
  std::string text;
  if (const Node* at = section.Require("address"); at != nullptr && section.Text("address", &text)) {
    if (ParseEndpointAddress(reader, *at, section.PathOf("address"), text, &out->address)) {
      out->name = out->address.ToString();
    }
  }
  ParseName(section, "name", &out->name);
  section.Options(upstream::kEndpointOptions, out);
  ParseLocality(section, &out->locality);
}

void ParseEndpoints(Section& section, upstream::ClusterOptions* cluster) {
  UniqueNames names;
  double weights = 0;
  section.Require("endpoints");
  section.Each("endpoints", upstream::kEndpointsMax, [&](const Node& node, std::string path) {
    upstream::EndpointOptions endpoint;
    ParseEndpoint(section.reader(), node, path, &endpoint);
    if (endpoint.name.empty()) return;
    names.Add(section.reader(), node, path, Cat("name ", Shown(endpoint.name)), endpoint.name);
    weights += endpoint.weight;
    cluster->endpoints.push_back(std::move(endpoint));
  });
  const double points = weights * cluster->ring_points;
  if (cluster->policy == Policy::kRingHash && points > static_cast<double>(upstream::kRingPointsMax)) {
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

void ParseCluster(Section& section, upstream::ClusterOptions* out) {
  if (section.Require("name") != nullptr) ParseName(section, "name", &out->name);
  section.Choice("policy", upstream::kPolicies, &out->policy);
  section.Options(upstream::kClusterOptions, out);
  ParseEndpoints(section, out);
  if (out->backoff_base > out->backoff_max) {
    section.Fail(section.Find("backoff_max") != nullptr ? "backoff_max" : "backoff_base",
                 Cat("backoff_base ", FormatDuration(out->backoff_base), " is above backoff_max ",
                     FormatDuration(out->backoff_max)));
  }
  ParseConnections(section, out);
  section.Map("tls", [&](Section& tls) { ParseClusterTls(tls, out); });
  section.Map("rate_limit", [&](Section& rate) { ParseRate(rate, &out->rate_limit); });
  section.Map("concurrency", limits::kConcurrencyOptions, &out->concurrency);
  section.Map("endpoint_concurrency", limits::kConcurrencyOptions, &out->endpoint_concurrency);
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

void ParseClusters(Section& root, std::vector<upstream::ClusterOptions>* out) {
  UniqueNames names;
  std::string locality;  // of the process: of the clusters that have none of their own
  ParseLocality(root, &locality);
  if (root.Require("clusters") == nullptr) return;
  const bool listed = root.Each("clusters", kClustersMax, [&](const Node& node, std::string path) {
    upstream::ClusterOptions cluster;
    cluster.locality = locality;
    {
      Section section(root.reader(), node, path);
      ParseCluster(section, &cluster);
    }
    if (!cluster.name.empty()) {
      names.Add(root.reader(), node, path, Cat("name ", Shown(cluster.name)), cluster.name);
    }
    out->push_back(std::move(cluster));
  });
  if (listed && out->empty()) root.Fail("clusters", "is empty; at least one cluster is needed");
}

}  // namespace sluice::config
