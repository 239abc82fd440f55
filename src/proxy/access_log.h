// AccessLog: one line a call, text or JSON, written by spdlog's background thread, so that
// a slow disk delays no worker.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "proxy/call_record.h"
#include "proxy/options.h"

namespace spdlog {
class logger;
}
namespace sluice::base {
class ReopenableSink;
}

namespace sluice::proxy {

// The line without its end, for tests.
std::string FormatText(const CallRecord& record, std::string_view time);
std::string FormatJson(const CallRecord& record, std::string_view time);

class AccessLog {
 public:
  // kIo if the file cannot be opened. With Format::kOff, Write does nothing.
  static base::Result<std::shared_ptr<AccessLog>> Open(const AccessLogOptions& options);
  ~AccessLog();

  bool enabled() const { return options_.format != AccessLogOptions::Format::kOff; }
  // Any thread. Queues; when the queue (8192 lines) is full the oldest line is dropped, and no call is delayed.
  void Write(const CallRecord& record);
  // Opens the file anew under its name, after it was rotated away. The old one stays in use if that fails.
  base::Status Reopen();
  const AccessLogOptions& options() const { return options_; }

 private:
  explicit AccessLog(AccessLogOptions options) : options_(std::move(options)) {}

  AccessLogOptions options_;
  std::shared_ptr<base::ReopenableSink> sink_;
  std::shared_ptr<spdlog::logger> logger_;
};

}  // namespace sluice::proxy
