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
// Its state is in parts that are tested by themselves, and that it alone brings together:
//
//   reader_   FrameReader    bytes to frames              streams_  Streams       which there are, their ids
//   block_    HeaderBlock    a block in parts             goaway_   Goaway        what both sides have said of the end
//   receive_  ReceiveWindow  what the peer may send       charges_  FloodCharges  what the peer costs us
//   send_     SendPath       frames, the peer's windows
//
// Files: session.cc (life of the session and its streams), session_receive.cc (frames, DATA), session_headers.cc
// (header blocks to messages), session_refuse.cc (those that are not passed on), session_control.cc (all other frames),
// session_flood.cc, session_stall.cc (peers that stop), session_send.cc (what streams say).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/buffer_chain.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/slice.h"
#include "http2/error_code.h"
#include "http2/fields/header.h"
#include "http2/fields/respell.h"
#include "http2/flood/budget.h"
#include "http2/flood/charges.h"
#include "http2/flood/kind.h"
#include "http2/flood/refusal.h"
#include "http2/frame/frame.h"
#include "http2/frame/frame_reader.h"
#include "http2/hpack/decoder.h"
#include "http2/options.h"
#include "http2/session/flow_control.h"
#include "http2/session/goaway.h"
#include "http2/session/header_block.h"
#include "http2/session/reset_tally.h"
#include "http2/session/send_path.h"
#include "http2/session/stream.h"
#include "http2/session/stream_io.h"
#include "http2/session/streams.h"

namespace sluice::http2 {

struct MessageHead;  // fields/validate.h

enum class Role : uint8_t { kServer, kClient };

// What a session tells its owner about the connection and (server) new requests.
class SessionEvents {
 public:
  // Server: a request's headers are complete and well-formed (RFC 9113 8.3). Return the consumer of the rest of
  // the stream; null: the handler has called stream.Release() or will not listen (the session then resets it). It may
  // move `fields` away.
  virtual StreamEvents* OnRequest(Stream& stream, HeaderList&& fields, bool end_stream) = 0;
  // Server: a request was not passed on, and its stream answered or reset. `why`: the rule that it breaks; empty where
  // the refusal says all. `fields`: as far as they were decoded.
  virtual void OnRefused(Refusal /*refusal*/, std::string_view /*why*/, const HeaderList& /*fields*/) {}
  // Server: the whole answer to a request that is refused with an error of one call (too large, metadata that does not
  // decode). `fields`: as far as they were decoded. An empty list: the session answers as gRPC clients read it.
  virtual HeaderList AnswerRefused(const base::Error& /*error*/, const HeaderList& /*fields*/) { return HeaderList(); }
  // Fields of a message came in another spelling than goes on. In a server's session what is left out refuses the
  // request; in a client's the response goes on without it.
  virtual void OnRespelled(const Respelled& /*respelled*/) {}
  // The peer says how large a header list it takes (RFC 9113 6.5.2, SETTINGS_MAX_HEADER_LIST_SIZE).
  virtual void OnHeaderListMax(uint32_t /*bytes*/) {}
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
  uint64_t frames_received = 0,  // all but DATA
      data_frames_received = 0, frames_sent = 0, streams_opened = 0, streams_refused = 0, resets_received = 0,
           resets_sent = 0, trailers_refused = 0, data_bytes_received = 0, data_bytes_sent = 0;
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
  // The peer made TLS handle `count` messages that carry nothing (net/tls/stream.h). As Feed: an error is the
  // connection's.
  base::Status NoteTlsMessages(uint32_t count, base::TimePoint now);
  // The transport ended: every open stream gets OnReset with kConnectionLost, or with what `ending` comes to. Feed may
  // not be called again. `output_lost`: what is in output() will not be written either; client streams whose headers
  // are still in it get kRefused, because the peer cannot have seen them.
  enum class Ending : uint8_t {
    kByPeer,   // kWentAway where the peer's GOAWAY named no error
    kByBound,  // kRetired: a bound of ours that says nothing of the peer
    kDead,     // the peer was silent for too long, or broke a rule
  };
  void TransportClosed(std::string_view why, bool output_lost = false, Ending ending = Ending::kByPeer);

  // Client, before the first Open: what requests say of their transport (RFC 9113 8.3.1), https where it is `secure`,
  // else http. Without this they say what their header lists do.
  void SetScheme(bool secure);

