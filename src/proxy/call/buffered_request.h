// BufferedRequest: a request between its headers and the start of its Call, and what has arrived of it meanwhile.
//
// Held until the end of a turn's I/O at most (handoff/handoff.h, downstream/cache_fast_path.h), so what it holds is
// bounded by the streams' windows. Thread safety: the worker of the stream's connection.
#pragma once

#include <optional>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "base/clock.h"
#include "http2/session/stream_io.h"
#include "proxy/canonical/request.h"
#include "proxy/client.h"
#include "runtime/frame_pool.h"

namespace sluice::proxy {

struct CallContext;

struct BufferedRequest : http2::StreamEvents {
  struct Ended {
    http2::ErrorCode code;
    http2::ResetCause cause;
  };

  static void* operator new(size_t bytes) { return runtime::AllocateFrame(bytes); }
  static void operator delete(void* memory, size_t bytes) { runtime::FreeFrame(memory, bytes); }

  // `now`: the turn in which the headers were read.
  BufferedRequest(http2::RequestStream& on, CanonicalRequest&& request, base::TimePoint now)
      : stream(&on), fields(std::move(request)), started(now) {}

  void OnHeaders(http2::HeaderList&& fields_now, bool) override { trailers = std::move(fields_now); }
  void OnData(const base::Slice& bytes, bool end) override {
    parts.push_back(bytes);
    ended = end;
  }
  // The stream stays until the call is there to release it.
  void OnReset(http2::ErrorCode code, http2::ResetCause cause) override { reset = Ended{code, cause}; }
  void OnSent(size_t) override {}

  // Starts the call on `context`, the stream's worker's, and tells it what has arrived; `client`, `fields` and the rest
  // are given away. Not from inside an event of the stream. `client` must have been set.
  void Start(CallContext& context);

  http2::RequestStream* const stream;
  ClientPtr client;
  CanonicalRequest fields;
  const base::TimePoint started;
  bool ended = false;  // END_STREAM with the headers or with the last part
  absl::InlinedVector<base::Slice, 2> parts;
  std::optional<http2::HeaderList> trailers;
  std::optional<Ended> reset;
};

}  // namespace sluice::proxy
