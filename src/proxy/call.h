// Call: one RPC through the proxy. Run() is the policy, top to bottom: route, cache, admit, pick, open upstream, decide
// on retry, answer, finish. Once both streams are open, DATA goes from stream to stream inside the events, without
// waking the coroutine. Its parts: call.cc the policy, call_cache.cc the response cache, call_admit.cc limits and the
// choice of an endpoint, call_streams.cc the two streams.
//
// A call that may be answered from the cache and is not becomes a participant of a fetch (fetch.h): a second Call,
// without a client of its own, which goes the same way through limits and retries.
//
// Life: Start() makes it and spawns Run(), which owns it. It belongs to one worker, that of its upstream connection;
// the downstream connection's is the same or, where the call has moved (call_mover.h), another. Each stream is released
// the moment it can bring nothing more, so that no pointer to one outlives its connection.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "base/error.h"
#include "http2/session.h"
#include "proxy/admission.h"
#include "proxy/body.h"
#include "proxy/client.h"
#include "proxy/fetch_stream.h"
#include "proxy/grpc_status.h"
#include "proxy/worker_context.h"
#include "runtime/frame_pool.h"
#include "runtime/task.h"
#include "runtime/timer_wheel.h"
#include "sync/event.h"

namespace sluice::proxy {

// The two sides' events, by name. They are bases of the Call, so that neither needs a pointer to it.
struct FromDownstream : http2::StreamEvents {
  void OnHeaders(http2::HeaderList fields, bool end_stream) override;
  void OnData(const base::Slice& bytes, bool end_stream) override;
  void OnReset(http2::ErrorCode code, http2::ResetCause cause) override;
  void OnSent(size_t bytes) override;
};
struct FromUpstream : http2::StreamEvents {
  void OnHeaders(http2::HeaderList fields, bool end_stream) override;
  void OnData(const base::Slice& bytes, bool end_stream) override;
  void OnReset(http2::ErrorCode code, http2::ResetCause cause) override;
  void OnSent(size_t bytes) override;
};

class Call final : public base::ListNode<Call>,
                   private upstream::EndpointPool::Waiter,
                   private runtime::Timer,
                   private FetchLeader,
                   private FromDownstream,
                   private FromUpstream {
 public:
  // From SessionEvents::OnRequest, or for a call that came from another worker. `started`: when its headers were read;
  // not later than now. Null, with the stream released, if the process is stopping.
  static http2::StreamEvents* Start(WorkerContext& context, http2::StreamIo& downstream, ClientPtr client,
                                    http2::HeaderList request, bool end_stream, base::TimePoint started);

  static void* operator new(size_t bytes) { return runtime::AllocateFrame(bytes); }
  static void operator delete(void* memory, size_t bytes) { runtime::FreeFrame(memory, bytes); }
  ~Call();

  // The proxy is stopping: the call ends with a status that says so. Its task must run once more before the
  // connections go.
  void EndForShutdown() {
    if (!response_ended_ && !served_) Fail(base::ErrorKind::kDraining, "the proxy is stopping");
  }
  // Memory is short: what is only kept for another attempt goes, and what was collected for the cache goes on to its
  // client.
  void DropKept() {
    body_.StopKeeping();
    if (fetch_stream_ != nullptr) fetch_stream_->StopCollecting();
  }

 private:
  friend struct FromDownstream;
  friend struct FromUpstream;
  FromDownstream& from_downstream() { return *this; }
  FromUpstream& from_upstream() { return *this; }

  // A refused attempt that is the upstream's orderly business (draining) does not count as one of retry.attempts_max,
  // but all of them together are bounded.
  static constexpr uint32_t kAttemptsEver = 32;

  // `downstream` null: a fetching call.
  Call(WorkerContext& context, http2::StreamIo* downstream, ClientPtr client, http2::HeaderList request,
       bool end_stream, base::TimePoint started);
  static runtime::Task<void> Run(std::unique_ptr<Call> self);

  // The steps of Run. Each sets end_ when the call is over. Those that return bool say whether to wait for an event and
  // to ask again.
  void ReadTimeout();
  void RefuseForMemory();
  void Route();
  bool WaitsForMessage();
  void AskCache();
  bool WaitsForFetch();
  bool AsksAgain();
  bool WaitsForAdmission();
  void Pick();
  bool WaitsForEndpoint();
  void OpenUpstream();
  bool MayRetry();
  void ForwardResponse();
  void EndResponse();
  void Answer(const base::Error& error);
  void Finish();

  // What only some calls have, so that the others stay small: a call that waits is what the proxy has most of.
  struct CacheUse;
  struct History;
  History& history();
  bool in_fetch() const;
  bool MayUseCache() const;
  void TakeHistory(const FetchResult& result);
  void TakeCause(const FetchResult& result);
  std::string_view endpoint_name() const;

  bool over() const { return end_ != nullptr || served_; }
  void MatchRoute();
  void Reroute();
  uint64_t HashKey() const;
  uint64_t ClientKey() const;
  uint32_t PickAtLevel(int level);
  void Refuse(const limits::Answer& answer);
  void ArmTimer(base::TimePoint check_at);

  std::optional<CachePlan> PlanCache();
  void StartFetch(const CacheKey& key, bool refresh);
  void Serve(const CachedResponse& response, CacheOutcome outcome);
  bool ServeStaleFor(GrpcCode status);
  void LeaveFetch();
  void EndRelay();
  void RelayHeaders(const http2::HeaderList& fields, bool end_stream) override;
  void RelayData(const base::Slice& bytes, bool end_stream) override;
  void RelayEnded(const FetchResult& result, GrpcCode status) override;
  void FetchGone() override;
  void PrepareRequest();
  void OpenOn(http2::Connection& connection);
  void SendBody();
  void EndAttempt();
  void ReadSnapshot();
  void AddForwardedFor();
  void WriteAccessLog(base::Nanos total);
  void ReleaseDownstream();
  void Fail(base::ErrorKind kind, std::string detail, base::ErrorSource source = base::ErrorSource::kProxy);
  void Fail(base::Error error);
  void FailAttempt(base::Error error);

  void OnConnection(http2::Connection& connection) override;
  void OnNoConnection(const base::Error& error) override;
  void OnTimer(base::TimePoint now) override;

  WorkerContext& context_;
  http2::StreamIo* downstream_;  // null once released
  http2::StreamIo* upstream_ = nullptr;
  sync::Event event_;

  http2::HeaderList request_;
  std::unique_ptr<http2::HeaderList> request_trailers_;
  Body body_;
  const ClientPtr client_;
  // A fetching call's client; null for one that has a client of its own.
  std::unique_ptr<FetchStream> fetch_stream_;

  WorkerRef<RouteConfig> config_;
  WorkerRef<Snapshot> snapshot_;  // null once the response has begun: there is no other attempt
  const proxy::Route* route_ = nullptr;
  const upstream::ClusterState* cluster_ = nullptr;
  const std::shared_ptr<upstream::Endpoint>* endpoint_ = nullptr;  // picked for the next attempt; in *cluster_
  uint64_t key_ = 0;                                               // for the ring; of all attempts the same
  // Set up where there are limits. Ends before the snapshot, whose names it uses.
  std::unique_ptr<Admission> admission_;
  upstream::EndpointPool* pool_ = nullptr;         // of this attempt; BeginCall was called
  const upstream::Endpoint* tried_now_ = nullptr;  // of this attempt, or the last; kept alive by snapshot_
  uint64_t attempt_sent_ = 0;                      // request bytes framed in this attempt
  uint64_t credited_ = 0;                          // request bytes given back to the client's window

  // The headers until they are sent on; later the trailers.
  http2::HeaderList response_;
  uint64_t response_bytes_ = 0;

  std::unique_ptr<CacheUse> cache_use_;  // set where the method is cacheable
  std::unique_ptr<History> history_;
  std::unique_ptr<base::Error> attempt_error_;  // this attempt failed
  std::unique_ptr<base::Error> end_;            // the call is over with this error of ours
  std::unique_ptr<base::Error> cause_;          // what the client was told, where it was an error of ours

  base::TimePoint started_, opened_{}, answered_{};
  base::TimePoint deadline_ = base::kNever;
  base::TimePoint timer_at_ = base::kNever;  // when the timer is armed for

  // What is small stands together, so that nothing lies between.
  uint32_t attempts_ = 0, counted_attempts_ = 0;
  bool request_ended_;
  bool upstream_end_sent_ = false;
  bool is_grpc_ = false;
  bool forwarded_ = false;  // the request has the fields that forwarding adds
  bool waits_for_endpoint_ = false;
  bool key_known_ = false;
  bool admitted_ = false;
  bool response_begun_ = false;      // headers received
  bool response_ok_ = false;         // their :status is 200
  bool response_forwarded_ = false;  // headers sent on: DATA is spliced
  bool response_ended_ = false;
  bool trailers_received_ = false;
  bool message_asked_ = false;  // WaitsForMessage has decided what it needs
  bool message_waited_ = false;
  bool by_field_ = false;  // the ring's key is in the message
  bool served_ = false;    // answered in whole, not through an attempt of its own
  CacheOutcome cache_ = CacheOutcome::kNone;
  GrpcCode status_ = GrpcCode::kUnknown;
};

// Of a call that the response cache may answer.
struct Call::CacheUse {
  static void* operator new(size_t bytes) { return runtime::AllocateFrame(bytes); }
  static void operator delete(void* memory, size_t bytes) { runtime::FreeFrame(memory, bytes); }

  std::optional<CachePlan> plan;  // null: it goes by itself
  Fetch::Participant participant;
  bool asks_again = false;       // its fetch's time was up before its own
  FetchStream* relay = nullptr;  // the fetch that this call leads, while it is there
  CachedResponsePtr fallback;    // stale, for when fetching fails with UNAVAILABLE
};

// Of a call that was tried more than once, waited, or is to be logged.
struct Call::History {
  std::string endpoint;  // of the last attempt
  std::string waits;     // the call's, or its fetch's
  absl::InlinedVector<const upstream::Endpoint*, 4> tried;
  std::unique_ptr<base::Error> last_failure;  // of the attempt before this one

  bool Tried(const upstream::Endpoint& endpoint) const {
    return std::find(tried.begin(), tried.end(), &endpoint) != tried.end();
  }
};

}  // namespace sluice::proxy