  // Client. Opens a stream and sends its headers. Null if CanOpen() is false.
  Stream* Open(const HeaderList& fields, bool end_stream, StreamEvents& events);
  // Neither side said GOAWAY, the peer's concurrency limit has room, stream ids are left, not failed.
  bool CanOpen() const { return role_ == Role::kClient && !closing() && streams_.size() < peer_streams_max_; }
  // What the peer has not returned of the connection's window leaves next to nothing for new streams' DATA.
  int64_t send_window() const { return send_.window(); }
  bool window_is_low() const { return send_.window_is_low(); }
  // Client: streams that it has reset lately. The owner tells when those since the last time came: before it writes.
  const ResetTally& recent_resets() const { return resets_; }
  void TimeResets(base::TimePoint now) { resets_.Tick(now); }
  // It has ended with streams open on it, other than by a bound of ours.
  bool lost_streams() const { return lost_streams_; }
  // The peer has ended the connection for a fault that it sees in us.
  bool blamed() const { return goaway_.received() && !goaway_.received_in_order(); }
  // The peer's part of the preface has come (RFC 9113 3.4): it speaks HTTP/2, and we know its limits.
  bool settings_received() const { return settings_received_; }
  // The client is another Sluice: its calls have passed a proxy (SettingId::kProxied).
  bool peer_is_proxy() const { return peer_is_proxy_; }
  // The peer has broken the protocol or a limit: a connection error (RFC 9113 5.4.1), of which it was told.
  bool failed() const { return failure_code_ != ErrorCode::kNoError; }
  // GOAWAY in either direction, failed, or out of ids: no stream will ever be opened again.
  bool closing() const { return failed_ || goaway_.received() || goaway_.sent() || !streams_.ids_left(); }

  // Why the connection was ended with ENHANCE_YOUR_CALM; kNone: it was not.
  FloodKind abuse() const { return charges_.kind(); }

  // Server: of the two GOAWAYs only the first is out. Requests may be on their way, and will be taken.
  bool goaway_announced() const { return goaway_.announced() && !goaway_.received(); }

  // Moves DATA of streams into output() within the windows and output_bytes_max, streams in turn. Call before
  // writing.
  void FrameOutput();
  base::BufferChain& output() { return send_.output(); }
  const base::BufferChain& output() const { return send_.output(); }
  // Something can be written now, or could be after FrameOutput().
  bool HasOutput() const { return !send_.output().empty() || send_.can_frame(); }

  // Two-step GOAWAY (RFC 9113 6.8): first 2^31-1 and a PING; when that is acknowledged, the real last id.
  // Streams go on; new ones after the second step are ignored as the RFC says. Client: one GOAWAY, no more
  // Open().
  void GoawayGracefully();
  // One GOAWAY with this code and the last id handled. The owner writes it and closes.
  void GoawayNow(ErrorCode code, std::string_view debug);

  void Ping(uint64_t payload);

  // What the peer has begun and not ended: its preface and SETTINGS, a frame other than DATA, a header block. 0:
  // nothing; else a number that changes when that has ended. The owner knows since when.
  uint64_t pending_input() const {
    if (settings_received_ && block_.id() == 0 && !reader_.holds_part()) return 0;
    if (reader_.awaits_preface() || !settings_received_) return 1;
    // A frame that is carried has not been counted yet. Of DATA that is only the head.
    return block_.id() != 0 ? (uint64_t{1} << 63) | block_.id()
                            : stats_.frames_received + stats_.data_frames_received + 2;
  }
  // Looks at all streams, as the owner's clock says: those whose queued DATA has not moved since kStallRounds such
  // looks are reset with CANCEL (SweepUnread), and those whose peer owes us bytes and has sent none (SweepSilent).
  // Returns how many.
  static constexpr uint8_t kStallRounds = 4;
  size_t SweepUnread();
  size_t SweepSilent();
  bool has_queued_data() const { return send_.queued_bytes() > 0; }
  // Beyond queued_bytes_max: the streams with the most DATA are reset, as that option says. Returns how many.
  bool has_too_much_queued() const { return send_.queued_bytes() > options_.queued_bytes_max; }
  size_t ResetHeaviest();

  // Open or half-closed, as RFC 9113 5.1.2 counts.
  size_t open_streams() const { return streams_.size(); }
  // Server: the highest id that the client has used.
  uint32_t last_peer_id() const { return streams_.last_peer_id(); }
  uint32_t peer_concurrent_streams_max() const { return peer_streams_max_; }
  // The largest HeaderList::hpack_size() that the peer takes; UINT32_MAX: it has not said. What is above it is not to
  // be sent: there are peers that end the connection.
  uint32_t peer_header_list_max() const { return peer_header_list_max_; }
  // DATA queued in streams plus output(): for the process limit and metrics.
  size_t buffered_bytes() const { return send_.queued_bytes() + send_.output().size(); }
  // What is held for the peer. Looks at every stream.
  struct Held {
    size_t waiting = 0;  // DATA: buffered_bytes(), and what consumers hold of the peer's
    size_t resting = 0;  // requests' metadata, and a guess for the streams themselves
  };
  Held LookAtHeld() const;
  SessionStats stats() const {
    SessionStats stats = stats_;
    stats.frames_sent = send_.stats().frames_sent;
    stats.resets_sent = send_.stats().resets_sent;
    stats.data_bytes_sent = send_.stats().data_bytes_sent;
    return stats;
  }
  Role role() const { return role_; }

