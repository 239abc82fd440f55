// Session: one end of an HTTP/2 connection (RFC 9113): bytes in, events and bytes out. No I/O, no threads, no
// clock: time comes with the bytes.
//
// Feed() handles every frame of a read; what it has to say gathers in output() until the connection writes
// it, once a turn. DATA payloads are Slices of what was fed. Frames may be split anywhere between two Feeds;
// DATA is passed on as it comes, other frames are joined first (bounded by frame_bytes_max).
//
// Thread safety: none; a Session lives on one worker. Reentrancy: event handlers may call Session and Stream
// functions, but not Feed, and must not destroy the Session. A handler may release any stream, also the one
// the event is about: the object is kept aside until no function of the Session is on the stack. The
// outermost function calls OnOutput and OnCapacity last, each at most once.
//
// Files: session.cc (life of the session and its streams), session_receive.cc (bytes to frames, DATA),
// session_headers.cc (header blocks to messages), session_control.cc (all other frames), session_flood.cc (what of it
// is too much), session_stall.cc (peers that stop), session_send.cc (output).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/buffer_chain.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory_budget.h"
#include "base/slice.h"
#include "http2/abuse.h"
#include "http2/error_code.h"
#include "http2/flood_guard.h"
#include "http2/flow_control.h"
#include "http2/frame/frame.h"
#include "http2/header.h"
#include "http2/hpack/decoder.h"
#include "http2/hpack/encoder.h"
#include "http2/options.h"
#include "http2/stream.h"
#include "http2/stream_io.h"
#include "http2/stream_table.h"
#include "http2/validate.h"

namespace sluice::http2 {

enum class Role : uint8_t { kServer, kClient };

// What a session tells its owner about the connection and (server) new requests.
class SessionEvents {
 public:
  // Server: a request's headers are complete and well-formed (RFC 9113 8.3). Return who hears the rest of the
  // stream; null: the handler has called stream.Release() or will not listen (the session then resets it).
  virtual StreamEvents* OnRequest(Stream& stream, HeaderList fields, bool end_stream) = 0;
  // The peer's SETTINGS arrived (peer_concurrent_streams_max() may have changed), or a stream ended: room may
  // be there.
  virtual void OnCapacity() = 0;
  // The peer sent GOAWAY, or (server) we did for a fault of its that spares the open streams: no new streams
  // here. Streams of ours above last_stream_id have had OnReset(kRefused) already. The owner closes when the last
  // stream has ended.
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

  // Takes what was read. An error is the connection's (RFC 9113 5.4.1): the GOAWAY for it is in output()
  // already; write that, then close. Error.kind is kUpstreamProtocol (client) or kMalformedRequest (server),
  // detail says what and where. `now`, of the turn, refills the budgets for what a peer may do in a second; where it
  // stands still, only useful work does.
  base::Status Feed(base::Slice bytes, base::TimePoint now = {});
  // The transport ended: every open stream gets OnReset(kConnectionLost). Feed may not be called again.
  // `output_lost`: what is in output() will not be written either; client streams whose headers are still in
  // it get kRefused, because the peer cannot have seen them.
  void TransportClosed(std::string_view why, bool output_lost = false);

  // Client, before the first Open: what requests say of their transport (RFC 9113 8.3.1), https where it is `secure`,
  // else http. Without this they say what their header lists do.
  void SetScheme(bool secure);

  // Client. Opens a stream and sends its headers. Null if CanOpen() is false.
  Stream* Open(const HeaderList& fields, bool end_stream, StreamEvents& events);
  // Neither side said GOAWAY, the peer's concurrency limit has room, stream ids are left, not failed.
  bool CanOpen() const { return role_ == Role::kClient && !closing() && table_.size() < peer_streams_max_; }
  // The peer's part of the preface has come (RFC 9113 3.4): it speaks HTTP/2, and we know its limits.
  bool settings_received() const { return settings_received_; }
  // The peer has broken the protocol or a limit: a connection error (RFC 9113 5.4.1), of which it was told.
  bool failed() const { return failure_code_ != ErrorCode::kNoError; }
  // GOAWAY in either direction, failed, or out of ids: no stream will ever be opened again.
  bool closing() const { return failed_ || goaway_received_ || goaway_sent_ || next_id_ > kStreamIdMax; }

  // Why the connection was ended with ENHANCE_YOUR_CALM; kNone: it was not.
  Abuse abuse() const { return abuse_; }

