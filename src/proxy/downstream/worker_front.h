// WorkerFront: what a worker has above its calls: client connections, TLS handshakes, the fast path to the cache, the
// handing over of calls, the answer to overload; and how all of it ends. What a call needs itself is in its
// CallContext.
//
// Thread safety: its worker's, but for what ConnectionHost says.
#pragma once

#include <memory>
#include <span>

#include "proxy/downstream/connection.h"
#include "proxy/downstream/connection_host.h"
#include "proxy/downstream/connection_limits.h"
#include "proxy/downstream/overload.h"
#include "proxy/downstream/spread_drain.h"
#include "proxy/downstream/tls_accept.h"

namespace sluice::proxy {

struct WorkerFront final : ConnectionHost, private HandoffOwner {
  WorkerFront(runtime::Worker& worker, const SnapshotData& snapshots, ProxyMetrics& metrics);
  ~WorkerFront();
  // All fronts of a process, in the order of their workers: they hand calls to each other, and tell each other what
  // their clients hold. Once, before the workers run.
  static void Connect(std::span<WorkerFront* const> fronts);

  // All client connections begin their two-step GOAWAY. Those whose TLS handshake is under way have no calls, and end.
  void DrainDownstream();
  // The same where another process accepts by now: one connection after the other, within `spread`, and a handshake
  // goes on, as a client whose handshake is cut fails the calls that wait for it.
  void LeaveDownstream(base::Nanos spread);
  // Connections on which a client may begin a call here, and handshakes. Looks at each: as long as there are many.
  size_t MayBegin();
  // First step of the worker's end: every call is told that it ends, and answers when its task runs. Again until
  // HasCalls is false on all workers.
  void EndCalls();
  // Calls that run here, or came here and run elsewhere.
  bool HasCalls() const;
  // Second step: closes every connection, down and up. Their calls are told and end by themselves this turn.
  void CloseAll();

  ClientConnections downstream;
  TlsHandshakes handshakes;  // connections to come
  OverloadManager overload{context, downstream};
  // Of the process; null: no bounds. Set before listeners start.
  std::shared_ptr<ConnectionLimits> connection_limits;

 private:
  SpreadDrain spread_drain_{context.worker(), downstream};

  void StartHere(BufferedRequest& request) override;
};

}  // namespace sluice::proxy
