// The life of a session and of its streams.
#include "http2/session.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "http2/hpack/static_table.h"

namespace sluice::http2 {

Session::Session(Role role, const SessionOptions& options, InternTable& interns, SessionEvents& events)
    : role_(role),
      options_(options),
      interns_(interns),
      events_(events),
      flood_(options_),
      preface_left_(role == Role::kServer ? kClientPreface.size() : 0),
      // Until the peer has acknowledged our SETTINGS it uses the default table at most (RFC 7541 4.2, 6.3).
      decoder_(interns, kDefaultTableBytes),
      encoder_(interns) {
  // Our announced windows are never below the default, so what a peer sends before it has read them fits too.
  SLUICE_CHECK(options.stream_window_bytes >= kDefaultWindowBytes && options.stream_window_bytes <= kWindowBytesMax);
  SLUICE_CHECK(options.connection_window_bytes >= kDefaultWindowBytes &&
               options.connection_window_bytes <= kWindowBytesMax);
  receive_.Reset(options.connection_window_bytes);
}

Session::~Session() {
  ++depth_;  // the owner is going away: it hears no signal any more
  TransportClosed("session destroyed");
  FreeReleased();
  // Whoever holds a stream yet may still call it, and must still release it.
  while (Stream* stream = owned_.PopFront()) stream->session_ = nullptr;
}

void Session::Start() {
  Scope scope(*this);
  if (role_ == Role::kClient) {
    std::memcpy(BeginFrame(kClientPreface.size()), kClientPreface.data(), kClientPreface.size());
    CommitFrame(kClientPreface.size());
    --stats_.frames_sent;  // the preface is none
  }
  WriteSettings();
  uint32_t extra = options_.connection_window_bytes - kDefaultWindowBytes;
  if (extra > 0) WriteWindowUpdate(0, extra);  // RFC 9113 6.9.2: only WINDOW_UPDATE changes the connection's window
}

void Session::TransportClosed(std::string_view why, bool output_lost) {
  Scope scope(*this);
  if (!failed_) {
    failed_ = true;
    failure_ = why;
  }
  CloseAll(failure_code_, output_lost);
}

Stream* Session::Open(const HeaderList& fields, bool end_stream, StreamEvents& events) {
  if (!CanOpen()) return nullptr;
  Scope scope(*this);
  Stream& stream = NewStream(next_id_, &events);
  next_id_ += 2;
  const Field* method = fields.Find(Token::kMethod);
  stream.head_request_ = method != nullptr && method->value() == "HEAD";
  SendHeaders(stream, fields, end_stream);
  stream.headers_end_ = appended_;
  return &stream;
}

void Session::GoawayGracefully() {
  if (failed_ || goaway_sent_) return;
  Scope scope(*this);
  if (role_ == Role::kClient) {
    GoawayNow(ErrorCode::kNoError, "");
    return;
  }
  // RFC 9113 6.8: requests already on their way are not lost, because the binding id is told a round trip
  // later.
  goaway_sent_ = true;
  graceful_ping_sent_ = true;
  WriteGoaway(kStreamIdMax, ErrorCode::kNoError, "");
  WritePing(kGracefulPing, 0);
}

void Session::GoawayNow(ErrorCode code, std::string_view debug) {
  if (failed_) return;
  Scope scope(*this);
  goaway_sent_ = true;
  goaway_final_ = true;
  graceful_ping_sent_ = false;
  goaway_last_id_ = std::min(goaway_last_id_, last_peer_id_);  // RFC 9113 6.8: it never grows
  WriteGoaway(goaway_last_id_, code, debug);
}

void Session::Ping(uint64_t payload) {
  if (failed_) return;
  Scope scope(*this);
  WritePing(payload, 0);
}

Stream& Session::NewStream(uint32_t id, StreamEvents* events) {
  Stream& stream = *StreamPool::New();
  stream.session_ = this;
  stream.events_ = events;
  stream.id_ = id;
  stream.closed_ = stream.received_end_ = stream.send_done_ = stream.sent_end_ = stream.end_with_data_ = false;
  stream.final_headers_ = stream.head_request_ = stream.released_ = false;
  stream.send_window_ = static_cast<int32_t>(peer_window_bytes_);
  stream.content_left_ = -1;
  stream.receive_.Reset(options_.stream_window_bytes);
  stream.unconsumed_ = 0;
  stream.silent_rounds_ = 0;
  owned_.PushBack(stream);
  table_.Insert(&stream);
  ++stats_.streams_opened;
  return stream;
}

// The stream leaves the table; its consumer may keep it. Unless both END_STREAMs have passed it calls
// ResetStream.
void Session::CloseStream(Stream& stream) {
  table_.Erase(stream.id_);
  stream.closed_ = stream.send_done_ = true;
  stream.unconsumed_ = 0;  // nothing more can come that would need the window, also when the session has gone
  if (data_stream_ == &stream) data_stream_ = nullptr;
  signals_ |= kSignalCapacity;
  if (stream.released_) PutAside(stream);  // its consumer left before its response was sent
}

// Closes a stream that has not ended both ways: nothing more is sent.
void Session::ResetStream(Stream& stream) {
  CloseStream(stream);
  queued_bytes_ -= stream.queued_bytes();
  stream.DropBacklog();
}

// RFC 9113 5.4.2: the peer broke a rule on this stream.
void Session::StreamError(Stream& stream, ErrorCode code) {
  WriteForcedReset(stream.id_, code);
  ResetStream(stream);
  if (StreamEvents* events = std::exchange(stream.events_, nullptr)) events->OnReset(code, ResetCause::kProtocolError);
}

// Who came first is told first, and so is first where it goes next.
void Session::SortByAge(std::vector<Stream*>& streams) {
  std::sort(streams.begin(), streams.end(), [](const Stream* a, const Stream* b) { return a->id_ < b->id_; });
}

void Session::CloseAll(ErrorCode code, bool output_lost) {
  // All are closed before the first handler runs, so that none sends on another. What handlers release is
  // only put aside (Scope): the pointers stay good.
  std::vector<Stream*> open;
  table_.ForEach([&](Stream& stream) { open.push_back(&stream); });
  SortByAge(open);
  for (Stream* stream : open) ResetStream(*stream);
  const uint64_t written = appended_ - output_.size();
  for (Stream* stream : open) {
    bool never_sent = output_lost && role_ == Role::kClient && stream->headers_end_ > written;
    if (StreamEvents* events = std::exchange(stream->events_, nullptr))
      events->OnReset(code, never_sent ? ResetCause::kRefused : ResetCause::kConnectionLost);
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
  stream.OwnedNode::Unlink();
  stream.next_free_ = released_;
  released_ = &stream;
  signals_ |= kReleasedStreams;
}

void Session::FreeReleased() {
  signals_ &= static_cast<uint8_t>(~kReleasedStreams);
  while (released_ != nullptr) {
    Stream* stream = released_;
    released_ = stream->next_free_;
    StreamPool::Free(stream);
  }
}

void Session::Leave() {
  // Handlers run inside: what they do comes back here as a signal, not as a recursion.
  ++depth_;
  while (signals_ != 0) {
    uint8_t signals = std::exchange(signals_, 0);
    if (signals & kReleasedStreams) FreeReleased();
    if (signals & kSignalCapacity) events_.OnCapacity();
    if (signals & kSignalOutput) events_.OnOutput();
  }
  --depth_;
}

void Session::SetScheme(bool secure) {
  encoder_.SetScheme(StaticField(secure ? kStaticSchemeHttps : kStaticSchemeHttp));
}

// RFC 9113 5.4.1. The streams hear of it when the bytes that were fed are done with.
void Session::Fail(ErrorCode code, std::string text) {
  if (failed_) return;
  goaway_last_id_ = std::min(goaway_last_id_, last_peer_id_);
  WriteGoaway(goaway_last_id_, code, text);
  failed_ = true;
  failure_code_ = code;
  failure_ = std::string(ToString(code)) + ": " + text;
}

// A connection error (RFC 9113 5.4.1) of a client that leaves frames and HPACK in step: GOAWAY goes out with the
// code and nothing new is taken, but the streams up to its last id may end (6.8) before the connection closes. For
// a fault of gRPC's client (docs/http2.md), so that its other calls do not pay for it.
void Session::FailForNew(ErrorCode code, std::string_view text) {
  if (role_ == Role::kClient || table_.size() == 0) return Fail(code, std::string(text));
  GoawayNow(code, text);
  events_.OnGoaway(code, goaway_last_id_, text);
}

base::Error Session::Failure() const {
  if (role_ == Role::kServer) {
    return base::MakeError(base::ErrorKind::kMalformedRequest, failure_, base::ErrorSource::kDownstream);
  }
  return base::MakeError(base::ErrorKind::kUpstreamProtocol, failure_, base::ErrorSource::kUpstream);
}

// RFC 9113 5.1.1: an id that its side has not used yet.
bool Session::IsIdle(uint32_t id) const {
  bool of_client = (id & 1) != 0;
  if (!of_client) return true;  // push is never enabled, so a server opens none
  return role_ == Role::kServer ? id > last_peer_id_ : id >= next_id_;
}

void Session::RememberEnded(uint32_t id, bool by_reset) {
  late_responses_ = 0;
  ended_[ended_count_++ % kEndedKept] = id * 2 + (by_reset ? 1 : 0);
}

std::string Session::Describe() const {
  std::string text = absl::StrCat(role_ == Role::kServer ? "server" : "client", " streams=", table_.size(),
                                  " opened=", stats_.streams_opened, " output=", output_.size(),
                                  " queued=", queued_bytes_, " send_window=", send_window_,
                                  " receive_window=", receive_.available(), " peer_streams_max=", peer_streams_max_);
  if (goaway_sent_) absl::StrAppend(&text, goaway_final_ ? " goaway=sent" : " goaway=announced");
  if (goaway_received_) absl::StrAppend(&text, " goaway=received");
  if (failed_) absl::StrAppend(&text, " failed=", failure_);
  return text;
}

}  // namespace sluice::http2
