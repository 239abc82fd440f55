// Call: one RPC through the proxy: its client's side, and the policy. Run() is the policy, top to bottom: route, gates,
// cache, admit, pick, open upstream, decide on a retry, answer, finish. What one try at an endpoint does is an Attempt
// (attempt.h). Once both streams are open, DATA goes from stream to stream inside the events, without waking the
// coroutine. In the order of a call's life: call.cc (arrival, and the client's stream), call_admit.cc (gates, limits,
// the choice of an endpoint), call_failover.cc (the choice of a cluster), call_tracing.cc (what spans tell of it),
// call_fault.cc (failures that were asked for), call_cache.cc (answers without an attempt of its own), call_retry.cc
// (whether there is another attempt), call_hedge.cc (two attempts at once), call_mirror.cc (its double at another
// cluster), call_answer.cc (the rest), call_insight.cc (what is kept of it).
//
//   arrived -> at gate -> reading -> fetching -> admitting -> trying -> answering -> (complete)
//      |          |          |           |           |           |          |
//      |          |          +-----------+--> served |           |          |      a stored answer was sent
//      +----------+----------+-----------+-----------+-----------+----------+--> failed     an error of ours
//
// A state in which there is nothing to wait for is left out, but for trying.
// A call that may be answered from the cache and is not becomes a participant of a fetch (fetch.h): a second Call,
// without a stream of a client, which goes the same way through limits and retries.
//
// Life: Start() makes it and spawns Run(), which owns it. It belongs to one worker, that of its upstream connection;
// the downstream connection's is the same or, where the call was handed off (handoff.h), another. Each stream is
// released the moment it can bring nothing more, so that no pointer to one outlives its connection.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/inlined_vector.h"
#include "base/error.h"
#include "http2/session/session.h"
#include "proxy/call/admission.h"
#include "proxy/call/attempt.h"
#include "proxy/call/call_context.h"
#include "proxy/call/call_extra.h"
#include "proxy/call/exchange.h"
#include "proxy/call/gate.h"
#include "proxy/call/retry_policy.h"
#include "proxy/call_id.h"
#include "proxy/call_record.h"
#include "proxy/client.h"
#include "proxy/grpc_status.h"
#include "proxy/tracing/call_trace.h"
#include "runtime/frame_pool.h"
#include "runtime/task.h"
#include "runtime/timer_wheel.h"
#include "sync/event.h"

