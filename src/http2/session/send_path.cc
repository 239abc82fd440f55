#include "http2/session/send_path.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace sluice::http2 {

// Room for a frame of up to `bytes`; CommitFrame says how many it has got. Nothing is called in between.
uint8_t* SendPath::BeginFrame(size_t bytes) {
  if (output_.empty()) signals_ |= kSignalOutput;
  return output_.Reserve(bytes);
}

void SendPath::CommitFrame(size_t bytes) {
  output_.Commit(bytes);
  appended_ += bytes;
  ++stats_.frames_sent;
}

void SendPath::WritePreface() {
  std::memcpy(BeginFrame(kClientPreface.size()), kClientPreface.data(), kClientPreface.size());
  CommitFrame(kClientPreface.size());
  --stats_.frames_sent;  // the preface is none
}

void SendPath::WriteSettings(const SessionOptions& options, bool server) {
  uint8_t frame[kFrameHeaderBytes + 6 * 6];
  uint8_t* p = frame + kFrameHeaderBytes;
  auto add = [&p](SettingId id, uint32_t value) {
    Write16(p, static_cast<uint16_t>(id));
    Write32(p + 2, value);
    p += 6;
  };
  if (options.header_table_bytes != kDefaultTableBytes) add(SettingId::kHeaderTableSize, options.header_table_bytes);
  if (server) {
    add(SettingId::kMaxConcurrentStreams, options.concurrent_streams_max);
  } else {
    add(SettingId::kProxied, 1);
    add(SettingId::kEnablePush, 0);  // RFC 9113 6.5.2; a server must not send anything but 0, and need not
  }
  add(SettingId::kInitialWindowSize, options.stream_window_bytes);
  if (options.frame_bytes_max != kDefaultFrameBytesMax) add(SettingId::kMaxFrameSize, options.frame_bytes_max);
  add(SettingId::kMaxHeaderListSize, options.header_list_bytes_max);
  const size_t bytes = static_cast<size_t>(p - frame);
  WriteFrameHeader(frame, bytes - kFrameHeaderBytes, FrameType::kSettings, 0, 0);
  std::memcpy(BeginFrame(bytes), frame, bytes);
  CommitFrame(bytes);
}

void SendPath::WriteSettingsAck() {
  WriteFrameHeader(BeginFrame(kFrameHeaderBytes), 0, FrameType::kSettings, kFlagAck, 0);  // RFC 9113 6.5.3
  CommitFrame(kFrameHeaderBytes);
}

void SendPath::WriteGoaway(uint32_t last_id, ErrorCode code, std::string_view debug) {
  debug = debug.substr(0, 1024);
  uint8_t* p = BeginFrame(kFrameHeaderBytes + 8 + debug.size());
  WriteFrameHeader(p, 8 + debug.size(), FrameType::kGoaway, 0, 0);
  Write32(p + kFrameHeaderBytes, last_id);
  Write32(p + kFrameHeaderBytes + 4, static_cast<uint32_t>(code));
  if (!debug.empty()) std::memcpy(p + kFrameHeaderBytes + 8, debug.data(), debug.size());
  CommitFrame(kFrameHeaderBytes + 8 + debug.size());
}

void SendPath::WriteReset(uint32_t id, ErrorCode code) {
  uint8_t* p = BeginFrame(kFrameHeaderBytes + 4);
  WriteFrameHeader(p, 4, FrameType::kRstStream, 0, id);
  Write32(p + kFrameHeaderBytes, static_cast<uint32_t>(code));
  CommitFrame(kFrameHeaderBytes + 4);
  ++stats_.resets_sent;
}

void SendPath::WritePing(uint64_t payload, uint8_t flags) {
  uint8_t* p = BeginFrame(kFrameHeaderBytes + 8);
  WriteFrameHeader(p, 8, FrameType::kPing, flags, 0);
  Write64(p + kFrameHeaderBytes, payload);
  CommitFrame(kFrameHeaderBytes + 8);
}

