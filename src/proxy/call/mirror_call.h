// MirrorCall: a call that is made a second time, at another cluster, whose answer no client gets: with the request
// that its client's call sends, marked by `sluice-mirrored: 1`. Its answer is counted and let go, or compared with that
// of the client's call.
//
//   client's call --BeginMirror--> MirrorCall      a copy of the fields and of the body so far
//        | DATA, trailers ----------> sent on       as far as bytes_max goes: nothing of the client's waits for it
//        | response --MirrorTap-----> status, hash  where they are compared
//        | ends
//
// The client's call never hears of it: it has a deadline, a window and an endpoint of its own, is asked by the limits
// of its own cluster, and is given up where one would let it wait. It is not tried again, and no client's call in
// metrics, access log and spans.
//
// Life: Start spawns its task, which owns it. One worker, that of the client's call.
#pragma once

#include <memory>

#include "base/intrusive_list.h"
#include "base/stream_hash.h"
#include "proxy/call/attempt.h"
#include "proxy/call/exchange.h"
#include "proxy/call/stream_filter.h"
#include "proxy/call_id.h"
#include "proxy/route_table.h"
#include "runtime/task.h"
#include "runtime/timer_wheel.h"
#include "sync/event.h"

namespace sluice::proxy {

class MirrorTap;

// What a call was answered, as far as two answers are compared: the bytes of all messages with their prefixes.
struct AnswerDigest {
  bool complete = false;  // by an endpoint, with a status
  GrpcCode status = GrpcCode::kUnknown;
  uint64_t bytes = 0;
  base::StreamHash hash;
  void Add(const base::Slice& data) {
    bytes += data.size();
    hash.Add(data.view());
  }
};

class MirrorCall final : public base::ListNode<MirrorCall>, private runtime::Timer, private Exchange {
 public:
  // Of the client's call, as it is when its first attempt begins.
  struct Origin {
    CallContext& context;
    WorkerRef<RouteConfig> config;
    WorkerRef<Snapshot> snapshot;
    const Route& route;          // in *config, with a mirror
    const std::string& cluster;  // that the client's call goes to; in *config
    const CanonicalRequest& request;
    const Body& body;
    const http2::HeaderList* trailers;  // of the request; null: none yet
    bool request_ended, ends_in_headers;
    base::TimePoint deadline;
    uint64_t key;  // for the ring of the mirror's cluster
    CallId id;     // not set: of a fetch
  };
  // Null: there is none, which is counted. Else it lives until its task ends, and tells the tap.
  static std::unique_ptr<MirrorTap> Start(Origin origin);
  ~MirrorCall();

  // Ends all of a worker: the process stops. Their tasks must run once more.
  static void EndAll(CallContext& context);

 private:
  friend class MirrorTap;

  // Collects the response, in the place of a client's stream.
  struct Collector final : http2::StreamIo {
    explicit Collector(MirrorCall& of) : call(of) {}
    void SendHeaders(const http2::HeaderList&, bool) override {}
    void SendData(const base::Slice& bytes, bool) override;
    void Consume(size_t) override {}
    void Reset(http2::ErrorCode) override {}
    void Release() override {}
    MirrorCall& call;
  };

  explicit MirrorCall(Origin origin);
  static runtime::Task<void> Run(std::unique_ptr<MirrorCall> self);
  void Open();
  bool PassesLimits(const upstream::ClusterState& cluster);
  uint32_t Pick(const upstream::ClusterState& cluster, bool awaits) const;
  bool WaitsForEnd() const;
  void Finish();
  void Compare();
  void GiveUp(MirrorResult result);
  void LeaveTap();
  const MirrorOptions& options() const { return route_.options.mirror; }

  // From the tap.
  void OnRequestData(const base::Slice& bytes, bool end_stream);
  void OnRequestTrailers(const http2::HeaderList& fields);
  void OnPrimaryEnd(const AnswerDigest* answer);
  // Of its attempt.
  bool RanOut(GrpcCode status) const;
  void OnResponse(Attempt& attempt) override;
  void OnAttemptEnded(Attempt& attempt) override;
  void OnAttemptFailing(Attempt&) override {}
  void OnConnected(Attempt&, base::Nanos) override {}
  void OnSending(const Attempt&) override {}
  const RewriteOptions& Rewrite() const override { return route_.options.rewrite; }
  void OnTimer(base::TimePoint now) override;

  Collector collector_{*this};
  sync::Event event_;
  Attempt attempt_{*this};
  const WorkerRef<RouteConfig> config_;
  WorkerRef<Snapshot> snapshot_;  // until the response begins
  const Route& route_;
  const std::string& primary_cluster_;
  const CallId id_;
  std::shared_ptr<const upstream::ClusterLimits> limits_;  // that let it go
  bool has_token_ = false;                                 // of their rate, capped
  Permit permit_;                                          // of their concurrency
  MirrorTap* tap_ = nullptr;                               // null: the client's call has ended
  AnswerDigest answer_, primary_;
  MirrorResult result_ = MirrorResult::kIncomplete;
  bool over_ = false;  // its attempt is
};

// The client's call's side: what it sends goes to the MirrorCall, if that is still there; where the answers are
// compared, it stands before the sink and sees the response.
class MirrorTap final : public StreamFilter {
 public:
  explicit MirrorTap(MirrorCall& call) : call_(&call) {}
  ~MirrorTap() override;

  void OnRequestData(const base::Slice& bytes, bool end_stream) {
    if (call_ != nullptr) call_->OnRequestData(bytes, end_stream);
  }
  void OnRequestTrailers(const http2::HeaderList& fields) {
    if (call_ != nullptr) call_->OnRequestTrailers(fields);
  }

  void SendHeaders(const http2::HeaderList& fields, bool end_stream) override;
  void SendData(const base::Slice& bytes, bool end_stream) override;

 private:
  friend class MirrorCall;
  void End();

  MirrorCall* call_;  // null: it has ended
  AnswerDigest answer_;
  bool of_proxy_ = false;  // the answer is an error of the proxy's own
};

}  // namespace sluice::proxy
