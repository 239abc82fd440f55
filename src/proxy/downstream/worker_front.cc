#include "proxy/downstream/worker_front.h"

#include <vector>

#include "proxy/call/buffered_request.h"
#include "proxy/call/call.h"
#include "proxy/call/mirror_call.h"

namespace sluice::proxy {

WorkerFront::WorkerFront(runtime::Worker& worker, const SnapshotData& snapshots, ProxyMetrics& metrics)
    : ConnectionHost(worker, snapshots, metrics) {
  context.connection.paused.watch = &overload;
}

WorkerFront::~WorkerFront() { SLUICE_CHECK(downstream.empty() && handshakes.empty()); }

void WorkerFront::Connect(std::span<WorkerFront* const> fronts) {
  if (fronts.size() < 2) return;
  std::vector<OverloadManager*> overloads;
  std::vector<Handoff*> handoffs;
  for (WorkerFront* front : fronts) {
    overloads.push_back(&front->overload);
    front->handoff.reset(new Handoff(front->context, *front, fronts.size()));
    handoffs.push_back(front->handoff.get());
  }
  OverloadManager::Connect(overloads);
  Handoff::Connect(handoffs);
}

void WorkerFront::DrainDownstream() {
  draining = true;
  while (!handshakes.empty()) handshakes.front()->Cancel();
  spread_drain_.Begin(base::Nanos(0));
  OnDownstreamClosed();
}

void WorkerFront::LeaveDownstream(base::Nanos spread) {
  draining = handshakes_go_on = true;
  spread_drain_.Begin(spread);
  OnDownstreamClosed();
}

size_t WorkerFront::MayBegin() {
  size_t count = 0;
  for (TlsAccept* a = handshakes.front(); a != nullptr; a = handshakes.Next(*a)) ++count;
  for (DownstreamConnection* c = downstream.front(); c != nullptr; c = downstream.Next(*c)) count += c->may_begin();
  return count;
}

void WorkerFront::EndCalls() {
  draining = true;
  cache_fast_path.StartCalls();
  if (handoff != nullptr) handoff->Stop();
  Call::ForEach(context, [](Call& call) { call.EndForShutdown(); });
  MirrorCall::EndAll(context);
}

bool WorkerFront::HasCalls() const {
  return !context.calls.empty() || !context.mirrors.empty() || !cache_fast_path.empty() ||
         (handoff != nullptr && !handoff->Idle());
}

void WorkerFront::CloseAll() {
  draining = context.closed = true;
  context.worker().timers().Disarm(spread_drain_);
  while (!handshakes.empty()) handshakes.front()->Cancel();
  while (DownstreamConnection* c = downstream.PopFront()) {
    c->CloseNow();
    delete c;
  }
  context.pools.CloseAll();
}

void WorkerFront::StartHere(BufferedRequest& request) {
  const bool whole = request.ended && !request.parts.empty() && !request.reset;
  if (whole && cache_fast_path.Answer(*request.stream, *request.client, request.fields, request.parts, request.started))
    return;
  request.Start(context);
}

}  // namespace sluice::proxy
