// What is legal and unwise is a warning with its place; what is wise has none. Files that are missing are named all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/check_files.h"
#include "config/config.h"
#include "integration/support/temp_dir.h"

namespace sluice::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Texts(const std::vector<ConfigError>& errors) {
  std::vector<std::string> out;
  for (const ConfigError& error : errors) out.push_back(error.ToString());
  return out;
}

std::vector<std::string> WarningsOf(const std::string& cluster, const std::string& more = "") {
  const ParseResult result = Parse("listeners: [{address: 127.0.0.1:1}]\nclusters:\n  - " + cluster + "\n" + more, "f");
  EXPECT_TRUE(result.ok()) << result.errors[0].ToString();
  return Texts(result.warnings);
}

TEST(Warnings, ThereAreNoneWhereNothingIsUnwise) {
  EXPECT_THAT(WarningsOf("{name: a, endpoints: [10.0.0.1:1], rate_limit: {rate: 100000}}"), ElementsAre());
  EXPECT_THAT(WarningsOf("{name: a, endpoints: [127.0.0.1:1, \"[::1]:2\", \"unix:/a\"], keepalive: {interval: 0}}"),
              ElementsAre());
  for (const char* name :
       {"quickstart.yaml", "minimal.yaml", "cached.yaml", "production.yaml", "reference.yaml", "first.yaml"}) {
    EXPECT_THAT(Texts(Load(std::string(SLUICE_SOURCE_DIR) + "/config/" + name).warnings), ElementsAre()) << name;
  }
}

TEST(Warnings, NoKeepaliveTowardsOtherHosts) {
  EXPECT_THAT(
      WarningsOf("{name: a, endpoints: [127.0.0.1:1, 10.0.0.1:1], keepalive: {interval: 0}}"),
      ElementsAre(HasSubstr("f:3:75: clusters[0].keepalive.interval: 0: a connection to 10.0.0.1:1 that is lost "
                            "without a word")));
  EXPECT_THAT(WarningsOf("{name: a, discovery: {file: {path: x}}, keepalive: {interval: 0}}").size(), 1u);
}

TEST(Warnings, PingsThatGrpcServersDoNotBear) {
  EXPECT_THAT(WarningsOf("{name: a, endpoints: [10.0.0.1:1], keepalive: {repeat: 1m}}"),
              ElementsAre(HasSubstr("f:3:60: clusters[0].keepalive.repeat: 1m: servers of gRPC end a connection")));
}

TEST(Warnings, ABurstThatKeepsARateFromBeingReached) {
  EXPECT_THAT(WarningsOf("{name: a, endpoints: [b:1], rate_limit: {rate: 100001}}"),
              ElementsAre(HasSubstr("f:3:52: clusters[0].rate_limit.rate: a burst of 100 lets at most 100000 calls a "
                                    "second go")));
  EXPECT_THAT(WarningsOf("{name: a, endpoints: [b:1], rate_limit: {rate: 10, burst: 8, capped: true}, "
                         "concurrency: {max: 9}}"),
              ElementsAre(HasSubstr("f:3:5: clusters[0].concurrency.max: 9 is never reached: of a capped rate at most "
                                    "its burst, 8, is under way")));
}

TEST(Warnings, ASectionOfARateWithoutARate) {
  EXPECT_THAT(WarningsOf("{name: a, endpoints: [b:1], rate_limit: {burst: 5}}"),
              ElementsAre(HasSubstr("f:3:45: clusters[0].rate_limit: has no rate")));
  EXPECT_THAT(WarningsOf("{name: a, endpoints: [b:1], rate_limit: {rate: 0, burst: 5}}"), ElementsAre());
}

TEST(Warnings, AKeyThatChoosesNoEndpoint) {
  const std::string route = "routes: [{cluster: a, hash_by: {metadata: x-user}}]\n";
  EXPECT_THAT(
      WarningsOf("{name: a, policy: round_robin, endpoints: [b:1]}", route),
      ElementsAre(HasSubstr("f:4:32: routes[0].hash_by: chooses no endpoint: the policy of cluster \"a\" is not "
                            "ring_hash")));
  EXPECT_THAT(
      WarningsOf("{name: a, policy: round_robin, endpoints: [b:1]}", "routes: [{cluster: a, hash_by: random}]\n"),
      ElementsAre());
  EXPECT_THAT(WarningsOf("{name: a, endpoints: [b:1]}", route), ElementsAre());
}

// What stands in a file may be shown by a terminal.
TEST(Warnings, AMessageDoesNotMoveTheCursor) {
  const ParseResult result = Parse("listeners: [{address: \"\\e[2J\"}]\n\"k\\e[31m\": 1\n", "f\x1b[1m");
  ASSERT_FALSE(result.ok());
  for (const std::string& text : Texts(result.errors)) {
    EXPECT_EQ(text.find('\x1b'), text.npos) << text;
    EXPECT_THAT(text, HasSubstr("\\x1b["));
  }
}

TEST(Warnings, FilesThatAStartNeedsAreErrorsAllOfThem) {
  integration::TempDir dir;
  dir.Write("there.crt", "x");
  const std::string path = dir.Write("f.yaml", R"(
clusters:
  - {name: a, endpoints: [b:1], tls: {ca: ca.crt, certificate: there.crt, key: a.key}}
  - {name: b, discovery: {etcd: {servers: [a:1], prefix: /b/, user: u, password_file: pw}}}
listeners:
  - {address: 127.0.0.1:1, tls: {certificate: l.crt, key: l.key}}
routes: [{cluster: a}]
)");
  ParseResult result = Load(path);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(PlaceOfFile(result, dir.File("l.key")), path + ":6:59: listeners[0].tls.key");
  EXPECT_EQ(PlaceOfFile(result, dir.File("none")), "");
  CheckFiles(&result);
  const std::string none = ": cannot be read: No such file or directory";
  EXPECT_THAT(Texts(result.errors),
              ElementsAre(path + ":3:43: clusters[0].tls.ca: " + dir.File("ca.crt") + none,
                          path + ":3:80: clusters[0].tls.key: " + dir.File("a.key") + none,
                          path + ":6:47: listeners[0].tls.certificate: " + dir.File("l.crt") + none,
                          path + ":6:59: listeners[0].tls.key: " + dir.File("l.key") + none));
  EXPECT_THAT(Texts(result.warnings), ElementsAre(path + ":4:87: clusters[1].discovery.etcd.password_file: " +
                                                  dir.File("pw") + none + "; it is tried again when it is used"));
  EXPECT_EQ(result.config, Config());
}

}  // namespace
}  // namespace sluice::config
