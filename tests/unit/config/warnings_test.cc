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
  const ParseResult result =
      Parse("listeners: [{address: 127.0.0.1:9999}]\nclusters:\n  - " + cluster + "\n" + more, "f");
  EXPECT_TRUE(result.ok()) << result.errors[0].ToString();
  return Texts(result.warnings);
}

TEST(Warnings, ThereAreNoneWhereNothingIsUnwise) {
  EXPECT_THAT(WarningsOf("{name: a, endpoints: [10.0.0.1:1], rate_limit: {rate: 100000}}"), ElementsAre());
  EXPECT_THAT(WarningsOf("{name: a, endpoints: [127.0.0.1:1, \"[::1]:2\", \"unix:/a\"], keepalive: {interval: 0}}"),
              ElementsAre());
  for (const char* name : {"quickstart.yaml", "minimal.yaml", "cached.yaml", "production.yaml", "first.yaml"}) {
    EXPECT_THAT(Texts(Load(std::string(SLUICE_SOURCE_DIR) + "/config/" + name).warnings), ElementsAre()) << name;
  }
  // It writes out defaults that are better left out.
  EXPECT_THAT(Texts(Load(std::string(SLUICE_SOURCE_DIR) + "/config/reference.yaml").warnings),
              ElementsAre(HasSubstr("clusters[0].rate_limit.rate: 0 is no limit"),
                          HasSubstr("routes[2].rate_limit.rate: 0 is no limit")));
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
}

