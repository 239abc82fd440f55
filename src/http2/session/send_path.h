// SendPath: what a session says: frames into the output, both windows of the peer, and the streams that wait for them.
//
// It knows neither events nor errors: the session decides what is said, and when. Header blocks are encoded straight
// into the output, so their order there is their order in the peer's HPACK table. Not thread-safe.
//
// The connection's window is shared (RFC 9113 5.2.1), and many peers return it only as their consumers read. So a
// stream may hold unreturned at most kShareTimes of what is left of that window: one that is not read leaves a fifth to
// the others, a second one a fifth of that (dynamic thresholds, Choudhury and Hahne 1998). One stream alone still has
// four fifths in flight, which is more than the half or three quarters behind which peers return a window; beside one
// that is not read it has the half.
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
  // What a stream may hold of the connection's window, in multiples of what is left of it.
  static constexpr int64_t kShareTimes = 4;
  // A stream may have half of the window also where that leaves less to the others, but not less than this part.
  static constexpr int64_t kReservePart = 16;
  // A stream that has reached its share waits until it may send so much, or all that it has queued.
  static constexpr size_t kShareBytesMin = 1024;
  // The connection's window is low at this part of its widest, and at most at so many bytes.
  static constexpr int64_t kLowPart = 64, kLowBytes = 16384;

  struct Stats {
    uint64_t frames_sent = 0, resets_sent = 0, data_bytes_sent = 0;
  };

  // `shared`: the streams are of callers that know nothing of each other, so that each has its share of the window.
  SendPath(InternTable& interns, uint8_t& signals, bool shared) : signals_(signals), encoder_(interns) {
    if (shared) SetWidest(window_);
  }

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
  bool any_unread_answers() const { return answers_.any(); }
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
  // Streams that are not read hold nearly all of the connection's window: a new one had better begin elsewhere.
  bool window_is_low() const { return window_ <= low_; }
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
  void SetWidest(int64_t bytes);
  int64_t HeldBy(const Stream& stream) const;
  int64_t ShareLeft(const Stream& stream) const;
  void HoldBack(StreamBacklog& backlog, size_t wanted);

  uint8_t& signals_;
  base::BufferChain output_;
  uint64_t appended_ = 0;
  Stats stats_;
  int64_t window_ = kDefaultWindowBytes;                // the connection's
  int64_t widest_ = kWindowBytesMax + 1;                // the largest that it has been, if shared
  int64_t ample_ = 0;                                   // from here on no frame brings a stream above its share
  int64_t low_ = -1;                                    // window_is_low
  base::IntrusiveList<StreamBacklog, ReadyTag> ready_;  // the line: those that have DATA and a window of their own
  base::IntrusiveList<StreamBacklog, ReadyTag> held_;   // of these, those that have reached their share
  int64_t held_until_ = INT64_MAX;                      // the window that lets one of them go on, or less
  size_t queued_bytes_ = 0;
  uint32_t pieces_joined_ = 0;
  uint32_t initial_window_ = kDefaultWindowBytes;
  uint32_t frame_bytes_max_ = kDefaultFrameBytesMax;
  UnreadAnswers answers_;
  HpackEncoder encoder_;
};

}  // namespace sluice::http2
