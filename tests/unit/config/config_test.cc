// Config: a good file becomes the value it says; a bad one, all its mistakes with their places.
#include "config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

namespace sluice::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

std::vector<std::string> ErrorsOf(std::string_view yaml) {
  std::vector<std::string> out;
  for (const ConfigError& error : Parse(yaml, "f").errors) out.push_back(error.ToString());
  return out;
}

// A legal file but for what a test adds.
std::string With(std::string_view more) {
  return "listeners: [{address: 127.0.0.1:1}]\nclusters: [{name: users, endpoints: [a:1]}]\n" + std::string(more);
}
std::string WithListener(std::string_view keys) {
  return "clusters: [{name: users, endpoints: [a:1]}]\nlisteners:\n  - " + std::string(keys) + "\n";
}
std::string WithCluster(std::string_view keys) {
  return "listeners: [{address: 127.0.0.1:1}]\nclusters:\n  - " + std::string(keys) + "\n";
}
std::string WithRoute(std::string_view keys) { return With("routes:\n  - " + std::string(keys) + "\n"); }

TEST(Config, TenLinesAreEnoughForOneService) {
  const ParseResult result = Parse(R"(
listeners: [{address: 127.0.0.1:50051}]
clusters:
  - name: users
    endpoints: [127.0.0.1:50061, "[::0001]:50062", {address: "10.0.0.7:50051", name: c, weight: 2}]
routes:
  - {cluster: users, hash_by: {metadata: x-user-id}}
)",
                                   "f");
  ASSERT_TRUE(result.ok()) << result.errors[0].ToString();
  const Config& config = result.config;
  EXPECT_EQ(config.listeners.at(0).name, "127.0.0.1:50051");
  EXPECT_EQ(config.listeners.at(0).address.port(), 50051);
  const auto& endpoints = config.clusters.at(0).endpoints;
  ASSERT_EQ(endpoints.size(), 3u);
  EXPECT_EQ(endpoints[0].name, "127.0.0.1:50061");
  EXPECT_EQ(endpoints[0].weight, 1.0);
  EXPECT_EQ(endpoints[1].name, "[::1]:50062");
  EXPECT_EQ(endpoints[2].name, "c");
  EXPECT_EQ(endpoints[2].weight, 2.0);
  EXPECT_EQ(config.routes.at(0).name, "routes[0]");
  EXPECT_EQ(config.routes.at(0).hash_by.kind, proxy::HashBy::Kind::kMetadata);
  EXPECT_EQ(config.routes.at(0).hash_by.metadata.text(), "x-user-id");
}

TEST(Config, OneClusterNeedsNoRoutes) {
  const ParseResult result = Parse(With(""), "f");
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result.config.routes.size(), 1u);
  EXPECT_EQ(result.config.routes[0].cluster, "users");
  EXPECT_TRUE(result.config.routes[0].service.empty() && result.config.routes[0].prefix.empty());
}

