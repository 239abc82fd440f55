#include "server/log_setup.h"

#include <spdlog/async.h>
#include <spdlog/async_logger.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string>

#include "admin/grpc_log.h"
#include "base/clock.h"
#include "base/reopenable_sink.h"
#include "proxy/access_log/line_text.h"

namespace sluice::server {
namespace {

constexpr size_t kQueueLines = 8192;                      // the oldest is dropped when it is full
constexpr std::chrono::milliseconds kLastLinesMax{1000};  // until a pipe has taken the last lines
// By config::LogLevel.
constexpr std::array kLevels = {spdlog::level::trace, spdlog::level::debug, spdlog::level::info,
                                spdlog::level::warn,  spdlog::level::err,   spdlog::level::off};

// Set once, at the start of the process; spdlog's logger is never replaced after, because others hold it raw.
std::shared_ptr<base::ReopenableSink> sink;

// {"time":"2026-01-02T03:04:05.678Z","level":"info","message":"..."}
class JsonFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    const std::string_view level(spdlog::level::to_string_view(message.level).data(),
                                 spdlog::level::to_string_view(message.level).size());
    const std::string_view text(message.payload.data(), message.payload.size());
    const size_t begin = out.size();
    out.resize(begin + kAroundBytes + proxy::kQuotedBytesPerByte * (level.size() + text.size()));
    char* to = proxy::PutText(out.data() + begin, R"({"time":")");
    to = time_.Put(to, std::chrono::nanoseconds(message.time.time_since_epoch()).count());
    to = proxy::PutText(to, R"(","level":)");
    to = proxy::PutQuoted(to, level);
    to = proxy::PutText(to, R"(,"message":)");
    to = proxy::PutQuoted(to, text);
    to = proxy::PutText(to, "}\n");
    out.resize(static_cast<size_t>(to - out.data()));
  }
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<JsonFormatter>(); }

 private:
  static constexpr size_t kAroundBytes = 128;  // of the keys, the time, and quotes
  proxy::TimeText time_;
};

spdlog::level::level_enum ToSpdlog(config::LogLevel level) { return kLevels[static_cast<size_t>(level)]; }

}  // namespace

base::Status SetUpLog(const config::LogOptions& options) {
  auto opened = std::make_shared<base::ReopenableSink>(options.path, STDERR_FILENO, /*raw=*/false);
  if (auto status = opened->Open(); !status) return status.error();
  sink = std::move(opened);
  spdlog::init_thread_pool(kQueueLines, 1);
  auto logger = std::make_shared<spdlog::async_logger>("sluice", sink, spdlog::thread_pool(),
                                                       spdlog::async_overflow_policy::overrun_oldest);
  if (options.format == config::LogFormat::kJson) {
    logger->set_formatter(std::make_unique<JsonFormatter>());
  } else {
    logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
  }
  logger->set_level(ToSpdlog(options.level));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
  admin::RouteGrpcLog();
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
  admin::UnrouteGrpcLog();
  base::ReopenableSink::SayLosses(
      false);  // the access log's thread runs on, and the logger's own until its queue is empty
  base::ReopenableSink::WaitUntil(base::Clock::Steady().Now() + kLastLinesMax);
  spdlog::shutdown();
}

}  // namespace sluice::server
