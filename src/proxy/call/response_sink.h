// ResponseSink: what a call answers to: its client's stream, or the collector of the fetch that it makes for the cache.
//
//   open --headers--> begun --END_STREAM--> closed
//
// Release closes it in any state; a stream that lacks its END_STREAM is reset. What is sent to a closed sink is
// dropped, so that a call need not ask whether its client is still there. One worker.
#pragma once

#include <memory>
#include <utility>

#include "http2/session/stream_io.h"
#include "proxy/call/stream_filter.h"
#include "proxy/response_cache/collector.h"

namespace sluice::proxy {

class ResponseSink {
 public:
  // `client` null: closed, until SetFetch.
  explicit ResponseSink(http2::StreamIo* client) : stream_(client != nullptr ? client : &kClosed) {}
  ResponseSink(const ResponseSink&) = delete;
  ResponseSink& operator=(const ResponseSink&) = delete;

  void SetFetch(std::unique_ptr<ResponseCollector> fetch) {
    fetch_ = std::move(fetch);
    stream_ = fetch_.get();
  }

  // What is sent from now on goes through `filter`, which lives until nothing is sent any more. Not closed, not begun.
  void Wrap(StreamFilter& filter) { filter.next_ = std::exchange(stream_, &filter); }

  // Headers were sent.
  bool begun() const { return begun_; }
  bool closed() const { return stream_ == &kClosed; }
  // Null: a client waits.
  ResponseCollector* fetch() const { return fetch_.get(); }

  // As of http2::StreamIo; END_STREAM closes.
  void SendHeaders(const http2::HeaderList& fields, bool end_stream) {
    begun_ = true;
    stream_->SendHeaders(fields, end_stream);
    if (end_stream) Release();
  }
  // A 1xx response: the response has not begun.
  void SendInterim(const http2::HeaderList& fields) { stream_->SendHeaders(fields, false); }
  void SendData(const base::Slice& bytes, bool end_stream) {
    stream_->SendData(bytes, end_stream);
    if (end_stream) Release();
  }
  // A whole response: see SendStored of response_cache/entry.h.
  void SendStored(const CachedResponse& response, const http2::HeaderList& headers, const http2::HeaderList& trailers) {
    begun_ = true;
    proxy::SendStored(*stream_, response, headers, trailers);
    Release();
  }
  // Credits request bytes to the client.
  void Consume(size_t bytes) { stream_->Consume(bytes); }
  void Reset(http2::ErrorCode code) {
    stream_->Reset(code);
    Release();
  }
  void Release() {
    if (!closed()) std::exchange(stream_, &kClosed)->Release();
  }

 private:
  struct Closed final : http2::StreamIo {
    void SendHeaders(const http2::HeaderList&, bool) override {}
    void SendData(const base::Slice&, bool) override {}
    void Consume(size_t) override {}
    void Reset(http2::ErrorCode) override {}
    void Release() override {}
  };
  static Closed kClosed;

  http2::StreamIo* stream_;
  std::unique_ptr<ResponseCollector> fetch_;
  bool begun_ = false;
};

}  // namespace sluice::proxy
