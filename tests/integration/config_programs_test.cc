// What the programs do with configurations: the dump of one, and how it differs from another.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "config/config.h"
#include "config/dump.h"
#include "support/process.h"
#include "support/temp_dir.h"

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

}  // namespace
}  // namespace sluice::integration