TEST(Config, EveryKindOfValueReachesItsField) {
  const ParseResult result = Parse(R"(
workers: 3
blocking_threshold: 0
blocking_threads: 7
listeners:
  - {name: in, address: "unix:/run/a", unix_mode: "0600", connections_max: 5, backlog: 6, connections_per_peer_max: 7,
     headers_timeout: 1s, send_timeout: 2s, stall_timeout: 3s, body_timeout: 4s, idle_timeout: 5s, age_max: 6s, age_grace: 7s,
     keepalive: {interval: 2m, timeout: 1s},
     http2: {concurrent_streams_max: 7, stream_window_bytes: 1MiB, header_table_bytes: 0, queued_bytes_max: 5GiB}}
clusters:
  - {name: a, endpoints: [], policy: least_request, ring_points: 9, ring_size_min: 5, ring_size_max: 6, connect_timeout: 250ms, backoff_base: 1s, backoff_max: 1s,
     connections_max: 2, pending_calls_max: 1, drain_timeout: 0, idle_timeout: 1h, age_max: 2h, keepalive: {interval: 10s}, http2: {header_count_max: 9}}
routes:
  - {name: r, service: p.S, method: M, authority: "*.b.c", timeout: 5s, cluster: a, hash_by: peer, retry: {attempts: 1, buffer: 0},
     metadata: [{name: x, exact: v}, {name: y, prefix: w}, {name: z}]}
  - {prefix: /p, cluster: a, hash_by: method}
admin: {grpc: "", http: "[::1]:9901"}
log: {level: off, path: /l}
access_log: {format: json, path: /a, buffer: 1MiB, fields: [time, {field: path, as: p}, {metadata: x-user}, {trailer: x-cost, as: c}]}
forwarding: {x_forwarded: true, via: true, request_id: replace}
memory: {buffered_bytes_max: 64MiB}
connections_max: 77
state_file: /s
drain_timeout: 1m
hash_seed: 12345
)",
                                   "f");
  ASSERT_TRUE(result.ok()) << result.errors[0].ToString();
  const Config& c = result.config;
  EXPECT_EQ(c.runtime, (runtime::RuntimeOptions{3, 0ms, 7}));
  const auto& listener = c.listeners.at(0);
  EXPECT_EQ(listener.name, "in");
  EXPECT_EQ(listener.unix_mode, 0600u);
  EXPECT_EQ(listener.connections_max, 5u);
  EXPECT_EQ(listener.backlog, 6u);
  EXPECT_EQ(listener.connections_per_peer_max, 7u);
  EXPECT_EQ(listener.life, (http2::LifeOptions{1000ms, 2000ms, 3000ms, 4000ms, 5000ms, 6000ms, 7000ms}));
  EXPECT_EQ(c.connections_max, 77u);
  EXPECT_EQ(c.buffered_bytes_max, 64u << 20);
  EXPECT_EQ(listener.keepalive, (http2::KeepaliveOptions{120000ms, 1000ms}));
  EXPECT_EQ(listener.http2.concurrent_streams_max, 7u);
  EXPECT_EQ(listener.http2.stream_window_bytes, 1u << 20);
  EXPECT_EQ(listener.http2.queued_bytes_max, uint64_t{5} << 30);
  EXPECT_EQ(listener.http2.header_table_bytes, 0u);
  const auto& cluster = c.clusters.at(0);
  EXPECT_EQ(cluster.policy, upstream::Policy::kLeastRequest);
  EXPECT_EQ(cluster.ring_points, 9u);
  EXPECT_EQ(cluster.ring, upstream::Ring::kSluice);
  EXPECT_EQ(cluster.ring_size_min, 5u);
  EXPECT_EQ(cluster.ring_size_max, 6u);
  EXPECT_EQ(cluster.connect_timeout, 250ms);
  EXPECT_EQ(cluster.backoff_base, 1000ms);
  EXPECT_EQ(cluster.backoff_max, 1000ms);
  EXPECT_EQ(cluster.connections_max, 2u);
  EXPECT_EQ(cluster.pending_calls_max, 1u);
  EXPECT_EQ(cluster.drain_timeout, 0ms);
  EXPECT_EQ(cluster.life, (http2::LifeOptions{.idle_timeout = 3600000ms, .age_max = 7200000ms}));
  EXPECT_EQ(cluster.keepalive.interval, 10000ms);
  EXPECT_EQ(cluster.http2.header_count_max, 9u);
  const auto& route = c.routes.at(0);
  EXPECT_EQ(route.name + route.service + route.method + route.authority, "rp.SM*.b.c");
  EXPECT_EQ(route.timeout, 5000ms);
  EXPECT_EQ(route.hash_by.kind, proxy::HashBy::Kind::kPeer);
  EXPECT_EQ(route.retry, (proxy::RetryOptions{1, 0}));
  using Match = proxy::MetadataMatch;
  EXPECT_THAT(route.metadata, ElementsAre(Match{"x", Match::Kind::kExact, "v"}, Match{"y", Match::Kind::kPrefix, "w"},
                                          Match{"z", Match::Kind::kPresent, ""}));
  EXPECT_EQ(c.routes.at(1).prefix, "/p");
  EXPECT_EQ(c.routes.at(1).hash_by.kind, proxy::HashBy::Kind::kMethod);
  EXPECT_EQ(c.admin, (AdminOptions{.grpc = "", .http = "[::1]:9901"}));
  EXPECT_EQ(c.log, (LogOptions{LogLevel::kOff, "/l"}));
  using Source = proxy::AccessLogField::Source;
  EXPECT_EQ(c.access_log, (proxy::AccessLogOptions{proxy::AccessLogOptions::Format::kJson,
                                                   "/a",
                                                   {{.field = proxy::AccessField::kTime},
                                                    {.field = proxy::AccessField::kPath, .as = "p"},
                                                    {Source::kMetadata, {}, "x-user", ""},
                                                    {Source::kTrailer, {}, "x-cost", "c"}},
                                                   1 << 20}));
  EXPECT_TRUE(c.forwarding.x_forwarded && c.forwarding.via);
  EXPECT_EQ(c.forwarding.request_id, proxy::RequestIds::kReplace);
  EXPECT_EQ(c.state_file, "/s");
  EXPECT_EQ(c.drain_timeout, 60000ms);
  EXPECT_EQ(c.hash_seed, "12345");
}

