// StreamFilter: stands between a call and its client's stream, or the collector of its fetch, and passes on what the
// call sends. It is put there by ResponseSink::Wrap, before the response begins; without one nothing is paid for.
//
// One worker, the call's. The call owns its filters and destroys them when nothing is sent any more.
#pragma once

#include "http2/session/stream_io.h"

namespace sluice::proxy {

class StreamFilter : public http2::StreamIo {
 public:
  virtual ~StreamFilter() = default;
  StreamFilter(const StreamFilter&) = delete;
  StreamFilter& operator=(const StreamFilter&) = delete;

  void SendHeaders(const http2::HeaderList& fields, bool end_stream) override {
    next_->SendHeaders(fields, end_stream);
  }
  void SendData(const base::Slice& bytes, bool end_stream) override { next_->SendData(bytes, end_stream); }
  void Consume(size_t bytes) override { next_->Consume(bytes); }
  void Reset(http2::ErrorCode code) override { next_->Reset(code); }
  void Release() override { next_->Release(); }

 protected:
  StreamFilter() = default;
  // From Wrap on, until Release.
  http2::StreamIo& next() { return *next_; }

 private:
  friend class ResponseSink;
  http2::StreamIo* next_ = nullptr;
};

}  // namespace sluice::proxy
