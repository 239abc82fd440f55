// StreamIo and StreamEvents: the two halves of what one side of a call can do to, and hear from, an HTTP/2
// stream.
//
// http2::Stream is the StreamIo of a stream on this worker's connection. A stand-in can carry a stream of
// another worker's connection through a mailbox: a call need not know.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/slice.h"
#include "http2/error_code.h"
#include "http2/fields/header.h"

namespace sluice::http2 {

// Why a stream ended without END_STREAM from the peer.
enum class ResetCause : uint8_t {
  kPeerReset,       // RST_STREAM with the code given
  kRefused,         // never processed: REFUSED_STREAM, or above the last stream id of a GOAWAY (RFC 9113 6.8, 8.7),
                    // or its headers were never written
  kConnectionLost,  // the transport ended or the connection broke; the code is what we know of it
  kRetired,         // a bound of ours ended the connection in good order
  kWentAway,        // the peer ended the connection in good order: behind a GOAWAY with NO_ERROR (RFC 9113 6.8)
  kProtocolError,   // the peer broke a rule on this stream; we reset it with the code given
  kStalled,         // the peer neither took what it was sent nor sent what it owes for too long; we reset it
  kTooLarge,        // client: a header list or trailers above our own limits; the peer has broken no rule, we reset it.
                    // Server: the request's trailers; the session has answered
  kMetadata,  // server: the request's trailers have a field of bytes that does not decode; the session has answered
  kMalformedBody,  // a stand-in could not translate the peer's DATA, and has answered it; no session says this
};

class StreamIo {
 public:
  // Response or request headers, 1xx, or trailers (end_stream true). After trailers or end_stream nothing
  // more may be sent. Sent behind DATA that is still queued. `fields` is not kept.
  virtual void SendHeaders(const HeaderList& fields, bool end_stream) = 0;
  // Queued, then framed within both windows. The queue is bounded by the other side's receive window, because
  // bytes are credited there (StreamEvents::OnSent -> Consume) only when they leave here. What is sent at once is small
  // enough to be copied mostly; only what must be kept is counted.
  virtual void SendData(const base::Slice& bytes, bool end_stream) = 0;
  // Credits received DATA bytes back to the stream's window; WINDOW_UPDATEs are batched. The connection's window was
  // credited when they were delivered.
  virtual void Consume(size_t bytes) = 0;
  // RST_STREAM, unless the stream is closed already. Nothing more is sent; queued DATA is dropped; no more
  // events come.
  virtual void Reset(ErrorCode code) = 0;
  // The consumer is done: no more events. A server stream whose END_STREAM has been given, but waits behind DATA for
  // the peer's window, goes on by itself until all is sent. If the stream is not closed, it is reset: kNoError on a
  // server stream whose response is complete (RFC 9113 8.1), else kCancel. The stream is freed; the pointer is dead
  // after this.
  virtual void Release() = 0;

 protected:
  ~StreamIo() = default;
};

class StreamEvents;

// The stream of a request, which may be buffered before there is a consumer for the whole of it.
class RequestStream : public StreamIo {
 public:
  // From now on `events` hears of the stream, unless it is closed. From inside an event of it only in OnHeaders.
  virtual void SetEvents(StreamEvents& events) = 0;

 protected:
  ~RequestStream() = default;
};

// Called by the session from inside Feed(), on the connection's worker; may call back into any StreamIo,
// Release() too.
class StreamEvents {
 public:
  // Client side: 1xx, response headers, trailers, in this order; which it is follows from :status and what
  // came before. Server side: trailers only (the request headers came with SessionEvents::OnRequest). The consumer may
  // move `fields` away.
  virtual void OnHeaders(HeaderList&& fields, bool end_stream) = 0;
  // `bytes` is the session's, for the time of the call: a consumer that keeps it copies the Slice.
  virtual void OnData(const base::Slice& bytes, bool end_stream) = 0;
  // The stream is dead in both directions. Called at most once, never after END_STREAM was seen in both
  // directions. After END_STREAM from the peer it is still called if the peer then resets or the connection
  // ends while we send.
  virtual void OnReset(ErrorCode code, ResetCause cause) = 0;
  // `bytes` of queued DATA have been framed into the connection's output.
  virtual void OnSent(size_t bytes) = 0;

 protected:
  ~StreamEvents() = default;
};

}  // namespace sluice::http2
