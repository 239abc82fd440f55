// A dump says every key, and is read as the configuration that it was made of.
#include "config/dump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "config/file_text.h"
#include "config/parsers.h"

namespace sluice::config {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Path(const std::string& name) { return std::string(SLUICE_SOURCE_DIR) + "/config/" + name; }

// What is read from the dump of `config`, which is to be the same.
ParseResult Again(const Config& config, const DumpOptions& options = {}) {
  const std::string dump = Dump(config, options);
  ParseResult again = Parse(dump, "dump");
  for (const ConfigError& error : again.errors) ADD_FAILURE() << error.ToString() << "\n" << dump;
  return again;
}

TEST(Dump, TheExamplesAreReadAgain) {
  for (const char* name : {"reference.yaml", "quickstart.yaml", "minimal.yaml", "cached.yaml", "production.yaml"}) {
    const ParseResult result = Load(Path(name));
    ASSERT_TRUE(result.ok()) << name;
    const ParseResult again = Again(result.config);
    EXPECT_EQ(again.config.listeners, result.config.listeners) << name;
    EXPECT_EQ(again.config.clusters, result.config.clusters) << name;
    EXPECT_EQ(again.config.routes, result.config.routes) << name;
    EXPECT_EQ(again.config, result.config) << name;
    EXPECT_EQ(Dump(again.config), Dump(result.config)) << name;
  }
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

// The reference has every key that there is: what its dump lacks was forgotten.
TEST(Dump, SaysEveryKeyThatTheParserKnows) {
  const ParseResult reference = Load(Path("reference.yaml"));
  std::set<std::string> known, said;
  auto text = ReadText(Path("reference.yaml"));
  ASSERT_TRUE(text.ok());
  ParseAndListKeys(*text, Path("reference.yaml"), &known);
  YamlTree tree;
  std::vector<ConfigError> errors;
  ASSERT_TRUE(tree.Build(Dump(reference.config), "dump", &errors));
  CollectKeys(tree.root(), "", &said);
  known.erase("include");   // its files are in the dump
  known.erase("locality");  // each cluster says its own
  EXPECT_EQ(said, known);
  EXPECT_GT(said.size(), 130u);
}

// No value is the default, and no two of one kind are alike.
constexpr char kUnusual[] = R"(
workers: 3
blocking_threshold: 11ms
blocking_threads: 5
connections_max: 101
drain_timeout: 12s
memory: {buffered_bytes_max: 17MiB}
concurrency: {max: 13, queue: 14}
state_file: state/s.txt
hash_seed: "a \"b\" \\ $${x # 'ü' - : \x01\t$$$${y} $$"
locality: eu 1
listeners:
  - {address: "[::1]:7070", name: "*", unix_mode: "0640", backlog: 15, connections_max: 16, connections_per_peer_max: 18,
     headers_timeout: 1s, send_timeout: 2s, stall_timeout: 3s, body_timeout: 4s, idle_timeout: 5s, age_max: 6s,
     age_grace: 7s, abuse_delay: 8s, keepalive: {interval: 9s, timeout: 10s, repeat: 11s},
     http2: {concurrent_streams_max: 21, stream_window_bytes: 70000, header_count_max: 22, pings_per_second: 23}}
  - {address: unix:/run/x.sock, paths: any, trusted_proxies: {hops: 3, addresses: [10.0.0.0/8, unix]}}
  - {address: 127.0.0.1:1, tls: {certificate: a.crt, key: a.key, min_version: "1.3", handshake_timeout: 1s,
     handshakes_max: 2}}
  - {address: 127.0.0.1:2, tls: {certificate: b.crt, key: b.key, client_ca: c.crt, require_client_certificate: false}}
clusters:
  - {name: "off", policy: least_request, endpoints: [{address: b:1, name: "b,", weight: 0.01, priority: 7, locality: ""}],
     connect_timeout: 31ms, backoff_base: 32ms, backoff_max: 33ms, connections_max: 34, pending_calls_max: 35,
     pending_timeout: 37ms, drain_timeout: 36ms, rate_limit: {rate: 0.333, burst: 41, capped: true, queue: 42}, concurrency: {max: 43, queue: 44},
     endpoint_concurrency: {max: 45, queue: 46}, retry_budget: {ratio: 0.1, min_per_second: 47}, locality: "",
     ejection: {enabled: false, consecutive: 48, error_rate: 0.07, stuck: 0, slow: {factor: 0, floor: 1ms},
       min_available: 0.9, base: 2s, max: 3s},
     spill: {headroom: 9.5}, slow_start: {window: 1m, first: 0.5}, keepalive: {interval: 0, timeout: 1s, repeat: 2s},
     health: {mode: watch, service: a.B, interval: 1s, timeout: 200ms, fall: 4, rise: 5}, http2: {frame_bytes_max: 17KiB},
     idle_timeout: 51s}
  - {name: ring, ring: xds, ring_size_min: 5, ring_size_max: 6, bounded_load: 1.3, endpoints: []}
  - {name: dns, endpoints: ["dns://10.0.0.2/a.b:1"], tls: {ca: system, min_version: "1.3"}}
  - {name: srv, discovery: {dns: {name: a.b., records: srv, mode: one, servers: ["[::1]:53"]}, moved_max: 0.1,
     empty_after: 1s, ready_timeout: 2s, changes_by_rpc: override},
     tls: {ca: ca.crt, allowed_names: [CN=a b, spiffe://a/b]}}
  - {name: file, discovery: {file: {path: list.yaml}}, endpoints: [c:1, "unix:/x"]}
  - {name: etcd, discovery: {etcd: {servers: ["[::1]:1", a:2], prefix: /a/}}}
announce:
  - {address: a:1, lease: 3s, weight: 2, priority: 3, locality: x, name: n, etcd: {servers: [a:1], prefix: /b/,
     tls: {}}}
routes:
  - {name: r/1, service: a.B, method: Get, authority: "*.x.y", cluster: ring, failover: dns, hash_by: method, timeout: 61ms,
     metadata: [{name: a, exact: ""}, {name: b, prefix: "p "}, {name: c, present: true}],
     retry: {attempts: 1, buffer: 1KiB, methods: [Get], on: [], per_try_timeout: 62ms, backoff: {base: 63ms, max: 64ms}},
     hedge: {delay: 65ms, max: 0}, rate_limit: {rate: 1, burst: 66, queue: 67},
     client_rate_limit: {by: {metadata: k, repeated: last}, rate: 2, burst: 68, queue: 69, clients_max: 70},
     cache: {ttl: 71ms, vary: [k, z], shared: true, errors: [NOT_FOUND, UNKNOWN], error_ttl: 72ms,
       stale_while_revalidate: 73ms, stale_if_unavailable: 74ms, fetch_timeout: 75ms}}
  - {prefix: /c, cluster: ring, hash_by: {field: "3.1", bytes_max: 76}, retry: {methods: all, on: [OUT_OF_RANGE, ABORTED]},
     hedge: {delay: auto}, client_rate_limit: {rate: 0, clients_max: 77}}
  - {service: d.E, cluster: ring, hash_by: {metadata: m, repeated: first}, retry: {methods: none}, hedge: {delay: 78ms},
     client_rate_limit: {rate: 3}, cache: {ttl: 79ms, methods: [A, {name: B, ttl: 80ms}], vary: [m]}}
  - {clusters: [{name: etcd, weight: 0}, {name: file, weight: 1000000}], hash_by: peer,
     rewrite: {authority: "[::1]:5", request: {remove: [o], set: [{name: p, value: "a b"}, {name: q-bin, value: AA==}],
       add: [{name: p, value: c}, {name: p, value: d}]}, response: {remove: [r], set: [{name: s, value: e}], add: [{name: t, value: f}]}},
     mirror: {cluster: ring, percent: 0.5, compare: true, calls_max: 91, bytes_max: 92, timeout: 93ms}}
cache: {capacity: 2MiB, entry_max: 3KiB, request_max: 0, entry_expected: 300, strict: true, doorkeeper: true, fetches_max: 81}
admin: {grpc: "127.0.0.1:9", http: "[::1]:10", tls: {certificate: d.crt, key: d.key, client_ca: e.crt},
  roles: {read: [a.b], write: [CN=c]}}
log: {level: "off", format: json, path: x.log}
access_log: {format: "off", path: y.log, buffer: 512KiB, fields: [time, {field: status, as: s}, {metadata: m}, {trailer: t, as: u}]}
tracing: {endpoint: "a.b:4317", service_name: x, sample: {parent: false, errors: false, slower_than: 9ms, ratio: 0.3},
  propagate: all, buffer: 65KiB, batch: 82, export_timeout: 53s}
drain: {delay: 84ms}
forwarding: {x_forwarded: true, via: true, request_id: keep}
insight: {failed_calls: 7, hot_keys: shown}
)";

TEST(Dump, WhatIsNoDefaultIsReadAgain) {
  const ParseResult result = Parse(kUnusual, "f");
  for (const ConfigError& error : result.errors) ADD_FAILURE() << error.ToString();
  ASSERT_TRUE(result.ok());
  const ParseResult again = Again(result.config);
  EXPECT_EQ(again.config.listeners, result.config.listeners);
  for (size_t i = 0; i < result.config.clusters.size(); ++i) {
    EXPECT_EQ(again.config.clusters.at(i), result.config.clusters[i]) << i;
  }
  EXPECT_EQ(again.config.discovery, result.config.discovery);
  for (size_t i = 0; i < result.config.routes.size(); ++i) {
    EXPECT_EQ(again.config.routes.at(i), result.config.routes[i]) << i;
  }
  EXPECT_EQ(again.config.hash_seed, result.config.hash_seed);
  EXPECT_EQ(again.config.access_log, result.config.access_log);
  EXPECT_EQ(again.config, result.config);
}

TEST(Dump, FieldsAndMethodsOfADescriptorSetAreReadAgain) {
  // Methods that the descriptor set declares are found again, those that are listed are said.
  ParseResult result = Parse("listeners: [{address: 127.0.0.1:1}]\nclusters: [{name: a, endpoints: [b:1]}]\n", "f");
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.config.routes[0].name, "default");
  EXPECT_THAT(Dump(result.config), HasSubstr("routes:\n  - name: default\n"));
  EXPECT_THAT(Dump(result.config), Not(HasSubstr("methods:")));
  EXPECT_EQ(Again(result.config).config, result.config);
  result.config.descriptor_set = "x.pb";
  EXPECT_THAT(Dump(result.config), HasSubstr("methods: declared"));
}

TEST(Dump, RelativeFilesAreBelowTheFolder) {
  const Config config = Parse(kUnusual, "sub/f").config;
  const std::string dump = Dump(config, {"/srv/x", false});
  EXPECT_THAT(dump, HasSubstr("certificate: \"/srv/x/sub/a.crt\""));
  EXPECT_THAT(dump, HasSubstr("path: \"/srv/x/sub/list.yaml\""));
  EXPECT_THAT(dump, HasSubstr("state_file: \"/srv/x/state/s.txt\""));
  EXPECT_THAT(dump, HasSubstr("ca: system"));
}

TEST(Dump, TheSeedOfTheFleetMayBeHidden) {
  Config config;
  config.hash_seed = "s3cret";
  const std::string hidden = Dump(config, {"", true});
  EXPECT_THAT(hidden, Not(HasSubstr("s3cret")));
  EXPECT_THAT(hidden, HasSubstr("hash_seed: \"(hidden; its mark is "));
  EXPECT_EQ(hidden, Dump(config, {"", true}));
  config.hash_seed = "s3cre7";
  EXPECT_NE(hidden, Dump(config, {"", true}));
  EXPECT_THAT(Dump(Config(), {"", true}), HasSubstr("hash_seed: \"\"\n"));
}

}  // namespace
}  // namespace sluice::config
