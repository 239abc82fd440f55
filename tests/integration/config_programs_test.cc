// What the programs do with configurations: the dump of one, and how it differs from another.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "config/config.h"
#include "config/dump.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "support/tls_certificates.h"
#include "support/wait_until.h"

namespace sluice::integration {
namespace {

using testing::HasSubstr;

std::string ReadSource(const std::string& name) {
  std::ifstream file(std::string(SLUICE_SOURCE_DIR) + "/" + name);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class ConfigPrograms : public testing::Test {
 protected:
  ConfigPrograms() {
    setenv("SLUICE_TEST_TIME", "3s", 1);
    dir_.Write("part.yaml",
               "clusters:\n  - {name: a, endpoints: [10.0.0.1:1], connect_timeout: \"${SLUICE_TEST_TIME}\"}\n");
    dir_.Write("sluice.yaml",
               "include: [part.yaml]\nlisteners: [{address: 127.0.0.1:7070}]\nstate_file: s.txt\nhash_seed: s3cret\n");
  }
  Finished Sluiced(std::vector<std::string> arguments) {
    return RunProgram("sluiced", std::move(arguments), dir_.File("out"));
  }

  TempDir dir_;
};

TEST_F(ConfigPrograms, ADumpIsAConfigurationWithoutVariablesAndIncludes) {
  const Finished dump = Sluiced({"--dump-config", "-c", dir_.File("sluice.yaml")});
  ASSERT_EQ(dump.code, 0) << dump.output;
  EXPECT_THAT(dump.output, HasSubstr("    connect_timeout: 3s\n")) << dump.output;
  EXPECT_THAT(dump.output, HasSubstr("hash_seed: s3cret\n"));
  unsetenv("SLUICE_TEST_TIME");
  const Finished again = Sluiced({"--dump-config", "-c", dir_.Write("dump.yaml", dump.output)});
  EXPECT_EQ(again.code, 0);
  EXPECT_EQ(again.output, dump.output);
}

TEST_F(ConfigPrograms, AWrongConfigurationHasNoDump) {
  unsetenv("SLUICE_TEST_TIME");
  const Finished dump = Sluiced({"--dump-config", "-c", dir_.File("sluice.yaml")});
  EXPECT_EQ(dump.code, 1);
  EXPECT_EQ(dump.output, dir_.File("part.yaml") +
                             ":2:57: the environment has no variable SLUICE_TEST_TIME; allowed: set it, or write "
                             "${SLUICE_TEST_TIME:-default}\n");
}

TEST_F(ConfigPrograms, TheFirstConfigurationIsWrittenOnceAndWorks) {
  const Finished text = Sluiced({"init"});
  EXPECT_EQ(text.code, 0);
  EXPECT_EQ(text.output, ReadSource("config/first.yaml"));
  const std::string path = dir_.File("first.yaml");
  EXPECT_EQ(Sluiced({"init", path}).code, 0);
  EXPECT_EQ(Sluiced({"--check", "--strict", "-c", path}).output, "OK\n");
  const Finished again = Sluiced({"init", path});
  EXPECT_EQ(again.code, 1);
  EXPECT_THAT(again.output, HasSubstr("first.yaml: File exists; init changes no file that is there"));
  EXPECT_EQ(Sluiced({"init", path, path}).code, 2);
  EXPECT_EQ(Sluiced({"init", "--check"}).code, 2);
}

TEST_F(ConfigPrograms, WarningsHaveTheirPlaceAndFailOnlyAStrictCheck) {
  const std::string file = dir_.Write("sluice.yaml",
                                      "listeners: [{address: 127.0.0.1:7070}]\nclusters:\n  - name: a\n    endpoints: "
                                      "[10.0.0.1:1]\n    keepalive: {interval: 0}\n");
  const Finished check = Sluiced({"--check", "-c", file});
  EXPECT_EQ(check.code, 0);
  EXPECT_THAT(check.output,
              HasSubstr("warning: " + file + ":5:27: clusters[0].keepalive.interval: 0: a connection to "));
  EXPECT_THAT(check.output, HasSubstr("OK\n"));
  EXPECT_EQ(Sluiced({"--strict", "-c", file}).code, 2);
  const Finished strict = Sluiced({"--check", "--strict", "-c", file});
  EXPECT_EQ(strict.code, 1);
  EXPECT_THAT(strict.output, testing::EndsWith("1 warning\n"));
}

// config/reference.yaml as it is, with the files that it names.
class Reference : public ConfigPrograms {
 protected:
  Reference() {
    const test::TlsCert ca = test::MakeCert({.common_name = "ca", .authority = true});
    std::filesystem::create_directory(dir_.File("tls"));
    for (const char* name : {"server", "other", "client"}) {
      const test::TlsCert own = test::MakeCert({.common_name = name, .until = 90 * 86400}, &ca);
      dir_.Write(std::string("tls/") + name + ".crt", own.certificate_pem);
      dir_.Write(std::string("tls/") + name + ".key", own.key_pem);
    }
    for (const char* name : {"clients", "etcd"}) dir_.Write(std::string("tls/") + name + "-ca.crt", ca.certificate_pem);
    for (const char* name : {"reference.yaml", "xds-bootstrap.json"})
      dir_.Write(name, ReadSource(std::string("config/") + name));
    dir_.Write("users.yaml", "endpoints: []\n");
    dir_.Write("etcd.password", "secret\n");
    // The key of RFC 8037 A.2.
    dir_.Write("jwks.json", R"({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "a",
        "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]})");
  }
};

TEST_F(Reference, PassesTheCheck) {
  // The reference shows each option at its default; two of them are rates that limit nothing, which a warning says.
  const Finished check = Sluiced({"--check", "-c", dir_.File("reference.yaml")});
  EXPECT_EQ(check.code, 0) << check.output;
  EXPECT_THAT(check.output, HasSubstr("clusters[0].rate_limit.rate: 0 is no limit"));
  EXPECT_THAT(check.output, HasSubstr("routes[2].rate_limit.rate: 0 is no limit"));
}

TEST_F(Reference, WithoutItsFilesEachHasItsLine) {
  for (const char* name : {"tls/server.crt", "tls/client.key"}) std::filesystem::remove(dir_.File(name));
  const Finished check = Sluiced({"--check", "-c", dir_.File("reference.yaml")});
  EXPECT_EQ(check.code, 1);
  EXPECT_THAT(check.output, testing::ContainsRegex("reference.yaml:[0-9]+:20: listeners\\[1\\].tls.certificate: "));
  EXPECT_THAT(check.output, testing::ContainsRegex("reference.yaml:[0-9]+:12: clusters\\[1\\].tls.key: "));
}

TEST_F(Reference, ACertificateThatEndsSoonIsAWarningAtItsKey) {
  const test::TlsCert ca = test::MakeCert({.common_name = "ca", .authority = true});
  const test::TlsCert own = test::MakeCert({.common_name = "server", .until = 3 * 86400 + 3600}, &ca);
  dir_.Write("tls/server.crt", own.certificate_pem);
  dir_.Write("tls/server.key", own.key_pem);
  const Finished check = Sluiced({"--check", "-c", dir_.File("reference.yaml")});
  EXPECT_EQ(check.code, 0) << check.output;
  EXPECT_THAT(check.output, testing::ContainsRegex("warning: .*reference.yaml:[0-9]+:20: listeners\\[1\\].tls."
                                                   "certificate: .*: the certificate ends at .* UTC, in 3 days"));
}

// The daemon's configuration by its RPC, what a reload of its file would change, and what another file would.
class ConfigOfADaemon : public ConfigPrograms {
 protected:
  ConfigOfADaemon() {
    WriteMain("3s", "");
    daemon_ = std::make_unique<Process>("sluiced", std::vector<std::string>{"-c", dir_.File("main.yaml")},
                                        dir_.File("daemon.out"));
    EXPECT_TRUE(WaitUntil([&] { return Ctl({"status"}).code == 0 || !daemon_->Running(); })) << daemon_->Output();
  }
  void WriteMain(const std::string& timeout, const std::string& more) {
    dir_.Write("main.yaml", "listeners: [{address: \"unix:" + dir_.File("l.sock") + "\"}]\nadmin: {grpc: \"unix:" +
                                dir_.File("a.sock") + "\"}\nhash_seed: s3cret\nclusters:\n  - {name: a, endpoints: " +
                                "[10.0.0.1:1], connect_timeout: " + timeout + "}\n" + more);
  }
  Finished Ctl(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--address", "unix:" + dir_.File("a.sock")});
    return RunProgram("sluicectl", std::move(arguments), dir_.File("ctl.out"));
  }

  std::unique_ptr<Process> daemon_;
};

TEST_F(ConfigOfADaemon, IsDumpedWithoutItsSeed) {
  const Finished dump = Ctl({"config", "dump"});
  EXPECT_EQ(dump.code, 0);
  EXPECT_THAT(dump.output, HasSubstr("    connect_timeout: 3s\n"));
  EXPECT_THAT(dump.output, testing::Not(HasSubstr("s3cret")));
  EXPECT_THAT(Ctl({"--json", "config", "dump"}).output, HasSubstr("\"yaml\""));
}

TEST_F(ConfigOfADaemon, DiffersAsAReloadWouldChangeIt) {
  EXPECT_EQ(Ctl({"config", "diff"}).code, 0);
  EXPECT_EQ(Ctl({"config", "diff", dir_.File("main.yaml")}).output, "");
  WriteMain("4s", "workers: 7\n");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"config", "diff"}, {"config", "diff", dir_.File("main.yaml")}}) {
    const Finished diff = Ctl(words);
    EXPECT_EQ(diff.code, 1);
    EXPECT_THAT(diff.output, HasSubstr("- clusters[a].connect_timeout: 3s\n+ clusters[a].connect_timeout: 4s\n"));
    EXPECT_THAT(diff.output, HasSubstr("- workers: 0\n+ workers: 7\n"));
    EXPECT_THAT(diff.output, HasSubstr("note: workers: from 0 to 7 needs a restart\n"));
  }
  EXPECT_THAT(Ctl({"config", "dump", "--from-file"}).output, HasSubstr("    connect_timeout: 4s\n"));
  EXPECT_THAT(Ctl({"config", "dump"}).output, HasSubstr("    connect_timeout: 3s\n"));
  ASSERT_EQ(Ctl({"reload"}).code, 0);
  // What needs a restart is not in force.
  EXPECT_THAT(Ctl({"config", "diff"}).output,
              "- workers: 0\n+ workers: 7\nnote: workers: from 0 to 7 needs a restart\n");
}

TEST_F(ConfigOfADaemon, ADiffThatCannotBeMadeIsTrouble) {
  WriteMain("4", "");
  EXPECT_EQ(Ctl({"config", "diff"}).code, 2);
  EXPECT_THAT(Ctl({"config", "diff"}).output, HasSubstr("main.yaml:5:57: clusters[0].connect_timeout: \"4\" is not"));
  EXPECT_EQ(Ctl({"config", "diff", dir_.File("main.yaml")}).code, 2);
  EXPECT_EQ(Ctl({"config", "diff", dir_.File("none.yaml")}).code, 2);
  EXPECT_EQ(Ctl({"config", "dump", "--from-file"}).code, 1);
  EXPECT_EQ(
      RunProgram("sluicectl", {"--address", "unix:" + dir_.File("no.sock"), "config", "diff"}, dir_.File("c")).code, 3);
}

}  // namespace
}  // namespace sluice::integration
