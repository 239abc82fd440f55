// TLS sections: the options that they become, and errors with their places.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config.h"

namespace sluice::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

std::string WithListener(std::string_view tls) {
  return "clusters: [{name: users, endpoints: [a:1]}]\nlisteners:\n  - address: 127.0.0.1:1\n    tls: " +
         std::string(tls) + "\n";
}
std::string WithCluster(std::string_view tls, std::string_view endpoint = "a:1") {
  return "listeners: [{address: 127.0.0.1:1}]\nclusters:\n  - name: users\n    endpoints: [\"" + std::string(endpoint) +
         "\"]\n    tls: " + std::string(tls) + "\n";
}
std::vector<std::string> ErrorsOf(std::string_view yaml) {
  std::vector<std::string> out;
  for (const ConfigError& error : Parse(yaml, "f").errors) out.push_back(error.ToString());
  return out;
}

TEST(TlsConfig, EveryKeyOfAListenerReachesItsField) {
  const ParseResult result = Parse(
      WithListener(
          "{certificate: a.crt, key: /k/a.key, client_ca: sub/ca.crt, require_client_certificate: true, "
          "allowed_names: [a.example.com, 'CN=x y'], min_version: 1.3, handshake_timeout: 250ms, handshakes_max: 7}"),
      "/etc/sluice/f.yaml");
  ASSERT_TRUE(result.ok()) << result.errors[0].ToString();
  const net::ListenerTlsOptions& tls = result.config.listeners[0].tls;
  EXPECT_TRUE(tls.enabled);
  EXPECT_EQ(tls.certificate, "/etc/sluice/a.crt");  // beside the configuration
  EXPECT_EQ(tls.key, "/k/a.key");
  EXPECT_EQ(tls.ca, "/etc/sluice/sub/ca.crt");
  EXPECT_TRUE(tls.require_client_certificate);
  EXPECT_THAT(tls.allowed_names, ElementsAre("a.example.com", "CN=x y"));
  EXPECT_EQ(tls.version_min, net::TlsVersion::k13);
  EXPECT_EQ(tls.handshake_timeout, 250ms);
  EXPECT_EQ(tls.handshakes_max, 7u);
}

TEST(TlsConfig, EveryKeyOfAClusterReachesItsField) {
  const ParseResult result =
      Parse(WithCluster("{ca: ca.crt, server_name: users.example.com, certificate: c.crt, key: c.key, "
                        "allowed_names: [spiffe://d/users], min_version: '1.3'}"),
            "dir/f.yaml");
  ASSERT_TRUE(result.ok()) << result.errors[0].ToString();
  const net::ClusterTlsOptions& tls = result.config.clusters[0].tls;
  EXPECT_TRUE(tls.enabled);
  EXPECT_EQ(tls.ca, "dir/ca.crt");
  EXPECT_EQ(tls.server_name, "users.example.com");
  EXPECT_EQ(tls.certificate, "dir/c.crt");
  EXPECT_EQ(tls.key, "dir/c.key");
  EXPECT_THAT(tls.allowed_names, ElementsAre("spiffe://d/users"));
  EXPECT_EQ(tls.version_min, net::TlsVersion::k13);
  // The word is not a file, wherever the configuration lies.
  EXPECT_EQ(Parse(WithCluster("{ca: system}"), "dir/f.yaml").config.clusters[0].tls.ca, net::kSystemCa);
}

TEST(TlsConfig, WithoutTheSectionThereIsNone) {
  const Config config =
      Parse("listeners: [{address: 127.0.0.1:1}]\nclusters: [{name: a, endpoints: [a:1]}]", "f").config;
  EXPECT_FALSE(config.listeners[0].tls.enabled);
  EXPECT_FALSE(config.clusters[0].tls.enabled);
}

// Trap: an empty or missing name that turns TLS, or the check of clients, off in silence.
TEST(TlsConfig, WhatIsMissingOrEmptyIsAnErrorAndNotLessTls) {
  EXPECT_THAT(ErrorsOf(WithListener("{}")), ElementsAre(HasSubstr("f:4:10: listeners[0].tls.certificate: is missing"),
                                                        HasSubstr("listeners[0].tls.key: is missing")));
  EXPECT_THAT(ErrorsOf(WithListener("{certificate: '', key: k}")),
              ElementsAre("f:4:24: listeners[0].tls.certificate: is empty; the name of a PEM file is needed"));
  EXPECT_THAT(ErrorsOf(WithListener("{certificate: c, key: k, client_ca: ''}")),
              ElementsAre(HasSubstr("client_ca: is empty; the name of a PEM file is needed")));
  EXPECT_THAT(ErrorsOf(WithCluster("{}")), ElementsAre(HasSubstr("clusters[0].tls.ca: is missing")));
  EXPECT_THAT(ErrorsOf(WithCluster("{ca: ''}")), ElementsAre(HasSubstr("clusters[0].tls.ca: is empty")));
}

TEST(TlsConfig, NonsensicalSectionsAreErrors) {
  const auto listener = [](std::string more) {
    return ErrorsOf(WithListener("{certificate: c, key: k, " + more + "}"));
  };
  EXPECT_THAT(listener("client_ca: system"), ElementsAre(HasSubstr("client_ca: a public authority certifies")));
  EXPECT_THAT(listener("allowed_names: [a.example.com]"), ElementsAre(HasSubstr("allowed_names: needs client_ca")));
  EXPECT_THAT(listener("client_ca: x, require_client_certificate: false, allowed_names: [a.example.com]"),
              ElementsAre(HasSubstr("allowed_names: needs client_ca, and require_client_certificate: true")));
  EXPECT_THAT(listener("require_client_certificate: true"), ElementsAre(HasSubstr("needs client_ca")));
  EXPECT_THAT(listener("client_ca: x, allowed_names: ['a*b']"),
              ElementsAre(HasSubstr("listeners[0].tls.allowed_names[0]: a*b: may have a * only as")));
  EXPECT_THAT(listener("min_version: 1.1"), ElementsAre(HasSubstr("min_version: \"1.1\" is not one of: 1.2, 1.3")));
  EXPECT_THAT(listener("handshake_timeout: 0"), ElementsAre(HasSubstr("[1ms, 10m]")));
  EXPECT_THAT(listener("handshakes_max: 0"), ElementsAre(HasSubstr("[1, 1000000]")));
  const auto cluster = [](std::string more) { return ErrorsOf(WithCluster("{ca: x, " + more + "}")); };
  EXPECT_THAT(cluster("certificate: c"),
              ElementsAre(HasSubstr("certificate: certificate and key are only of use together")));
  EXPECT_THAT(cluster("key: c"), ElementsAre(HasSubstr("key: certificate and key are only of use together")));
  EXPECT_THAT(cluster("server_name: 10.0.0.1"), ElementsAre(HasSubstr("server_name: \"10.0.0.1\" is not a DNS name")));
  EXPECT_THAT(ErrorsOf(WithCluster("{ca: x}", "unix:/s")),
              ElementsAre(HasSubstr("clusters[0].tls: endpoint unix:/s has no name to look for in its certificate")));
  EXPECT_TRUE(ErrorsOf(WithCluster("{ca: x, server_name: a.example.com}", "unix:/s")).empty());
}

}  // namespace
}  // namespace sluice::config