TEST(Config, ReportsAllMistakesInTheOrderOfTheFile) {
  EXPECT_THAT(
      ErrorsOf(R"(wrokers: 2
listeners:
  - address: 127.0.0.1
  - {address: "[::1]:50051", backlog: 0}
  - {address: "[0:0::1]:50051"}
clusters:
  - name: users
    ring_points: many
    ring_points: 7
    endpoints: [10.0.0.1:50051, 10.0.0.1:50051, 10.0.0.300:1, [x]]
    connect_timeout: 500
  - endpoints: [{address: "b:0", weight: 1000}]
    policy: random
    keepalive: {interval: -5s}
  - {name: users, endpoints: [a:1]}
routes:
  - {cluster: user}
  - {cluster: users, hash_by: {metadata: X-User}}
  - {cluster: users, method: Get}
  - cluster: users
  - {cluster: users, service: pkg.Users}
log: {level: verbose}
forwarding: {via: yes}
admin: {http: localhost:9901, grpc: "[::1]:50051"}
drain_timeout: 2h
)"),
      ElementsAre("f:1:1: wrokers: unknown key; did you mean \"workers\"?",
                  "f:3:14: listeners[0].address: \"127.0.0.1\": no port; allowed: host:port, [IPv6]:port, unix:/path",
                  "f:4:39: listeners[1].backlog: \"0\" is not a whole number in [1, 65535]",
                  "f:5:5: listeners[2]: address [::1]:50051 is also that of listeners[1]",
                  "f:8:18: clusters[0].ring_points: \"many\" is not a whole number in [1, 10000]",
                  "f:9:5: clusters[0].ring_points: the key is there twice",
                  "f:10:33: clusters[0].endpoints[1]: name \"10.0.0.1:50051\" is also that of "
                  "clusters[0].endpoints[0]",
                  "f:10:49: clusters[0].endpoints[2]: \"10.0.0.300:1\": no IPv4 address: four numbers in [0, 255] "
                  "without leading "
                  "zeros",
                  "f:10:63: clusters[0].endpoints[3]: is not an endpoint; allowed: host:port, or {address: "
                  "host:port, name: ..., "
                  "weight: ...}",
                  "f:11:22: clusters[0].connect_timeout: \"500\" is not a time in [1ms, 10m] (with a unit: ms, s, m, "
                  "h)",
                  "f:12:5: clusters[1].name: is missing",
                  "f:12:27: clusters[1].endpoints[0].address: \"b:0\": port 0 cannot be connected to; allowed: [1, "
                  "65535]",
                  "f:12:42: clusters[1].endpoints[0].weight: \"1000\" is not a number in [0.01, 100]",
                  "f:13:13: clusters[1].policy: \"random\" is not one of: ring_hash, round_robin, least_request",
                  "f:14:27: clusters[1].keepalive.interval: \"-5s\" is not a time in [0, 24h] (with a unit: ms, s, "
                  "m, h)",
                  "f:15:5: clusters[2]: name \"users\" is also that of clusters[0]",
                  "f:17:15: routes[0].cluster: no cluster is named \"user\"; did you mean \"users\"?",
                  "f:18:42: routes[1].hash_by.metadata: \"X-User\" is not a metadata name: lower case letters, "
                  "digits, - _ . and "
                  "such",
                  "f:19:30: routes[2].method: is only allowed together with service",
                  "f:21:5: routes[4]: never takes a call: routes[3] before it takes them all",
                  "f:22:14: log.level: \"verbose\" is not one of: trace, debug, info, warn, error, off",
                  "f:23:19: forwarding.via: \"yes\" is not one of: true, false",
                  "f:24:15: admin.http: \"localhost:9901\": a name may mean several addresses; to listen, write an "
                  "IP address "
                  "(127.0.0.1:port, [::1]:port) or unix:/path",
                  "f:24:37: admin.grpc: address [::1]:50051 is also that of a listener",
                  "f:25:16: drain_timeout: \"2h\" is not a time in [0, 1h] (with a unit: ms, s, m, h)"));
}

