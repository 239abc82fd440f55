// SendPath: what a session says: frames into the output, both windows of the peer, and the streams that wait for them.
//
// It knows neither events nor errors: the session decides what is said, and when. Header blocks are encoded straight
// into the output, so their order there is their order in the peer's HPACK table. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/buffer_chain.h"
#include "base/intrusive_list.h"
#include "base/slice.h"
#include "http2/error_code.h"
#include "http2/frame/frame.h"
#include "http2/hpack/encoder.h"
#include "http2/options.h"
#include "http2/session/stream.h"
#include "http2/session/unread_answers.h"

namespace sluice::http2 {

class SendPath {
 public:
  // Set in `signals` when there is something to write, or may be after framing, and there was nothing before.
  static constexpr uint8_t kSignalOutput = 1;
  // Our DATA frames are no larger, whatever the peer accepts: between two of them other streams have their turn.
  static constexpr size_t kDataFrameBytesMax = 16384;

  struct Stats {
    uint64_t frames_sent = 0, resets_sent = 0, data_bytes_sent = 0;
  };

  SendPath(InternTable& interns, uint8_t& signals) : signals_(signals), encoder_(interns) {}

  base::BufferChain& output() { return output_; }
  const base::BufferChain& output() const { return output_; }
  // Bytes of output since the start, and how many of them have been written.
  uint64_t appended() const { return appended_; }
  uint64_t written() const { return appended_ - output_.size(); }
  const Stats& stats() const { return stats_; }

  // ---- Frames ----
  void WritePreface();
  // `server`: of a server's session, else a client's.
  void WriteSettings(const SessionOptions& options, bool server);
  void WriteSettingsAck();
  void WriteGoaway(uint32_t last_id, ErrorCode code, std::string_view debug);
  void WriteReset(uint32_t id, ErrorCode code);
  void WritePing(uint64_t payload, uint8_t flags);
  void WriteWindowUpdate(uint32_t id, uint32_t increment);
  void WriteHeaders(uint32_t id, const HeaderList& fields, bool end_stream);
  // Within both windows.
  void WriteData(Stream& stream, const base::Slice& bytes, bool end_stream);

  // A frame that the peer makes us write is about to be.
  void AddAnswer() { answers_.Add(appended_, output_.size()); }
  // Of these, what is not written yet.
  uint32_t unread_answers() { return answers_.Count(appended_, output_.size()); }

  // ---- DATA that waits ----
  // `bytes` may be framed at once: no other stream waits, and the windows and the output have room.
  bool HasRoom(const Stream& stream, size_t bytes, size_t output_bytes_max) const;
  void Queue(Stream& stream, const base::Slice& bytes, bool end_stream);
  // The stream whose turn it is, out of the line; null: none may send now.
  Stream* TakeTurn(size_t output_bytes_max);
  // One DATA frame of what it has queued. Not for the windows' rest, it goes back to the end of the line.
  struct Framed {
    size_t bytes;
    bool last;        // nothing is queued any more
    bool end_stream;  // and that was on it
  };
  Framed WriteQueued(Stream& stream);
  // The stream goes into the line if it has DATA and a window, and is not in it.
  void MarkReady(Stream& stream);
  // What the stream has queued is not sent any more.
  void Drop(Stream& stream);
  bool can_frame() const { return window_ > 0 && !ready_.empty(); }
  // Over all streams.
  size_t queued_bytes() const { return queued_bytes_; }
  // What producers gave at a time, in frames of what had to wait; modulo 2^32.
  uint32_t pieces_joined() const { return pieces_joined_; }

  // ---- The peer's windows and settings ----
  int64_t window() const { return window_; }
  // The first in the line that the connection's window holds back; null: it holds back none.
  const StreamBacklog* held_back() { return window_ <= 0 && !ready_.empty() ? ready_.front() : nullptr; }
  // False: beyond what a window may be (RFC 9113 6.9.1).
  bool GrowWindow(uint32_t increment);
  // Of new streams. Returns by how much the windows of the open ones move (RFC 9113 6.9.2).
  int64_t SetInitialWindow(uint32_t bytes);
  uint32_t initial_window() const { return initial_window_; }
  // False: the stream's window would be beyond its bound, and stays at it.
  bool MoveWindow(Stream& stream, int64_t delta);
  void SetFrameBytesMax(uint32_t bytes) { frame_bytes_max_ = bytes; }
  void SetHeaderTableBytes(uint32_t bytes) { encoder_.SetPeerTableBytesMax(bytes); }
  void SetScheme(const Field* scheme) { encoder_.SetScheme(scheme); }

 private:
  uint8_t* BeginFrame(size_t bytes);
  void CommitFrame(size_t bytes);
  void WriteHeadersSplit(uint32_t id, const HeaderList& fields, size_t bytes_max, bool end_stream);
  void TakeFromWindows(Stream& stream, size_t bytes);

  uint8_t& signals_;
  base::BufferChain output_;
  uint64_t appended_ = 0;
  Stats stats_;
  int64_t window_ = kDefaultWindowBytes;                // the connection's
  base::IntrusiveList<StreamBacklog, ReadyTag> ready_;  // the line: those that have DATA and a window of their own
  size_t queued_bytes_ = 0;
  uint32_t pieces_joined_ = 0;
  uint32_t initial_window_ = kDefaultWindowBytes;
  uint32_t frame_bytes_max_ = kDefaultFrameBytesMax;
  UnreadAnswers answers_;
  HpackEncoder encoder_;
};

}  // namespace sluice::http2