TEST(Warnings, ARateOfZeroIsNoLimit) {
  EXPECT_THAT(WarningsOf("{name: a, endpoints: [b:1], rate_limit: {rate: 0, burst: 5}}"),
              ElementsAre(HasSubstr("f:3:52: clusters[0].rate_limit.rate: 0 is no limit, rather than a limit that lets "
                                    "no call go")));
  // A variable switches the limit off on purpose.
  EXPECT_THAT(WarningsOf("{name: a, endpoints: [b:1], rate_limit: {rate: \"${NO_SUCH_VARIABLE:-0}\"}}"), ElementsAre());
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

TEST(Warnings, SettingsOfRetriesWhereNoCallMayBeRepeated) {
  const std::string cluster = "{name: a, endpoints: [b:1]}";
  EXPECT_THAT(WarningsOf(cluster, "routes: [{cluster: a, retry: {per_try_timeout: 1s}}]\n"),
              ElementsAre(HasSubstr("f:4:48: routes[0].retry.per_try_timeout: has no effect: no method that the route "
                                    "takes is declared to be idempotent in a descriptor_set; allowed: retry.methods")));
  EXPECT_THAT(WarningsOf(cluster, "routes: [{cluster: a, hedge: {delay: 1s}}]\n"),
              ElementsAre(HasSubstr("f:4:30: routes[0].hedge: has no effect: no method")));
  EXPECT_THAT(
      WarningsOf(cluster, "routes: [{cluster: a, hedge: {delay: auto}, retry: {methods: none, on: [INTERNAL]}}]\n"),
      ElementsAre(HasSubstr("routes[0].hedge: has no effect: retry.methods is none"),
                  HasSubstr("routes[0].retry.on: has no effect: retry.methods is none")));
  EXPECT_THAT(WarningsOf(cluster, "routes: [{cluster: a, hedge: {delay: 1s}, retry: {methods: all, attempts: 1}}]\n"),
              ElementsAre(HasSubstr("routes[0].hedge: has no effect: retry.attempts is 1")));
  EXPECT_THAT(
      WarningsOf(cluster, "routes: [{cluster: a, hedge: {delay: 1s}, retry: {methods: all, per_try_timeout: 1s}}]\n"),
      ElementsAre());
}

TEST(Warnings, AListOfEndpointsThatNothingFills) {
  EXPECT_THAT(WarningsOf("{name: a, endpoints: []}"),
              ElementsAre(HasSubstr("f:3:26: clusters[0].endpoints: is empty and the cluster has no discovery: its "
                                    "calls fail until sluicectl gives it a list")));
  EXPECT_THAT(WarningsOf("{name: a, endpoints: []}", "state_file: /tmp/s\n"), ElementsAre());
  EXPECT_THAT(WarningsOf("{name: a, endpoints: [], discovery: {file: {path: x}}}"), ElementsAre());
}

TEST(Warnings, KeysOfClientsElsewhereWithoutASeed) {
  const std::string clusters = "\nclusters: [{name: a, endpoints: [b:1]}, {name: x, ring: xds, endpoints: [b:1]}]\n";
  const auto warnings = [&](const std::string& listener, const std::string& routes, const std::string& more = "") {
    const ParseResult result = Parse("listeners: [{address: " + listener + "}]" + clusters + routes + more, "f");
    EXPECT_TRUE(result.ok()) << result.errors[0].ToString();
    return Texts(result.warnings);
  };
  const std::string by_user =
      "routes: [{cluster: a, service: s}, {cluster: a, hash_by: {metadata: x-user}, service: t}, "
      "{cluster: a, hash_by: {field: \"1\"}}]\n";
  EXPECT_THAT(warnings("0.0.0.0:1", by_user),
              ElementsAre(HasSubstr("f:3:58: routes[1].hash_by: clients choose the key, and without hash_seed they can "
                                    "find keys that are all of one endpoint (1 more route likewise)")));
  EXPECT_THAT(warnings("0.0.0.0:1", by_user, "hash_seed: x\n"), ElementsAre());
  EXPECT_THAT(warnings("127.0.0.1:1", by_user), ElementsAre());
  EXPECT_THAT(warnings("unix:/a", by_user), ElementsAre());
  // The peer's address is not the client's to choose, and the ring of xDS has no seed.
  EXPECT_THAT(warnings("0.0.0.0:1", "routes: [{cluster: a, hash_by: peer}]\n"), ElementsAre());
  EXPECT_THAT(warnings("0.0.0.0:1", "routes: [{cluster: x, hash_by: {metadata: x-user}}]\n"), ElementsAre());
}

TEST(Warnings, EntriesOfTheCacheThatAreNeverStored) {
  const std::string cluster = "{name: a, endpoints: [b:1]}";
  EXPECT_THAT(WarningsOf(cluster, "cache: {capacity: 4MiB}\n"),
              ElementsAre(HasSubstr("f:4:8: cache.entry_max: 1MiB: of a capacity of 4MiB no entry takes more than "
                                    "512KiB, with its key; larger responses are passed on and never stored")));
  EXPECT_THAT(
      WarningsOf(cluster, "cache: {capacity: 1GiB, entry_max: 5MiB}\n"),
      ElementsAre(HasSubstr("f:4:36: cache.entry_max: 5MiB: of a capacity of 1GiB no entry takes more than 4MiB")));
  EXPECT_THAT(WarningsOf(cluster, "cache: {capacity: 8MiB}\n"), ElementsAre());
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

TEST(Warnings, AnErrorOfAStartHasThePlaceOfTheFileThatItNames) {
  const ParseResult result = Parse(
      "listeners: [{address: 127.0.0.1:1, tls: {certificate: a.crt, key: a.crt.key}}]\n"
      "clusters: [{name: a, endpoints: [b:1]}]\nstate_file: /run/s\nlog: {path: /var/l}\naccess_log: {path: /var/a}\n",
      "f");
  ASSERT_TRUE(result.ok()) << result.errors[0].ToString();
  EXPECT_EQ(PlaceOfFileIn(result, "state_file /run/s: the folder /run: gone"), "f:3:13: state_file");
  EXPECT_EQ(PlaceOfFileIn(result, "log /var/l: is a folder"), "f:4:13: log.path");
  EXPECT_EQ(PlaceOfFileIn(result, "access_log /var/a: is a folder"), "f:5:20: access_log.path");
  EXPECT_EQ(PlaceOfFileIn(result, "listener 127.0.0.1:1: TLS: a.crt: no certificate"),
            "f:1:55: listeners[0].tls.certificate");
  EXPECT_EQ(PlaceOfFileIn(result, "listener 127.0.0.1:1: TLS: a.crt.key: no key"), "f:1:67: listeners[0].tls.key");
  EXPECT_EQ(PlaceOfFileIn(result, "something else"), "");
  ParseResult checked = result;
  CheckFiles(&checked);  // files that are written need not be there
  EXPECT_EQ(checked.errors.size(), 2u);
}

TEST(Warnings, ListenersOfOnePortOfWhichOneIsEveryAddress) {
  const auto errors = [](const std::string& listeners, const std::string& more = "") {
    return Texts(Parse("listeners: " + listeners + "\nclusters: [{name: a, endpoints: [b:1]}]\n" + more, "f").errors);
  };
  EXPECT_THAT(errors("[{address: 0.0.0.0:80}, {address: 127.0.0.1:80}]"),
              ElementsAre(HasSubstr("f:1:36: listeners[1]: address 127.0.0.1:80 and 0.0.0.0:80 of listeners[0] cannot "
                                    "both be listened on: 0.0.0.0 is every address of this host")));
  EXPECT_THAT(errors("[{address: \"[::1]:80\"}, {address: \"[::]:80\"}]").size(), 1u);
  EXPECT_THAT(errors("[{address: \"[::]:80\"}, {address: 0.0.0.0:80}, {address: 127.0.0.1:81}]"), ElementsAre());
  EXPECT_THAT(errors("[{address: 0.0.0.0:80}]", "admin: {http: 127.0.0.1:80}\n"),
              ElementsAre(HasSubstr("admin.http: address 127.0.0.1:80 is also that of a listener, 0.0.0.0:80")));
}

TEST(Warnings, AnEndpointThatIsAnOwnListenerOfItsRoute) {
  const auto errors = [](const std::string& listener, const std::string& endpoint, const std::string& more = "") {
    return Texts(Parse("listeners: [{address: \"" + listener +
                           "\", name: in}, {address: 127.0.0.1:9, name: second}]\n"
                           "clusters: [{name: a, endpoints: [127.0.0.1:1, \"" +
                           endpoint + "\"]}]\n" + more,
                       "f")
                     .errors);
  };
  EXPECT_THAT(errors("0.0.0.0:80", "127.0.0.1:80"),
              ElementsAre(HasSubstr("f:2:47: clusters[0].endpoints[1]: 127.0.0.1:80 is this process's own listener "
                                    "\"in\", whose calls route \"default\" sends here")));
  EXPECT_EQ(errors("0.0.0.0:80", "0.0.0.0:80").size(), 1u);
  EXPECT_EQ(errors("127.0.0.1:80", "localhost:80").size(), 1u);
  EXPECT_EQ(errors("[::]:80", "[::1]:80").size(), 1u);
  EXPECT_EQ(errors("unix:/a", "unix:/a").size(), 1u);
  EXPECT_EQ(errors("127.0.0.1:80", "127.0.0.2:80").size(), 0u);
  EXPECT_EQ(errors("127.0.0.1:80", "[::1]:80").size(), 0u);
  EXPECT_EQ(errors("10.0.0.1:80", "10.0.0.1:81").size(), 0u);
  // Through a second listener, whose calls go elsewhere.
  EXPECT_EQ(errors("127.0.0.1:80", "127.0.0.1:9", "routes: [{cluster: a, listeners: [in]}]\n").size(), 0u);
  EXPECT_EQ(errors("127.0.0.1:80", "127.0.0.1:9", "routes: [{cluster: a, listeners: [second]}]\n").size(), 1u);
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
