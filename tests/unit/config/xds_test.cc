// Lists by xDS in a configuration, and the bootstrap file that they need.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "config/config.h"
#include "config/xds_bootstrap.h"
#include "integration/support/temp_dir.h"

namespace sluice::config {
namespace {

using discovery::SourceKind;
using ::testing::HasSubstr;

constexpr const char* kBootstrap =
    R"({"xds_servers": [{"server_uri": "xds:1", "channel_creds": [{"type": "insecure"}]}], "node": {"id": "n"}})";

std::string Yaml(const std::string& discovery, const std::string& more = "") {
  return "listeners: [{address: 127.0.0.1:1}]\nclusters: [{name: users, discovery: " + discovery +
         "}]\nroutes: [{cluster: users}]\n" + more;
}

std::string ErrorOf(const std::string& json) {
  const auto bootstrap = ParseXdsBootstrap(json);
  return bootstrap.ok() ? "none" : bootstrap.error().detail;
}

TEST(XdsBootstrapTest, AFileOfGrpcsClientsIsTaken) {
  const auto bootstrap = ParseXdsBootstrap(R"({
    "xds_servers": [
      {"server_uri": "trafficdirector.example.com:443",
       "channel_creds": [{"type": "google_default"}, {"type": "tls", "config": {
         "ca_certificate_file": "/ca.pem", "certificate_file": "/c.pem", "private_key_file": "/k.pem",
         "refresh_interval": "600s"}}],
       "server_features": ["xds_v3", "ignore_resource_deletion"]},
      {"server_uri": "dns:///b:1", "channel_creds": [{"type": "insecure"}], "later": {"x": [1, 2]}}],
    "authorities": {"a": {}}, "certificate_providers": {},
    "node": {"id": "i", "cluster": "c", "locality": {"region": "r", "zone": "z", "sub_zone": "s"},
             "metadata": {"b": 1, "a": ["x", null]}, "later": 3}})");
  ASSERT_TRUE(bootstrap.ok()) << bootstrap.error().detail;
  ASSERT_EQ(bootstrap->servers.size(), 2u);
  EXPECT_EQ(bootstrap->servers[0], (discovery::XdsServerOptions{"trafficdirector.example.com:443", true, "/ca.pem",
                                                                "/c.pem", "/k.pem", true}));
  EXPECT_EQ(bootstrap->servers[1], (discovery::XdsServerOptions{.uri = "dns:///b:1"}));
  EXPECT_EQ(bootstrap->node.id, "i");
  EXPECT_EQ(bootstrap->node.cluster, "c");
  EXPECT_EQ(bootstrap->node.region + bootstrap->node.zone + bootstrap->node.sub_zone, "rzs");
  EXPECT_FALSE(bootstrap->node.metadata.empty());
  EXPECT_EQ(ParseXdsBootstrap(R"({"xds_servers": [{"server_uri": "a", "channel_creds": [{"type": "insecure"}]}],
    "node": {"metadata": {"a": ["x", null], "b": 1}}})")
                ->node.metadata,
            bootstrap->node.metadata)
      << "equal where the file says the same";
}

// Deep JSON: the reader of protobuf calls itself for each level, up to a bound.
TEST(XdsBootstrapTest, TenThousandBracketsAreRefused) {
  for (const char* open : {"[", "{\"a\":"}) {
    std::string text = "{\"node\":";
    for (int i = 0; i < 10000; ++i) text += open;
    const auto read = ParseXdsBootstrap(text);
    ASSERT_FALSE(read.ok());
    EXPECT_LT(read.error().detail.size(), 400u) << "a message is bounded whatever the file is";
  }
}

