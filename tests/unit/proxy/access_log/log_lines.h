// A call with every field, and lines of it, for the tests of the access log.
#pragma once

#include <string>
#include <vector>

#include "proxy/access_log/line_format.h"

namespace sluice::proxy {

inline AccessLogOptions TextLog(std::string path = {}) { return {AccessLogOptions::Format::kText, std::move(path)}; }
inline AccessLogOptions JsonLog(std::string path = {}) { return {AccessLogOptions::Format::kJson, std::move(path)}; }

inline CallRecord FailedCall() {
  CallRecord r;
  r.peer = "192.0.2.1:4000";
  r.authority = "users";
  r.client = "spiffe://d/a b";
  r.path = "/pkg.Users/Get";
  r.route = "r";
  r.cluster = "c";
  r.endpoint = "e";
  r.status = GrpcCode::kUnavailable;
  r.cause = "connect_failed";
  r.detail = "refused";
  r.attempts = 2;
  r.tries = "d:UNAVAILABLE:1.200ms,e:connect_failed:0.800ms";
  r.processed = "maybe";
  r.request_bytes = 10;
  r.response_bytes = 20;
  r.to_upstream = std::chrono::microseconds(1500);
  r.to_response = base::Nanos(-1);
  r.total = std::chrono::microseconds(2500);
  r.id = CallId::Of(1, 0x2a);
  r.request_id = "a b";
  r.ended = base::TimePoint(std::chrono::milliseconds(1500));
  return r;
}

// As a worker and the log's thread make it, without its end; the steady clock began with the year 1970.
inline std::string LineOf(const AccessLogOptions& options, const CallRecord& call) {
  const LineFormat format(options);
  RecordLayout::Lengths lengths;
  const size_t bytes = format.layout().Measure(call, lengths);
  std::vector<uint64_t> record(bytes / 8 + 1);
  auto* const data = reinterpret_cast<uint8_t*>(record.data());
  format.layout().Copy(call, lengths, data);
  std::string line(format.LineBytesMax(bytes), '#');
  TimeText time;
  const char* const end = format.Put(line.data(), LogRecordView({data, bytes}), 0, time);
  line.resize(static_cast<size_t>(end - line.data()));
  if (line.empty() || line.back() != '\n') return line + "(no end)";
  line.pop_back();
  return line;
}

}  // namespace sluice::proxy