 private:
  friend class FrameReader;  // calls the handlers of frames
  friend class Stream;
  class Scope;

  // Of the PING behind the first GOAWAY: when it comes back, the peer has seen that GOAWAY.
  static constexpr uint64_t kGracefulPing = 0x736c756963650001;

  // What the outermost Scope does when it ends, besides SendPath::kSignalOutput.
  static constexpr uint8_t kSignalCapacity = 2;
  static constexpr uint8_t kReleasedStreams = 4;

  // session.cc
  Stream& NewStream(uint32_t id, StreamEvents* events);
  void CloseStream(Stream& stream);
  void ResetStream(Stream& stream);
  void StreamError(Stream& stream, ErrorCode code);
  void CloseAll(ErrorCode code, bool output_lost, ResetCause cause);
  void PutAside(Stream& stream);
  void FreeReleased();
  void Leave();
  void Fail(ErrorCode code, std::string text);
  void FailForNew(ErrorCode code, std::string_view text);
  base::Error Failure() const;
  bool IsIdle(uint32_t id) const { return streams_.IsIdle(id, /*by_us=*/role_ == Role::kClient); }
  size_t ResetStalled(const std::vector<Stream*>& streams, ErrorCode code);
  // For Stream.
  void Consume(Stream& stream, size_t bytes);
  void ResetByConsumer(Stream& stream, ErrorCode code);
  void ReleaseByConsumer(Stream& stream);

  // Called by reader_ (frame_reader.h).
  bool done() const { return failed_; }
  void OnBadPreface();
  bool CheckFrameHeader(const FrameHeader& frame) {
    if (settings_received_ && block_.id() == 0 && frame.length <= options_.frame_bytes_max) [[likely]]
      return true;
    return CheckUnusualFrame(frame);
  }
  bool CheckUnusualFrame(const FrameHeader& frame);
  void HandleFrame(const FrameHeader& frame, const uint8_t* payload);
  void BeginData(const FrameHeader& frame, uint32_t padding);
  void HandleData(const base::Slice& read, size_t at, uint32_t bytes);
  void AfterStep();
  // session_receive.cc
  bool AdmitData(Stream& stream, uint32_t frame_bytes, uint32_t data_bytes, bool end_stream);
  bool ChargeTinyData(const FrameHeader& frame, const Stream* stream, bool mostly_padding);
  void DeliverData(const base::Slice& bytes);
  void ReceivedEnd(Stream& stream);
  // False: the frame was a connection error.
  bool FrameOnClosedStream(uint32_t id, FrameType type);
  bool LateResponse();

  // session_headers.cc
  void HandleHeaders(const FrameHeader& frame, const uint8_t* payload);
  void HandleContinuation(const FrameHeader& frame, const uint8_t* payload);
  void HandleHeaderBlock(uint32_t id, bool end_stream, bool on_itself, std::string_view block);
  bool ChargeOversized(size_t block_bytes);
  void HandleRequest(uint32_t id, bool end_stream, HeaderList&& fields);
  void HandleResponse(Stream& stream, bool end_stream, HeaderList&& fields);
  void HandleTrailers(Stream& stream, bool end_stream, HeaderList&& fields);
  void DeliverHeaders(Stream& stream, bool end_stream, HeaderList&& fields);

