// ResponseCollector: the "client" of a call that fetches for others: it collects the response instead of sending it,
// and hands it to the cache and to all participants when the call has ended.
//
//   collecting --end of the call--> completed      the participants get the whole response
//       |--too large, memory--> relaying           all of it goes on to the leader (the call for which the fetch was
//                                                  started), if that is still there; the others go by themselves
//
// On the worker of the fetching call, which is the leader's. Bytes are credited to the upstream as they arrive while
// collecting (entry_bytes_max bounds them), and as the leader's client takes them while relaying.
#pragma once

#include <functional>
#include <memory>

#include "absl/container/inlined_vector.h"
#include "http2/session/stream_io.h"
#include "proxy/response_cache/cache.h"
#include "proxy/worker_ref.h"
#include "runtime/worker.h"

namespace sluice::proxy {

class ResponseCollector;
struct RouteConfig;

// The call for which the fetch was started.
class FetchLeader {
 public:
  // Its client gets the response piece by piece from now on.
  virtual void RelayHeaders(const http2::HeaderList& fields, bool end_stream) = 0;
  virtual void RelayData(const base::Slice& bytes, bool end_stream) = 0;
  // That was all of it.
  virtual void RelayEnded(const FetchResult& result, GrpcCode status) = 0;
  // The ResponseCollector is gone after this; the participants have been told.
  virtual void FetchGone() = 0;

 protected:
  ~FetchLeader() = default;
};

class ResponseCollector final : public http2::StreamIo {
 public:
  // Where to find the stream, once it is there and while it is; touched on its worker only.
  struct Anchor {
    ResponseCollector* stream = nullptr;
  };
  // Cancels the fetching call, from any thread. For ResponseCache::Join().
  static std::function<void()> Canceller(runtime::Worker& worker, std::shared_ptr<Anchor> anchor);

  // `call`: the events of the fetching call, which owns this. `leader`: null when a stale entry is refreshed. `config`:
  // where the plan's rule lies, and `scope`, the one in the key (Route::cache_scope).
  ResponseCollector(ResponseCache& cache, const CachePlan& plan, std::shared_ptr<Fetch> fetch, FetchLeader* leader,
                    std::shared_ptr<Anchor> anchor, WorkerRef<RouteConfig> config, const std::string& scope,
                    runtime::Worker& worker, http2::StreamEvents& call);
  ~ResponseCollector();  // not completed: every participant is told that the proxy is stopping
  ResponseCollector(const ResponseCollector&) = delete;
  ResponseCollector& operator=(const ResponseCollector&) = delete;

  // The call has ended. `result`: all but the response. Once.
  void Complete(FetchResult result, GrpcCode status);

  // From the leader: bytes relayed have left for its client; it takes part no more.
  void RelaySent(size_t bytes);
  void LeaderGone();
  // Memory is short: what has been collected, if anything, goes on to the leader, and all that follows.
  void StopCollecting();
  bool relaying() const { return relaying_; }
  base::TimePoint deadline() const { return fetch_->deadline(); }
  base::TimePoint FixDeadline() { return fetch_->FixDeadline(); }
  void LeaveToClient() { fetch_->LeaveToClient(); }
  const std::string& scope() const { return scope_; }

  // http2::StreamIo
  void SendHeaders(const http2::HeaderList& fields, bool end_stream) override;
  void SendData(const base::Slice& bytes, bool end_stream) override;
  void Consume(size_t) override {}
  void Reset(http2::ErrorCode) override {}
  void Release() override {}

 private:
  // The response goes on to the leader alone. `ended`: it is its headers.
  void Overflow(NotCached why, bool ended = false);
  void EndForShutdown();

  const WorkerRef<RouteConfig> config_;
  const std::string& scope_;  // in *config_
  ResponseCache& cache_;
  const CachePlan plan_;
  runtime::Worker& worker_;
  http2::StreamEvents& call_;
  const std::shared_ptr<Anchor> anchor_;
  const std::shared_ptr<Fetch> fetch_;
  FetchLeader* leader_;
  bool relaying_ = false;
  bool completed_ = false;  // the cache and the participants have been told
  bool headers_received_ = false;
  bool ended_on_data_ = false;
  http2::HeaderList headers_, trailers_;
  absl::InlinedVector<base::Slice, 2> parts_;
  size_t bytes_ = 0;
  size_t credited_ahead_ = 0;  // bytes that the upstream has credit for, though the leader's client has not taken them
};

}  // namespace sluice::proxy
