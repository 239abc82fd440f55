// CacheFastPath: answers of the response cache that are given where the request's last bytes are read, without a Call.
//
// A request that a stored response may answer is buffered from its headers on. If its message arrives whole before the
// turn's I/O ends, which is the usual case, and a fresh response is there, it is answered at once: no task, no timer.
// Any other request becomes a Call at the end of the turn's I/O, with what has arrived, as if there were no fast path;
// so this counts hits only.
//
//   OnRequest --May--> Candidate --END_STREAM, fresh--> answered, gone
//                          |
//                          +--anything else, at the end of the turn's I/O--> Call::Start, with what has arrived
//
// Thread safety: its worker's.
#pragma once

#include <memory>
#include <span>

#include "base/intrusive_list.h"
#include "http2/session/stream_io.h"
#include "proxy/call/call_context.h"
#include "proxy/client.h"
#include "proxy/downstream/plan_memo.h"
#include "proxy/tracing/call_trace.h"
#include "runtime/worker.h"

namespace sluice::proxy {

class CacheFastPath final : private runtime::IoHook {
 public:
  explicit CacheFastPath(CallContext& context);
  ~CacheFastPath();

  // Whether a stored response may answer any request.
  bool on() const { return Config() != nullptr; }
  // The plan, if a stored response may answer `request` by the configuration last read: then Buffer it. Else null.
  KnownPlan May(const Client& client, const CanonicalRequest& request) {
    const RouteConfig* config = Config();
    if (config == nullptr) return {};
    const FastPathPlan* plan = plans_.For(*config, context_.config_version, request, client.listener);
    return plan != nullptr ? plans_.Remember(*plan) : KnownPlan();
  }
  // From OnRequest, with a request that has not ended, and its plan. `client`: the connection's; it lives until the
  // stream was reset.
  http2::StreamEvents* Buffer(http2::RequestStream& stream, const ClientPtr& client, CanonicalRequest&& request,
                              const KnownPlan& known);

  // Answers the request, whose `message` is all its DATA, and releases the stream, if a fresh response is stored.
  // False: nothing was sent or counted. `started`: when its headers were read. `known`: what its plan was then.
  bool Answer(http2::StreamIo& stream, const Client& client, const CanonicalRequest& request,
              std::span<const base::Slice> message, base::TimePoint started, const KnownPlan& known = {});

  // Makes Calls of the requests that are buffered. Not from inside an event of a stream.
  void StartCalls();
  bool empty() const { return candidates_.empty(); }

 private:
  class Candidate;

  void OnIoEnd() override { StartCalls(); }
  std::unique_ptr<CallTrace> TraceOf(const RouteConfig& config, const CanonicalRequest& request, GrpcCode status,
                                     base::Nanos total);
  // Null: there is no cache, or there are faults.
  const RouteConfig* Config() const;

  CallContext& context_;
  CachePlanMemo plans_;
  base::IntrusiveList<Candidate, Candidate> candidates_;  // owned
};

}  // namespace sluice::proxy
