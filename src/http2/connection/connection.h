// Connection: a Session with its socket, on one worker: reads what is there, feeds it, and writes once at the turn's
// end.
//
// Life: Start(); then either Fail (socket or protocol error, keepalive, a bound of LifeOptions) or Drain/Close by the
// owner; OnClosed once; the owner then destroys it, but not from inside a callback of it (use Worker::Post). Not
// thread-safe.
//
// One timer serves every bound in time. It is armed for the earliest that may be due, never moved by traffic, and looks
// when it fires what is due in truth (time_bounds.h): a busy connection pays nothing for it. Files: connection.cc
// (reading, writing, the end), connection_life.cc (time).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/log_limit.h"
#include "base/memory_budget.h"
#include "base/slice.h"
#include "http2/connection/intake.h"
#include "http2/connection/time_bounds.h"
#include "http2/flood/reports.h"
#include "http2/session/session.h"
#include "net/dialer.h"
#include "net/stream.h"
#include "runtime/timer_wheel.h"
#include "runtime/worker.h"

namespace sluice::http2 {

// The buffer all connections of a worker read into. What is not handed on as a Slice is used again for the next read.
class ReadBuffer {
 public:
  static constexpr size_t kBlockBytes = 262144 - sizeof(base::Block);
  static constexpr size_t kReadBytesMin = 65536;  // a read is never offered less room than this
  ReadBuffer() = default;
  ReadBuffer(const ReadBuffer&) = delete;
  ReadBuffer& operator=(const ReadBuffer&) = delete;
  ~ReadBuffer();

  struct Room {
    uint8_t* data;
    size_t size;
  };
  // Room for the next read.
  Room Acquire();
  // The first `bytes` of the room just acquired, as a Slice.
  base::Slice Take(size_t bytes);

 private:
  base::Block* block_ = nullptr;
  size_t used_ = 0;
};

class Connection;
struct PausedTag {};  // connections that do not read
using PausedNode = base::ListNode<PausedTag>;

// Told of reads while memory is scarce (base::MemoryBudget::level() is not kFree).
class MemoryWatch : public CallWatch {
 public:
  // Something is about to be read; or, `paused`, is not read from here on.
  virtual void OnScarce(bool paused) = 0;

 protected:
  ~MemoryWatch() = default;
};

// The connections of a worker that do not read because the process holds too much (base::MemoryLevel::kFull), first
// come first.
class PausedReads {
 public:
  static constexpr size_t kBiteBytes = 4096;
  MemoryWatch* watch = nullptr;  // null: reading never stops

  // All read again, until they are stopped again.
  void ResumeAll();
  // The first `connections` read kBiteBytes at most.
  void ReadBites(int connections);

 private:
  friend class Connection;
  base::IntrusiveList<Connection, PausedTag> list_;
};

// What the connections of one worker share. Outlives them.
struct ConnectionContext {
  runtime::Worker& worker;
  InternTable interns;
  ReadBuffer reads;
  net::DialFunction dial = net::Dial;
  FloodReports abuse{};
  base::LogLimit peer_log{};  // of lines about peers that misbehave
  PausedReads paused{};
  Intake intake{worker};
};

struct ConnectionOptions {
  SessionOptions session;
  KeepaliveOptions keepalive;
  LifeOptions life;
};

// What a connection tells its owner.
class ConnectionEvents {
 public:
  // Server only; see SessionEvents::OnRequest.
  virtual StreamEvents* OnRequest(Connection& connection, Stream& stream, HeaderList&& fields, bool end_stream) = 0;
  // Server only; see SessionEvents::AnswerRefused.
  virtual HeaderList AnswerRefused(const base::Error& /*error*/, const HeaderList& /*fields*/) { return HeaderList(); }
  // The peer takes header lists up to `bytes` (SETTINGS_MAX_HEADER_LIST_SIZE).
  virtual void OnHeaderListMax(Connection&, uint32_t /*bytes*/) {}
  // Room for streams may have appeared (client), or a stream has ended.
  virtual void OnCapacity(Connection& connection) = 0;
  // The peer or we said GOAWAY: no new streams, those open go on.
  virtual void OnGoaway(Connection& connection) = 0;
  // A bound of LifeOptions or keepalive has passed and is acted upon: the connection ends (OnClosed follows, or has its
  // turn), or `streams` of its streams were reset (kStall, kBody).
  virtual void OnTimeout(Connection&, Timeout, size_t /*streams*/) {}
  // Client: it has had nothing but background streams for idle_timeout. True: it may be closed, as one without streams
  // is; false: it goes on, and this is asked again after idle_timeout.
  virtual bool OnIdle(Connection&) { return true; }
  // The end: streams have had OnReset. Destroy the connection after this callback has returned.
  virtual void OnClosed(Connection& connection, std::string_view why) = 0;

