// CallTrace: what a traced call keeps until it ends: its place in the trace, its attempts and its waits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "base/clock.h"
#include "proxy/grpc_status.h"
#include "proxy/tracing/trace_context.h"
#include "runtime/frame_pool.h"

namespace sluice::proxy {

// An attempt that has ended.
struct TracedAttempt {
  uint64_t span = 0;  // 0: its request did not say one
  base::TimePoint began{}, ended{};
  std::string endpoint;
  std::string_view end;  // a reason, "cancelled", or the status that it was answered with; lives as long as the process
  GrpcCode code = GrpcCode::kUnknown;
  bool hedge = false;  // it began beside another one
};

// A wait for a limit or a gate that is over.
struct TracedWait {
  std::string name;
  base::TimePoint ended{};
  base::Nanos time{0};
};

struct CallTrace {
  static void* operator new(size_t bytes) { return runtime::AllocateFrame(bytes); }
  static void operator delete(void* memory, size_t bytes) { runtime::FreeFrame(memory, bytes); }

  TraceContext own;          // its span, and the flags that its attempts are sent with. Span 0: it is not known yet
  uint64_t parent = 0;       // the caller's span; 0: it is the root
  bool spoken = false;       // its attempts' requests say it
  bool keeps_state = false;  // the caller's tracestate goes on
  absl::InlinedVector<TracedAttempt, 1> attempts;
  absl::InlinedVector<TracedWait, 1> waits;
  base::TimePoint gate_since{};  // when the wait for a gate began
};

}  // namespace sluice::proxy
