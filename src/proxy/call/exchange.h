// Exchange: what the attempts of one call share: the request, which each of them sends from its own place in the body,
// and the sink for the response of one of them. The Call is one; it hears what its attempts come to.
//
// One worker, the call's.
#pragma once

#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "http2/fields/header.h"
#include "proxy/call/body.h"
#include "proxy/call/call_context.h"
#include "proxy/call/response_sink.h"
#include "proxy/canonical/request.h"
#include "proxy/options.h"

namespace sluice::proxy {

class Attempt;

struct Exchange {
  // `ended`: END_STREAM came with the headers.
  Exchange(CallContext& context, http2::StreamIo* client, const RequestSource& request, bool ended)
      : context(context), request(request.Take()), sink(client), request_ended(ended), ends_in_headers(ended) {}

  // The response has begun, and DATA or trailers follow: from here on `attempt` sends them to `sink` itself, so its
  // headers (attempt.response()) go there first. No other attempt may be answering.
  virtual void OnResponse(Attempt& attempt) = 0;
  // attempt.complete(), or attempt.error() says why not. Not called for an attempt that is cancelled.
  virtual void OnAttemptEnded(Attempt& attempt) = 0;
  // It is about to end with an error, or with another status than OK; its endpoint is there still.
  virtual void OnAttemptFailing(Attempt& attempt) = 0;
  // Its wait for a connection is over, and it is about to be sent. Not called for one that did not wait.
  virtual void OnConnected(Attempt& attempt, base::Nanos waited) = 0;

  // An attempt that was told to ask is about to send the request's headers, which may be changed.
  virtual void OnSending(const Attempt& attempt) = 0;

  // How the request goes on, if it is rewritten.
  virtual const RewriteOptions& Rewrite() const = 0;

  bool IsGrpc() const { return request.is_grpc(); }

  // An attempt has sent `bytes` of the body so far. Bytes that an earlier attempt sent have been credited then.
  void CreditSent(uint64_t bytes) {
    if (bytes <= credited) return;
    const uint64_t fresh = bytes - credited;
    credited = bytes;
    sink.Consume(fresh);
  }

  CallContext& context;
  CanonicalRequest request;
  std::unique_ptr<http2::HeaderList> request_trailers;
  Body body;
  uint64_t ring_key = 0;        // of all attempts the same, as long as they go to one kind of ring
  uint64_t credited = 0;        // request bytes given back to the client's window
  uint64_t response_bytes = 0;  // of DATA, to the sink
  base::TimePoint deadline = base::kNever;
  [[no_unique_address]] ResponseSink sink;  // its padding has room for what follows
  bool request_ended;
  bool rewrites = false;       // attempts send the request as Rewrite says (rewrite.h)
  const bool ends_in_headers;  // the request is only its headers: END_STREAM came with them

 protected:
  ~Exchange() = default;
};

}  // namespace sluice::proxy
