// What a session says: HEADERS and DATA of its streams, resets, credits. The frames themselves: send_path.cc.
#include "http2/session/session.h"

namespace sluice::http2 {

void Session::WriteReset(uint32_t id, ErrorCode code, bool peer_caused) {
  if (failed_) return;
  if (peer_caused) send_.AddAnswer();
  if (role_ == Role::kClient) resets_.Add();
  send_.WriteReset(id, code);
}

// RST_STREAM for a fault of the peer's, which counts as if the peer had reset the stream itself (CVE-2025-8671).
void Session::WriteForcedReset(uint32_t id, ErrorCode code, FloodKind kind) {
  WriteReset(id, code);
  Charge(Budget::kResets, kind);
}

void Session::WriteWindowUpdate(uint32_t id, uint32_t increment) {
  if (!failed_) send_.WriteWindowUpdate(id, increment);
}

void Session::CreditConnection(uint32_t bytes) {
  if (bytes == 0) return;
  if (uint32_t increment = receive_.Credit(bytes)) WriteWindowUpdate(0, increment);
}

void Session::SendHeaders(Stream& stream, const HeaderList& fields, bool end_stream) {
  Scope scope(*this);
  stream.headers_sent_ = true;
  if (end_stream) stream.send_done_ = true;
  if (!stream.has_queued()) {
    send_.WriteHeaders(stream.id_, fields, end_stream);
    if (end_stream) SentEnd(stream);
    return;
  }
  // Behind DATA there can only be trailers (RFC 9113 8.1). Interned fields stay interned: this is their
  // worker.
  SLUICE_CHECK(end_stream);
  auto trailers = std::make_unique<HeaderList>(&interns_);
  for (const Field* field : fields) {
    if (field->interned()) {
      InternTable::Ref(field);
      trailers->AddInterned(field);
    } else {
      trailers->Add(field->name(), field->value(), field->indexing);
    }
  }
  stream.backlog_->trailers = std::move(trailers);
}

void Session::SendData(Stream& stream, const base::Slice& bytes, bool end_stream) {
  const size_t size = bytes.size();
  if (size == 0 && !end_stream) return;
  Scope scope(*this);
  if (end_stream) stream.send_done_ = true;
  if ((size == 0 || send_.HasRoom(stream, size, options_.output_bytes_max)) && !stream.has_queued()) {
    send_.WriteData(stream, bytes, end_stream);
    if (end_stream) SentEnd(stream);
    if (size > 0 && stream.events_ != nullptr) stream.events_->OnSent(size);
    return;
  }
  send_.Queue(stream, bytes, end_stream);
  if (has_too_much_queued()) [[unlikely]]
    signals_ |= SendPath::kSignalOutput;  // the owner resets the heaviest
}

void Session::SentEnd(Stream& stream) {
  stream.sent_end_ = true;
  if (!stream.received_end_) {
    if (!stream.released_) return;
    WriteReset(stream.id_, ErrorCode::kNoError, /*peer_caused=*/false);  // RFC 9113 8.1, as in ReleaseByConsumer
    return ResetStream(stream);
  }
  EndByBothSides(stream);
}

// Both ends were seen. A stream whose trailers were refused pays for no reset (session_flood.cc).
void Session::EndByBothSides(Stream& stream) {
  if (stream.refused_trailers_) [[unlikely]]
    ++stats_.trailers_refused;
  streams_.ended().Remember(stream.id_, EndedStreams::How::kByBothSides);
  CloseStream(stream);
}

void Session::FrameOutput() {
  Scope scope(*this);
  // A stream goes to the back of the line before any handler runs, so that the loop holds nothing.
  while (Stream* stream = send_.TakeTurn(options_.output_bytes_max)) WriteQueuedData(*stream);
}

// One DATA frame of what a stream has queued, and what follows the last one.
void Session::WriteQueuedData(Stream& stream) {
  const SendPath::Framed framed = send_.WriteQueued(stream);
  if (framed.last && stream.backlog_->trailers != nullptr) {
    send_.WriteHeaders(stream.id_, *stream.backlog_->trailers, true);
    stream.backlog_->trailers.reset();
    SentEnd(stream);
  } else if (framed.end_stream) {
    SentEnd(stream);
  }
  // After the trailers: a consumer that releases when all is sent loses none of it.
  if (stream.events_ != nullptr) stream.events_->OnSent(framed.bytes);
}

}  // namespace sluice::http2
