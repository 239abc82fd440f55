// EarlyHits: answers of the response cache that are given where the request's last bytes are read, without a Call.
//
// A request that a stored response may answer is held from its headers on. If its message comes whole before the turn's
// I/O ends, which is the usual case, and a fresh response is there, it is answered at once: no task, no timer. All else
// becomes a Call at the end of the turn's I/O, with what has come, and goes as if nobody had looked; so this counts
// hits and no more.
//
//   OnRequest --May--> Held --END_STREAM, fresh--> answered, gone
//                        |
//                        +--anything else, at the end of the turn's I/O--> Call::Start, and what came is told to it
//
// Thread safety: its worker's.
#pragma once

#include <span>

#include "base/intrusive_list.h"
#include "http2/stream_io.h"
#include "proxy/client.h"
#include "proxy/hit_plans.h"
#include "runtime/worker.h"

namespace sluice::http2 {
class Stream;
}

namespace sluice::proxy {

struct WorkerContext;

class EarlyHits final : private runtime::IoHook {
 public:
  explicit EarlyHits(WorkerContext& context);
  ~EarlyHits();

  // Whether a stored response may answer `request`, by the configuration last read: it is to be held.
  bool May(const http2::HeaderList& request) {
    const RouteConfig* config = Config();
    return config != nullptr && plans_.For(*config, request) != nullptr;
  }
  // From OnRequest, with a request that has not ended. `client`: the connection's; it lives until the stream was reset.
  http2::StreamEvents* Hold(http2::Stream& stream, const ClientPtr& client, http2::HeaderList request);

  // Answers the request, whose `message` is all its DATA, and releases the stream, if a fresh response is stored.
  // False: nothing was sent or counted. `started`: when its headers were read.
  bool Answer(http2::StreamIo& stream, const http2::HeaderList& request, std::span<const base::Slice> message,
              base::TimePoint started);

  // Makes Calls of what is held. Not from inside an event of a stream.
  void StartCalls();
  bool empty() const { return held_.empty(); }
  // A new configuration has been read.
  void Forget() { plans_.Clear(); }

 private:
  class Held;

  void OnIoEnd() override { StartCalls(); }
  // Null: there is no cache, or the access log wants a line of each call, which a Call writes.
  const RouteConfig* Config() const;

  WorkerContext& context_;
  HitPlans plans_;
  base::IntrusiveList<Held, Held> held_;  // owned
};

}  // namespace sluice::proxy
