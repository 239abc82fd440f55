// What a session says: frames into the output, DATA within the windows, streams in turn.
#include <algorithm>
#include <cstring>
#include <vector>

#include "http2/session.h"

namespace sluice::http2 {
namespace {
// Our DATA frames are no larger, whatever the peer accepts: between two of them other streams have their
// turn.
constexpr size_t kDataFrameBytesMax = 16384;
}  // namespace

// Room for a frame of up to `bytes`; CommitFrame says how many it has got. Nothing is called in between.
uint8_t* Session::BeginFrame(size_t bytes) {
  if (output_.empty()) signals_ |= kSignalOutput;
  return output_.Reserve(bytes);
}

void Session::CommitFrame(size_t bytes) {
  output_.Commit(bytes);
  appended_ += bytes;
  ++stats_.frames_sent;
}

void Session::WriteSettings() {
  uint8_t frame[kFrameHeaderBytes + 6 * 6];
  uint8_t* p = frame + kFrameHeaderBytes;
  auto add = [&p](SettingId id, uint32_t value) {
    Write16(p, static_cast<uint16_t>(id));
    Write32(p + 2, value);
    p += 6;
  };
  if (options_.header_table_bytes != kDefaultTableBytes) add(SettingId::kHeaderTableSize, options_.header_table_bytes);
  if (role_ == Role::kClient) {
    add(SettingId::kEnablePush, 0);  // RFC 9113 6.5.2; a server must not send anything but 0, and need not
  } else {
    add(SettingId::kMaxConcurrentStreams, options_.concurrent_streams_max);
  }
  add(SettingId::kInitialWindowSize, options_.stream_window_bytes);
  if (options_.frame_bytes_max != kDefaultFrameBytesMax) add(SettingId::kMaxFrameSize, options_.frame_bytes_max);
  add(SettingId::kMaxHeaderListSize, options_.header_list_bytes_max);
  size_t bytes = static_cast<size_t>(p - frame);
  WriteFrameHeader(frame, bytes - kFrameHeaderBytes, FrameType::kSettings, 0, 0);
  std::memcpy(BeginFrame(bytes), frame, bytes);
  CommitFrame(bytes);
}

void Session::WriteGoaway(uint32_t last_id, ErrorCode code, std::string_view debug) {
  debug = debug.substr(0, 1024);
  uint8_t* p = BeginFrame(kFrameHeaderBytes + 8 + debug.size());
  WriteFrameHeader(p, 8 + debug.size(), FrameType::kGoaway, 0, 0);
  Write32(p + kFrameHeaderBytes, last_id);
  Write32(p + kFrameHeaderBytes + 4, static_cast<uint32_t>(code));
  if (!debug.empty()) std::memcpy(p + kFrameHeaderBytes + 8, debug.data(), debug.size());
  CommitFrame(kFrameHeaderBytes + 8 + debug.size());
}

void Session::WriteReset(uint32_t id, ErrorCode code, bool peer_caused) {
  if (failed_) return;
  if (peer_caused) CountControlFrame();
  uint8_t* p = BeginFrame(kFrameHeaderBytes + 4);
  WriteFrameHeader(p, 4, FrameType::kRstStream, 0, id);
  Write32(p + kFrameHeaderBytes, static_cast<uint32_t>(code));
  CommitFrame(kFrameHeaderBytes + 4);
  ++stats_.resets_sent;
}

// RST_STREAM for a fault of the peer's, which counts as if the peer had reset the stream itself (CVE-2025-8671).
void Session::WriteForcedReset(uint32_t id, ErrorCode code, Abuse abuse) {
  WriteReset(id, code);
  Charge(Budget::kResets, abuse);
}

void Session::WritePing(uint64_t payload, uint8_t flags) {
  uint8_t* p = BeginFrame(kFrameHeaderBytes + 8);
  WriteFrameHeader(p, 8, FrameType::kPing, flags, 0);
  Write64(p + kFrameHeaderBytes, payload);
  CommitFrame(kFrameHeaderBytes + 8);
}

void Session::WriteWindowUpdate(uint32_t id, uint32_t increment) {
  if (failed_) return;
  uint8_t* p = BeginFrame(kFrameHeaderBytes + 4);
  WriteFrameHeader(p, 4, FrameType::kWindowUpdate, 0, id);
  Write32(p + kFrameHeaderBytes, increment);
  CommitFrame(kFrameHeaderBytes + 4);
}

// Control frames that the peer has made us write and that still wait in the output.
uint32_t Session::UnwrittenControlFrames() {
  if (control_old_ + control_new_ == 0) return 0;
  if (output_.empty()) {
    control_old_ = control_new_ = 0;
  } else if (appended_ - output_.size() >= control_mark_) {  // all up to the mark has been written
    control_old_ = std::exchange(control_new_, 0);
    control_mark_ = appended_;
  }
  return control_old_ + control_new_;
}

// A frame that the peer can make us write is about to be appended; Feed compares the sum with control_frames_max.
void Session::CountControlFrame() {
  UnwrittenControlFrames();
  ++control_new_;
}

void Session::CreditConnection(uint32_t bytes) {
  if (bytes == 0) return;
  if (uint32_t increment = receive_.Credit(bytes)) WriteWindowUpdate(0, increment);
}

// Encoded straight into the output; the block's place in it is its place in the peer's table, so nothing may
// overtake.
void Session::WriteHeaders(uint32_t id, const HeaderList& fields, bool end_stream) {
  size_t bytes_max = encoder_.BytesMax(fields);
  if (bytes_max > peer_frame_bytes_max_ || bytes_max > base::BufferChain::kTailBytes / 2) {
    return WriteHeadersSplit(id, fields, bytes_max, end_stream);
  }
  uint8_t* p = BeginFrame(kFrameHeaderBytes + bytes_max);
  size_t bytes = encoder_.Encode(fields, p + kFrameHeaderBytes);
  uint8_t flags = static_cast<uint8_t>(kFlagEndHeaders | (end_stream ? kFlagEndStream : 0));
  WriteFrameHeader(p, bytes, FrameType::kHeaders, flags, id);
  CommitFrame(kFrameHeaderBytes + bytes);
}

// A block that may not fit into one frame (RFC 9113 6.10).
void Session::WriteHeadersSplit(uint32_t id, const HeaderList& fields, size_t bytes_max, bool end_stream) {
  std::vector<uint8_t> block(bytes_max);
  block.resize(encoder_.Encode(fields, block.data()));
  FrameType type = FrameType::kHeaders;
  size_t done = 0;
  do {
    size_t bytes = std::min<size_t>(block.size() - done, kDefaultFrameBytesMax);
    uint8_t flags = done + bytes == block.size() ? kFlagEndHeaders : 0;
    if (type == FrameType::kHeaders && end_stream) flags |= kFlagEndStream;
    WriteFrameHeader(BeginFrame(kFrameHeaderBytes), bytes, type, flags, id);
    CommitFrame(kFrameHeaderBytes);
    output_.Append(block.data() + done, bytes);
    appended_ += bytes;
    done += bytes;
    type = FrameType::kContinuation;
  } while (done < block.size());
}

void Session::SendHeaders(Stream& stream, const HeaderList& fields, bool end_stream) {
  Scope scope(*this);
  if (end_stream) stream.send_done_ = true;
  if (!stream.has_queued()) {
    WriteHeaders(stream.id_, fields, end_stream);
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
  size_t size = bytes.size();
  if (size == 0 && !end_stream) return;
  Scope scope(*this);
  if (end_stream) stream.send_done_ = true;
  bool fits = size == 0 || (ready_.empty() && size <= kDataFrameBytesMax &&
                            static_cast<int64_t>(size) <= std::min<int64_t>(stream.send_window_, send_window_) &&
                            output_.size() < options_.output_bytes_max);
  if (fits && !stream.has_queued()) {
    WriteData(stream, bytes, end_stream);
    if (end_stream) SentEnd(stream);
    if (size > 0 && stream.events_ != nullptr) stream.events_->OnSent(size);
    return;
  }
  StreamBacklog& backlog = stream.backlog();
  if (backlog.queue.empty()) {
    backlog.still_rounds = 0;
    signals_ |= kSignalOutput;  // also where no window is left: the owner bounds how long it waits
  }
  backlog.queue.Push(bytes);
  queued_bytes_ += size;
  if (has_too_much_queued()) [[unlikely]]
    signals_ |= kSignalOutput;  // the owner resets the heaviest
  stream.end_with_data_ = end_stream;
  MarkReady(stream);
}

void Session::MarkReady(Stream& stream) {
  if (stream.send_window_ <= 0 || !stream.has_queued() || stream.backlog_->linked()) return;
  if (send_window_ > 0) signals_ |= kSignalOutput;
  ready_.PushBack(*stream.backlog_);
}

void Session::SentEnd(Stream& stream) {
  stream.sent_end_ = true;
  if (!stream.received_end_) {
    if (!stream.released_) return;
    WriteReset(stream.id_, ErrorCode::kNoError, /*peer_caused=*/false);  // RFC 9113 8.1, as in ReleaseByConsumer
    return ResetStream(stream);
  }
  RememberEnded(stream.id_, false);
  CloseStream(stream);
}

void Session::WriteData(Stream& stream, const base::Slice& bytes, bool end_stream) {
  size_t size = bytes.size();
  bool copied = size < base::BufferChain::kCopyBelow;
  uint8_t* p = BeginFrame(kFrameHeaderBytes + (copied ? size : 0));
  WriteFrameHeader(p, size, FrameType::kData, end_stream ? kFlagEndStream : 0, stream.id_);
  if (copied) {
    if (size > 0) std::memcpy(p + kFrameHeaderBytes, bytes.data(), size);
    CommitFrame(kFrameHeaderBytes + size);
  } else {
    CommitFrame(kFrameHeaderBytes);
    output_.Append(bytes);
    appended_ += size;
  }
  stream.send_window_ -= static_cast<int32_t>(size);
  send_window_ -= static_cast<int64_t>(size);
  stats_.data_bytes_sent += size;
}

void Session::FrameOutput() {
  Scope scope(*this);
  // The stream at the front goes to the back before anybody is called, so that the loop holds nothing.
  while (send_window_ > 0 && !ready_.empty() && output_.size() < options_.output_bytes_max) {
    WriteQueuedData(ready_.PopFront()->stream);
  }
}

// One DATA frame of what a stream has queued, and what follows the last one.
void Session::WriteQueuedData(Stream& stream) {
  StreamBacklog& backlog = *stream.backlog_;
  int64_t window = std::min<int64_t>(stream.send_window_, send_window_);
  size_t bytes = std::min({backlog.queue.bytes(), kDataFrameBytesMax, static_cast<size_t>(window)});
  bool last = bytes == backlog.queue.bytes();
  bool end_stream = last && stream.end_with_data_;
  WriteFrameHeader(BeginFrame(kFrameHeaderBytes), bytes, FrameType::kData, end_stream ? kFlagEndStream : 0, stream.id_);
  CommitFrame(kFrameHeaderBytes);
  backlog.queue.MoveTo(output_, bytes);
  backlog.still_rounds = 0;
  appended_ += bytes;
  queued_bytes_ -= bytes;
  stream.send_window_ -= static_cast<int32_t>(bytes);
  send_window_ -= static_cast<int64_t>(bytes);
  stats_.data_bytes_sent += bytes;
  if (!last) {
    MarkReady(stream);
  } else if (backlog.trailers != nullptr) {
    WriteHeaders(stream.id_, *backlog.trailers, true);
    backlog.trailers.reset();
    SentEnd(stream);
  } else if (end_stream) {
    SentEnd(stream);
  }
  // After the trailers: a consumer that releases when all is sent loses none of it.
  if (stream.events_ != nullptr) stream.events_->OnSent(bytes);
}

}  // namespace sluice::http2