namespace sluice::proxy {

class Call final : public base::ListNode<Call>,
                   private runtime::Timer,
                   private http2::StreamEvents,  // the client's
                   private Exchange {
 public:
  // From ConnectionEvents::OnRequest, at once or buffered for the rest of the turn, or for a call that another worker
  // handed over. `started`: when its headers were read; not later than now. Null, with the stream released, if the
  // process is stopping.
  static http2::StreamEvents* Start(CallContext& context, http2::StreamIo& downstream, ClientPtr client,
                                    const RequestSource& request, bool end_stream, base::TimePoint started);

  static void* operator new(size_t bytes) { return runtime::AllocateFrame(bytes); }
  static void operator delete(void* memory, size_t bytes) { runtime::FreeFrame(memory, bytes); }
  ~Call();

  // All calls of a worker. `fn` ends none of them.
  template <typename Fn>
  static void ForEach(CallContext& context, Fn fn) {
    for (auto* node = context.calls.front(); node != nullptr; node = context.calls.Next(*node)) {
      fn(*static_cast<Call*>(node));
    }
  }

  // The endpoint was ejected because its calls stay without an answer: those of the worker that wait there, for a
  // connection or for a response, get another attempt where they may.
  static void LeaveSilent(CallContext& context, const upstream::Endpoint& endpoint);

  // The proxy is stopping: the call ends with a status that says so. Its task must run once more before the
  // connections go.
  void EndForShutdown();
  // Memory is short: what is only kept for another attempt goes, and what was collected for the cache goes on to its
  // client.
  void DropKept();

 private:
  enum class State : uint8_t {
    kArrived,    // to be routed
    kAtGate,     // waits for a gate that is asked before the cache, or for the end of a fault's delay
    kReading,    // waits for its message
    kFetching,   // waits for a fetch that it takes part in, or its response goes to the client piece by piece
    kAdmitting,  // waits for a gate or a limit
    kTrying,     // an attempt is made: attempt_
    kAnswering,  // its response goes to the client piece by piece: nothing can be tried again
    kServed,     // answered in whole, not by an attempt of its own
    kFailed,     // ends with error_
  };

  // A refused attempt that is the upstream's orderly business (draining) does not count as one of retry.attempts_max,
  // but all of them together are bounded.
  static constexpr uint32_t kAttemptsEver = 32;

  // `client_stream` null: a fetching call, whose sink is still to be set.
  Call(CallContext& context, http2::StreamIo* client_stream, ClientPtr client, const RequestSource& request,
       bool end_stream, base::TimePoint started);
  static runtime::Task<void> Run(std::unique_ptr<Call> self);
  http2::StreamEvents& client_events() { return *this; }

  // The steps of Run, each of which may end the call. True: wait for an event, and ask again.
  void Route();
  bool WaitsForGates(GateStage stage) {
    if (route_ == nullptr || route_->gates == nullptr) [[likely]]
      return false;
    return AskGates(stage);
  }
  bool WaitsForFault() { return context.faults != nullptr && AskFaults(); }
  bool WaitsForMessage();
  void AskCache();
  bool WaitsForFetch();
  bool AsksAgain();
  bool WaitsForAdmission();
  bool AskAdmission();
  bool WaitsForEndpoint();
  void OpenUpstream();
  bool WaitsForResponse() const;
  bool TriesAgain();
  bool WaitsForBackoff();
  bool WaitsForEnd();
  void EndResponse();
  void Finish();

  // What only some calls have, so that the others stay small: a call that waits is what the proxy has most of.
  struct CacheUse;
  using Extra = CallExtra;
  struct History;
  History& history();
  Extra& extra();

  bool over() const { return state_ >= State::kServed; }
  void Fail(base::ErrorKind kind, std::string detail, base::ErrorSource source = base::ErrorSource::kProxy);
  void Fail(base::Error error);
  void EndAtDeadline(std::string detail);
  void EndAttempt();

  // On arrival.
  void ReadTimeout();
  void RefuseForMemory();
  void ReadSnapshot();
  void MatchRoute();
  void ChooseCluster();
  void ChooseByKey();
  void ChooseFailover();
  bool MayLeaveCluster() const;
  const ClusterSplit::Part* PartOfSplit() const;
  uint32_t PlaceOfRoute() const;
  uint32_t PlaceOfCluster() const { return failed_over_ ? route_->failover : PlaceOfRoute(); }
  const std::string& NameOfCluster() const;
  const std::string& CacheScope() const;
  const RouteMetrics* MetricsOfCall() const;
  void Reroute();
  void ArmTimer(base::TimePoint check_at);

  // The cache.
  bool MayUseCache() const;
  std::optional<CachePlan> PlanCache();
  void TakeCachePlan();
  void StartFetch(const CacheKey& key, bool refresh);
  void Serve(const CachedResponse& response, CacheOutcome outcome);
  bool ServeStaleFor(GrpcCode status);
  void LeaveFetch();
  void EndRelay();
  void TakeHistory(const FetchResult& result);
  void TakeCause(const FetchResult& result);

  // Faults.
  const Fault* FindFault();
  bool AskFaults();
  void BeginFault(const Fault& fault);
  void FailByFault(GrpcCode code, std::string_view what);
  bool WaitsForCut();
  void EndCut();
  void NoteSentToCut(size_t bytes);

  void BeginMirror();

  // Gates, limits and the choice of an endpoint.
  bool AskGates(GateStage stage);
  bool MetGates() const;
  const Gate* WaitingGate() const;
  uint64_t ClientKey() const;
  bool KeyFitsRing() const;
  void TakeKey();
  uint64_t HashKey(upstream::Ring ring) const;
  void SampleKey();
  void Pick();
  bool PickAny();
  bool MayTake(const upstream::Endpoint& endpoint, upstream::Endpoint::Choosiness choosiness, uint64_t key);
  bool BeginTrial(upstream::Endpoint& endpoint);
  bool PickOne(int level, const upstream::Tier* tier);
  bool PickByTier();
  const upstream::Tier* TierOfCall() const;
  uint32_t PickAtLevel(int level, const upstream::Tier* tier);
  void Refuse(const limits::Verdict& verdict);

  // The attempt and its answer.
  void AddForwardedFields();
  void RemoveNotAClients();
  void AddRequestId();
  AttemptEnd EndOf(const Attempt& attempt) const;
  void NotePushback(Attempt& ended);
  bool MayFollow(AttemptEnd end) const;
  std::optional<base::Nanos> BuyAttempt(AttemptEnd end, ProxyMetrics::Refused where_refused);
  bool AnyUntried() const;
  uint32_t RetryCost() const;
  void CountPrevious();
  void UncountPrevious();
  void TimeAttempt();
  base::TimePoint TryEnds(base::TimePoint began) const;
  void OnAttemptTimer(base::TimePoint now);
  void GiveUpAttempt(base::ErrorKind kind, std::string_view why);
  // How an attempt ended, for the log and for spans. `text` lives as long as the process.
  struct TryEnd {
    std::string_view text;
    GrpcCode code;
  };
  static constexpr TryEnd kTryCancelled{"cancelled", GrpcCode::kCancelled};
  static TryEnd EndOfTry(const base::Error* error, GrpcCode status);
  struct Try {
    const std::string& endpoint;
    base::TimePoint began;
    uint64_t span;
    bool hedge;
  };
  void NoteTry(const Try& attempt, TryEnd end);
  void NoteTry(TryEnd end);
  void TraceTry(const Try& attempt, TryEnd end);

  // Spans.
  void NoteAttempt();
  void BeginTrace();
  void TraceFetch(Call& fetch);
  void TraceGate(const Gate* gate);
  void TraceWaits();
  bool EndTrace(base::Nanos total);
  uint64_t NewSpan(Attempt& attempt);
  CallTrace& trace_notes();

  // Its connection was lost.
  static constexpr uint32_t kLostMax = 2;
  uint64_t PoisonId() const;
  bool HasPoisonId() const;
  bool InQuarantine();
  void ChooseAlone();
  void NoteLoss(Attempt& attempt);

  // Two attempts at once.
  base::TimePoint PlanHedge();
  void BeginHedge();
  bool hedging() const;
  bool MayHedge();
  void NoteFirstResponse();
  uint32_t PickBeside(Permit& permit);
  void EndHedge(ProxyMetrics::Hedge result, TryEnd end);
  void TakeHedge();
  void Settle(Attempt& winner);
  bool SettleEnd(Attempt& ended);
  void KeepOne();
  void BeginResponse();
  void Answer();
  bool AnswerAsBefore();
  void TellObservers(base::Nanos total);
  CallId TakeId();
  void AddCallId(http2::HeaderList& fields);
  bool KeepsFailure(base::Nanos total) const;
  void KeepFailure(const CallRecord& record);

  // Of the client's stream.
  void OnHeaders(http2::HeaderList&& fields, bool end_stream) override;
  void OnData(const base::Slice& bytes, bool end_stream) override;
  void OnReset(http2::ErrorCode code, http2::ResetCause cause) override;
  void OnSent(size_t bytes) override;
  void KeepNoBody();
  void SendOn();
  bool ClientRanOut() const;
  // Of the attempt.
  void OnResponse(Attempt& attempt) override;
  void OnAttemptEnded(Attempt& attempt) override;
  void OnSending(const Attempt& attempt) override;
  const RewriteOptions& Rewrite() const override { return route_->options.rewrite; }
  void OnAttemptFailing(Attempt& attempt) override;
  void OnConnected(Attempt& attempt, base::Nanos waited) override;
  void NoteEndpoint();
  base::Nanos Connecting(base::TimePoint now) const;
  base::Nanos AgeOfAttempt(base::TimePoint now) const;

  void OnTimer(base::TimePoint now) override;

  sync::Event event_;
  Attempt attempt_{*this};
  const ClientPtr client_;

  WorkerRef<RouteConfig> config_;
  WorkerRef<Snapshot> snapshot_;  // null once the response has begun: there is no other attempt
  const proxy::Route* route_ = nullptr;
  const upstream::ClusterState* cluster_ = nullptr;
  // Set up where there are limits. Ends before the snapshot, whose names it uses.
  std::unique_ptr<Admission> admission_;
  std::unique_ptr<CacheUse> cache_use_;  // set where the method is cacheable
  std::unique_ptr<History> history_;
  std::unique_ptr<base::Error> error_;  // what the client was or is to be told, where it is an error of ours

  base::TimePoint started_, answered_{};
  base::TimePoint timer_at_ = base::kNever;  // when the timer is armed for

  // Place of the endpoint picked last in *cluster_; kNone: one is to be picked.
  uint32_t picked_ = upstream::LoadBalancer::kNone;
  uint32_t split_at_ = 0;  // where the call's key lies on its route's ClusterSplit; the same for its whole life
  uint8_t attempts_ = 0, counted_attempts_ = 0;  // at most kAttemptsEver
  State state_ = State::kArrived;
  CacheOutcome cache_ = CacheOutcome::kNone;
  GrpcCode status_ = GrpcCode::kUnknown;
  upstream::Ring key_ring_ = upstream::Ring::kSluice;  // what ring_key is hashed for
  bool deadline_is_clients_ = false;
  bool trace_decided_ = false;    // whether its requests say where in a trace they are
  bool fields_added_ = false;     // the request has the fields that forwarding adds
  bool request_id_set_ = false;   // `request` has the id that forwarding.request_id gives it
  bool stopping_ = false;         // there is no other attempt
  bool maybe_processed_ = false;  // by an attempt before this one, or by a fetch
  bool has_extra_ = false;        // history_->extra is there
  bool split_known_ = false;      // split_at_ is: the key has been looked at
  bool failed_over_ = false;      // cluster_ is the route's failover cluster
  bool leaves_cluster_ = false;   // it has tried the route's own cluster often enough
};

// Of a call that the response cache may answer. The leader of the fetch for its key, if it started that.
struct Call::CacheUse final : FetchLeader {
  explicit CacheUse(Call& of) : call(of) {}
  static void* operator new(size_t bytes) { return runtime::AllocateFrame(bytes); }
  static void operator delete(void* memory, size_t bytes) { runtime::FreeFrame(memory, bytes); }

