// Reload: exactly the keys that a running process cannot change are named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config.h"

namespace sluice::config {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

TEST(RestartOnlyChanges, NamesEachChangeWithBothValues) {
  Config wanted;
  wanted.runtime = {4, 20ms, 8};
  wanted.admin = {.grpc = "", .http = "127.0.0.1:9901"};
  wanted.log.path = "/l";
  wanted.state_file = "/s";
  wanted.cache.entry_bytes_expected = 512;
  wanted.cache.strict = true;
  wanted.cache.doorkeeper = true;
  EXPECT_THAT(
      RestartOnlyChanges(Config(), wanted),
      ElementsAre("workers: from 0 to 4 needs a restart", "blocking_threshold: from 10ms to 20ms needs a restart",
                  "blocking_threads: from 4 to 8 needs a restart", "admin.grpc: from \"auto\" to \"\" needs a restart",
                  "admin.http: from \"\" to \"127.0.0.1:9901\" needs a restart",
                  "log.path: from \"\" to \"/l\" needs a restart", "state_file: from \"\" to \"/s\" needs a restart",
                  "cache.entry_expected: from 4KiB to 512 needs a restart",
                  "cache.strict: from false to true needs a restart",
                  "cache.doorkeeper: from false to true needs a restart"));
}

TEST(RestartOnlyChanges, IsEmptyForWhatAReloadTakesOver) {
  Config wanted;
  wanted.listeners.emplace_back();
  wanted.clusters.emplace_back();
  wanted.routes.emplace_back();
  wanted.log.level = LogLevel::kDebug;
  wanted.access_log = {proxy::AccessLogOptions::Format::kJson, "/a"};
  wanted.forwarding = {true, true};
  wanted.drain_timeout = 1ms;
  wanted.hash_seed = "x";
  wanted.descriptor_set = "d";
  wanted.concurrency = {5, 6};
  wanted.cache.capacity_bytes = 1 << 20;
  wanted.cache.entry_bytes_max = 4096;
  wanted.cache.request_bytes_max = 0;
  wanted.cache.fetches_max = 1;
  EXPECT_THAT(RestartOnlyChanges(Config(), wanted), IsEmpty());
}

}  // namespace
}  // namespace sluice::config