TEST(XdsBootstrapTest, WhatIsWrongIsNamed) {
  const std::string insecure = R"("channel_creds": [{"type": "insecure"}])";
  const std::pair<std::string, std::string> cases[] = {
      {"", "is no JSON object"},
      {"[]", "is no JSON object"},
      {R"({"xds_servers": [}")", "is no JSON object"},
      {"{}", "xds_servers: is missing; at least one server is needed"},
      {R"({"xds_servers": {}})", "xds_servers: is no list"},
      {R"({"xds_servers": [1]})", "xds_servers[0]: is no object"},
      {R"({"xds_servers": [{)" + insecure + "}]}", "xds_servers[0].server_uri: is missing; host:port is needed"},
      {R"({"xds_servers": [{"server_uri": 1, )" + insecure + "}]}", "xds_servers[0].server_uri: is no text"},
      {R"({"xds_servers": [{"server_uri": "a"}]})", "xds_servers[0].channel_creds: is missing; allowed: insecure, tls"},
      {R"({"xds_servers": [{"server_uri": "a", "channel_creds": [{"type": "google_default"}]}]})",
       "xds_servers[0].channel_creds: has only \"google_default\"; allowed: insecure, tls"},
      {R"({"xds_servers": [{"server_uri": "a", "channel_creds": [{}]}]})",
       "xds_servers[0].channel_creds[0].type: is missing; allowed: insecure, tls"},
      {R"({"xds_servers": [{"server_uri": "a", "channel_creds": [{"type": "tls", "config": {"certificate_file": "c"}}]}]})",
       "xds_servers[0].channel_creds[0].config.private_key_file: is missing"},
      {R"({"xds_servers": [{"server_uri": "a", )" + insecure + R"(}], "node": []})", "node: is no object"},
      {R"({"xds_servers": [{"server_uri": "a", )" + insecure + R"(}], "node": {"id": 1}})", "node.id: is no text"}};
  for (const auto& [json, error] : cases) EXPECT_THAT(ErrorOf(json), HasSubstr(error)) << json;
  std::string many = R"({"xds_servers": [)";
  for (int i = 0; i < 9; ++i) many += std::string(i > 0 ? "," : "") + R"({"server_uri": "a", )" + insecure + "}";
  EXPECT_EQ(ErrorOf(many + "]}"), "xds_servers: 9 servers; at most 8 are allowed");
  EXPECT_EQ(ErrorOf(std::string(kBootstrapBytesMax + 1, ' ')), "is longer than 1MiB");
}

TEST(XdsOptionsTest, TheResourceIsTheClustersNameUnlessItIsGiven) {
  const ParseResult plain = Parse(Yaml("{xds: {}}"), "f");
  ASSERT_TRUE(plain.ok()) << plain.errors[0].ToString();
  EXPECT_EQ(plain.config.discovery.at("users").kind, SourceKind::kXds);
  EXPECT_EQ(plain.config.discovery.at("users").xds.resource, "users");
  EXPECT_EQ(plain.config.discovery.at("users").Name(), "xds users");
  const ParseResult named =
      Parse(Yaml("{xds: {resource: outbound|80||users}, empty_after: 2s}, ring_points: 1000"), "f");
  ASSERT_TRUE(named.ok()) << named.errors[0].ToString();
  EXPECT_EQ(named.config.discovery.at("users").xds.resource, "outbound|80||users");
  EXPECT_EQ(named.config.discovery.at("users").xds.weights_max, 4194);
  EXPECT_EQ(named.config.discovery.at("users").empty_after.count(), 2000);
}

TEST(XdsOptionsTest, WrongValuesAreNamed) {
  const std::pair<std::string, const char*> cases[] = {
      {"{xds: {resource: \"\"}}", "clusters[0].discovery.xds.resource: is empty; the name of a CDS resource is needed"},
      {"{xds: {name: a}}", "clusters[0].discovery.xds.name: unknown key"},
      {"{xds: 3}", "clusters[0].discovery.xds: a single value; a map"},
      {"{file: {path: a}, xds: {}}", "clusters[0].discovery.xds: is a second source; only one is allowed"}};
  for (const auto& [text, message] : cases) {
    const ParseResult result = Parse(Yaml(text), "f");
    ASSERT_EQ(result.errors.size(), 1u) << text;
    EXPECT_THAT(result.errors[0].ToString(), HasSubstr(message));
  }
}

class XdsFileTest : public ::testing::Test {
 protected:
  XdsFileTest() { Clear(); }
  ~XdsFileTest() override { Clear(); }
  static void Clear() {
    ::unsetenv("GRPC_XDS_BOOTSTRAP");
    ::unsetenv("GRPC_XDS_BOOTSTRAP_CONFIG");
  }
  ParseResult LoadWith(const std::string& more) { return Load(dir.Write("sluice.yaml", Yaml("{xds: {}}", more))); }
  static std::string First(const ParseResult& result) { return result.ok() ? "none" : result.errors[0].ToString(); }
  integration::TempDir dir;
};

