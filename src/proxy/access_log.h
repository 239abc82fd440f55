// AccessLog: one line a call, text or JSON, written by spdlog's background thread so that a slow disk holds up no
// worker.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "proxy/grpc_status.h"
#include "proxy/options.h"

namespace spdlog {
class logger;
}
namespace sluice::base {
class ReopenableSink;
}

namespace sluice::proxy {

// What a line tells. Views are valid during Write only.
struct CallRecord {
  std::string_view peer, authority, path, route, cluster, endpoint;
  GrpcCode status = GrpcCode::kOk;
  std::string_view cause;   // reason token of the proxy's error; empty where the upstream answered
  std::string_view detail;  // for a person; empty or the proxy's message
  std::string_view limit;   // the bound that refused the call, or for which it waited when its deadline passed
  std::string_view waits;   // what it waited for and how long: "cluster/users/rate=3.200ms,..."
  std::string_view client;  // the name in the client's certificate; empty: it has shown none
  std::string_view cache;   // "hit", "stale", "coalesced", "miss"; empty: not cacheable
  uint32_t attempts = 0;
  uint64_t request_bytes = 0, response_bytes = 0;
  // Durations per phase, from the first header byte; negative: the phase was not reached.
  base::Nanos to_upstream{-1};  // until the stream to the endpoint was open
  base::Nanos to_response{-1};  // until the response's headers
  base::Nanos total{0};
};

// The line without its end, for tests.
std::string FormatText(const CallRecord& record, std::string_view time);
std::string FormatJson(const CallRecord& record, std::string_view time);

class AccessLog {
 public:
  // kIo if the file cannot be opened. With Format::kOff, Write does nothing.
  static base::Result<std::shared_ptr<AccessLog>> Open(const AccessLogOptions& options);
  ~AccessLog();

  bool enabled() const { return options_.format != AccessLogOptions::Format::kOff; }
  // Any thread. Queues; when the queue (8192 lines) is full the oldest line is dropped, never a call held up.
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
