// config/reference.yaml is complete and true: it has every key the parser knows, and their values are the defaults.
#include <gtest/gtest.h>

#include <set>

#include "config/parsers.h"

namespace sluice::config {
namespace {

std::string Path(const std::string& name) { return std::string(SLUICE_SOURCE_DIR) + "/config/" + name; }

std::string Read(const std::string& path) {
  std::string text;
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return text;
  char buffer[4096];
  for (size_t n; (n = std::fread(buffer, 1, sizeof(buffer), file)) > 0;) text.append(buffer, n);
  std::fclose(file);
  return text;
}

void CollectKeys(const Node& node, const std::string& path, std::set<std::string>* out) {
  if (node.kind == Node::Kind::kList) {
    for (const Node* item : node.items) CollectKeys(*item, path + "[]", out);
  } else if (node.kind == Node::Kind::kMap) {
    for (size_t i = 0; i < node.items.size(); i += 2) {
      const std::string key = (path.empty() ? "" : path + ".") + node.items[i]->text;
      out->insert(key);
      CollectKeys(*node.items[i + 1], key, out);
    }
  }
}

TEST(Reference, HasEveryKeyTheParserKnowsAndNoOther) {
  const std::string yaml = Read(Path("reference.yaml"));
  std::set<std::string> known;
  const ParseResult result = ParseAndListKeys(yaml, Path("reference.yaml"), &known);
  for (const ConfigError& error : result.errors) ADD_FAILURE() << error.ToString();
  YamlTree tree;
  std::vector<ConfigError> errors;
  ASSERT_TRUE(tree.Build(yaml, "reference.yaml", &errors));
  std::set<std::string> present;
  CollectKeys(tree.root(), "", &present);
  EXPECT_EQ(present, known);
  EXPECT_GT(known.size(), 130u);  // else the recording is broken
}

TEST(Reference, ItsValuesAreTheDefaults) {
  const ParseResult reference = Load(Path("reference.yaml"));
  const ParseResult defaults = Parse(R"(
listeners:
  - {address: 127.0.0.1:50051}
  - {address: 127.0.0.1:50443, tls: {certificate: tls/server.crt, key: tls/server.key,
     sni: [{certificate: tls/other.crt, key: tls/other.key}], client_ca: tls/clients-ca.crt,
     allowed_names: [spiffe://example.com/app/*]},
     trusted_proxies: {hops: 1, addresses: [10.0.0.0/8, "fd00::/8", unix], names: [proxy.example.com]},
     grpc_web: {cors: {origins: ["https://app.example.com", "https://*.example.com"], headers: [authorization], expose: [sluice-reason]}}}
clusters:
  - {name: users, endpoints: [127.0.0.1:50061]}
  - {name: users-tls, endpoints: [users.example.com:50443], tls: {ca: system, server_name: users.example.com,
     certificate: tls/client.crt, key: tls/client.key, allowed_names: [spiffe://example.com/users]}}
  - {name: users-found, discovery: {file: {path: users.yaml}}}
  - {name: users-etcd, discovery: {etcd: {servers: [etcd-1.example.com:2379, etcd-2.example.com:2379], prefix: /sluice/users/,
     user: sluice, password_file: etcd.password,
     tls: {ca: tls/etcd-ca.crt, certificate: tls/client.crt, key: tls/client.key, server_name: etcd.example.com}}}}
  - {name: users-by-name, endpoints: [dns:///users.internal:50051]}
  - {name: users-by-xds, discovery: {xds: {resource: users}}}
announce:
  - {address: 10.0.0.7:50051, locality: eu-1, etcd: {servers: [etcd-1.example.com:2379], prefix: /sluice/users/,
     user: sluice, password_file: etcd.password,
     tls: {ca: tls/etcd-ca.crt, certificate: tls/client.crt, key: tls/client.key, server_name: etcd.example.com}}}
xds: {bootstrap: xds-bootstrap.json}
access_log: {fields: [status, {field: total_ms, as: ms}, {metadata: x-user-id}, {trailer: x-cost, as: cost}]}
jwt:
  - {name: corp, jwks_file: jwks.json, issuer: "https://login.example.com", audiences: [users],
     forward_claims: [{claim: sub, metadata: x-user}]}
routes:
  - {cluster: users, name: example, jwt: {provider: corp}, service: pkg.Users, method: Get, authority: "*.example.com", hash_by: {metadata: x-user-id},
     metadata: [{name: x-tenant, exact: gold}, {name: x-version, prefix: v2}, {name: x-debug}],
     client_rate_limit: {by: {metadata: x-api-key}, rate: 10}, listeners: ["127.0.0.1:50443"],
     access: [{action: deny, status: NOT_FOUND, message: no such method,
               metadata: [{name: x-role, exact: guest}, {name: x-team, prefix: ext-}, {name: x-debug}]},
              {action: allow, clients: [spiffe://example.com/app/*]}],
     rewrite: {authority: users.internal, request: {remove: [x-debug], set: [{name: x-tenant, value: gold}], add: [{name: x-hop, value: edge}]},
       response: {remove: [server], set: [{name: x-served-by, value: sluice}], add: [{name: x-hop, value: edge}]}},
     mirror: {cluster: users-found}, failover: users-tls, retry: {methods: [Get]}, hedge: {delay: auto}, cache: {ttl: 1m, vary: [authorization, x-api-key, x-debug, x-tenant, x-user-id, x-version], errors: [NOT_FOUND]}}
  - {clusters: [{name: users, weight: 95}, {name: users-tls, weight: 5}], name: by-field, prefix: /pkg.Orders/, hash_by: {field: "3.1"}}
  - cluster: users
)",
                                     Path("defaults"));
  ASSERT_TRUE(reference.ok());
  ASSERT_TRUE(defaults.ok());
  // Part by part first, for a message that says where.
  EXPECT_EQ(reference.config.listeners, defaults.config.listeners);
  EXPECT_EQ(reference.config.listeners[0].http2, http2::SessionOptions());
  EXPECT_EQ(reference.config.listeners[0].life, http2::LifeOptions());
  EXPECT_EQ(reference.config.clusters[0].life, upstream::ClusterOptions().life);
  EXPECT_EQ(reference.config.connections_max, Config().connections_max);
  EXPECT_EQ(reference.config.buffered_bytes_max, Config().buffered_bytes_max);
  EXPECT_EQ(reference.config.clusters[0].http2, upstream::ClusterOptions().http2);
  EXPECT_EQ(reference.config.clusters, defaults.config.clusters);
  EXPECT_EQ(reference.config.jwt, defaults.config.jwt);
  EXPECT_EQ(reference.config.routes[0], defaults.config.routes[0]);
  EXPECT_EQ(reference.config.routes[1], defaults.config.routes[1]);
  EXPECT_EQ(reference.config.routes[2], defaults.config.routes[2]);
  EXPECT_EQ(reference.config.routes[2].rate_limit, limits::RateOptions());
  EXPECT_EQ(reference.config.concurrency, limits::ConcurrencyOptions());
  EXPECT_EQ(reference.config.cache, proxy::CacheOptions());
  EXPECT_EQ(reference.config.runtime, runtime::RuntimeOptions());
  EXPECT_EQ(reference.config.admin, AdminOptions());
  EXPECT_EQ(reference.config.log, LogOptions());
  EXPECT_EQ(reference.config, defaults.config);
}

TEST(Reference, TheOtherExamplesParse) {
  for (const char* name : {"quickstart.yaml", "minimal.yaml", "cached.yaml", "production.yaml"}) {
    for (const ConfigError& error : Load(Path(name)).errors) ADD_FAILURE() << error.ToString();
  }
  const Config quickstart = Load(Path("quickstart.yaml")).config;
  ASSERT_EQ(quickstart.clusters.size(), 1u);
  ASSERT_EQ(quickstart.clusters[0].endpoints.size(), 3u);
  EXPECT_EQ(quickstart.clusters[0].endpoints[2].name, "echo-3");
  EXPECT_EQ(quickstart.clusters[0].endpoints[2].address.ToString(), "127.0.0.1:7103");
  EXPECT_EQ(quickstart.admin.grpc, "unix:/tmp/sluice-quickstart.sock");
}

}  // namespace
}  // namespace sluice::config
