#include "server/log_setup.h"

#include <spdlog/async.h>
#include <spdlog/async_logger.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>

#include "base/reopenable_sink.h"

namespace sluice::server {
namespace {

constexpr size_t kQueueLines = 8192;  // the oldest is dropped when it is full
constexpr std::array<std::string_view, 6> kLevels = {"trace", "debug", "info", "warn", "error", "off"};

// Set once, at the start of the process; spdlog's logger is never replaced after, because others hold it raw.
std::shared_ptr<base::ReopenableSink> sink;

spdlog::level::level_enum ToSpdlog(config::LogLevel level) {
  switch (level) {
    case config::LogLevel::kTrace:
      return spdlog::level::trace;
    case config::LogLevel::kDebug:
      return spdlog::level::debug;
    case config::LogLevel::kInfo:
      return spdlog::level::info;
    case config::LogLevel::kWarn:
      return spdlog::level::warn;
    case config::LogLevel::kError:
      return spdlog::level::err;
    case config::LogLevel::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::info;
}

}  // namespace

base::Status SetUpLog(const config::LogOptions& options) {
  auto opened = std::make_shared<base::ReopenableSink>(options.path, STDERR_FILENO, /*raw=*/false);
  if (auto status = opened->Open(); !status) return status.error();
  sink = std::move(opened);
  spdlog::init_thread_pool(kQueueLines, 1);
  auto logger = std::make_shared<spdlog::async_logger>("sluice", sink, spdlog::thread_pool(),
                                                       spdlog::async_overflow_policy::overrun_oldest);
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
  logger->set_level(ToSpdlog(options.level));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
  return base::Ok();
}

void SetLogLevel(config::LogLevel level) { spdlog::default_logger_raw()->set_level(ToSpdlog(level)); }

base::Result<config::LogLevel> ParseLogLevel(std::string_view text) {
  for (size_t i = 0; i < kLevels.size(); ++i) {
    if (text == kLevels[i]) return static_cast<config::LogLevel>(i);
  }
  return base::MakeError(base::ErrorKind::kInvalidArgument,
                         "no log level \"" + std::string(text) + "\"; allowed: trace, debug, info, warn, error, off");
}

std::string_view ToString(config::LogLevel level) { return kLevels[static_cast<size_t>(level)]; }

config::LogLevel CurrentLogLevel() {
  switch (spdlog::default_logger_raw()->level()) {
    case spdlog::level::trace:
      return config::LogLevel::kTrace;
    case spdlog::level::debug:
      return config::LogLevel::kDebug;
    case spdlog::level::info:
      return config::LogLevel::kInfo;
    case spdlog::level::warn:
      return config::LogLevel::kWarn;
    case spdlog::level::err:
    case spdlog::level::critical:
      return config::LogLevel::kError;
    default:
      return config::LogLevel::kOff;
  }
}

base::Status ReopenLog() { return sink == nullptr ? base::Ok() : sink->Open(); }

void ShutDownLog() {
  base::ReopenableSink::SayLosses(
      false);  // the access log's thread runs on, and the logger's own until its queue is empty
  spdlog::shutdown();
}

}  // namespace sluice::server
