// CallRecord: what became of one finished call, for the observers of calls (call/observer.h).
#pragma once

#include <cstdint>
#include <string_view>

#include "base/clock.h"
#include "http2/fields/header.h"
#include "proxy/call_id.h"
#include "proxy/grpc_status.h"

namespace sluice::proxy {

// Views are valid while the record is handed over, not longer.
struct CallRecord {
  CallId id;  // not set: of a fetch
  std::string_view peer, authority, path, route, cluster, endpoint;
  GrpcCode status = GrpcCode::kOk;
  std::string_view cause;       // reason token of the proxy's error; empty where the upstream answered
  std::string_view detail;      // for a person; empty or the proxy's message
  std::string_view tries;       // of more than one attempt: "e1:UNAVAILABLE:1.200ms,e3:OK:0.800ms"
  std::string_view processed;   // "no", "maybe": whether a backend may have worked on a call that the proxy ended
  std::string_view limit;       // the bound that refused the call, or for which it waited when its deadline passed
  std::string_view waits;       // what it waited for and how long: "cluster/users/rate=3.200ms,..."
  std::string_view client;      // the name in the client's certificate; empty: it has shown none
  std::string_view cache;       // "hit", "stale", "coalesced", "miss"; empty: not cacheable
  std::string_view request_id;  // x-request-id (call/request_id.h); empty: there is none
  bool fetch = false;           // made by the response cache for several calls; it has no client of its own
  uint32_t attempts = 0;
  uint64_t request_bytes = 0, response_bytes = 0;
  base::TimePoint ended{};
  const http2::HeaderList* request = nullptr;   // never null of a call; as it went on to the endpoint, if it did
  const http2::HeaderList* trailers = nullptr;  // the block that ended the response; null: there was none
  // Durations per phase, from the first header byte; negative: the phase was not reached.
  base::Nanos to_upstream{-1};  // until the stream to the endpoint was open
  base::Nanos to_response{-1};  // until the response's headers
  base::Nanos total{0};
  base::Nanos connecting{0};  // the last attempt's wait for a connection; within to_upstream, if that was reached
};

}  // namespace sluice::proxy
