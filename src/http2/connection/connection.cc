#include "http2/connection/connection.h"

#include <algorithm>
#include <cstring>

namespace sluice::http2 {

using base::TimePoint;
using net::IoResult;

namespace {
std::string WhyFailed(const net::Stream& transport, int error) {
  std::string why = transport.Problem();
  return why.empty() ? std::strerror(error) : why;
}
}  // namespace

ReadBuffer::~ReadBuffer() {
  if (block_ != nullptr) block_->Unref();
}

ReadBuffer::Room ReadBuffer::Acquire() {
  if (block_ != nullptr) {
    if (block_->Unique()) used_ = 0;
    if (block_->capacity() - used_ < kReadBytesMin) {
      block_->Unref();
      block_ = nullptr;
    }
  }
  if (block_ == nullptr) {
    block_ = base::Block::New(kBlockBytes);
    used_ = 0;
  }
  return {block_->data() + used_, block_->capacity() - used_};
}

base::Slice ReadBuffer::Take(size_t bytes) {
  base::Slice slice(block_, block_->data() + used_, bytes);
  used_ += bytes;
  return slice;
}

Connection::Connection(ConnectionContext& context, std::unique_ptr<net::Stream> transport, Role role,
                       const ConnectionOptions& options, ConnectionEvents& events)
    : context_(context),
      transport_(std::move(transport)),
      events_(events),
      options_(options),
      peer_name_(transport_->PeerName()),
      session_(role, options_.session, context.interns, *this) {}

Connection::~Connection() { transport_->Close(); }

void Connection::Start() {
  session_.Start();
  StartLife();
  WaitToRead();
}

Stream* Connection::Open(const HeaderList& fields, bool end_stream, StreamEvents& events) {
  if (state_ != State::kOpen) return nullptr;
  NoteStreams();
  return session_.Open(fields, end_stream, events);
}

void Connection::Drain() {
  if (state_ != State::kOpen || draining_) return;
  draining_ = true;
  session_.GoawayGracefully();
  if (session_.goaway_announced()) ArmBy(bounds_.Announced(context_.worker.now()));
  OnOutput();  // Flush closes when no stream is left, also where there is nothing to say
}

void Connection::Close(ErrorCode code, std::string_view why) {
  if (state_ != State::kOpen || last_word_) return;
  session_.GoawayNow(code, why);
  LastWord(why, code == ErrorCode::kNoError ? Session::Ending::kByBound : Session::Ending::kDead);
}

void Connection::CloseNow(std::string_view why) {
  if (state_ == State::kClosed) return;
  session_.GoawayNow(ErrorCode::kNoError, why);
  last_word_ = true;
  if (!write_waiting_ && !write_failed_) Write();
  transport_->ShutdownWrite();
  // A socket closed with bytes unread is reset, and the peer may lose our last word with it: take what has come.
  for (int i = 0; i < kLastReads; ++i) {
    ReadBuffer::Room room = context_.reads.Acquire();
    if (transport_->Read(room.data, room.size).kind != IoResult::Kind::kOk) break;
  }
  state_ = State::kClosed;
  context_.worker.timers().Disarm(*this);
  runtime::TurnHook::Unlink();
  StopReading();
  transport_->Close();
  session_.TransportClosed(why, /*output_lost=*/true, Session::Ending::kDead);
}

// Nothing is sent after what is in output() now.
void Connection::LastWord(std::string_view why, Session::Ending ending) {
  if (last_word_) return;
  last_word_ = true;
  why_ = why;
  bounds_.EndDelay();
  StopReading();
  session_.TransportClosed(why, /*output_lost=*/write_failed_, ending);
  // From here on there is a bound, also for a peer that does not take what is in output().
  Linger();
  OnOutput();
}

StreamEvents* Connection::OnRequest(Stream& stream, HeaderList&& fields, bool end_stream) {
  NoteStreams();
  return events_.OnRequest(*this, stream, std::move(fields), end_stream);
}

void Connection::OnCapacity() {
  if (session_.open_streams() <= background_streams_) {
    bounds_.Idle(context_.worker.now());
    if (draining_ || session_.closing()) OnOutput();  // it closes where no stream is left
  }
  events_.OnCapacity(*this);
}

void Connection::OnGoaway(ErrorCode, uint32_t, std::string_view) {
  draining_ = true;
  OnOutput();
  events_.OnGoaway(*this);
}

void Connection::OnRefused(Refusal refusal, std::string_view why, const HeaderList& fields) {
  const Field* const path = fields.Find(Token::kPath);
  context_.abuse.ReportRefused(context_.worker, peer_name_, refusal, why, path != nullptr ? path->value() : "");
}

void Connection::OnRespelled(const Respelled& respelled) {
  context_.abuse.ReportRespelled(context_.worker, session_.role() == Role::kServer, peer_name_, respelled);
}

void Connection::OnPingAck(uint64_t) { bounds_.PingAnswered(); }

void Connection::OnOutput() {
  if (state_ != State::kClosed && !flushing_) context_.worker.AtTurnEnd(*this);
}

void Connection::OnTurnEnd() {
  if (session_.has_too_much_queued()) [[unlikely]]
    ResetHeaviest();
  Flush();
}

void Connection::ResetHeaviest() {
  if (state_ == State::kClosed || last_word_) return;
  flushing_ = true;  // the caller flushes
  const size_t reset = session_.ResetHeaviest();
  flushing_ = false;
  context_.abuse.Report(context_.worker, session_.role() == Role::kServer, peer_name_, FloodKind::kUnreadData,
                        std::to_string(reset) + " hold more than queued_bytes_max of what it does not read");
}

void Connection::OnReadable() {
  read_waiting_ = false;
  Read();
}

void Connection::OnWritable() {
  write_waiting_ = false;
  Flush();
}

// Only of a client: as one we bound our output by CanOpen, and two proxies that both stop reading would deadlock.
bool Connection::TooMuchOutput() const {
  return session_.role() == Role::kServer && session_.output().size() > 2 * size_t{options_.session.output_bytes_max};
}

void Connection::WaitToRead() {
  // A peer that sends without reading fills our output with answers: stop listening to it until it reads.
  if (state_ == State::kClosed || read_waiting_ || held_back() || bounds_.delayed() ||
      (TooMuchOutput() && !last_word_)) {
    return;
  }
  read_waiting_ = true;
  transport_->WaitReadable(*this);
}

// One read a readiness: a short read leaves nothing behind, and after a full one the reactor tells us again.
void Connection::Read() {
  const base::MemoryLevel level = base::MemoryBudget::level();
  if (level != base::MemoryLevel::kFree && PauseRead(level)) [[unlikely]]
    return;
  if (context_.intake.pressed()) [[unlikely]]
    return ReadPressed();
  ReadSome(SIZE_MAX);
}

// The worker has more requests to take than a turn's share of them (intake.h).
void Connection::ReadPressed() {
  if (session_.role() != Role::kServer || last_word_ || state_ == State::kClosed) return ReadSome(SIZE_MAX);
  if (!context_.intake.Defer(*this, context_.paused.watch)) ReadDeferred();
}

void Connection::ReadDeferred() {
  const base::MemoryLevel level = base::MemoryBudget::level();
  if (level != base::MemoryLevel::kFree && PauseRead(level)) return;
  ReadSome(TakesFew() ? Intake::kMouthfulBytes : Intake::kBiteBytes);
}

void Connection::StopReading() {
  PausedNode::Unlink();
  DeferredNode::Unlink();
}

// A read may add to the memory that is scarce. Not while lingering: its bytes are dropped.
bool Connection::PauseRead(base::MemoryLevel level) {
  if (context_.paused.watch == nullptr || state_ == State::kClosed || last_word_) return false;
  const bool pause = level >= base::MemoryLevel::kFull;
  if (pause) context_.paused.list_.PushBack(*this);
  context_.paused.watch->OnScarce(pause);
  return pause;
}

void PausedReads::ResumeAll() {
  base::IntrusiveList<Connection, PausedTag> all;
  all.Splice(list_);
  while (Connection* connection = all.PopFront()) connection->Read();
}

void PausedReads::ReadBites(int connections) {
  for (int i = 0; i < connections; ++i) {
    Connection* connection = list_.PopFront();
    if (connection == nullptr) return;
    connection->ReadSome(kBiteBytes);  // if there is more, it comes back to the end of the list
  }
}

void Connection::ReadSome(size_t bytes_max) {
  if (state_ == State::kClosed) return;
  ReadBuffer::Room room = context_.reads.Acquire();
  IoResult result = transport_->Read(room.data, std::min(room.size, bytes_max));
  if (result.useless != 0 && !NoteTlsMessages(result)) [[unlikely]]
    return;
  switch (result.kind) {
    case IoResult::Kind::kWouldBlock:
      return WaitToRead();
    case IoResult::Kind::kEof:
      return Finish(last_word_ || write_failed_ ? std::string_view(why_) : "closed by peer");
    case IoResult::Kind::kError:
      return Finish(WhyFailed(*transport_, result.error));
    case IoResult::Kind::kOk:
      break;
  }
  bounds_.Heard(context_.worker.now());
  if (last_word_) {  // lingering: what still comes is not ours to answer
    lingered_bytes_ += result.bytes;
    const size_t on_its_way = session_.abuse() == FloodKind::kNone ? options_.session.connection_window_bytes : 0;
    return lingered_bytes_ > kLingerBytesMax + on_its_way ? Finish(why_) : WaitToRead();
  }
  const uint32_t before = session_.last_peer_id();
  base::Status status = session_.Feed(context_.reads.Take(result.bytes), context_.worker.now());
  if (session_.role() == Role::kServer && session_.last_peer_id() != before) {
    taken_ = (session_.last_peer_id() - before + 1) / 2;  // ids are odd, and the first is 1
    context_.intake.Took(taken_);
  }
  if (!status) {
    Broken(status.error());
  } else if (const uint64_t pending = session_.pending_input(); pending != bounds_.pending()) {
    ArmBy(bounds_.Pending(pending, context_.worker.now()));
  }
  WaitToRead();
}

// The peer has broken the protocol, or a limit. It was told in output().
void Connection::Broken(const base::Error& error) {
  if (session_.abuse() != FloodKind::kNone) {
    context_.abuse.Report(context_.worker, session_.role() == Role::kServer, peer_name_, session_.abuse(),
                          error.detail);
  }
  LastWord(error.detail, Session::Ending::kDead);
  if (session_.role() == Role::kClient) events_.OnGoaway(*this);  // calls that wait look for another connection
}

// False: it was too much, and what the read has brought is dropped.
bool Connection::NoteTlsMessages(const IoResult& result) {
  if (result.kind == IoResult::Kind::kEof || result.kind == IoResult::Kind::kError) return true;  // it ends in any case
  if (last_word_) {  // it was told that this is the end, and may go on for as long as we linger
    Finish(why_);
    return false;
  }
  const base::Status status = session_.NoteTlsMessages(result.useless, context_.worker.now());
  if (status.ok()) return true;
  Broken(status.error());
  WaitToRead();
  return false;
}

// RFC 9113 has no say here, TCP has: a peer that closed with our bytes unread makes our write fail, but what it sent
// before, responses or a GOAWAY, waits in our receive queue. It is read to the end, for a bounded time.
void Connection::OnWriteError(std::string_view why) {
  write_failed_ = true;
  why_ = why;
  Linger();
  WaitToRead();
  if (session_.role() == Role::kClient) events_.OnGoaway(*this);  // calls that wait look for another connection
}

void Connection::Flush() {
  if (state_ == State::kClosed || write_waiting_ || write_failed_) return;
  output_was_full_ |= session_.output().size() >= options_.session.output_bytes_max;
  session_.TimeResets(context_.worker.now());
  flushing_ = true;
  Write();
  flushing_ = false;
  if (write_failed_) return;
  if (output_was_full_ && CanOpen()) {
    output_was_full_ = false;
    events_.OnCapacity(*this);
  }
  AfterWrite();
}

void Connection::Write() {
  for (int i = 0; i < kWritesPerTurn; ++i) {
    if (!last_word_) session_.FrameOutput();
    base::BufferChain& output = session_.output();
    if (output.empty()) break;
    iovec parts[kIovecs];
    size_t count = output.Gather(parts, kIovecs);
    IoResult result = transport_->Write(parts, count);
    if (result.kind == IoResult::Kind::kError) return OnWriteError(WhyFailed(*transport_, result.error));
    if (result.kind == IoResult::Kind::kOk) {
      size_t offered = 0;
      for (size_t p = 0; p < count; ++p) offered += parts[p].iov_len;
      output.Consume(result.bytes);
      if (result.bytes > 0) bounds_.Wrote();
      if (result.bytes == offered) continue;
    }
    break;
  }
}

// What follows from what could and what could not be written.
void Connection::AfterWrite() {
  if (!last_word_) {
    WaitToRead();  // reading may have stopped for too much output
    if (session_.has_queued_data()) ArmBy(bounds_.Queued(context_.worker.now()));
  }
  if (last_word_ ? !session_.output().empty() : session_.HasOutput()) {
    // The socket is full, or the turn's share is used up: go on when it can be written.
    write_waiting_ = true;
    const base::TimePoint bound = bounds_.Blocked(context_.worker.now());
    if (!last_word_) ArmBy(bound);
    transport_->WaitWritable(*this);
    return;
  }
  if (!last_word_ && draining_ && session_.closing() && !session_.goaway_announced() && session_.open_streams() == 0) {
    LastWord("drained", Session::Ending::kByBound);
  }
  if (last_word_ && state_ == State::kOpen && session_.output().empty()) {
    state_ = State::kLingering;
    transport_->ShutdownWrite();
    Linger();
    WaitToRead();
  }
}

void Connection::Finish(std::string_view why, Session::Ending ending) {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  std::string reason(why);  // `why` may lie in what goes away
  context_.worker.timers().Disarm(*this);
  runtime::TurnHook::Unlink();
  StopReading();
  transport_->Close();
  session_.TransportClosed(reason, /*output_lost=*/true, ending);
  session_.output().Clear();  // the owner may keep us for a while, and memory may be scarce
  events_.OnClosed(*this, reason);
}

}  // namespace sluice::http2
