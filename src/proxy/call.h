// Call: one RPC through the proxy. Run() is the policy, top to bottom: route, pick, open upstream, decide on retry, answer,
// finish. Once both streams are open, DATA goes from stream to stream inside the events, without waking the coroutine.
//
// Life: Start() makes it and spawns Run(), which owns it. It belongs to the worker of the downstream connection, which
// is also the worker of its upstream connection. Each stream is released the moment it can bring nothing more, so that
// no pointer to one outlives its connection.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "base/error.h"
#include "http2/session.h"
#include "proxy/body.h"
#include "proxy/client.h"
#include "proxy/grpc_status.h"
#include "proxy/worker_context.h"
#include "runtime/frame_pool.h"
#include "runtime/task.h"
#include "runtime/timer_wheel.h"
#include "sync/event.h"

namespace sluice::proxy {

class Call final : public base::ListNode<Call>, private upstream::EndpointPool::Waiter, private runtime::Timer {
 public:
  // From SessionEvents::OnRequest. Null, with the stream released, if the process is stopping.
  static http2::StreamEvents* Start(WorkerContext& context, http2::StreamIo& downstream, ClientPtr client,
                                    http2::HeaderList request, bool end_stream);

  static void* operator new(size_t bytes) { return runtime::AllocateFrame(bytes); }
  static void operator delete(void* memory, size_t bytes) { runtime::FreeFrame(memory, bytes); }
  ~Call();

  // The proxy is stopping: the call ends with a status that says so. Its task must run once more before the
  // connections go.
  void EndForShutdown() {
    if (!response_ended_) Fail(base::ErrorKind::kDraining, "the proxy is stopping");
  }

 private:
  // The two sides' events, by name.
  struct FromDownstream final : http2::StreamEvents {
    explicit FromDownstream(Call& c) : call(c) {}
    void OnHeaders(http2::HeaderList fields, bool end_stream) override;
    void OnData(base::Slice bytes, bool end_stream) override;
    void OnReset(http2::ErrorCode code, http2::ResetCause cause) override;
    void OnSent(size_t bytes) override;
    Call& call;
  };
  struct FromUpstream final : http2::StreamEvents {
    explicit FromUpstream(Call& c) : call(c) {}
    void OnHeaders(http2::HeaderList fields, bool end_stream) override;
    void OnData(base::Slice bytes, bool end_stream) override;
    void OnReset(http2::ErrorCode code, http2::ResetCause cause) override;
    void OnSent(size_t bytes) override;
    Call& call;
  };

  // A refused attempt that is the upstream's orderly business (draining) does not count as one of retry.attempts_max,
  // but all of them together are bounded.
  static constexpr uint32_t kAttemptsEver = 32;

  Call(WorkerContext& context, http2::StreamIo& downstream, ClientPtr client, http2::HeaderList request, bool end_stream);
  static runtime::Task<void> Run(std::unique_ptr<Call> self);

  // The steps of Run. Each sets end_ when the call is over.
  void ReadTimeout();
  void Route();
  void Pick();
  void OpenUpstream();
  bool MayRetry();
  void ForwardResponse();
  void EndResponse();
  void Answer(const base::Error& error);
  void Finish();

  uint64_t HashKey() const;
  void PrepareRequest();
  void OpenOn(http2::Connection& connection);
  void SendBody();
  void EndAttempt();
  void ReadSnapshot();
  void AddForwardedFor();
  void WriteAccessLog(base::Nanos total);
  void ReleaseDownstream();
  void Fail(base::ErrorKind kind, std::string detail, base::ErrorSource source = base::ErrorSource::kProxy);
  void FailAttempt(base::Error error);

  void OnConnection(http2::Connection& connection) override;
  void OnNoConnection(const base::Error& error) override;
  void OnTimer(base::TimePoint now) override;

  WorkerContext& context_;
  http2::StreamIo* downstream_;  // null once released
  http2::StreamIo* upstream_ = nullptr;
  FromDownstream from_downstream_{*this};
  FromUpstream from_upstream_{*this};
  sync::Event event_;

  http2::HeaderList request_;
  std::optional<http2::HeaderList> request_trailers_;
  Body body_;
  bool request_ended_;
  bool upstream_end_sent_ = false;
  bool is_grpc_ = false;
  bool forwarded_ = false;  // the request has the fields that forwarding adds
  const ClientPtr client_;

  std::shared_ptr<const RouteConfig> config_;
  std::shared_ptr<const Snapshot> snapshot_;  // null once the response has begun: there is no other attempt
  const proxy::Route* route_ = nullptr;
  const upstream::ClusterState* cluster_ = nullptr;
  upstream::EndpointPool* pool_ = nullptr;  // of this attempt; BeginCall was called
  const upstream::Endpoint* tried_now_ = nullptr;  // of this attempt, or the last; kept alive by snapshot_
  std::string endpoint_name_;                      // of the last attempt, for the access log
  absl::InlinedVector<const upstream::Endpoint*, 4> tried_;
  uint32_t attempts_ = 0, counted_attempts_ = 0;
  uint64_t attempt_sent_ = 0;  // request bytes framed in this attempt
  uint64_t credited_ = 0;      // request bytes given back to the client's window

  http2::HeaderList response_, trailers_;
  bool response_begun_ = false;      // headers received
  bool response_forwarded_ = false;  // headers sent on: DATA is spliced
  bool response_ended_ = false;
  bool trailers_received_ = false;
  absl::InlinedVector<base::Slice, 2> pending_response_;
  uint64_t response_bytes_ = 0;

  std::optional<base::Error> attempt_error_;  // this attempt failed
  std::optional<base::Error> last_failure_;   // of the attempt before this one
  std::optional<base::Error> end_;            // the call is over with this error of ours
  GrpcCode status_ = GrpcCode::kUnknown;
  std::optional<base::Error> cause_;  // what the client was told, where it was an error of ours

  base::TimePoint started_, opened_{}, answered_{};
  base::TimePoint deadline_ = base::kNever;
};

}  // namespace sluice::proxy
