// What the programs do with configurations: the dump of one, and how it differs from another.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <memory>

#include "config/config.h"
#include "config/dump.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "support/wait_until.h"

namespace sluice::integration {
namespace {

using testing::HasSubstr;

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