  // Server: of the two GOAWAYs only the first is out. Requests may be on their way, and will be taken.
  bool goaway_announced() const { return graceful_ping_sent_ && !goaway_received_; }

  // Moves DATA of streams into output() within the windows and output_bytes_max, streams in turn. Call before
  // writing.
  void FrameOutput();
  base::BufferChain& output() { return output_; }
  const base::BufferChain& output() const { return output_; }
  // Something can be written now, or could be after FrameOutput().
  bool HasOutput() const { return !output_.empty() || (send_window_ > 0 && !ready_.empty()); }

  // Two-step GOAWAY (RFC 9113 6.8): first 2^31-1 and a PING; when that is acknowledged, the real last id.
  // Streams go on; new ones after the second step are ignored as the RFC says. Client: one GOAWAY, no more
  // Open().
  void GoawayGracefully();
  // One GOAWAY with this code and the last id handled. The owner writes it and closes.
  void GoawayNow(ErrorCode code, std::string_view debug);

  void Ping(uint64_t payload);

  // What the peer has begun and not ended: its preface and SETTINGS, a frame other than DATA, a header block. 0:
  // nothing; else a number that changes when that has ended. The owner knows since when.
  uint64_t unfinished() const {
    if (settings_received_ && (block_id_ | carry_bytes_) == 0) return 0;
    if (preface_left_ > 0 || !settings_received_) return 1;
    // A frame that is carried has not been counted yet. Of DATA that is only the head.
    return block_id_ != 0 ? (uint64_t{1} << 63) | block_id_ : stats_.frames_received + 2;
  }
  // Looks at all streams, as the owner's clock says: those whose queued DATA has not moved since kStallRounds such
  // looks are reset with CANCEL (SweepUnread), and those whose peer owes us bytes and has sent none (SweepSilent).
  // Returns how many.
  static constexpr uint8_t kStallRounds = 4;
  size_t SweepUnread();
  size_t SweepSilent();
  bool has_queued_data() const { return queued_bytes_ > 0; }
  // Beyond queued_bytes_max: the streams with the most DATA are reset, as that option says. Returns how many.
  bool has_too_much_queued() const { return queued_bytes_ > options_.queued_bytes_max; }
  size_t ResetHeaviest();

  // Open or half-closed, as RFC 9113 5.1.2 counts.
  size_t open_streams() const { return table_.size(); }
  uint32_t peer_concurrent_streams_max() const { return peer_streams_max_; }
  // DATA queued in streams plus output(): for the process limit and metrics.
  size_t buffered_bytes() const { return queued_bytes_ + output_.size(); }
  // What is held for the peer. Looks at every stream.
  struct Held {
    size_t waiting = 0;  // DATA: buffered_bytes(), and what consumers hold of the peer's
    size_t resting = 0;  // requests' metadata, and a guess for the streams themselves
  };
  Held LookAtHeld() const;
  const SessionStats& stats() const { return stats_; }
  Role role() const { return role_; }
  std::string Describe() const;

 private:
  friend class Stream;
  class Scope;

  // Of the PING behind the first GOAWAY: when it comes back, the peer has seen that GOAWAY.
  static constexpr uint64_t kGracefulPing = 0x736c756963650001;

  // What the outermost Scope does when it ends.
  static constexpr uint8_t kSignalOutput = 1;
  static constexpr uint8_t kSignalCapacity = 2;
  static constexpr uint8_t kReleasedStreams = 4;

  // session.cc
  Stream& NewStream(uint32_t id, StreamEvents* events);
  void CloseStream(Stream& stream);
  void ResetStream(Stream& stream);
  void StreamError(Stream& stream, ErrorCode code);
  static void SortByAge(std::vector<Stream*>& streams);
  void CloseAll(ErrorCode code, bool output_lost);
  void PutAside(Stream& stream);
  void FreeReleased();
  void Leave();
  void Fail(ErrorCode code, std::string text);
  void FailForNew(ErrorCode code, std::string_view text);
  base::Error Failure() const;
  bool IsIdle(uint32_t id) const;
  void RememberEnded(uint32_t id, bool by_reset);
  size_t ResetStalled(const std::vector<Stream*>& streams, ErrorCode code);
  // For Stream.
  void Consume(Stream& stream, size_t bytes);
  void ResetByConsumer(Stream& stream, ErrorCode code);
  void ReleaseByConsumer(Stream& stream);