// Points times weights bound our own ring alone: that of xDS has ring_size_max at most.
TEST(Config, ARingOfXdsTakesAnyWeights) {
  std::string many = "{name: users, ring: xds, endpoints: [";
  for (int i = 0; i < 50; ++i) many += "{address: \"a:" + std::to_string(i + 1) + "\", weight: 100}, ";
  many += "], ring_points: 10000}";
  const ParseResult result = Parse(WithCluster(many), "f");
  ASSERT_TRUE(result.ok()) << result.errors[0].ToString();
  EXPECT_EQ(result.config.clusters[0].ring, upstream::Ring::kXds);
  EXPECT_EQ(result.config.clusters[0].ring_size_min, 1024u);
  EXPECT_EQ(result.config.clusters[0].ring_size_max, 8u * 1024 * 1024);
  many.replace(many.find("xds"), 3, "sluice");
  EXPECT_THAT(ErrorsOf(WithCluster(many)), ElementsAre(HasSubstr("the ring would have 50000000 points")));
}

TEST(Config, ABadFileYieldsNoHalfConfig) {
  const ParseResult result = Parse(With("workers: 300\n"), "f");
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.config, Config());
}

struct Mistake {
  std::string yaml;
  std::string error;  // a part of the only message
};

class OneMistake : public ::testing::TestWithParam<Mistake> {};

TEST_P(OneMistake, IsOneError) {
  EXPECT_THAT(ErrorsOf(GetParam().yaml), ElementsAre(HasSubstr(GetParam().error))) << GetParam().yaml;
}

INSTANTIATE_TEST_SUITE_P(
    TopLevel, OneMistake,
    ::testing::Values(
        Mistake{"[1, 2]", "f:1:1: a list; a map (key: value) is allowed"},
        Mistake{With("log: info"), "f:3:6: log: a single value; a map (key: value) is allowed"},
        Mistake{With("frobnicate: 1"),
                "f:3:1: frobnicate: unknown key; allowed: include, listeners, locality, clusters, descriptor_set, jwt, "
                "routes, workers"},
        Mistake{With("? [a]\n: 1"), "a list as a key; a word is allowed"},
        Mistake{With("workers: 1\nworkers: 1"), "f:4:1: workers: the key is there twice"},
        Mistake{With("workers: [1]"), "workers: a list; allowed: a whole number in [0, 256]"},
        Mistake{With("workers:"), "workers: no value; allowed: a whole number in [0, 256]"},
        Mistake{With("workers: 257"), "\"257\" is not a whole number in [0, 256]"},
        Mistake{With("workers: 4294967297"), "is not a whole number in [0, 256]"},
        Mistake{With("workers: 99999999999999999999999"), "is not a whole number in [0, 256]"},
        Mistake{With("workers: 0x2"), "is not a whole number"},
        Mistake{With("hash_seed: " + std::string(4097, 'x')), "hash_seed: 4097 bytes; at most 4096 are allowed"},
        Mistake{With("admin: {grpc: nonsense}"), "f:3:15: admin.grpc: \"nonsense\": no port"},
        Mistake{With("admin: {http: unix:/a}"), "admin.http: a Unix socket"},
        Mistake{With("admin: {http: 127.0.0.1:1}"), "address 127.0.0.1:1 is also that of a listener"},
        Mistake{With("admin: {http: 127.0.0.1:2, grpc: 127.0.0.1:2}"), "is also that of admin.grpc"},
        Mistake{With("access_log: {format: xml}"), "is not one of: off, text, json"},
        Mistake{With("log: {format: off}"), "is not one of: text, json"},
        Mistake{With("access_log: {fields: [stats]}"),
                "\"stats\" is no field of the access log; did you mean \"status\"?"},
        Mistake{With("access_log: {fields: [{field: zzzzzzzz}]}"),
                "access_log.fields[0].field: \"zzzzzzzz\" is no field"},
        Mistake{With("access_log: {fields: [{metadata: X}]}"), "is not a metadata name"},
        Mistake{With("access_log: {fields: [{metadata: a, trailer: b}]}"),
                "has not exactly one of field, metadata, trailer"},
        Mistake{With("access_log: {fields: [{as: b}]}"), "has not exactly one of field, metadata, trailer"},
        Mistake{With("access_log: {fields: [{field: status, as: a b}]}"), "\"a b\" is no key"},
        Mistake{With("access_log: {fields: [time, path, {metadata: x, as: time}]}"),
                "access_log.fields[2]: the key \"time\" is there twice"},
        Mistake{With("access_log: {fields: [[]]}"), "access_log.fields[0]"},
        Mistake{With("access_log: {buffer: 1KiB}"), "access_log.buffer"},
        Mistake{With("forwarding: {via: True}"), "is not one of: true, false"}));

