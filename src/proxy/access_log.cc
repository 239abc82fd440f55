#include "proxy/access_log.h"

#include <spdlog/async.h>
#include <spdlog/async_logger.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <iterator>

#include "base/reopenable_sink.h"

namespace sluice::proxy {
namespace {

constexpr size_t kQueueLines = 8192;

// RFC 3339 with milliseconds, UTC.
std::string TimeText() {
  auto now = std::chrono::system_clock::now();
  std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[40];
  size_t n = std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + n, sizeof(text) - n, ".%03dZ", static_cast<int>(millis));
  return text;
}

std::string Millis(base::Nanos duration) {
  if (duration.count() < 0) return "-";
  char text[32];
  std::snprintf(text, sizeof(text), "%.3f", static_cast<double>(duration.count()) / 1e6);
  return text;
}

std::string_view OrDash(std::string_view text) { return text.empty() ? "-" : text; }

// A string literal of JSON (RFC 8259 section 7): ASCII only, so bytes that are no UTF-8 do not spoil the file. The text
// format quotes what a client chooses in the same way.
std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c < 0x20 || c >= 0x7f) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", c);
    } else {
      out += static_cast<char>(c);
    }
  }
  return out + '"';
}

}  // namespace

std::string FormatText(const CallRecord& r, std::string_view time) {
  return fmt::format(
      "{} {} {} {} client={} route={} cluster={} endpoint={} attempts={} tries={} in={} out={} upstream_ms={} "
      "response_ms={} "
      "total_ms={} "
      "cache={} waited={} limit={} cause={} processed={} detail={}",
      time, OrDash(r.peer), Quoted(r.path), ToString(r.status), r.client.empty() ? "-" : Quoted(r.client),
      OrDash(r.route), OrDash(r.cluster), OrDash(r.endpoint), r.attempts, OrDash(r.tries), r.request_bytes,
      r.response_bytes, Millis(r.to_upstream), Millis(r.to_response), Millis(r.total), OrDash(r.cache), OrDash(r.waits),
      OrDash(r.limit), OrDash(r.cause), OrDash(r.processed), Quoted(r.detail));
}

std::string FormatJson(const CallRecord& r, std::string_view time) {
  auto millis = [](base::Nanos d) { return d.count() < 0 ? std::string("null") : Millis(d); };
  return fmt::format(
      R"({{"time":{},"peer":{},"client":{},"authority":{},"path":{},"status":{},"route":{},"cluster":{},"endpoint":{},"attempts":{},"tries":{},)"
      R"("request_bytes":{},"response_bytes":{},"upstream_ms":{},"response_ms":{},"total_ms":{},"cache":{},"waited":{},"limit":{},"cause":{},"processed":{},"detail":{}}})",
      Quoted(time), Quoted(r.peer), Quoted(r.client), Quoted(r.authority), Quoted(r.path), Quoted(ToString(r.status)),
      Quoted(r.route), Quoted(r.cluster), Quoted(r.endpoint), r.attempts, Quoted(r.tries), r.request_bytes,
      r.response_bytes, millis(r.to_upstream), millis(r.to_response), millis(r.total), Quoted(r.cache), Quoted(r.waits),
      Quoted(r.limit), Quoted(r.cause), Quoted(r.processed), Quoted(r.detail));
}

base::Result<std::shared_ptr<AccessLog>> AccessLog::Open(const AccessLogOptions& options) {
  std::shared_ptr<AccessLog> log(new AccessLog(options));
  if (!log->enabled()) return log;
  log->sink_ = std::make_shared<base::ReopenableSink>(options.path, STDOUT_FILENO, /*raw=*/true);
  if (auto status = log->sink_->Open(); !status) return status.error();
  // One background thread and queue for all access logs of the process, made on first use.
  static const auto pool = std::make_shared<spdlog::details::thread_pool>(kQueueLines, 1);
  log->logger_ =
      std::make_shared<spdlog::async_logger>("access", log->sink_, pool, spdlog::async_overflow_policy::overrun_oldest);
  log->logger_->set_level(spdlog::level::info);
  log->logger_->flush_on(spdlog::level::info);
  return log;
}

AccessLog::~AccessLog() = default;

void AccessLog::Write(const CallRecord& record) {
  if (!enabled()) return;
  std::string time = TimeText();
  logger_->log(spdlog::level::info,
               spdlog::string_view_t(options_.format == AccessLogOptions::Format::kJson ? FormatJson(record, time)
                                                                                        : FormatText(record, time)));
}

base::Status AccessLog::Reopen() { return sink_ == nullptr ? base::Ok() : sink_->Open(); }

}  // namespace sluice::proxy
