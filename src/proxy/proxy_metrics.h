// ProxyMetrics: the metrics of the whole process that the data path writes.
#pragma once

#include <array>

#include "base/error.h"
#include "http2/connection/connection.h"
#include "metrics/registry.h"
#include "proxy/grpc_status.h"

namespace sluice::proxy {

// Thread safety: any worker, each in its own slot of a metric.
struct ProxyMetrics {
  explicit ProxyMetrics(metrics::Registry& registry);
  metrics::Gauge* calls_in_flight;
  metrics::Gauge* downstream_connections;
  metrics::Counter* downstream_connections_total;
  metrics::Counter* downstream_connections_refused;          // connections_per_peer_max
  std::array<metrics::Counter*, http2::kTimeouts> timeouts;  // of client connections, by http2::Timeout
  std::array<metrics::Counter*, 2> grpc_web_requests;        // by whether they come as text
  std::array<metrics::Counter*, 2> cors_preflights;          // by whether their origin is allowed
  metrics::Counter* memory_read_pauses;
  metrics::Counter* memory_connections_closed;
  // By base::ErrorKind.
  static constexpr size_t kKinds = base::kErrorKinds;
  std::array<metrics::Counter*, kKinds> errors;
  std::array<metrics::Counter*, 2> failed_calls;  // that the proxy ended, by whether they may have been processed
  std::array<metrics::Counter*, kKinds> retries;  // by why the attempt before failed
  std::array<metrics::Counter*, kGrpcCodes> status_retries;  // by its status
  // Attempts for which there was no credit.
  enum class Refused : uint8_t { kRetry, kUnprocessed, kHedge };
  std::array<metrics::Counter*, 3> retry_budget_refused;
  // What became of a second attempt beside the first.
  enum class Hedge : uint8_t {
    kWon,        // it answered first
    kLost,       // the first one did
    kTookOver,   // the first one failed, and the call goes on with it
    kFailed,     // it failed, and the call goes on with the first one
    kAbandoned,  // the call ended, or its request became too long to be kept
  };
  std::array<metrics::Counter*, 5> hedges;
  // What operators have asked for, done to a call.
  enum class FaultKind : uint8_t { kDelay, kAbort, kReset };
  std::array<metrics::Counter*, 3> faults;
  void Count(FaultKind kind, uint32_t worker) { faults[static_cast<size_t>(kind)]->Add(worker); }
  void Count(Refused kind, uint32_t worker) { retry_budget_refused[static_cast<size_t>(kind)]->Add(worker); }
  void Count(Hedge result, uint32_t worker) { hedges[static_cast<size_t>(result)]->Add(worker); }
  http2::FloodRecord abuse;
};

}  // namespace sluice::proxy
