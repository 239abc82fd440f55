// Stream: one stream of a Session (RFC 9113 section 5), seen by its consumer as a StreamIo.
//
// Life: made by the Session (a request arrived, or Open), freed by Release(), from a free list of the thread.
// Events come until END_STREAM was seen both ways, OnReset, Reset() or Release(), whichever is first. A
// stream that outlives its Session is an orphan: closed, all calls do nothing, Release() still frees it.
//
//   state()             received END_STREAM    sent END_STREAM   RST_STREAM, GOAWAY or loss
//   kOpen               -> kHalfClosedRemote   -> kHalfClosedLocal   -> kClosed
//   kHalfClosedRemote   STREAM_CLOSED          -> kClosed            -> kClosed
//   kHalfClosedLocal    -> kClosed             (our bug)             -> kClosed
// There is no idle Stream (an idle id has no object), and no reserved one: push is never enabled.
//
// Not thread-safe: a Stream lives on its Session's worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/intrusive_list.h"
#include "base/slice.h"
#include "http2/error_code.h"
#include "http2/fields/header.h"
#include "http2/session/flow_control.h"
#include "http2/session/slice_queue.h"
#include "http2/session/stream_io.h"

namespace sluice::http2 {

class Session;
class Stream;

enum class StreamState : uint8_t { kOpen, kHalfClosedLocal, kHalfClosedRemote, kClosed };

struct ReadyTag {};  // streams with DATA and window, in turn
struct OwnedTag {};  // all streams of a session not released yet
using ReadyNode = base::ListNode<ReadyTag>;
using OwnedNode = base::ListNode<OwnedTag>;

// What a stream has that cannot send all it was given. Most never need it; one that did keeps it with its memory.
struct StreamBacklog final : ReadyNode {
  explicit StreamBacklog(Stream& s) : stream(s) {}

  // Not empty.
  void Push(const base::Slice& bytes) {
    const int64_t size = static_cast<int64_t>(bytes.size());
    // Rounded up, so that it is never 0.
    piece_bytes = static_cast<uint32_t>(queue.empty() ? size : (7 * int64_t{piece_bytes} + size + 7) / 8);
    queue.Push(bytes);
  }

  Stream& stream;
  SliceQueue queue;
  std::unique_ptr<HeaderList> trailers;  // to be sent when the queue is empty
  uint32_t piece_bytes = 0;              // what the producer gives at a time, on average over the last few
  uint8_t still_rounds = 0;              // sweeps since any of it went (Session::SweepUnread)
  bool over_share = false;               // linked: in the line of those that SendPath's share holds back
};

class Stream final : public RequestStream, public OwnedNode {
 public:
  void SendHeaders(const HeaderList& fields, bool end_stream) override;
  void SendData(const base::Slice& bytes, bool end_stream) override;
  void Consume(size_t bytes) override;
  void Reset(ErrorCode code) override;
  void Release() override;

  void SetEvents(StreamEvents& events) override {
    if (!closed_) events_ = &events;
  }

  // Client, in OnReset(kTooLarge): what the list counted (RFC 9113 6.5.2), and our limits.
  struct Oversized {
    uint64_t bytes;
    uint32_t bytes_max, fields_max;
  };
  Oversized oversized() const;
  // Client: it may go on without a byte of the peer's for as long as it likes (LifeOptions::body_timeout).
  void AllowSilence() { may_be_silent_ = true; }

  uint32_t id() const { return id_; }
  // In OnReset: why the connection ends, where it does. The session's.
  std::string_view connection_end() const;
  // As Session::peer_header_list_max(); no limit of one that has lost its session.
  uint32_t peer_header_list_max() const;
  // DATA bytes queued and not framed yet.
  size_t queued_bytes() const { return backlog_ != nullptr ? backlog_->queue.bytes() : 0; }
  // Our END_STREAM has been framed into the output: Release() now loses nothing of what was sent.
  bool send_complete() const { return sent_end_; }
  StreamState state() const;

 private:
  friend class SendPath;
  friend class Session;
  friend class StreamPool;
  friend class Streams;
  Stream() = default;
  ~Stream() = default;

  StreamBacklog& backlog();
  bool has_queued() const { return backlog_ != nullptr && !backlog_->queue.empty(); }
  void DropBacklog();

  Session* session_ = nullptr;  // null: orphan
  StreamEvents* events_ = nullptr;
  Stream* next_free_ = nullptr;  // in the pool or in the session's list of released streams

  uint32_t id_ = 0;
  bool closed_ = false;             // in no table any more; nothing is sent or received
  bool received_end_ = false;       // END_STREAM from the peer
  bool refused_trailers_ = false;   // it came on trailers that cannot go on
  bool send_done_ = false;          // END_STREAM accepted from our side, perhaps behind queued DATA; or closed
  bool sent_end_ = false;           // END_STREAM framed
  bool final_headers_ = false;      // client: a response with a final status was received
  bool end_with_data_ : 1 = false;  // END_STREAM goes on the last queued DATA
  bool headers_sent_ : 1 = false;
  bool may_be_silent_ : 1 = false;
  bool head_request_ : 1 = false;  // client: HEAD, so content-length counts nothing (RFC 9110 9.3.2)
  uint8_t silent_rounds_ = 0;      // sweeps since the peer said anything on it (Session::SweepSilent)
  bool released_ = false;

  // Below zero after the peer lowered INITIAL_WINDOW_SIZE (RFC 9113 6.9.2). At most 2^31-1 (6.9.1), and never below
  // minus that: nothing is sent where it is not above zero, and lowering the setting takes at most 2^31-1 away.
  int32_t send_window_ = 0;
  union {
    uint64_t headers_end_ = 0;  // client: where the request's headers end in the session's output, as appended_
    uint64_t request_bytes_;    // server: of its header list (hpack_size); the call holds it
    uint64_t oversized_bytes_;  // client: of the header list that ended it with ResetCause::kTooLarge
  };
  int64_t content_left_ = -1;               // DATA bytes still promised by content-length; -1: none was given
  std::unique_ptr<StreamBacklog> backlog_;  // null: nothing was ever queued
  ReceiveWindow receive_;
  uint32_t unconsumed_ = 0;  // passed to the consumer and not credited to the stream's window yet
};
// Two of them are in every call under way: 104 bytes fill a piece of glibc's heap.
static_assert(sizeof(Stream) <= 112);

// The free list of a thread's streams. Bounded: kKept streams a thread, the rest goes back to the heap.
class StreamPool {
 public:
  static Stream* New();
  static void Free(Stream* stream);
  // Gives back to the heap what this thread keeps for later.
  static void TrimSpares();

 private:
  friend struct StreamFreeList;
  static void Delete(Stream* stream) { delete stream; }
  static Stream* NextFree(Stream* stream) { return stream->next_free_; }
};

}  // namespace sluice::http2