INSTANTIATE_TEST_SUITE_P(
    Listeners, OneMistake,
    ::testing::Values(
        Mistake{"clusters: [{name: a, endpoints: [a:1]}]", "f:1:1: listeners: is missing"},
        Mistake{"listeners: []\nclusters: [{name: a, endpoints: [a:1]}]", "listeners: is empty"},
        Mistake{"listeners:\nclusters: [{name: a, endpoints: [a:1]}]", "listeners: is empty"},
        Mistake{"listeners: a:1\nclusters: [{name: a, endpoints: [a:1]}]", "a single value; a list is allowed"},
        Mistake{WithListener("name: x"), "f:3:5: listeners[0].address: is missing"},
        Mistake{WithListener("address: localhost:1"), "a name may mean several addresses"},
        Mistake{WithListener("{address: 127.0.0.1:1, unix_mode: 438}"), "an octal file mode like \"0660\""},
        Mistake{WithListener("{address: 127.0.0.1:1, name: a b}"), "is not a name"},
        Mistake{WithListener("{address: 127.0.0.1:1, name: x}\n  - {address: 127.0.0.1:2, name: x}"),
                "f:4:5: listeners[1]: name \"x\" is also that of listeners[0]"},
        Mistake{WithListener("{address: 127.0.0.1:1, http2: {frame_bytes_max: 16383}}"),
                "http2.frame_bytes_max: \"16383\" is not a size in [16KiB, 16777215]"},
        Mistake{WithListener("{address: 127.0.0.1:1, http2: {stream_window_bytes: 4GiB}}"),
                "\"4GiB\" is not a size in [65535, 2147483647]"},
        Mistake{WithListener("{address: 127.0.0.1:1, http2: {header_tabel_bytes: 1}}"),
                "did you mean \"header_table_bytes\"?"}));

