#include "server/log_setup.h"

#include <gtest/gtest.h>
#include <spdlog/async.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include "base/log.h"

namespace sluice::server {
namespace {

using config::LogLevel;

TEST(LogSetup, LevelsHaveNamesThatAreReadBack) {
  for (LogLevel level :
       {LogLevel::kTrace, LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarn, LogLevel::kError, LogLevel::kOff}) {
    auto parsed = ParseLogLevel(ToString(level));
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(*parsed, level);
  }
}

TEST(LogSetup, AnUnknownLevelSaysWhatIsAllowed) {
  for (const char* text : {"", "INFO", "warning", "info "}) {
    auto parsed = ParseLogLevel(text);
    ASSERT_FALSE(parsed.ok());
    EXPECT_EQ(parsed.error().kind, base::ErrorKind::kInvalidArgument);
    EXPECT_NE(parsed.error().detail.find("trace, debug, info, warn, error, off"), std::string::npos);
  }
}

TEST(LogSetup, TheLevelInForceIsTheOneThatWasSet) {
  const LogLevel before = CurrentLogLevel();
  for (LogLevel level :
       {LogLevel::kTrace, LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarn, LogLevel::kError, LogLevel::kOff}) {
    SetLogLevel(level);
    EXPECT_EQ(CurrentLogLevel(), level);
  }
  SetLogLevel(before);
}

TEST(LogSetup, LinesOfJsonAreJsonWhateverAMessageHas) {
  const std::string path = testing::TempDir() + "/sluice-log-" + std::to_string(::getpid());
  const auto before = spdlog::default_logger();
  ASSERT_TRUE(SetUpLog({LogLevel::kInfo, path, config::LogFormat::kJson}).ok());
  // Destroyed here, not by its thread: TSan does not see how that one, in Debian's library, gives it back.
  const auto json = spdlog::default_logger();
  SLUICE_LOG_WARN("a \"b\" {}", "\n\x01\xff\\");
  SLUICE_LOG_DEBUG("not this");
  json->flush();
  spdlog::set_default_logger(before);
  spdlog::init_thread_pool(1, 1);  // the former one ends when all is written
  std::ifstream in(path);
  std::string line, next;
  ASSERT_TRUE(std::getline(in, line));
  EXPECT_FALSE(std::getline(in, next)) << next;
  EXPECT_TRUE(
      std::regex_match(line, std::regex(R"(\{"time":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z","level":"warning",)"
                                        R"("message":"a \\"b\\" \\u000a\\u0001\\u00ff\\\\"\})")))
      << line;
  std::filesystem::remove(path);
}

TEST(LogSetup, AFileThatCannotBeOpenedIsAnErrorAndTheLogStaysAsItWas) {
  const LogLevel before = CurrentLogLevel();
  auto status = SetUpLog({LogLevel::kTrace, "/nonexistent/folder/log"});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, base::ErrorKind::kIo);
  EXPECT_EQ(CurrentLogLevel(), before);
}

}  // namespace
}  // namespace sluice::server
