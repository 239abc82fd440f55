// The life of a session and of its streams.
#include "http2/session/session.h"

#include <algorithm>

#include "http2/fields/static_table.h"

namespace sluice::http2 {

Session::Session(Role role, const SessionOptions& options, InternTable& interns, SessionEvents& events)
    : role_(role),
      options_(options),
      interns_(interns),
      events_(events),
      send_(interns, signals_, /*shared=*/role == Role::kClient),
      charges_(options_),
      reader_(/*preface=*/role == Role::kServer),
      // Until the peer has acknowledged our SETTINGS it uses the default table at most (RFC 7541 4.2, 6.3).
      decoder_(interns, kDefaultTableBytes) {
  // Our announced windows are never below the default, so what a peer sends before it has read them fits too.
  SLUICE_CHECK(options.stream_window_bytes >= kDefaultWindowBytes && options.stream_window_bytes <= kWindowBytesMax);
  SLUICE_CHECK(options.connection_window_bytes >= kDefaultWindowBytes &&
               options.connection_window_bytes <= kWindowBytesMax);
  receive_.Reset(options.connection_window_bytes);
}

Session::~Session() {
  ++depth_;  // the owner is going away: it hears no signal any more
  TransportClosed("session destroyed", false, Ending::kDead);
  FreeReleased();
  // A consumer that holds a stream yet may still call it, and must still release it.
  while (Stream* stream = streams_.TakeAny()) stream->session_ = nullptr;
}

void Session::Start() {
  Scope scope(*this);
  if (role_ == Role::kClient) send_.WritePreface();
  send_.WriteSettings(options_, role_ == Role::kServer);
  uint32_t extra = options_.connection_window_bytes - kDefaultWindowBytes;
  if (extra > 0) WriteWindowUpdate(0, extra);  // RFC 9113 6.9.2: only WINDOW_UPDATE changes the connection's window
}

void Session::TransportClosed(std::string_view why, bool output_lost, Ending ending) {
  Scope scope(*this);
  ResetCause cause = ResetCause::kConnectionLost;
  if (failed()) ending = Ending::kDead;
  if (ending == Ending::kByBound) cause = ResetCause::kRetired;
  if (ending == Ending::kByPeer && goaway_.received_in_order()) cause = ResetCause::kWentAway;
  if (!failed_) {
    failed_ = true;
    failure_ = why;
  }
  CloseAll(failure_code_, output_lost, cause);
}

Stream* Session::Open(const HeaderList& fields, bool end_stream, StreamEvents& events) {
  if (!CanOpen()) return nullptr;
  Scope scope(*this);
  Stream& stream = NewStream(streams_.TakeId(), &events);
  const Field* method = fields.Find(Token::kMethod);
  stream.head_request_ = method != nullptr && method->value() == "HEAD";
  SendHeaders(stream, fields, end_stream);
  stream.headers_end_ = send_.appended();
  return &stream;
}

void Session::GoawayGracefully() {
  if (failed_ || goaway_.sent()) return;
  Scope scope(*this);
  if (role_ == Role::kClient) {
    GoawayNow(ErrorCode::kNoError, "");
    return;
  }
  // RFC 9113 6.8: requests already on their way are not lost, because the binding id is told a round trip
  // later.
  goaway_.Announce();
  send_.WriteGoaway(kStreamIdMax, ErrorCode::kNoError, "");
  send_.WritePing(kGracefulPing, 0);
}

void Session::GoawayNow(ErrorCode code, std::string_view debug) {
  if (failed_) return;
  Scope scope(*this);
  send_.WriteGoaway(goaway_.Bind(streams_.last_peer_id()), code, debug);
}

void Session::Ping(uint64_t payload) {
  if (failed_) return;
  Scope scope(*this);
  send_.WritePing(payload, 0);
}

Stream& Session::NewStream(uint32_t id, StreamEvents* events) {
  Stream& stream = *StreamPool::New();
  stream.session_ = this;
  stream.events_ = events;
  stream.id_ = id;
  stream.closed_ = stream.received_end_ = stream.send_done_ = stream.sent_end_ = stream.end_with_data_ = false;
  stream.final_headers_ = stream.may_be_silent_ = stream.head_request_ = stream.headers_sent_ = stream.released_ =
      stream.refused_trailers_ = false;
  stream.send_window_ = static_cast<int32_t>(send_.initial_window());
  stream.content_left_ = -1;
  stream.receive_.Reset(options_.stream_window_bytes);
  stream.unconsumed_ = 0;
  stream.silent_rounds_ = 0;
  streams_.Insert(stream);
  ++stats_.streams_opened;
  return stream;
}

// The stream leaves the table; its consumer may keep it. Unless both END_STREAMs have passed it calls
// ResetStream.
void Session::CloseStream(Stream& stream) {
  streams_.Close(stream);
  stream.closed_ = stream.send_done_ = true;
  stream.unconsumed_ = 0;  // nothing more can come that would need the window, also when the session has gone
  if (data_stream_ == &stream) data_stream_ = nullptr;
  signals_ |= kSignalCapacity;
  if (stream.released_) PutAside(stream);  // its consumer left before its response was sent
}

// Closes a stream that has not ended both ways: nothing more is sent.
void Session::ResetStream(Stream& stream) {
  AllowLateData(stream.receive_.available());
  CloseStream(stream);
  send_.Drop(stream);
}

// RFC 9113 5.4.2: the peer broke a rule on this stream. A client that does it makes a backend work for nothing
// (CVE-2025-8671). A server can do it once for each stream that we open: that is no flood, and other calls go on with
// it.
void Session::StreamError(Stream& stream, ErrorCode code) {
  if (role_ == Role::kServer)
    WriteForcedReset(stream.id_, code);
  else
    WriteReset(stream.id_, code);
  ResetStream(stream);
  if (StreamEvents* events = std::exchange(stream.events_, nullptr)) events->OnReset(code, ResetCause::kProtocolError);
}

void Session::CloseAll(ErrorCode code, bool output_lost, ResetCause cause) {
  // All are closed before the first handler runs, so that none sends on another. What handlers release is
  // only put aside (Scope): the pointers stay good.
  std::vector<Stream*> open = streams_.Select([](const Stream&) { return true; });
  lost_streams_ |= !open.empty() && cause != ResetCause::kRetired;
  // The youngest first: if one of them has ended the connection, it is the likeliest, and what follows is tried in the
  // order in which they hear of it (LoneCalls have few places).
  std::sort(open.begin(), open.end(), [](const Stream* a, const Stream* b) { return a->id() > b->id(); });
  for (Stream* stream : open) ResetStream(*stream);
  const uint64_t written = send_.written();
  for (Stream* stream : open) {
    bool never_sent = output_lost && role_ == Role::kClient && stream->headers_end_ > written;
    if (StreamEvents* events = std::exchange(stream->events_, nullptr))
      events->OnReset(code, never_sent ? ResetCause::kRefused : cause);
  }
}

void Session::Consume(Stream& stream, size_t bytes) {
  Scope scope(*this);
  uint32_t credited = static_cast<uint32_t>(std::min<size_t>(bytes, stream.unconsumed_));
  stream.unconsumed_ -= credited;
  if (stream.closed_ || stream.received_end_) return;  // nothing more can come
  if (uint32_t increment = stream.receive_.Credit(credited)) WriteWindowUpdate(stream.id_, increment);
}

void Session::ResetByConsumer(Stream& stream, ErrorCode code) {
  Scope scope(*this);
  stream.events_ = nullptr;
  WriteReset(stream.id_, code, /*peer_caused=*/false);
  ResetStream(stream);
}

void Session::ReleaseByConsumer(Stream& stream) {
  Scope scope(*this);
  SLUICE_CHECK(!stream.released_);
  stream.events_ = nullptr;
  stream.unconsumed_ = 0;
  if (!stream.closed_) {
    bool answered = role_ == Role::kServer && stream.send_done_;
    if (answered && !stream.sent_end_) {
      // The rest of the response is queued: the stream drains by itself, and SentEnd lets it go.
      stream.released_ = true;
      return;
    }
    // RFC 9113 8.1: a server that needs no more of the request says so after its complete response.
    ResetByConsumer(stream, answered ? ErrorCode::kNoError : ErrorCode::kCancel);
  }
  stream.released_ = true;
  PutAside(stream);
}

// A released and closed stream; freed when nothing on the stack can hold it (Leave).
void Session::PutAside(Stream& stream) {
  streams_.PutAside(stream);
  signals_ |= kReleasedStreams;
}

void Session::FreeReleased() {
  signals_ &= static_cast<uint8_t>(~kReleasedStreams);
  streams_.FreeReleased();
}

void Session::Leave() {
  // Handlers run inside: what they do comes back here as a signal, not as a recursion.
  ++depth_;
  while (signals_ != 0) {
    uint8_t signals = std::exchange(signals_, 0);
    if (signals & kReleasedStreams) FreeReleased();
    if (signals & kSignalCapacity) events_.OnCapacity();
    if (signals & SendPath::kSignalOutput) events_.OnOutput();
  }
  --depth_;
}

void Session::SetScheme(bool secure) { send_.SetScheme(StaticField(secure ? kStaticSchemeHttps : kStaticSchemeHttp)); }

// RFC 9113 5.4.1. The streams hear of it when the bytes that were fed are done with.
void Session::Fail(ErrorCode code, std::string text) {
  if (failed_) return;
  send_.WriteGoaway(goaway_.Lower(streams_.last_peer_id()), code, text);
  failed_ = true;
  failure_code_ = code;
  failure_ = std::string(ToString(code)) + ": " + text;
}

// A connection error (RFC 9113 5.4.1) of a client that leaves frames and HPACK in step: GOAWAY goes out with the
// code and nothing new is taken, but the streams up to its last id may end (6.8) before the connection closes. For
// a fault of gRPC's client (docs/http2.md), so that its other calls do not pay for it.
void Session::FailForNew(ErrorCode code, std::string_view text) {
  if (role_ == Role::kClient || streams_.size() == 0) return Fail(code, std::string(text));
  GoawayNow(code, text);
  events_.OnGoaway(code, goaway_.last_id(), text);
}

base::Error Session::Failure() const {
  if (role_ == Role::kServer) {
    return base::MakeError(base::ErrorKind::kMalformedRequest, failure_, base::ErrorSource::kDownstream);
  }
  return base::MakeError(base::ErrorKind::kUpstreamProtocol, failure_, base::ErrorSource::kUpstream);
}

}  // namespace sluice::http2