 protected:
  ~ConnectionEvents() = default;
};

class Connection final : public PausedNode,
                         private DeferredNode,
                         private SessionEvents,
                         private net::IoEvents,
                         private runtime::TurnHook,
                         private runtime::Timer {
 public:
  Connection(ConnectionContext& context, std::unique_ptr<net::Stream> transport, Role role,
             const ConnectionOptions& options, ConnectionEvents& events);
  ~Connection();

  void Start();
  Session& session() { return session_; }
  const Session& session() const { return session_; }
  const std::string& peer_name() const { return peer_name_; }

  // Client: opens a stream; null when there is no room. The write is at the turn's end.
  Stream* Open(const HeaderList& fields, bool end_stream, StreamEvents& events);
  // So many of the open streams are no calls, and do not keep it from being idle. Their silence may be in order
  // (Stream::AllowSilence), but the peer must answer PINGs as for calls.
  void set_background_streams(uint32_t count) { background_streams_ = count; }
  // Can carry one more stream now (client).
  // Not while the peer leaves too much of our output unread: its calls would only add to it.
  bool CanOpen() const {
    return state_ == State::kOpen && !write_failed_ && session_.CanOpen() &&
           session_.output().size() < options_.session.output_bytes_max;
  }

  // No new streams; closes when the last one has ended, a client's not before it has seen that, or kDrainAnswer has
  // passed. OnClosed follows, perhaps from inside.
  void Drain();
  // GOAWAY with the code, what is in the output is written as far as it goes at once, then closed.
  void Close(ErrorCode code, std::string_view why);
  // A call may hope for room here: it takes new streams, now or later.
  bool usable() const { return state_ == State::kOpen && !write_failed_ && !last_word_ && !session_.closing(); }
  // Ends at once: GOAWAY and what is in the output are offered to the socket once. No OnClosed.
  void CloseNow(std::string_view why);
  bool closed() const { return state_ == State::kClosed; }
  // The last word is said: streams are gone, and so is soon the rest.
  bool ending() const { return last_word_; }
  // Why it ends or has ended; empty: it does not, or the peer's GOAWAY said so.
  const std::string& why() const { return why_; }

 private:
  // kOpen -> kLingering (our last bytes are out, write side shut; waiting for the peer's end, bounded) -> kClosed
  enum class State : uint8_t { kOpen, kLingering, kClosed };
  // After our last word the peer has this long to read it before the socket goes.
  static constexpr std::chrono::milliseconds kLinger{1000};
  // And may send this much more, and its window if it did not flood us: else it would be read at full speed all that
  // time.
  static constexpr size_t kLingerBytesMax = size_t{1} << 18;
  // Writes a turn: a connection with endless output lets the others of its worker have their turn.
  static constexpr int kWritesPerTurn = 4;
  static constexpr int kLastReads = 4;    // of CloseNow
  static constexpr size_t kIovecs = 256;  // 4 KiB of stack; messages of some KiB are two parts a call

  StreamEvents* OnRequest(Stream& stream, HeaderList&& fields, bool end_stream) override;
  void OnRefused(Refusal refusal, std::string_view why, const HeaderList& fields) override;
  HeaderList AnswerRefused(const base::Error& error, const HeaderList& fields) override {
    return events_.AnswerRefused(error, fields);
  }
  void OnRespelled(const Respelled& respelled) override;
  void OnHeaderListMax(uint32_t bytes) override { events_.OnHeaderListMax(*this, bytes); }
  void OnCapacity() override;
  void OnGoaway(ErrorCode code, uint32_t last_stream_id, std::string_view debug) override;
  void OnPingAck(uint64_t payload) override;
  void OnOutput() override;
  void OnReadable() override;
  void OnWritable() override;
  void OnTurnEnd() override;
  void OnTimer(base::TimePoint now) override;

  friend class PausedReads;
  void Read();
  // It is not read for a while, for the sake of others: the peer cannot be blamed for what is not heard of it.
  bool held_back() const { return PausedNode::linked() || DeferredNode::linked(); }
  // Server: as far as is known, it begins few calls with a read.
  bool TakesFew() const { return taken_ > 0 && taken_ <= Intake::kManyCalls; }
  bool IsLight() const override { return TakesFew() && session_.open_streams() < Intake::kLightStreams; }
  void ReadPressed();
  void ReadDeferred() override;
  void StopReading();
  void ReadSome(size_t bytes_max);
  bool NoteTlsMessages(const net::IoResult& result);
  void Broken(const base::Error& error);
  bool PauseRead(base::MemoryLevel level);
  void ResetHeaviest();
  void WaitToRead();
  void Flush();
  void Write();
  void AfterWrite();
  void LastWord(std::string_view why, Session::Ending ending);
  void Finish(std::string_view why, Session::Ending ending = Session::Ending::kByPeer);
  bool TooMuchOutput() const;
  void Linger();
  // connection_life.cc
  void StartLife();
  void ArmAt(base::TimePoint when);
  void ArmBy(base::TimePoint when) {
    if (when < timer_at_) ArmAt(when);
  }
  void Do(TimeBounds::Act act, base::TimePoint now);
  // An endpoint that has not said SETTINGS: nothing could be sent to it, so the connection is neither old nor idle.
  // headers_timeout and the pool's connect_timeout bound that.
  bool Connecting() const { return session_.role() == Role::kClient && !session_.settings_received(); }
  void EndUnfinished();
  void Retire(Timeout why, base::TimePoint now);
  // There is a stream, or will be.
  void NoteStreams() {
    if (bounds_.wants_streams()) ArmBy(bounds_.HasStreams(context_.worker.now()));
  }
  void OnWriteError(std::string_view why);

  ConnectionContext& context_;
  std::unique_ptr<net::Stream> transport_;
  ConnectionEvents& events_;
  const ConnectionOptions options_;
  std::string peer_name_;
  Session session_;
  State state_ = State::kOpen;
  bool read_waiting_ = false, write_waiting_ = false;
  bool draining_ = false;         // close when there are no streams
  bool last_word_ = false;        // nothing more will be said: close once output is written
  bool write_failed_ = false;     // the peer takes nothing more; what it has said already is still read
  bool flushing_ = false;         // inside Flush
  size_t lingered_bytes_ = 0;     // read after our last word
  bool output_was_full_ = false;  // CanOpen was false for it: OnCapacity is due when it has drained
  uint32_t background_streams_ = 0;
  uint32_t taken_ = 0;  // server: requests of the last read that had some
  std::string why_;
  base::TimePoint timer_at_ = base::kNever;  // when the timer is armed for
  TimeBounds bounds_{options_.life, options_.keepalive, Session::kStallRounds};
};

}  // namespace sluice::http2