INSTANTIATE_TEST_SUITE_P(
    Clusters, OneMistake,
    ::testing::Values(
        Mistake{"listeners: [{address: 127.0.0.1:1}]", "f:1:1: clusters: is missing"},
        Mistake{"listeners: [{address: 127.0.0.1:1}]\nclusters: []", "clusters: is empty"},
        Mistake{WithCluster("{name: a}"), "clusters[0].endpoints: is missing"},
        Mistake{WithCluster("{name: a, endpoints: [], ring: envoy}"), "\"envoy\" is not one of: sluice, xds"},
        Mistake{WithCluster("{name: a, endpoints: [], ring: xds, policy: round_robin}"),
                "f:3:36: clusters[0].ring: xds is only allowed with policy ring_hash"},
        Mistake{WithCluster("{name: a, endpoints: [], ring_size_max: 1000}"),
                "clusters[0].ring_size_max: ring_size_min 1024 is above ring_size_max 1000"},
        Mistake{WithCluster("{name: a, endpoints: [], ring_size_max: 8388609}"),
                "is not a whole number in [1, 8388608]"},
        Mistake{WithCluster("{name: '', endpoints: []}"), "\"\" is not a name"},
        Mistake{WithCluster("{name: a, endpoints: [a]}"), "clusters[0].endpoints[0]: \"a\": no port"},
        Mistake{WithCluster("{name: a, endpoints: [{name: x}]}"), "endpoints[0].address: is missing"},
        Mistake{WithCluster("{name: a, endpoints: [{address: 'a:1', weight: nan}]}"),
                "\"nan\" is not a number in [0.01, 100]"},
        Mistake{WithCluster("{name: a, endpoints: [], backoff_base: 20s}"),
                "backoff_base 20s is above backoff_max 10s"},
        Mistake{WithCluster("{name: a, ring_points: 10000, endpoints: [{address: 'a:1', weight: 100}, "
                            "{address: 'b:1', weight: "
                            "100}, {address: 'c:1', weight: 100}, {address: 'd:1', weight: 100}, {address: "
                            "'e:1', weight: 100}]}"),
                "the ring would have 5000000 points"},
        Mistake{WithCluster("{name: a, endpoints: []}\n  - {name: b, endpoints: []}"), "f:1:1: routes: is missing"}));

INSTANTIATE_TEST_SUITE_P(
    Routes, OneMistake,
    ::testing::Values(
        Mistake{With("routes: []"), "routes: is empty"},
        Mistake{WithRoute("{service: a}"), "routes[0].cluster: is missing"},
        Mistake{WithRoute("{cluster: zzz}"), "no cluster is named \"zzz\"; there are: users"},
        Mistake{WithRoute("{cluster: users, service: /a.B/}"), "is not a service name like pkg.Service"},
        Mistake{WithRoute("{cluster: users, service: a, method: b/c}"), "is not a method name"},
        Mistake{WithRoute("{cluster: users, prefix: a}"), "does not begin with /"},
        Mistake{WithRoute("{cluster: users, prefix: /a, service: a}"), "prefix: is not allowed together with service"},
        Mistake{WithRoute("{cluster: users, authority: 'a*.b'}"), "* is only allowed as in *.example.com"},
        Mistake{WithRoute("{cluster: users, hash_by: header}"),
                "is not one of: random, method, peer, {metadata: name}, {field: name}"},
        Mistake{WithRoute("{cluster: users, hash_by: {metadata: ':path'}}"), "is not a metadata name"},
        Mistake{WithRoute("{cluster: users, hash_by: {}}"), "hash_by.metadata: is missing"},
        Mistake{WithRoute("{cluster: users, metadata: [{exact: a}]}"), "metadata[0].name: is missing"},
        Mistake{WithRoute("{cluster: users, metadata: [{name: a, exact: a, prefix: b}]}"), "more than one of exact"},
        Mistake{WithRoute("{cluster: users, metadata: [{name: a, present: false}]}"), "only true is allowed"},
        Mistake{WithRoute("{cluster: users, metadata: [{name: a, exact: é}]}"), "is not printable ASCII"},
        Mistake{WithRoute("{cluster: users, retry: {attempts: 11}}"),
                "retry.attempts: \"11\" is not a whole number in [1, 10]"},
        Mistake{WithRoute("{cluster: users, retry: {buffer: 17MiB}}"), "is not a size in [0, 16MiB]"},
        Mistake{WithRoute("{cluster: users, timeout: 25h}"), "is not a time in [0, 24h]"},
        Mistake{WithListener("{address: 127.0.0.1:1, headers_timeout: 2h}"),
                "headers_timeout: \"2h\" is not a time in [0, 1h]"},
        Mistake{WithListener("{address: 127.0.0.1:1, age_grace: 0}"), "age_grace: \"0\" is not a time in [1ms, 24h]"},
        Mistake{WithListener("{address: 127.0.0.1:1, connections_per_peer_max: 1000001}"),
                "is not a whole number in [0, 1000000]"},
        Mistake{WithCluster("{name: a, endpoints: [], stall_timeout: 25h}"), "is not a time in [0, 24h]"},
        Mistake{With("connections_max: 0"), "is not a whole number in [1, 10000000]"},
        Mistake{With("memory: {buffered_bytes_max: 1MiB}"),
                "memory.buffered_bytes_max: \"1MiB\" is not a size in [16MiB, 1024GiB]"},
        Mistake{With("memory: {max: 1GiB}"), "unknown key"},
        Mistake{WithListener("{address: 127.0.0.1:1, http2: {queued_bytes_max: 1KiB}}"),
                "is not a size in [1MiB, 1024GiB]"},
        Mistake{WithRoute("{cluster: users, name: x, service: a}\n  - {cluster: users, name: x}"),
                "routes[1]: name \"x\" is also that of routes[0]"},
        Mistake{WithRoute("{cluster: users}\n  - {cluster: users, service: a}"), "never takes a call: routes[0]"}));

