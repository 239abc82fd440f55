// Clusters and their endpoints.
#include <array>
#include <cmath>
#include <map>

#include "config/parsers.h"
#include "config/text.h"
#include "config/values.h"

namespace sluice::config {
namespace {

using namespace std::chrono_literals;
using upstream::Policy;

constexpr std::array<std::pair<std::string_view, Policy>, 3> kPolicies = {{
    {"ring_hash", Policy::kRingHash},
    {"round_robin", Policy::kRoundRobin},
    {"least_request", Policy::kLeastRequest},
}};

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
  section.Decimal("weight", {0.01, 100}, &out->weight);
}

void ParseEndpoints(Section& section, upstream::ClusterOptions* cluster) {
  std::map<std::string, std::string> names;
  double weights = 0;
  section.Require("endpoints");
  section.Each("endpoints", upstream::kEndpointsMax, [&](const Node& node, std::string path) {
    upstream::EndpointOptions endpoint;
    ParseEndpoint(section.reader(), node, path, &endpoint);
    if (endpoint.name.empty()) return;
    const auto [first, added] = names.emplace(endpoint.name, path);
    if (!added) {
      section.reader().Fail(node, path, Cat("name ", Shown(endpoint.name), " is also that of ", first->second));
    }
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

void ParseCluster(Reader& reader, const Node& node, std::string path, upstream::ClusterOptions* out) {
  Section section(reader, node, std::move(path));
  if (section.Require("name") != nullptr) ParseName(section, "name", &out->name);
  section.Choice<Policy>("policy", kPolicies, &out->policy);
  section.Number("ring_points", {1, 10000}, &out->ring_points);
  ParseEndpoints(section, out);
  section.Duration("connect_timeout", {1ms, 10min}, &out->connect_timeout);
  section.Duration("backoff_base", {1ms, 1h}, &out->backoff_base);
  section.Duration("backoff_max", {1ms, 1h}, &out->backoff_max);
  if (out->backoff_base > out->backoff_max) {
    section.Fail(section.Find("backoff_max") != nullptr ? "backoff_max" : "backoff_base",
                 Cat("backoff_base ", FormatDuration(out->backoff_base), " is above backoff_max ",
                     FormatDuration(out->backoff_max)));
  }
  section.Number("connections_max", {1, 1024}, &out->connections_max);
  section.Number("pending_calls_max", {1, 1000000}, &out->pending_calls_max);
  section.Duration("drain_timeout", {0ms, 1h}, &out->drain_timeout);
  ParseLife(section, &out->life);
  if (const Node* keepalive = section.Find("keepalive")) {
    ParseKeepalive(reader, *keepalive, section.PathOf("keepalive"), &out->keepalive);
  }
  if (const Node* http2 = section.Find("http2")) {
    ParseSession(reader, *http2, section.PathOf("http2"), &out->http2);
  }
  if (const Node* tls = section.Find("tls")) ParseClusterTls(reader, *tls, section.PathOf("tls"), out);
  if (const Node* rate = section.Find("rate_limit")) {
    ParseRate(reader, *rate, section.PathOf("rate_limit"), &out->rate_limit);
  }
  if (const Node* node = section.Find("concurrency")) {
    ParseConcurrency(reader, *node, section.PathOf("concurrency"), &out->concurrency);
  }
  if (const Node* node = section.Find("endpoint_concurrency")) {
    ParseConcurrency(reader, *node, section.PathOf("endpoint_concurrency"), &out->endpoint_concurrency);
  }
  section.DecimalOrZero("bounded_load", {1.01, 100}, &out->bounded_load);
  if (out->bounded_load > 0 && out->policy != Policy::kRingHash) {
    section.Fail("bounded_load", "is only allowed with policy ring_hash: it moves keys on along the ring");
  }
}

}  // namespace

void ParseClusters(Section& root, std::vector<upstream::ClusterOptions>* out) {
  std::map<std::string, std::string> names;
  if (root.Require("clusters") == nullptr) return;
  const bool listed = root.Each("clusters", kClustersMax, [&](const Node& node, std::string path) {
    upstream::ClusterOptions cluster;
    ParseCluster(root.reader(), node, path, &cluster);
    if (!cluster.name.empty()) {
      const auto [first, added] = names.emplace(cluster.name, path);
      if (!added) {
        root.reader().Fail(node, path, Cat("name ", Shown(cluster.name), " is also that of ", first->second));
      }
    }
    out->push_back(std::move(cluster));
  });
  if (listed && out->empty()) root.Fail("clusters", "is empty; at least one cluster is needed");
}

}  // namespace sluice::config
