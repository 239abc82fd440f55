// Session: one end of an HTTP/2 connection (RFC 9113): bytes in, events and bytes out. No I/O, no threads, no clock.
//
// Feed() handles every frame of a read; what it has to say gathers in output() until the connection writes it, once a
// turn. DATA payloads are Slices of what was fed. Frames may be split anywhere between two Feeds; DATA is passed on as it
// comes, other frames are joined first (bounded by frame_bytes_max).
//
// Thread safety: none; a Session lives on one worker. Reentrancy: event handlers may call Session and Stream functions,
// but not Feed, and must not destroy the Session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/buffer_chain.h"
#include "base/error.h"
#include "base/slice.h"
#include "http2/error_code.h"
#include "http2/header.h"
#include "http2/options.h"
#include "http2/stream_io.h"

namespace sluice::http2 {

class Stream;
class Session;

enum class Role : uint8_t { kServer, kClient };

// What a session tells its owner about the connection and (server) new requests.
class SessionEvents {
 public:
  // Server: a request's headers are complete and well-formed (RFC 9113 8.3). Return who hears the rest of the stream;
  // null: the handler has called stream.Release() or will not listen (the session then resets it).
  virtual StreamEvents* OnRequest(Stream& stream, HeaderList fields, bool end_stream) = 0;
  // The peer's SETTINGS arrived (peer_concurrent_streams_max() may have changed), or a stream ended: room may be there.
  virtual void OnCapacity() = 0;
  // The peer sent GOAWAY: no new streams here. Streams above last_stream_id have had OnReset(kRefused) already.
  virtual void OnGoaway(ErrorCode code, uint32_t last_stream_id, std::string_view debug) = 0;
  virtual void OnPingAck(uint64_t payload) = 0;
  // output() went from empty to not empty, or a stream has DATA to frame: schedule a flush.
  virtual void OnOutput() = 0;

 protected:
  ~SessionEvents() = default;
};

// Counters of one session since its start; plain, owner's worker only.
struct SessionStats {
  uint64_t frames_received = 0, frames_sent = 0, streams_opened = 0, streams_refused = 0, resets_received = 0,
           resets_sent = 0, data_bytes_received = 0, data_bytes_sent = 0;
};

class Session {
 public:
  Session(Role role, const SessionOptions& options, InternTable& interns, SessionEvents& events);
  // Streams still open get OnReset(kConnectionLost).
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Queues the client's preface (client) and our SETTINGS and window. Once, before anything else.
  void Start();

  // Takes what was read. An error is the connection's (RFC 9113 5.4.1): the GOAWAY for it is in output() already; write
  // that, then close. Error.kind is kUpstreamProtocol (client) or kMalformedRequest (server), detail says what and where.
  base::Status Feed(base::Slice bytes);
  // The transport ended: every open stream gets OnReset(kConnectionLost). Feed may not be called again.
  void TransportClosed(std::string_view why);

  // Client. Opens a stream and sends its headers. Null if CanOpen() is false.
  Stream* Open(const HeaderList& fields, bool end_stream, StreamEvents& events);
  // Neither side said GOAWAY, the peer's concurrency limit has room, stream ids are left, not failed.
  bool CanOpen() const;
  // GOAWAY in either direction, failed, or out of ids: no stream will ever be opened again.
  bool closing() const;

  // Moves DATA of streams into output() within the windows and output_bytes_max, streams in turn. Call before writing.
  void FrameOutput();
  base::BufferChain& output();
  // Something can be written now, or could be after FrameOutput().
  bool HasOutput() const;

  // Two-step GOAWAY (RFC 9113 6.8): first 2^31-1 and a PING; when that is acknowledged, the real last id. Streams go on;
  // new ones after the second step are ignored as the RFC says. Client: one GOAWAY, no more Open().
  void GoawayGracefully();
  // One GOAWAY with this code and the last id handled. The owner writes it and closes.
  void GoawayNow(ErrorCode code, std::string_view debug);

  void Ping(uint64_t payload);

  size_t open_streams() const;
  uint32_t peer_concurrent_streams_max() const;
  // DATA queued in streams plus output(): for the process limit and metrics.
  size_t buffered_bytes() const;
  const SessionStats& stats() const;
  Role role() const;
  std::string Describe() const;

 private:
  friend class Stream;
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// One stream of a Session. Made by the Session, freed by Release(). Not thread-safe.
class Stream final : public StreamIo {
 public:
  void SendHeaders(const HeaderList& fields, bool end_stream) override;
  void SendData(base::Slice bytes, bool end_stream) override;
  void Consume(size_t bytes) override;
  void Reset(ErrorCode code) override;
  void Release() override;

  uint32_t id() const;
  // DATA bytes queued and not framed yet.
  size_t queued_bytes() const;
  Session& session() const;

 private:
  friend class Session;
  friend class Session::Impl;
  struct State;
  Stream() = default;
  ~Stream() = default;
};

}  // namespace sluice::http2