TEST(Config, AnEmptyFileLacksItsListsAsAWhole) {
  for (std::string_view yaml : {"", "# nothing\n\n", "~"}) {
    EXPECT_THAT(ErrorsOf(yaml), ElementsAre("f: listeners: is missing", "f: clusters: is missing")) << yaml;
  }
}

TEST(Config, SectionsWithAllKeysCommentedOutAreDefaults) {
  EXPECT_THAT(ErrorsOf(With("log:\n#  level: debug\nadmin:\n")), ElementsAre());
}

TEST(Config, ListenersOnAnyFreePortMayRepeat) {
  EXPECT_THAT(ErrorsOf(WithListener("address: 127.0.0.1:0\n  - address: 127.0.0.1:0")), ElementsAre());
}

TEST(Config, AnchorsShareASection) {
  const ParseResult result = Parse(R"(
listeners: [{address: 127.0.0.1:1, http2: &h {frame_bytes_max: 32KiB}}]
clusters: [{name: a, endpoints: [b:1], http2: *h}]
)",
                                   "f");
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.config.clusters[0].http2.frame_bytes_max, 32768u);
}

TEST(Config, ErrorsAreBoundedInNumberAndInSize) {
  std::string yaml = With("");
  for (int i = 0; i < 5000; ++i) yaml += "key" + std::to_string(i) + std::string(200, 'x') + ": 1\n";
  const std::vector<std::string> errors = ErrorsOf(yaml);
  ASSERT_EQ(errors.size(), 1001u);
  EXPECT_EQ(errors.back(), "f: and 4000 more errors, not shown");
  for (const std::string& error : errors) EXPECT_LT(error.size(), 500u);
}

TEST(Config, TheHashSeedIsNeverPrinted) {
  const std::string secret(5000, 's');
  for (const std::string& error : ErrorsOf(With("hash_seed: " + secret))) EXPECT_EQ(error.find("sss"), error.npos);
}

TEST(Config, AFileThatCannotBeReadIsOneError) {
  const ParseResult missing = Load("/nonexistent/sluice.yaml");
  ASSERT_EQ(missing.errors.size(), 1u);
  EXPECT_EQ(missing.errors[0].ToString(), "/nonexistent/sluice.yaml: cannot be read: No such file or directory");
  const ParseResult directory = Load("/");
  ASSERT_EQ(directory.errors.size(), 1u);
  EXPECT_THAT(directory.errors[0].ToString(), HasSubstr("cannot be read"));
}

TEST(Config, LoadReadsWhatParseReads) {
  const std::string path = ::testing::TempDir() + "sluice_config_test_" + std::to_string(getpid()) + ".yaml";
  std::ofstream(path) << With("workers: 2\n");
  const ParseResult result = Load(path);
  std::remove(path.c_str());
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.config, Parse(With("workers: 2\n"), "f").config);
  EXPECT_EQ(Load("/dev/zero").errors.size(), 1u);  // without end: refused at the limit
}

TEST(ConfigError, LeavesOutWhatItDoesNotKnow) {
  EXPECT_EQ((ConfigError{"f", 3, 4, "a.b", "bad"}.ToString()), "f:3:4: a.b: bad");
  EXPECT_EQ((ConfigError{"f", 0, 0, "", "bad"}.ToString()), "f: bad");
}

}  // namespace
}  // namespace sluice::config