void SendPath::WriteWindowUpdate(uint32_t id, uint32_t increment) {
  uint8_t* p = BeginFrame(kFrameHeaderBytes + 4);
  WriteFrameHeader(p, 4, FrameType::kWindowUpdate, 0, id);
  Write32(p + kFrameHeaderBytes, increment);
  CommitFrame(kFrameHeaderBytes + 4);
}

// Encoded straight into the output; the block's place in it is its place in the peer's table, so nothing may
// overtake.
void SendPath::WriteHeaders(uint32_t id, const HeaderList& fields, bool end_stream) {
  const size_t bytes_max = encoder_.BytesMax(fields);
  if (bytes_max > frame_bytes_max_ || bytes_max > base::BufferChain::kTailBytes / 2) {
    return WriteHeadersSplit(id, fields, bytes_max, end_stream);
  }
  uint8_t* p = BeginFrame(kFrameHeaderBytes + bytes_max);
  const size_t bytes = encoder_.Encode(fields, p + kFrameHeaderBytes);
  const uint8_t flags = static_cast<uint8_t>(kFlagEndHeaders | (end_stream ? kFlagEndStream : 0));
  WriteFrameHeader(p, bytes, FrameType::kHeaders, flags, id);
  CommitFrame(kFrameHeaderBytes + bytes);
}

