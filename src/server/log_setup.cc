#include "server/log_setup.h"

#include <spdlog/async.h>
#include <spdlog/async_logger.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include "base/reopenable_sink.h"

namespace sluice::server {
namespace {

constexpr size_t kQueueLines = 8192;  // the oldest is dropped when it is full
// By config::LogLevel.
constexpr std::array kLevels = {spdlog::level::trace, spdlog::level::debug, spdlog::level::info,
                                spdlog::level::warn,  spdlog::level::err,   spdlog::level::off};

// Set once, at the start of the process; spdlog's logger is never replaced after, because others hold it raw.
std::shared_ptr<base::ReopenableSink> sink;

spdlog::level::level_enum ToSpdlog(config::LogLevel level) { return kLevels[static_cast<size_t>(level)]; }

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
  const auto found = std::find(config::kLogLevels.begin(), config::kLogLevels.end(), text);
  if (found != config::kLogLevels.end()) return static_cast<config::LogLevel>(found - config::kLogLevels.begin());
  return base::MakeError(base::ErrorKind::kInvalidArgument,
                         "no log level \"" + std::string(text) + "\"; allowed: trace, debug, info, warn, error, off");
}

config::LogLevel CurrentLogLevel() {
  // spdlog's `critical`, which has no name here, counts as error.
  const auto above = std::upper_bound(kLevels.begin(), kLevels.end(), spdlog::default_logger_raw()->level());
  return static_cast<config::LogLevel>(above - kLevels.begin() - 1);
}

base::Status ReopenLog() { return sink == nullptr ? base::Ok() : sink->Open(); }

void ShutDownLog() {
  base::ReopenableSink::SayLosses(
      false);  // the access log's thread runs on, and the logger's own until its queue is empty
  spdlog::shutdown();
}

}  // namespace sluice::server