TEST_F(XdsFileTest, TheBootstrapIsBesideTheFileOrInTheEnvironment) {
  const std::string path = dir.Write("bootstrap.json", kBootstrap);
  const ParseResult beside = LoadWith("xds: {bootstrap: bootstrap.json}\n");
  EXPECT_EQ(First(beside), "none");
  EXPECT_EQ(beside.config.xds.servers.at(0).uri, "xds:1");
  EXPECT_EQ(beside.config.xds.node.id, "n");
  EXPECT_THAT(First(LoadWith("")), HasSubstr("needs the control plane, and xds.bootstrap is missing; allowed: there a "
                                             "file in gRPC's bootstrap format, or the file's name in "
                                             "GRPC_XDS_BOOTSTRAP, or its text in GRPC_XDS_BOOTSTRAP_CONFIG"));
  ::setenv("GRPC_XDS_BOOTSTRAP_CONFIG", kBootstrap, 1);
  EXPECT_EQ(LoadWith("").config.xds, beside.config.xds);
  ::setenv("GRPC_XDS_BOOTSTRAP_CONFIG", "{}", 1);
  EXPECT_THAT(First(LoadWith("xds: {bootstrap: \"\"}\n")),
              HasSubstr("GRPC_XDS_BOOTSTRAP_CONFIG: xds_servers: is missing"));
  ::setenv("GRPC_XDS_BOOTSTRAP", path.c_str(), 1);
  EXPECT_EQ(LoadWith("").config.xds, beside.config.xds) << "the file comes first";
}

TEST_F(XdsFileTest, WhatIsWrongWithItIsToldWithItsName) {
  const std::string path = dir.Write("b.json", R"({"xds_servers": [{}]})");
  EXPECT_THAT(First(LoadWith("xds: {bootstrap: b.json}\n")),
              HasSubstr("xds.bootstrap: " + path + ": xds_servers[0].server_uri: is missing"));
  EXPECT_THAT(First(LoadWith("xds: {bootstrap: none.json}\n")), HasSubstr("none.json: cannot be read"));
  EXPECT_THAT(First(LoadWith("xds: {bootstrap: b.json, file: x}\n")), HasSubstr("xds.bootstrap"));
  ::setenv("GRPC_XDS_BOOTSTRAP", path.c_str(), 1);
  EXPECT_THAT(First(LoadWith("")), HasSubstr("GRPC_XDS_BOOTSTRAP: " + path + ": xds_servers[0].server_uri"));
}

// The first section that asks for a control plane is the place of the error.
TEST_F(XdsFileTest, WithoutABootstrapTheErrorStandsAtTheSectionThatNeedsIt) {
  const std::string yaml =
      "listeners: [{address: 127.0.0.1:1}]\n"
      "clusters:\n"
      "  - {name: plain, endpoints: [{address: h:1}]}\n"
      "  - name: users\n"
      "    discovery:\n"
      "      xds: {}\n"
      "  - {name: more, discovery: {xds: {}}}\n"
      "routes: [{cluster: users}]\n";
  const std::string path = dir.Write("sluice.yaml", yaml);
  ParseResult result = Load(path);
  ASSERT_EQ(result.errors.size(), 1u);
  EXPECT_THAT(First(result), testing::StartsWith(path + ":6:12: clusters[1].discovery.xds: needs the control plane"));
  ::setenv("GRPC_XDS_BOOTSTRAP", "/nowhere", 1);
  result = Load(path);
  EXPECT_THAT(First(result), testing::StartsWith(path + ":6:12: clusters[1].discovery.xds: GRPC_XDS_BOOTSTRAP: "));
}

TEST_F(XdsFileTest, WithoutAClusterThatNeedsItTheEnvironmentIsNotLookedAt) {
  ::setenv("GRPC_XDS_BOOTSTRAP", "/nowhere", 1);
  EXPECT_EQ(First(Load(dir.Write("f", Yaml("{file: {path: l.yaml}}")))), "none");
}

}  // namespace
}  // namespace sluice::config