// A block that may not fit into one frame (RFC 9113 6.10).
void SendPath::WriteHeadersSplit(uint32_t id, const HeaderList& fields, size_t bytes_max, bool end_stream) {
  std::vector<uint8_t> block(bytes_max);
  block.resize(encoder_.Encode(fields, block.data()));
  FrameType type = FrameType::kHeaders;
  size_t done = 0;
  do {
    const size_t bytes = std::min<size_t>(block.size() - done, kDefaultFrameBytesMax);
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

void SendPath::TakeFromWindows(Stream& stream, size_t bytes) {
  stream.send_window_ -= static_cast<int32_t>(bytes);
  window_ -= static_cast<int64_t>(bytes);
  stats_.data_bytes_sent += bytes;
}

void SendPath::WriteData(Stream& stream, const base::Slice& bytes, bool end_stream) {
  const size_t size = bytes.size();
  const bool copied = size < base::BufferChain::kCopyBelow;
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
  TakeFromWindows(stream, size);
}

void SendPath::SetWidest(int64_t bytes) {
  widest_ = bytes;
  ample_ = bytes / (kShareTimes + 1) + int64_t{kDataFrameBytesMax};
  low_ = std::min(bytes / kLowPart, kLowBytes);
}

// Counts what the stream has sent and not got back at its own level. A peer may return that later than the
// connection's, so it is no more than what is out of the connection's window.
int64_t SendPath::HeldBy(const Stream& stream) const {
  return std::clamp<int64_t>(int64_t{initial_window_} - stream.send_window_, 0,
                             std::max<int64_t>(widest_ - window_, 0));
}

// Bytes that it may send before it has kShareTimes of what the connection has left then, or half of the window, behind
// which many peers return it, as long as a part is left.
[[gnu::cold]] int64_t SendPath::ShareLeft(const Stream& stream) const {
  const int64_t held = HeldBy(stream);
  const int64_t half = std::min(widest_ / 2 + 1 - held, window_ - widest_ / kReservePart);
  return std::max((kShareTimes * window_ - held) / (kShareTimes + 1), half);
}

bool SendPath::HasRoom(const Stream& stream, size_t bytes, size_t output_bytes_max) const {
  return ready_.empty() && bytes <= kDataFrameBytesMax &&
         static_cast<int64_t>(bytes) <= std::min<int64_t>(stream.send_window_, window_) &&
         output_.size() < output_bytes_max && (window_ >= ample_ || static_cast<int64_t>(bytes) <= ShareLeft(stream));
}

void SendPath::Queue(Stream& stream, const base::Slice& bytes, bool end_stream) {
  StreamBacklog& backlog = stream.backlog();
  if (backlog.queue.empty()) {
    backlog.still_rounds = 0;
    signals_ |= kSignalOutput;  // also where no window is left: the owner bounds how long it waits
  }
  backlog.Push(bytes);
  queued_bytes_ += bytes.size();
  stream.end_with_data_ = end_stream;
  MarkReady(stream);
}

void SendPath::MarkReady(Stream& stream) {
  if (stream.send_window_ <= 0 || !stream.has_queued()) return;
  StreamBacklog& backlog = *stream.backlog_;
  if (backlog.linked()) {
    if (!backlog.over_share) return;
    backlog.Unlink();  // something of it has come back: it is looked at again
  }
  if (window_ > 0) signals_ |= kSignalOutput;
  backlog.over_share = false;
  ready_.PushBack(backlog);
}

// Out of the line until the connection's window has grown, or the stream's own.
void SendPath::HoldBack(StreamBacklog& backlog, size_t wanted) {
  backlog.over_share = true;
  held_.PushBack(backlog);
  const int64_t held = HeldBy(backlog.stream), more = static_cast<int64_t>(wanted);
  held_until_ = std::min(held_until_, (held + (kShareTimes + 1) * more + kShareTimes - 1) / kShareTimes);
  if (held + more <= widest_ / 2 + 1) held_until_ = std::min(held_until_, widest_ / kReservePart + more);
}

Stream* SendPath::TakeTurn(size_t output_bytes_max) {
  while (can_frame() && output_.size() < output_bytes_max) {
    StreamBacklog& first = *ready_.PopFront();
    if (window_ >= ample_) [[likely]]
      return &first.stream;
    const size_t wanted = std::min(first.queue.bytes(), kShareBytesMin);
    if (static_cast<int64_t>(wanted) <= ShareLeft(first.stream)) return &first.stream;
    HoldBack(first, wanted);
  }
  return nullptr;
}

SendPath::Framed SendPath::WriteQueued(Stream& stream) {
  StreamBacklog& backlog = *stream.backlog_;
  int64_t window = std::min<int64_t>(stream.send_window_, window_);
  if (window_ < ample_) window = std::min(window, ShareLeft(stream));
  const size_t bytes = std::min({backlog.queue.bytes(), kDataFrameBytesMax, static_cast<size_t>(window)});
  const bool last = bytes == backlog.queue.bytes();
  const bool end_stream = last && stream.end_with_data_;
  WriteFrameHeader(BeginFrame(kFrameHeaderBytes), bytes, FrameType::kData, end_stream ? kFlagEndStream : 0, stream.id_);
  CommitFrame(kFrameHeaderBytes);
  pieces_joined_ += static_cast<uint32_t>(bytes) / backlog.piece_bytes;
  backlog.queue.MoveTo(output_, bytes);
  backlog.still_rounds = 0;
  appended_ += bytes;
  queued_bytes_ -= bytes;
  TakeFromWindows(stream, bytes);
  if (!last) MarkReady(stream);
  return {bytes, last, end_stream};
}

void SendPath::Drop(Stream& stream) {
  queued_bytes_ -= stream.queued_bytes();
  stream.DropBacklog();
}

bool SendPath::GrowWindow(uint32_t increment) {
  window_ += increment;
  if (window_ > kWindowBytesMax) return false;
  if (window_ > widest_) SetWidest(window_);
  if (window_ >= std::min(held_until_, ample_) && !held_.empty()) {
    held_until_ = INT64_MAX;
    while (StreamBacklog* backlog = held_.PopFront()) {
      backlog->over_share = false;
      ready_.PushBack(*backlog);
    }
  }
  if (!ready_.empty()) signals_ |= kSignalOutput;
  return true;
}

int64_t SendPath::SetInitialWindow(uint32_t bytes) {
  return int64_t{bytes} - int64_t{std::exchange(initial_window_, bytes)};
}

// RFC 9113 6.9.2: also below zero.
bool SendPath::MoveWindow(Stream& stream, int64_t delta) {
  const int64_t window = stream.send_window_ + delta;
  stream.send_window_ = static_cast<int32_t>(std::min<int64_t>(window, kWindowBytesMax));
  if (stream.send_window_ > 0) {
    MarkReady(stream);
  } else if (stream.backlog_ != nullptr) {
    stream.backlog_->Unlink();
  }
  return window <= kWindowBytesMax;
}

}  // namespace sluice::http2