  // session_receive.cc
  const uint8_t* TakePreface(const uint8_t* p, const uint8_t* end);
  const uint8_t* TakeFrame(const uint8_t* p, const uint8_t* end);
  const uint8_t* TakeCarry(const uint8_t* p, const uint8_t* end);
  const uint8_t* TakeData(const base::Slice& bytes, const uint8_t* p, const uint8_t* end);
  bool CheckFrameHeader(const FrameHeader& frame);
  void HandleFrame(const FrameHeader& frame, const uint8_t* payload);
  void BeginData(const FrameHeader& frame, uint32_t padding);
  bool AdmitData(Stream& stream, uint32_t frame_bytes, uint32_t data_bytes, bool end_stream);
  bool ChargeTinyData(const FrameHeader& frame, const Stream* stream);
  void DeliverData(const base::Slice& bytes);
  void ReceivedEnd(Stream& stream);
  // False: the frame was a connection error.
  bool FrameOnClosedStream(uint32_t id, FrameType type);
  bool LateResponse();

  // session_headers.cc
  void HandleHeaders(const FrameHeader& frame, const uint8_t* payload);
  void HandleContinuation(const FrameHeader& frame, const uint8_t* payload);
  void HandleHeaderBlock(uint32_t id, bool end_stream, std::string_view block);
  void HandleRequest(uint32_t id, bool end_stream, HeaderList fields);
  void HandleResponse(Stream& stream, bool end_stream, HeaderList fields);
  void HandleTrailers(Stream& stream, bool end_stream, HeaderList fields);
  void RejectTooLarge(uint32_t id, bool end_stream);
  void RejectConnect(uint32_t id, bool end_stream);
  void Reject(uint32_t id, bool end_stream, const HeaderList& reply);
  void DeliverHeaders(Stream& stream, bool end_stream, HeaderList fields);

  // session_control.cc
  void HandleSettings(const FrameHeader& frame, const uint8_t* payload);
  bool ApplySetting(SettingId id, uint32_t value);
  bool ApplyInitialWindow(uint32_t value);
  void HandleRstStream(const FrameHeader& frame, const uint8_t* payload);
  void HandlePriority(const FrameHeader& frame);
  void HandlePing(const FrameHeader& frame, const uint8_t* payload);
  void HandleGoaway(const FrameHeader& frame, const uint8_t* payload);
  bool ChargeDribble(uint32_t increment);
  void HandleWindowUpdate(const FrameHeader& frame, const uint8_t* payload);

  // session_flood.cc
  // `cost` units of the budget. False: they are not there, and the connection has failed.
  bool Charge(Budget budget, Abuse abuse, uint32_t cost = 1) {
    if (flood_.Spend(budget, cost)) [[likely]]
      return true;
    return ChargeMore(budget, abuse, cost);
  }
  bool ChargeMore(Budget budget, Abuse abuse, uint32_t cost);
  void AgeStreams(base::TimePoint now);
  void ChargeReset(uint32_t id, bool answered);
  void FailAbuse(Abuse abuse, std::string_view text);
  uint32_t WorkFor(Budget budget) const;

  // session_send.cc
  uint8_t* BeginFrame(size_t bytes);
  void CommitFrame(size_t bytes);
  void WriteSettings();
  void WriteGoaway(uint32_t last_id, ErrorCode code, std::string_view debug);
  void WriteReset(uint32_t id, ErrorCode code, bool peer_caused = true);
  void WriteForcedReset(uint32_t id, ErrorCode code, Abuse abuse = Abuse::kForcedReset);
  void WritePing(uint64_t payload, uint8_t flags);
  void WriteWindowUpdate(uint32_t id, uint32_t increment);
  void WriteHeaders(uint32_t id, const HeaderList& fields, bool end_stream);
  void WriteHeadersSplit(uint32_t id, const HeaderList& fields, size_t bytes_max, bool end_stream);
  void WriteData(Stream& stream, const base::Slice& bytes, bool end_stream);
  void WriteQueuedData(Stream& stream);
  void CountControlFrame();
  uint32_t UnwrittenControlFrames();
  void CreditConnection(uint32_t bytes);
  void MarkReady(Stream& stream);
  void SentEnd(Stream& stream);
  // For Stream.
  void SendHeaders(Stream& stream, const HeaderList& fields, bool end_stream);
  void SendData(Stream& stream, const base::Slice& bytes, bool end_stream);

  const Role role_;
  const SessionOptions options_;
  InternTable& interns_;
  SessionEvents& events_;
  SessionStats stats_;

  // Reentrancy.
  uint32_t depth_ = 0;   // Scopes on the stack
  uint8_t signals_ = 0;  // for the outermost
  Stream* released_ = nullptr;

