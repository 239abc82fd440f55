// PendingCall: a request between its headers and the start of its Call, and what has come of it meanwhile.
//
// Held until the end of a turn's I/O at most (call_mover.h, early_hits.h), so what it holds is bounded by the streams'
// windows. Thread safety: the worker of the stream's connection.
#pragma once

#include <optional>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "base/clock.h"
#include "http2/stream.h"
#include "proxy/client.h"

namespace sluice::proxy {

struct WorkerContext;

struct PendingCall : http2::StreamEvents {
  struct Ended {
    http2::ErrorCode code;
    http2::ResetCause cause;
  };

  void OnHeaders(http2::HeaderList fields_now, bool) override { trailers = std::move(fields_now); }
  void OnData(const base::Slice& bytes, bool end) override {
    parts.push_back(bytes);
    ended = end;
  }
  // The stream stays until the call is there to release it.
  void OnReset(http2::ErrorCode code, http2::ResetCause cause) override { reset = Ended{code, cause}; }
  void OnSent(size_t) override {}

  // Starts the call on `context`, the stream's worker's, and tells it what has come; `fields`, `client` and what came
  // are given away. Not from inside an event of the stream. `started`: as for Call::Start.
  void Start(WorkerContext& context, base::TimePoint started);

  http2::Stream* stream = nullptr;
  ClientPtr client;
  http2::HeaderList fields;
  bool ended = false;  // END_STREAM with the headers or with the last part
  absl::InlinedVector<base::Slice, 2> parts;
  std::optional<http2::HeaderList> trailers;
  std::optional<Ended> reset;
};

}  // namespace sluice::proxy