  void RelayHeaders(const http2::HeaderList& fields, bool end_stream) override;
  void RelayData(const base::Slice& bytes, bool end_stream) override;
  void RelayEnded(const FetchResult& result, GrpcCode status) override;
  void FetchGone() override { relay = nullptr; }

  Call& call;
  std::optional<CachePlan> plan;  // null: it goes by itself
  Fetch::Participant participant;
  bool asks_again = false;               // its fetch's time was up before its own
  ResponseCollector* relay = nullptr;    // the fetch that this call leads, while it is there
  CachedResponsePtr fallback;            // stale, for when fetching fails with UNAVAILABLE
  std::unique_ptr<base::Error> refused;  // why what is relayed does not go to the client any more
};

// Of a call that was tried more than once, waited, met gates, has failed at an endpoint, or is observed.
struct Call::History {
  static void* operator new(size_t bytes) { return runtime::AllocateFrame(bytes); }
  static void operator delete(void* memory, size_t bytes) { runtime::FreeFrame(memory, bytes); }

  std::string endpoint;  // of the last attempt, if it is observed or has failed
  std::string waits;     // the call's, or its fetch's
  absl::InlinedVector<const upstream::Endpoint*, 4> tried;
  std::unique_ptr<base::Error> last_failure;  // of the attempt before this one; null: its response was not taken
  http2::HeaderList last_response;            // that one, else empty: for a call that finds no endpoint any more
  GrpcCode last_status = GrpcCode::kUnknown;  // its
  std::string tries;  // for the log, of all attempts that another one followed: "e1:UNAVAILABLE:1.200ms,..."
  // Of this attempt; began: where it is observed; ends: by per_try_timeout.
  base::TimePoint try_began{}, try_ends = base::kNever;
  base::Nanos connecting{0};                // this attempt's wait for a connection that it got
  base::TimePoint first_began{};            // of the first one, where the route hedges
  base::TimePoint hedge_at = base::kNever;  // when an attempt beside it begins
  bool hedging = false;                     // `hedge` is under way
  std::unique_ptr<Attempt> hedge;
  std::string hedge_endpoint;
  base::TimePoint hedge_began{};
  bool try_hedges = false;                // this attempt began as `hedge`
  uint64_t try_span = 0, hedge_span = 0;  // that their requests say; 0: none
  bool hedge_counts = false;              // the attempt beside it was counted in `repeats`, as one before it
  bool credit = false;                    // one was taken for an attempt that never was sent: the next one has it
  bool trial = false;                     // this attempt tells whether an endpoint that is out works again
  bool no_more = false;                   // a backend has forbidden further attempts
  base::TimePoint pushed_back_until = base::TimePoint::min();  // by a backend
  std::optional<base::Nanos> bought;  // the wait before the attempt that has been paid, and follows one given up
  base::TimePoint retry_at{};         // no other attempt before this
  uint32_t repeats = 0;               // attempts that may have been processed and were followed
  uint32_t backoffs = 0;
  uint32_t lost = 0;                 // connections under its attempts
  std::unique_ptr<GateWalk> gates;   // set up where the route has gates
  std::unique_ptr<CallTrace> trace;  // where calls may be traced
  std::unique_ptr<Extra> extra;      // while there are faults, or where it is mirrored

  bool Tried(const upstream::Endpoint& endpoint) const {
    return std::find(tried.begin(), tried.end(), &endpoint) != tried.end();
  }
};

inline bool Call::hedging() const { return history_ != nullptr && history_->hedging; }

}  // namespace sluice::proxy
