// Sources of lists, in a configuration, and lists in files of their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config.h"
#include "integration/support/temp_dir.h"

namespace sluice::config {
namespace {

using discovery::DiscoveryOptions;
using discovery::DnsOptions;
using discovery::RpcRule;
using discovery::SourceKind;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

ParseResult ParseWith(const std::string& discovery, const std::string& file = "dir/f") {
  return Parse(
      "listeners: [{address: 127.0.0.1:1}]\nclusters: [{name: users" + discovery + "}]\nroutes: [{cluster: users}]\n",
      file);
}

TEST(DiscoveryOptionsTest, WithoutItThereIsNoneAndEndpointsAreNeeded) {
  EXPECT_TRUE(ParseWith(", endpoints: [a:1]").config.discovery.empty());
  const ParseResult result = ParseWith("");
  ASSERT_EQ(result.errors.size(), 1u);
  EXPECT_THAT(result.errors[0].ToString(), HasSubstr("clusters[0].endpoints: is missing"));
}

TEST(DiscoveryOptionsTest, EveryKeyReachesItsField) {
  const ParseResult result = ParseWith(
      ", discovery: {file: {path: l.yaml}, empty_after: 2s, moved_max: 0.25, ready_timeout: 3s, changes_by_rpc: "
      "override}");
  ASSERT_TRUE(result.ok()) << result.errors[0].ToString();
  const DiscoveryOptions expected{SourceKind::kFile, {"dir/l.yaml"}, {}, 2s, 0.25, 3s, RpcRule::kOverride};
  EXPECT_EQ(result.config.discovery.at("users"), expected);
  EXPECT_EQ(expected.Name(), "file dir/l.yaml");
  EXPECT_TRUE(result.config.clusters[0].endpoints.empty());
}

TEST(DiscoveryOptionsTest, WrongValuesAreNamed) {
  const std::pair<std::string, const char*> cases[] = {
      {"{}", "clusters[0].discovery.file: is missing: discovery names no source; allowed: file, dns, etcd, xds"},
      {"{empty_after: 2s}", "clusters[0].discovery.file: is missing"},
      {"{file: {}}", "clusters[0].discovery.file.path: is missing"},
      {"{file: {path: \"\"}}", "clusters[0].discovery.file.path: is empty; a file is needed"},
      {"{file: {path: a, pat: b}}", "clusters[0].discovery.file.pat: unknown key; did you mean \"path\"?"},
      {"{file: {path: a}, empty_after: 25h}", "clusters[0].discovery.empty_after"},
      {"{file: {path: a}, moved_max: 1.1}", "clusters[0].discovery.moved_max"},
      {"{file: {path: a}, ready_timeout: 2h}", "clusters[0].discovery.ready_timeout"},
      {"{file: {path: a}, changes_by_rpc: allow}", "clusters[0].discovery.changes_by_rpc"}};
  for (const auto& [text, message] : cases) {
    const ParseResult result = ParseWith(", discovery: " + text);
    ASSERT_EQ(result.errors.size(), 1u) << text;
    EXPECT_THAT(result.errors[0].ToString(), HasSubstr(message));
  }
}

TEST(DnsOptionsTest, EveryKeyReachesItsField) {
  const ParseResult result = ParseWith(
      ", discovery: {dns: {name: users.test, port: 5, mode: one, servers: [10.0.0.2, \"[::1]:5353\"]}, empty_after: "
      "2s}");
  ASSERT_TRUE(result.ok()) << result.errors[0].ToString();
  const DiscoveryOptions& options = result.config.discovery.at("users");
  DnsOptions expected;
  expected.name = "users.test";
  expected.port = 5;
  expected.mode = discovery::DnsMode::kOne;
  expected.servers = {"10.0.0.2", "[::1]:5353"};
  EXPECT_EQ(options.kind, SourceKind::kDns);
  EXPECT_EQ(options.dns, expected);
  EXPECT_EQ(options.Name(), "dns://10.0.0.2,[::1]:5353/users.test:5 (one)");
  const ParseResult srv = ParseWith(", discovery: {dns: {name: _grpc._tcp.users.test., records: srv}}");
  ASSERT_TRUE(srv.ok()) << srv.errors[0].ToString();
  EXPECT_EQ(srv.config.discovery.at("users").Name(), "dns:///_grpc._tcp.users.test. (srv)");
}

TEST(DnsOptionsTest, WrongValuesAreNamed) {
  const std::pair<std::string, const char*> cases[] = {
      {"{port: 1}", "clusters[0].discovery.dns.name: is missing"},
      {"{name: a}", "clusters[0].discovery.dns.port: is missing"},
      {"{name: a, port: 0}", "clusters[0].discovery.dns.port"},
      {"{name: a, port: 65536}", "clusters[0].discovery.dns.port"},
      {"{name: \"\", port: 1}", "clusters[0].discovery.dns.name: \"\" is no DNS name"},
      {"{name: \"a b\", port: 1}", "clusters[0].discovery.dns.name: \"a b\" is no DNS name"},
      {"{name: \"unix:/a\", port: 1}", "clusters[0].discovery.dns.name: \"unix:/a\" is no DNS name"},
      {"{name: \"a:1\", port: 1}", "clusters[0].discovery.dns.name: \"a:1\" is no DNS name"},
      {"{name: 10.0.0.1, port: 1}", "dns.name: \"10.0.0.1\" is an address, which no server is asked for"},
      {"{name: \"[::1]\", port: 1}", "dns.name: \"[::1]\" is an address"},
      {"{name: a, port: 1, records: mx}", "clusters[0].discovery.dns.records"},
      {"{name: a, port: 1, records: srv}", "clusters[0].discovery.dns.port: is in the SRV records"},
      {"{name: a, port: 1, mode: any}", "clusters[0].discovery.dns.mode"},
      {"{name: a, port: 1, servers: 10.0.0.1}", "clusters[0].discovery.dns.servers"},
      {"{name: a, port: 1, servers: [ns.test]}",
       "dns.servers[0]: \"ns.test\" is no DNS server; allowed: an IP address, with a port or without"},
      {"{name: a, port: 1, servers: [\"10.0.0.1:0\"]}", "dns.servers[0]: \"10.0.0.1:0\" is no DNS server"},
      {"{name: a, port: 1, servers: [[]]}", "clusters[0].discovery.dns.servers[0]"},
      {"{name: a, port: 1, servers: [1.1.1.1, 1.1.1.1, 1.1.1.1, 1.1.1.1, 1.1.1.1, 1.1.1.1, 1.1.1.1, 1.1.1.1, 1.1.1.1]}",
       "clusters[0].discovery.dns.servers"},
      {"{name: a, port: 1, server: []}", "dns.server: unknown key; did you mean \"servers\"?"},
      {"{name: a, port: 1}, file: {path: a}", "clusters[0].discovery.dns: is a second source; only one is allowed"}};
  for (const auto& [text, message] : cases) {
    const ParseResult result = ParseWith(", discovery: {dns: " + text + "}");
    ASSERT_EQ(result.errors.size(), 1u) << text;
    EXPECT_THAT(result.errors[0].ToString(), HasSubstr(message));
  }
}

// The file of ten lines.
TEST(DnsOptionsTest, AnEndpointMayBeANameWhoseAddressesAreTheList) {
  const std::pair<std::string, const char*> cases[] = {
      {"dns:///users.test:5", "dns:///users.test:5"},
      {"dns:users.test:5", "dns:///users.test:5"},
      {"dns://10.0.0.2/users.test:5", "dns://10.0.0.2/users.test:5"},
      {"\"dns://[::1]:5353/users.test:5\"", "dns://[::1]:5353/users.test:5"}};
  for (const auto& [text, name] : cases) {
    const ParseResult result = ParseWith(", endpoints: [" + text + "]");
    ASSERT_TRUE(result.ok()) << result.errors[0].ToString();
    EXPECT_TRUE(result.config.clusters[0].endpoints.empty());
    EXPECT_EQ(result.config.discovery.at("users").Name(), name);
  }
}

TEST(DnsOptionsTest, WrongNamesAmongTheEndpointsAreNamed) {
  const std::pair<std::string, const char*> cases[] = {
      {"[dns:///users.test]", "\"dns:///users.test\": allowed: dns:///name:port, dns://server/name:port"},
      {"[dns:///10.0.0.1:5]", "allowed: dns:///name:port"},
      {"[dns:///users.test:0]", "allowed: dns:///name:port"},
      {"[dns:///]", "allowed: dns:///name:port"},
      {"[dns://users.test:5]", "\"users.test:5\" is no DNS server"},
      {"[dns:///a:1, dns:///b:1]", "it stands for a list"},
      {"[{address: \"dns:///a:1\"}]", "it stands for a list"},
      {"[dns:///a:1], discovery: {file: {path: f}}", "it stands for a list"}};
  for (const auto& [text, message] : cases) {
    const ParseResult result = ParseWith(", endpoints: " + text);
    ASSERT_GE(result.errors.size(), 1u) << text;
    EXPECT_THAT(result.errors[0].ToString(), HasSubstr("clusters[0].endpoints"));
    EXPECT_THAT(result.errors[0].ToString(), HasSubstr(message));
  }
}

// The endpoints are addresses then; what is looked for in certificates is the name.
TEST(DnsOptionsTest, CertificatesAreLookedAtForTheName) {
  const auto name = [](const std::string& tls, const std::string& dns) {
    const ParseResult result = ParseWith(", discovery: {dns: {" + dns + "}}, tls: {ca: system" + tls + "}");
    return result.ok() ? result.config.clusters[0].tls.server_name : result.errors[0].ToString();
  };
  EXPECT_EQ(name("", "name: users.test, port: 5"), "users.test");
  EXPECT_EQ(name("", "name: users.test., port: 5"), "users.test");
  EXPECT_EQ(name(", server_name: other.test", "name: users.test, port: 5"), "other.test");
  EXPECT_THAT(name("", "name: users.test, records: srv"),
              HasSubstr("no certificate is made for the name of SRV records; give server_name or allowed_names"));
  EXPECT_EQ(name(", server_name: other.test", "name: users.test, records: srv"), "other.test");
  EXPECT_EQ(name(", allowed_names: [a.test]", "name: users.test, records: srv"), "");
}

class LoadEndpointsTest : public ::testing::Test {
 protected:
  std::string ErrorOf(const std::string& text) {
    const auto list = LoadEndpoints(dir.Write("l.yaml", text));
    return list.ok() ? "none" : list.error().detail;
  }
  integration::TempDir dir;
};

TEST_F(LoadEndpointsTest, EntriesAreThoseOfACluster) {
  const auto list = LoadEndpoints(
      dir.Write("l.yaml", "endpoints:\n  - b:2\n  - {address: a:1, name: n, weight: 3, priority: 1, locality: eu}\n"));
  ASSERT_TRUE(list.ok()) << list.error().detail;
  ASSERT_EQ(list->size(), 2u);
  EXPECT_EQ((*list)[0], (upstream::EndpointOptions{"b:2", *net::Address::Parse("b:2")}));
  EXPECT_EQ((*list)[1], (upstream::EndpointOptions{"n", *net::Address::Parse("a:1"), 3, 1, "eu"}));
  EXPECT_TRUE(LoadEndpoints(dir.Write("l.yaml", "endpoints: []"))->empty());
}

TEST_F(LoadEndpointsTest, MistakesAreNamed) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("endpoints: is missing"));
  EXPECT_THAT(ErrorOf("[a:1]"), HasSubstr("l.yaml:1:1"));
  EXPECT_THAT(ErrorOf("endpoints: ["), HasSubstr("l.yaml:2:1: YAML: end of sequence flow not found"));
  EXPECT_THAT(ErrorOf("endpoints: [a:1, a:1]"), HasSubstr("is also that of endpoints[0]"));
  EXPECT_THAT(ErrorOf("endpoints: [\"a:0\"]"), HasSubstr("port 0 cannot be connected to"));
  EXPECT_THAT(ErrorOf("endpoints: [a]\nmore: 1\n"), HasSubstr("more: unknown key"));
  EXPECT_THAT(ErrorOf("endpoints: [{address: a:1, weight: -1}]"), HasSubstr("endpoints[0].weight"));
  const std::string many = ErrorOf("endpoints: [a, b, c, d, e, f, g]");
  EXPECT_THAT(many, HasSubstr("endpoints[4]"));
  EXPECT_THAT(many, HasSubstr("; and 2 more"));
  const auto none = LoadEndpoints(dir.File("none"));
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().detail, dir.File("none") + ": cannot be read: No such file or directory");
}

}  // namespace
}  // namespace sluice::config
