// FailedCalls: the last calls that ended with another status than OK, kept by the worker of each, read by any thread.
//
//   worker 0 --Add--> rare   [ | | | ]  common [ | | | ]  --+
//   worker 1 --Add--> rare   [ | | | ]  common [ | | | ]  --+--Read--> by time, newest first
//
// Two rings a worker, so that what happens in plenty does not wash out what does not: refusals by limits, cancelled
// calls and statuses that are the application's own business are common, all else is rare. Of common ones a worker
// writes at most kCommonPerSecond; the rest it counts. Beyond that a call costs its worker a copy of a few words and
// texts; no reader makes it wait (concurrent/last_records.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "concurrent/last_records.h"
#include "proxy/access_log/log_record.h"
#include "proxy/call_id.h"
#include "proxy/call_record.h"
#include "proxy/grpc_status.h"

namespace sluice::proxy {

// As CallRecord, with texts of its own. Long texts are cut, and say so.
struct FailedCall {
  CallId id;
  std::string request_id;  // CallRecord::request_id
  std::string peer, client, authority, path, route, cluster, endpoint;
  std::string tries, waits, limit, cause, processed, detail, cache;
  GrpcCode status = GrpcCode::kUnknown;
  uint32_t attempts = 0;
  uint64_t request_bytes = 0, response_bytes = 0;
  base::TimePoint ended{};
  base::Nanos connecting{0};    // the last attempt's wait for a connection
  base::Nanos to_upstream{-1};  // as of CallRecord
  base::Nanos to_response{-1};
  base::Nanos total{0};
};

class FailedCalls {
 public:
  enum class Kind : uint8_t { kRare, kCommon };
  static constexpr size_t kKinds = 2;
  static constexpr uint32_t kCommonPerSecond = 100;
  // Of each text, in bytes.
  static constexpr uint16_t kNameBytesMax = 96;  // names, words, addresses
  static constexpr uint16_t kPathBytesMax = 192;
  static constexpr uint16_t kListBytesMax = 320;  // tries, waits, detail
  // No record is longer.
  static constexpr size_t kRecordBytesMax = 3072;

  static Kind KindOf(GrpcCode status, const base::Error* cause);

  // Keeps `kept` of each kind (0: none) for each of `workers`.
  FailedCalls(uint32_t kept, uint32_t workers);

  // --- The worker ---

  // Whether a call that has failed now is to be written; if not, it is counted.
  bool Takes(Kind kind, base::TimePoint now, uint32_t worker);
  void Add(const CallRecord& call, Kind kind, uint32_t worker);

  // --- Any thread ---

  struct Seen {
    std::vector<FailedCall> calls;  // newest first; of each kind and worker those that are there
    uint64_t written = 0;           // since the start, also those that are gone
    uint64_t left_out = 0;          // common ones beyond kCommonPerSecond
  };
  Seen Read() const;
  uint32_t kept() const { return kept_; }

 private:
  struct alignas(64) PerWorker {
    explicit PerWorker(uint32_t kept) : rings{{kept, kRecordBytesMax}, {kept, kRecordBytesMax}} {}
    concurrent::LastRecords rings[kKinds];  // by Kind
    std::atomic<uint64_t> left_out{0};
    // The worker's own.
    base::TimePoint second_began{};
    uint32_t in_second = 0;
  };
  static FailedCall Unpack(LogRecordView record);

  const uint32_t kept_;
  RecordLayout layout_;
  std::vector<std::unique_ptr<PerWorker>> workers_;
};

}  // namespace sluice::proxy
