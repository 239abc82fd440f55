// WebStream: a request of gRPC-Web as one of gRPC. It stands between the client's HTTP/2 stream and the call, so that
// all above it, the response cache and other workers too, see gRPC and need not know.
//
//   http2::Stream --events--> WebStream --events--> Call, BufferedRequest or HomeSide
//                 <--calls---           <--calls---
//
//   request     content-type of gRPC; te: trailers; no content-length; text decoded
//   response    content-type of gRPC-Web; CORS; DATA, as text where that was asked for; trailers as the last DATA
//
// A response of headers alone stays one. One that is not gRPC, as the page of a proxy before the endpoint, stays what
// it is: the client makes a status of its HTTP status. Text is padded only where a message ends and this piece of DATA
// with it, so that no message waits for the next one, and a message that has not ended takes 4/3 of its bytes.
//
// Flow control goes through: characters that base64 adds are credited to the client with their group, decoded bytes
// when they have left for the upstream; bytes of the response are credited to the upstream in the proportion in which
// what they came to has left for the client. So what is queued for the client is at most 8/5 of the upstream's window
// (the text of a message of 5 bytes has 8 characters), and the trailers.
//
// Life: made for a request, and gone with Release(), as the stream itself. Thread safety: the worker of the client's
// connection.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "http2/session/stream_io.h"
#include "proxy/grpc_web/cors.h"
#include "proxy/grpc_web/media_type.h"
#include "proxy/grpc_web/message_framing.h"
#include "proxy/grpc_web/text_codec.h"
#include "runtime/frame_pool.h"

namespace sluice::proxy::grpc_web {

class WebStream final : public http2::RequestStream, public http2::StreamEvents {
 public:
  static void* operator new(size_t bytes) { return runtime::AllocateFrame(bytes); }
  static void operator delete(void* memory, size_t bytes) { runtime::FreeFrame(memory, bytes); }

  // `request`, which says `type`, becomes one of gRPC. Its events are dropped until there is SetEvents.
  WebStream(http2::RequestStream& stream, std::shared_ptr<const Cors> cors, const MediaType& type,
            http2::HeaderList& request);

  bool text_request() const { return text_request_; }

  // For the call.
  void SetEvents(http2::StreamEvents& events) override { events_ = &events; }
  void SendHeaders(const http2::HeaderList& fields, bool end_stream) override;
  void SendData(const base::Slice& bytes, bool end_stream) override;
  void Consume(size_t bytes) override { stream_.Consume(bytes); }
  void Reset(http2::ErrorCode code) override { stream_.Reset(code); }
  void Release() override;

  // Of the client's stream. This may be gone when one of them returns.
  void OnHeaders(http2::HeaderList&& fields, bool end_stream) override;
  void OnData(const base::Slice& bytes, bool end_stream) override;
  void OnReset(http2::ErrorCode code, http2::ResetCause cause) override;
  void OnSent(size_t bytes) override;

 private:
  ~WebStream() = default;  // by Release

  void SendTrailers(const http2::HeaderList& fields);
  void Send(base::Slice bytes, size_t raw, bool end_stream);
  void End(http2::ErrorCode code);
  void TellEnd();
  void RefuseBody(std::string_view why);

  http2::RequestStream& stream_;
  const std::shared_ptr<const Cors> cors_;
  http2::StreamEvents* events_ = nullptr;
  std::string origin_;        // empty: the request does not say one
  std::string request_type_;  // as the call sees it
  TextDecoder decoder_;
  TextEncoder encoder_;
  MessageFraming framing_;   // of the response
  uint64_t queued_ = 0;      // bytes given to the stream, and not yet framed
  uint64_t queued_raw_ = 0;  // what they are of the upstream's, and not yet credited
  const bool text_request_;
  const bool text_response_;
  bool is_grpc_ = true;              // the response is: it has messages, and trailers behind them
  bool begun_ = false;               // the response
  bool ended_ = false;               // the response: END_STREAM given, or reset
  bool refused_ = false;             // the request's body: nothing more of it is heard
  std::shared_ptr<WebStream*> end_;  // while the call is to be told of End; null within: this is gone
};

}  // namespace sluice::proxy::grpc_web
