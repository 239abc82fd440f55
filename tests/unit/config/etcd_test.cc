// etcd in a configuration: where lists come from, and what is announced.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config.h"

namespace sluice::config {
namespace {

using discovery::AnnounceOptions;
using discovery::DiscoveryOptions;
using discovery::EtcdOptions;
using discovery::SourceKind;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

ParseResult ParseWith(const std::string& etcd, const std::string& more = "") {
  return Parse("listeners: [{address: 127.0.0.1:1}]\nclusters: [{name: users, discovery: {etcd: " + etcd +
                   "}}]\nroutes: [{cluster: users}]\n" + more,
               "dir/f");
}
ParseResult Announcing(const std::string& announce) {
  return ParseWith("{servers: [a:1], prefix: /}", "announce: " + announce + "\n");
}

TEST(EtcdOptionsTest, EveryKeyReachesItsField) {
  const ParseResult result = ParseWith(
      "{servers: [a:1, \"[::1]:2379\"], prefix: /sluice/users/, user: u, password_file: pw, tls: {ca: ca.pem, "
      "certificate: c.pem, key: /k.pem, server_name: etcd.example.com}}");
  ASSERT_TRUE(result.ok()) << result.errors[0].ToString();
  EtcdOptions expected;
  expected.servers = {"a:1", "[::1]:2379"};
  expected.prefix = "/sluice/users/";
  expected.user = "u";
  expected.password_file = "dir/pw";
  expected.tls = true;
  expected.ca = "dir/ca.pem";
  expected.certificate = "dir/c.pem";
  expected.key = "/k.pem";
  expected.server_name = "etcd.example.com";
  const DiscoveryOptions& options = result.config.discovery.at("users");
  EXPECT_EQ(options.kind, SourceKind::kEtcd);
  EXPECT_EQ(options.etcd, expected);
  EXPECT_EQ(options.Name(), "etcd /sluice/users/ at a:1,[::1]:2379");
}

TEST(EtcdOptionsTest, WithoutTlsAndUserThereAreNone) {
  const ParseResult result = ParseWith("{servers: [a:1], prefix: /x/}");
  ASSERT_TRUE(result.ok()) << result.errors[0].ToString();
  EtcdOptions expected;
  expected.servers = {"a:1"};
  expected.prefix = "/x/";
  EXPECT_EQ(result.config.discovery.at("users").etcd, expected);
}

TEST(EtcdOptionsTest, WrongValuesAreNamed) {
  const std::pair<std::string, const char*> cases[] = {
      {"{prefix: /x/}", "discovery.etcd.servers: is missing"},
      {"{servers: [], prefix: /x/}", "discovery.etcd.servers: is empty; allowed: host:port, ..."},
      {"{servers: [a], prefix: /x/}", "discovery.etcd.servers[0]: "},
      {"{servers: [a:0], prefix: /x/}", "discovery.etcd.servers[0]: \"a:0\" is no server; allowed: host:port"},
      {"{servers: [unix:/a], prefix: /x/}", "discovery.etcd.servers[0]: \"unix:/a\" is no server"},
      {"{servers: [a:1, a:1], prefix: /x/}", "discovery.etcd.servers[1]: \"a:1\" is there twice"},
      {"{servers: [a:1]}", "discovery.etcd.prefix: is missing"},
      {"{servers: [a:1], prefix: /x}", "discovery.etcd.prefix: \"/x\" is no prefix of keys; allowed: 1 to 1024"},
      {"{servers: [a:1], prefix: \"/x /\"}", "discovery.etcd.prefix: "},
      {"{servers: [a:1], prefix: /x/, user: u}", "discovery.etcd.user: needs password_file besides"},
      {"{servers: [a:1], prefix: /x/, password_file: u}", "discovery.etcd.password_file: needs user besides"},
      {"{servers: [a:1], prefix: /x/, user: \"\", password_file: u}", "discovery.etcd.user: is empty"},
      {"{servers: [a:1], prefix: /x/, password: u}", "discovery.etcd.password: unknown key"},
      {"{servers: [a:1], prefix: /x/, tls: {ca: \"\"}}", "discovery.etcd.tls.ca: is empty"},
      {"{servers: [a:1], prefix: /x/, tls: {key: k}}", "discovery.etcd.tls.key: needs certificate besides"},
      {"{servers: [a:1], prefix: /x/}, file: {path: f}", "discovery.etcd: is a second source; only one is allowed"}};
  for (const auto& [text, wanted] : cases) {
    const ParseResult result = ParseWith(text);
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_THAT(result.errors[0].ToString(), HasSubstr(wanted)) << text;
  }
}

TEST(AnnounceTest, EveryKeyReachesItsField) {
  const ParseResult result = Announcing(
      "[{address: 10.0.0.1:80, name: n, weight: 2, priority: 1, locality: eu, lease: 5s, etcd: {servers: [b:1], "
      "prefix: /y/}}, {address: \"[0:0::1]:80\", etcd: {servers: [b:1], prefix: /y/}}]");
  ASSERT_TRUE(result.ok()) << result.errors[0].ToString();
  ASSERT_EQ(result.config.announce.size(), 2u);
  const AnnounceOptions& first = result.config.announce[0];
  EXPECT_EQ(first.endpoint, (upstream::EndpointOptions{"n", *net::Address::Parse("10.0.0.1:80"), 2, 1, "eu"}));
  EXPECT_EQ(first.lease, 5s);
  EXPECT_EQ(first.etcd.prefix, "/y/");
  EXPECT_EQ(result.config.announce[1].endpoint.name, "[::1]:80") << "the address, as every process writes it";
  EXPECT_EQ(result.config.announce[1].lease, 10s);
}

TEST(AnnounceTest, WrongValuesAreNamed) {
  const std::pair<std::string, const char*> cases[] = {
      {"[{etcd: {servers: [b:1], prefix: /y/}}]", "announce[0].address: is missing"},
      {"[{address: \"unix:/a\", etcd: {servers: [b:1], prefix: /y/}}]",
       "announce[0].address: \"unix:/a\" is a socket of one host"},
      {"[{address: a:1}]", "announce[0].etcd: is missing"},
      {"[{address: a:0, etcd: {servers: [b:1], prefix: /y/}}]", "announce[0].address: "},
      {"[{address: a:1, lease: 1s, etcd: {servers: [b:1], prefix: /y/}}]", "announce[0].lease: "},
      {"[{address: a:1, etcd: {servers: [b:1], prefix: /y/}}, {address: a:1, etcd: {servers: [c:1], prefix: /y/}}]",
       "announce[1]: key \"/y/a:1\" is also that of announce[0]"}};
  for (const auto& [text, wanted] : cases) {
    const ParseResult result = Announcing(text);
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_THAT(result.errors[0].ToString(), HasSubstr(wanted)) << text;
  }
}

TEST(EndpointValueTest, PlainValuesAndJson) {
  const auto address = *net::Address::Parse("10.0.0.1:80");
  const auto read = [](std::string_view value) { return *ParseEndpointValue("k", value); };
  EXPECT_EQ(read("10.0.0.1:80"), (upstream::EndpointOptions{"k", address, 1, 0, ""}));
  EXPECT_EQ(read("10.0.0.1:80@0.25\n"), (upstream::EndpointOptions{"k", address, 0.25, 0, ""}));
  EXPECT_EQ(read(R"({"address": "10.0.0.1:80", "weight": 3, "priority": 2, "locality": "eu"})"),
            (upstream::EndpointOptions{"k", address, 3, 2, "eu"}));
  EXPECT_EQ(read(R"({"address": "10.0.0.1:80", "name": "other"})").name, "other");
}

TEST(EndpointValueTest, ASocketOfThisHostIsNoAddressForOthers) {
  for (const char* value : {"unix:/run/a.sock", "unix:/run/a.sock@2", R"({"address": "unix:/run/a.sock"})"}) {
    const auto read = ParseEndpointValue("k", value);
    ASSERT_FALSE(read.ok()) << value;
    EXPECT_THAT(read.error().detail,
                HasSubstr("is a socket of one host, which others cannot mean; allowed: host:port"));
  }
}

}  // namespace
}  // namespace sluice::config
