// ConnectionHost: what a worker's client connections share: the calls' context, the ways on for a request, and the
// drain.
//
// Thread safety: its worker's, but for `connections`.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "proxy/call/call_context.h"
#include "proxy/downstream/cache_fast_path.h"
#include "proxy/handoff/handoff.h"

namespace sluice::proxy {

struct ConnectionHost {
  ConnectionHost(runtime::Worker& worker, const SnapshotData& snapshots, ProxyMetrics& metrics)
      : context(worker, snapshots, metrics) {}

  runtime::Worker& worker() const { return context.worker(); }
  uint32_t index() const { return context.index(); }

  // A client connection has gone, or will not be made.
  void OnDownstreamClosed();

  CallContext context;
  CacheFastPath cache_fast_path{context};
  // Where there are several workers, else null. Goes before the rest: what it has buffered lives in the context.
  std::unique_ptr<Handoff> handoff;
  // For the choice of a worker for a new connection: written by this worker and the acceptor's, read by the acceptor's.
  std::atomic<uint32_t> connections{0};
  // Called when the last client connection has gone while draining, or at once if there is none.
  std::function<void()> on_drained;
  bool draining = false;          // new connections are told to go at once
  bool handshakes_go_on = false;  // but not cut in their TLS handshake
};

}  // namespace sluice::proxy
