#include "server/log_setup.h"

#include <gtest/gtest.h>

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

TEST(LogSetup, AFileThatCannotBeOpenedIsAnErrorAndTheLogStaysAsItWas) {
  const LogLevel before = CurrentLogLevel();
  auto status = SetUpLog({LogLevel::kTrace, "/nonexistent/folder/log"});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, base::ErrorKind::kIo);
  EXPECT_EQ(CurrentLogLevel(), before);
}

}  // namespace
}  // namespace sluice::server