  // Life of the connection.
  bool failed_ = false;  // GOAWAY written, or the transport ended: nothing more is parsed or written
  bool goaway_received_ = false;
  bool goaway_sent_ = false;
  bool goaway_final_ = false;  // the last id we told is binding
  bool graceful_ping_sent_ = false;
  uint32_t goaway_last_id_ = kStreamIdMax;  // of our final GOAWAY: streams above it are ignored
  Abuse abuse_ = Abuse::kNone;
  ErrorCode failure_code_ = ErrorCode::kNoError;
  std::string failure_;

  // Streams.
  StreamTable<Stream> table_;  // the open ones, by id
  base::IntrusiveList<Stream, OwnedTag> owned_;
  uint32_t next_id_ = 1;       // client: of the next Open
  uint32_t last_peer_id_ = 0;  // server: the highest the client used
  // Streams that ended lately other than by our RST_STREAM, id * 2 + (ended by the peer's RST_STREAM): what
  // still comes on them is an error, or a late response. Frames on streams that have dropped out are ignored, as
  // RFC 9113 5.1 allows for any closed stream.
  static constexpr size_t kEndedKept = 32;
  std::array<uint32_t, kEndedKept> ended_{};
  uint32_t ended_count_ = 0;
  // Client: HEADERS on those since the last stream ended. A server that says nothing else is told to stop.
  static constexpr uint32_t kLateResponsesMax = 1000;
  uint32_t late_responses_ = 0;

  // Floods. Streams with ids up to old_id_ are older than kYoungStream; the others may be, up to twice that.
  static constexpr std::chrono::milliseconds kYoungStream{100};
  FloodGuard flood_;
  base::TimePoint now_;       // of the last Feed
  base::TimePoint mark_due_;  // kYoungStream after young_id_ was the highest
  uint32_t young_id_ = 0;
  uint32_t old_id_ = 0;
  uint32_t pings_answered_ = 0;

  // Receiving.
  // DATA of less: a gRPC message has five bytes before its first.
  static constexpr uint32_t kTinyDataBytes = 5;
  size_t preface_left_;
  bool settings_received_ = false;
  // A frame whose bytes have not all come. head_ has room for DATA's pad length too; other payloads go to
  // carry_.
  std::array<uint8_t, kFrameHeaderBytes + 1> head_;
  uint32_t carry_bytes_ = 0;  // of head and payload
  base::Slice carry_;
  // The DATA frame that is being passed on.
  Stream* data_stream_ = nullptr;  // null: its stream has closed, bytes are credited and dropped
  uint32_t data_left_ = 0;
  uint32_t skip_left_ = 0;  // padding, or all of a DATA frame that is not passed on
  bool data_end_ = false;
  // A header block that waits for CONTINUATION.
  uint32_t block_id_ = 0;  // 0: none
  bool block_end_stream_ = false;
  uint32_t block_cost_ = 0;
  std::string block_;
  base::MemoryCharge block_charge_;  // for its capacity
  ReceiveWindow receive_;
  HpackDecoder decoder_;

  // Sending.
  base::BufferChain output_;
  HpackEncoder encoder_;
  base::IntrusiveList<StreamBacklog, ReadyTag> ready_;  // have DATA and stream window
  int64_t send_window_ = kDefaultWindowBytes;
  size_t queued_bytes_ = 0;  // over all streams
  uint32_t peer_window_bytes_ = kDefaultWindowBytes;
  uint32_t peer_frame_bytes_max_ = kDefaultFrameBytesMax;
  uint32_t peer_streams_max_ = 100;  // until SETTINGS come; RFC 9113 6.5.2 recommends no less
  uint32_t peer_header_list_bytes_max_ = UINT32_MAX;
  // Control frames not written yet, in two generations: those up to the position control_mark_ of the
  // output's stream of bytes, and those since. When the mark has been written, the second becomes the first.
  uint64_t appended_ = 0;
  uint64_t control_mark_ = 0;
  uint32_t control_old_ = 0;
  uint32_t control_new_ = 0;
};

// Keeps released streams alive while a function of the session runs; the outermost one frees them and
// signals.
class Session::Scope {
 public:
  explicit Scope(Session& session) : session_(session) { ++session_.depth_; }
  ~Scope() {
    if (--session_.depth_ == 0 && session_.signals_ != 0) session_.Leave();
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Session& session_;
};

}  // namespace sluice::http2