  // session_refuse.cc
  // What became of fields in the spelling that goes on. kUndecodable: fields of bytes are left out, and undecodable_ is
  // the name of the first.
  enum class RespellEnd : uint8_t { kWhole, kUndecodable, kTooLarge };
  RespellEnd RespellFields(HeaderList& fields);
  // Whether a block that is malformed, or to be spelled otherwise, is well-formed now. If not, it was refused.
  [[gnu::cold]] bool RespellRequest(uint32_t id, bool end_stream, HeaderList& fields, MessageHead& head);
  [[gnu::cold]] bool RespellResponse(Stream& stream, bool end_stream, HeaderList& fields, MessageHead& head);
  [[gnu::cold]] bool RespellTrailers(Stream& stream, bool end_stream, HeaderList& fields, const char* malformed);
  void Refuse(uint32_t id, Refusal refusal, const char* why, const HeaderList& fields);
  void RejectTooLarge(uint32_t id, bool end_stream, const HeaderList& fields);
  void RejectUndecodable(uint32_t id, bool end_stream, const HeaderList& fields);
  void RejectWith(uint32_t id, bool end_stream, Refusal refusal, const base::Error& error, const HeaderList& fields);
  void RejectConnect(uint32_t id, bool end_stream, const HeaderList& fields);
  void Reject(uint32_t id, bool end_stream, const HeaderList& reply);
  HeaderList AnswerTo(const base::Error& error, const HeaderList& fields);
  static void AddStatus(const base::Error& error, HeaderList& reply);
  base::Error TooLargeError(std::string_view what, const HeaderList& fields) const;
  base::Error UndecodableError() const;
  void BeyondOurLimit(Stream& stream, bool end_stream, const HeaderList& fields);
  void RefuseTrailers(Stream& stream, Refusal refusal, base::Error error, const HeaderList& fields);

  // session_control.cc
  void HandleSettings(const FrameHeader& frame, const uint8_t* payload);
  bool ApplySetting(SettingId id, uint32_t value);
  bool ApplyInitialWindow(uint32_t value);
  void HandleRstStream(const FrameHeader& frame, const uint8_t* payload);
  void HandlePriority(const FrameHeader& frame, const uint8_t* payload);
  void HandlePing(const FrameHeader& frame, const uint8_t* payload);
  void HandleGoaway(const FrameHeader& frame, const uint8_t* payload);
  bool ChargeDribble(uint32_t increment, const StreamBacklog& waiting);
  void HandleWindowUpdate(const FrameHeader& frame, const uint8_t* payload);

  // session_flood.cc
  // `cost` units of the budget. False: they are not there, and the connection has failed.
  bool Charge(Budget budget, FloodKind kind, uint32_t cost = 1) {
    if (charges_.Spend(budget, cost)) [[likely]]
      return true;
    return ChargeMore(budget, kind, cost);
  }
  bool ChargeMore(Budget budget, FloodKind kind, uint32_t cost);
  void ChargeReset(uint32_t id, bool answered);
  bool ChargeLateData(uint32_t frame_bytes, bool tiny);
  // DATA of a stream with that window may be on its way to us, and is not wanted.
  void AllowLateData(uint32_t window) { charges_.AllowLate(window, options_.connection_window_bytes); }
  void FailFlood(FloodKind kind, std::string_view text);

  // session_send.cc
  void WriteReset(uint32_t id, ErrorCode code, bool peer_caused = true);
  void WriteForcedReset(uint32_t id, ErrorCode code, FloodKind kind = FloodKind::kForcedReset);
  void WriteWindowUpdate(uint32_t id, uint32_t increment);
  void WriteQueuedData(Stream& stream);
  void CreditConnection(uint32_t bytes);
  void SentEnd(Stream& stream);
  void EndByBothSides(Stream& stream);
  // For Stream.
  void SendHeaders(Stream& stream, const HeaderList& fields, bool end_stream);
  void SendData(Stream& stream, const base::Slice& bytes, bool end_stream);

  const Role role_;
  const SessionOptions options_;
  InternTable& interns_;
  SessionEvents& events_;
  SessionStats stats_;  // but for what SendPath counts

  // Reentrancy.
  uint32_t depth_ = 0;   // Scopes on the stack
  uint8_t signals_ = 0;  // for the outermost

  bool failed_ = false;             // GOAWAY written, or the transport ended: nothing more is parsed or written
  bool settings_received_ = false;  // the peer's part of the preface
  bool lost_streams_ = false;
  bool peer_is_proxy_ = false;
  bool data_end_ = false;  // of the DATA frame that is being passed on
  Goaway goaway_;
  ErrorCode failure_code_ = ErrorCode::kNoError;
  std::string failure_;

  Streams streams_;
  uint32_t peer_streams_max_ = 100;             // until SETTINGS come; RFC 9113 6.5.2 recommends no less
  uint32_t peer_header_list_max_ = UINT32_MAX;  // unless SETTINGS say
  std::string undecodable_;
  SendPath send_;
  ResetTally resets_;  // of a client
  FloodCharges charges_;
  // Of the DATA frame that is being passed on; null: its stream has closed, bytes are credited and dropped.
  Stream* data_stream_ = nullptr;
  FrameReader reader_;
  HeaderBlock block_;
  ReceiveWindow receive_;  // the connection's
  HpackDecoder decoder_;
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
