// AccessLog: one line a call, text or JSON. A worker copies a few words and texts into a ring of its own; the log's
// thread (log_thread.h) formats them and writes many lines at once, so that a slow disk delays no worker.
#pragma once

#include <memory>

#include "base/clock.h"
#include "base/error.h"
#include "proxy/call_record.h"
#include "proxy/options.h"

namespace sluice::proxy {

class LogStream;

class AccessLog {
 public:
  // When a log goes with a reload, its last lines have this long to reach a file that takes too little.
  static constexpr base::Nanos kCloseMax = std::chrono::seconds(1);

  // kIo if the file cannot be opened. With Format::kOff, Write does nothing. `workers`: as many as write.
  static base::Result<std::shared_ptr<AccessLog>> Open(const AccessLogOptions& options, uint32_t workers);
  // Returns at once; what was written still goes to the file, within kCloseMax.
  ~AccessLog();
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;

  bool enabled() const { return stream_ != nullptr; }
  // On `worker`. Never waits; a call for which its ring has no room is dropped and counted.
  void Write(const CallRecord& record, uint32_t worker);
  // Opens the file anew under its name, after it was rotated away: what is written from here on goes there. The old one
  // stays in use if that fails.
  base::Status Reopen();
  // What was written reaches the file within `bound`, or is lost and counted; no Write may follow. False: the thread
  // stands in a write that does not come back. Blocks; at the end of the process.
  bool Close(base::Nanos bound);
  const AccessLogOptions& options() const { return options_; }

  // All logs of the process. Any thread.
  struct Totals {
    uint64_t written = 0;  // lines
    uint64_t dropped = 0;  // by workers: the ring was full
    uint64_t lost = 0;     // the file could not be written, or took too little until the end
  };
  static Totals AllTotals();
  // Blocks until what was written before is in the files; false: not within `bound`. For tests.
  static bool Flush(base::Nanos bound);

 private:
  explicit AccessLog(AccessLogOptions options) : options_(std::move(options)) {}

  const AccessLogOptions options_;
  std::shared_ptr<LogStream> stream_;  // null: off
  bool closed_ = false;
};

}  // namespace sluice::proxy
