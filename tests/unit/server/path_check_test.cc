#include "server/path_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "integration/support/temp_dir.h"
#include "server/server.h"

namespace sluice::server {
namespace {

using ::testing::HasSubstr;

TEST(PathCheck, AFolderThatIsNotThereIsTold) {
  integration::TempDir dir;
  const base::Status gone = CanReplace("state_file", dir.File("gone/state"));
  ASSERT_FALSE(gone.ok());
  EXPECT_EQ(gone.error().detail, "state_file " + dir.File("gone/state") + ": the folder " + dir.File("gone") +
                                     ": No such file or directory");
  dir.Write("file", "");
  EXPECT_THAT(CanReplace("state_file", dir.File("file/state")).error().detail, HasSubstr("is no folder"));
  EXPECT_FALSE(CanAppend("log", dir.File("gone/log")).ok());
  EXPECT_THAT(CanAppend("log", dir.path()).error().detail, HasSubstr("is a folder"));
}

TEST(PathCheck, WhatCanBeWrittenIsFineAndNotMade) {
  integration::TempDir dir;
  EXPECT_TRUE(CanReplace("state_file", dir.File("state")).ok());
  EXPECT_TRUE(CanAppend("log", dir.File("log")).ok());
  EXPECT_FALSE(std::filesystem::exists(dir.File("log")));
  EXPECT_TRUE(CanAppend("log", dir.Write("there", "")).ok());
  EXPECT_TRUE(CanAppend("log", "/dev/null").ok());
}

// Found at the first change of a list, in an incident, before.
TEST(PathCheck, TheCheckOfAConfigurationAndTheStartLook) {
  integration::TempDir dir;
  const std::string yaml =
      "listeners: [{address: 127.0.0.1:0}]\nclusters: [{name: c, endpoints: [10.0.0.1:1]}]\nadmin: {grpc: \"\"}\n";
  config::Config config = config::Parse(yaml, "f").config;
  ASSERT_EQ(config.clusters.size(), 1u);
  config.state_file = dir.File("gone/state");
  EXPECT_THAT(Server::Check(config).error().detail, HasSubstr("state_file " + config.state_file));
  EXPECT_THAT(Server::Start(config, {}).error().detail, HasSubstr("state_file " + config.state_file));
  config.state_file = dir.File("state");
  config.log.path = dir.File("gone/log");
  EXPECT_THAT(Server::Check(config).error().detail, HasSubstr("log " + config.log.path));
  config.log.path = dir.File("log");
  EXPECT_TRUE(Server::Check(config).ok());
}

TEST(PathCheck, TheCheckLeavesABrokenStateFileWhereItIs) {
  integration::TempDir dir;
  config::Config config =
      config::Parse("listeners: [{address: 127.0.0.1:0}]\nclusters: [{name: c, endpoints: [10.0.0.1:1]}]\n", "f")
          .config;
  config.state_file = dir.Write("state", "clusters: [");
  std::vector<std::string> notes;
  EXPECT_TRUE(Server::Check(config, &notes).ok());
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes[0], HasSubstr("state file " + config.state_file));
  EXPECT_EQ(dir.Read("state"), "clusters: [");
}

}  // namespace
}  // namespace sluice::server
