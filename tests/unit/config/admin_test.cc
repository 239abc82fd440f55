// The admin section: TLS and roles, and that an address which other hosts can reach needs both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config.h"

namespace sluice::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ParseResult With(const std::string& admin) {
  return Parse(
      "listeners: [{address: 127.0.0.1:1}]\nclusters: [{name: users, endpoints: [a:1]}]\nadmin: " + admin + "\n",
      "conf/f");
}
std::vector<std::string> ErrorsOf(const std::string& admin) {
  std::vector<std::string> out;
  for (const ConfigError& error : With(admin).errors) out.push_back(error.ToString());
  return out;
}
const std::string kTls = "tls: {certificate: c.pem, key: /k.pem, client_ca: sub/ca.pem}";

TEST(AdminSection, TlsAndRoles) {
  const ParseResult result = With("{grpc: \"0.0.0.0:9901\", " + kTls +
                                  ", roles: {read: [watch.example.com, CN=w], write: [\"spiffe://corp/ops/*\"]}}");
  ASSERT_TRUE(result.ok()) << result.errors[0].ToString();
  const AdminOptions& admin = result.config.admin;
  EXPECT_EQ(admin.tls.certificate, "conf/c.pem");
  EXPECT_EQ(admin.tls.key, "/k.pem");
  EXPECT_EQ(admin.tls.client_ca, "conf/sub/ca.pem");
  EXPECT_THAT(admin.roles.read, ElementsAre("watch.example.com", "CN=w"));
  EXPECT_THAT(admin.roles.write, ElementsAre("spiffe://corp/ops/*"));
}

TEST(AdminSection, AnAddressThatOthersReachNeedsTls) {
  for (const std::string address :
       {"0.0.0.0:9901", "10.0.0.1:9901", "[::]:9901", "[::ffff:10.0.0.1]:9901", "[fe80::1]:9901"}) {
    EXPECT_THAT(
        ErrorsOf("{grpc: \"" + address + "\"}"),
        ElementsAre("conf/f:3:15: admin.grpc: address " + address +
                    " lets every client that reaches it change everything; allowed: unix:/path, a loopback address, or "
                    "admin.tls with client certificates"))
        << address;
  }
  for (const std::string address :
       {"127.0.0.1:9901", "127.8.0.1:9901", "[::1]:9901", "[::ffff:127.0.0.1]:9901", "unix:/a", ""}) {
    EXPECT_THAT(ErrorsOf("{grpc: \"" + address + "\"}"), ElementsAre()) << address;
  }
  // It only shows what there is.
  EXPECT_THAT(ErrorsOf("{http: \"0.0.0.0:9902\"}"), ElementsAre());
}

TEST(AdminSection, TlsNeedsAllFilesAndAPlace) {
  const std::string roles = ", roles: {write: [CN=a]}}";
  EXPECT_THAT(ErrorsOf("{grpc: \"127.0.0.1:1234\", tls: {certificate: c, key: k}" + roles),
              ElementsAre(HasSubstr(
                  "admin.tls.client_ca: no file; certificate, key and client_ca are needed, or none of them")));
  EXPECT_THAT(ErrorsOf("{grpc: \"127.0.0.1:1234\", tls: {key: k, client_ca: a}" + roles),
              ElementsAre(HasSubstr("admin.tls.certificate: no file")));
  EXPECT_THAT(ErrorsOf("{" + kTls + roles), ElementsAre(HasSubstr("admin.tls: is for an IP address")));
  EXPECT_THAT(ErrorsOf("{grpc: \"\", " + kTls + roles),
              ElementsAre(HasSubstr("admin.tls: has no use without admin.grpc")));
  EXPECT_THAT(ErrorsOf("{tls: {ca: x}}"), ElementsAre(HasSubstr("admin.tls.ca")));
}

TEST(AdminSection, TlsNeedsARoleAndRolesNeedTls) {
  const std::string tls = "{grpc: \"127.0.0.1:1234\", " + kTls;
  EXPECT_THAT(ErrorsOf(tls + "}"), ElementsAre(HasSubstr("admin.roles: is empty")));
  EXPECT_THAT(ErrorsOf(tls + ", roles: {read: [], write: []}}"), ElementsAre(HasSubstr("admin.roles: is empty")));
  EXPECT_THAT(ErrorsOf(tls + ", roles: {read: [CN=a]}}"), ElementsAre());
  EXPECT_THAT(ErrorsOf("{roles: {read: [CN=a]}}"), ElementsAre(HasSubstr("admin.roles: go by client certificates")));
  EXPECT_THAT(
      ErrorsOf(tls + ", roles: {write: [a*b, CN=a, CN=a, {x: y}], admin: [CN=a]}}"),
      testing::UnorderedElementsAre(HasSubstr("admin.roles.write[0]: a*b"), HasSubstr("\"CN=a\" is there twice"),
                                    HasSubstr("admin.roles.write[3]"), HasSubstr("admin.roles.admin")));
}

TEST(AdminSection, FilesNeedARestartAndRolesDoNot) {
  const std::string tls = "{grpc: \"127.0.0.1:1234\", " + kTls + ", roles: ";
  const Config running = With(tls + "{write: [CN=a]}}").config;
  EXPECT_THAT(RestartOnlyChanges(running, With(tls + "{read: [CN=b]}}").config), ElementsAre());
  Config other = running;
  other.admin.tls.key = "other";
  EXPECT_THAT(RestartOnlyChanges(running, other), ElementsAre(HasSubstr("admin.tls.key: from ")));
}

}  // namespace
}  // namespace sluice::config
