// What time does to a connection: keepalive, peers that keep us waiting, idleness and age.
#include <algorithm>

#include "http2/connection.h"

namespace sluice::http2 {

using base::TimePoint;

namespace {

// `from` + `wait`; never for a wait of 0 (no bound) or where it has not begun.
TimePoint After(TimePoint from, base::Nanos wait) {
  return wait.count() == 0 || from == base::kNever ? base::kNever : base::DeadlineAfter(from, wait);
}

}  // namespace

void Connection::StartLife() {
  const TimePoint now = context_.worker.now();
  NoteUnfinished(session_.unfinished());  // the preface, or SETTINGS
  if (session_.role() == Role::kServer && options_.life.abuse_delay.count() > 0 &&
      context_.abuse.Delays(context_.worker, peer_name_)) {
    delayed_until_ = base::DeadlineAfter(now, options_.life.abuse_delay);
  }
  // Until we listen, silence is not the peer's fault.
  last_heard_ = idle_since_ = unfinished_since_ = delayed_until_ == base::kNever ? now : delayed_until_;
  if (options_.life.age_max.count() > 0) {
    const double share = 0.9 + 0.2 * context_.worker.random().Unit();
    const auto age = std::chrono::duration<double, std::milli>(options_.life.age_max) * share;
    age_at_ = base::DeadlineAfter(now, std::chrono::duration_cast<base::Nanos>(age));
  }
  ArmAt(NextDue());
}

void Connection::ArmAt(TimePoint when) {
  timer_at_ = when;
  context_.worker.timers().Arm(*this, when);
}

// The end is near: nothing else is waited for.
void Connection::Linger() { ArmAt(context_.worker.now() + kLinger); }

void Connection::NoteUnfinished(uint64_t unfinished) {
  unfinished_ = unfinished;
  if (unfinished == 0) return;
  unfinished_since_ = context_.worker.now();
  ArmBy(After(unfinished_since_, options_.life.headers_timeout));
}

// What is in output() could not be written now.
void Connection::NoteBlocked() {
  if (blocked_since_ != base::kNever) return;
  blocked_since_ = context_.worker.now();
  if (!last_word_) ArmBy(After(blocked_since_, options_.life.send_timeout));
}

// DATA waits in streams.
void Connection::NoteQueued() {
  if (unread_sweep_at_ != base::kNever) return;
  unread_sweep_at_ = After(context_.worker.now(), base::Nanos(options_.life.stall_timeout) / Session::kStallRounds);
  ArmBy(unread_sweep_at_);
}

void Connection::StartSilentSweeps() {
  silent_sweep_at_ = After(context_.worker.now(), base::Nanos(options_.life.body_timeout) / Session::kStallRounds);
  ArmBy(silent_sweep_at_);
}

TimePoint Connection::KeepaliveDue() const {
  if (ping_sent_) return After(std::max(last_heard_, ping_at_), options_.keepalive.timeout);
  return After(last_heard_, options_.keepalive.interval);
}

// A lower bound of when something is to be done.
TimePoint Connection::NextDue() const {
  const LifeOptions& life = options_.life;
  TimePoint next =
      std::min({KeepaliveDue(), unread_sweep_at_, silent_sweep_at_, age_at_, delayed_until_, drain_answer_by_});
  if (unfinished_ != 0) next = std::min(next, After(unfinished_since_, life.headers_timeout));
  next = std::min(next, After(blocked_since_, life.send_timeout));
  if (!retired_) {
    next = std::min(next, After(session_.open_streams() == 0 ? idle_since_ : context_.worker.now(), life.idle_timeout));
  }
  return next;
}

void Connection::OnTimer(TimePoint now) {
  timer_at_ = base::kNever;
  // Lingering; or the peer did not take our last bytes.
  if (state_ == State::kLingering || last_word_ || write_failed_) return Finish(why_);
  if (now >= delayed_until_) {
    delayed_until_ = base::kNever;
    WaitToRead();
  }
  if (EndIfStuck(now) || EndIfOld(now) || EndIfIdle(now) || EndIfDeaf(now)) return;
  EndAnnouncement(now);
  SweepStreams(now);
  // A handler of a stream may have ended the connection.
  if (state_ == State::kOpen && !last_word_ && !write_failed_) ArmAt(NextDue());
}

// The peer began to say something and does not end it, or takes nothing.
bool Connection::EndIfStuck(TimePoint now) {
  const LifeOptions& life = options_.life;
  if (unfinished_ != 0 && now >= After(unfinished_since_, life.headers_timeout)) {
    if (read_waiting_) {
      events_.OnTimeout(*this, Timeout::kHeaders, 0);
      // RFC 9113 7: a peer that owes its SETTINGS, or keeps us busy with a block that it does not end.
      const bool settings = unfinished_ == 1;
      Close(settings ? ErrorCode::kSettingsTimeout : ErrorCode::kEnhanceYourCalm,
            settings ? "no preface and SETTINGS in time" : "a header block or frame took too long");
      if (settings && session_.role() == Role::kClient) {
        // A server that hangs does not read it either. The owner learns now that it is no good, before it connects
        // again.
        Flush();
        Finish(why_);
      }
      return true;
    }
    unfinished_since_ = now;  // it is we who do not read
  }
  if (now >= After(blocked_since_, life.send_timeout)) {
    events_.OnTimeout(*this, Timeout::kSend, 0);
    Finish("the peer does not read");  // so it would not read a last word either
    return true;
  }
  return false;
}

bool Connection::EndIfDeaf(TimePoint now) {
  if (options_.keepalive.interval.count() == 0 || now < KeepaliveDue()) return false;
  if (PausedNode::linked()) {  // it is we who do not listen
    last_heard_ = now;
    return false;
  }
  if (ping_sent_) {
    events_.OnTimeout(*this, Timeout::kKeepalive, 0);
    Finish("keepalive timeout");  // nobody is there to read a last word; calls never sent go elsewhere
    return true;
  }
  // gRPC servers count pings on connections without calls as abuse, so a client only asks where it waits for something.
  if (session_.role() == Role::kServer || session_.open_streams() > 0) {
    session_.Ping(0);
    ping_sent_ = true;
    ping_at_ = now;
  } else {
    last_heard_ = now;
  }
  return false;
}

bool Connection::EndIfOld(TimePoint now) {
  if (now < age_at_) return false;
  if (!retired_) {
    Retire(Timeout::kAge, now);
    return false;
  }
  events_.OnTimeout(*this, Timeout::kAgeGrace, 0);
  Close(ErrorCode::kNoError, "too old");
  return true;
}

bool Connection::EndIfIdle(TimePoint now) {
  if (retired_ || session_.open_streams() != 0 || now < After(idle_since_, options_.life.idle_timeout)) return false;
  if (session_.role() == Role::kServer && !draining_) {
    Retire(Timeout::kIdle, now);  // a request may be on its way
    return false;
  }
  events_.OnTimeout(*this, Timeout::kIdle, 0);
  Close(ErrorCode::kNoError, "idle");
  return true;
}

// No new streams; those open have age_grace to end.
void Connection::Retire(Timeout why, TimePoint now) {
  retired_ = true;
  age_at_ = base::DeadlineAfter(now, options_.life.age_grace);
  events_.OnTimeout(*this, why, 0);
  Drain();
  events_.OnGoaway(*this);  // calls that wait look for another connection
}

// The peer has been told that we go, and has not answered.
void Connection::EndAnnouncement(TimePoint now) {
  if (now < drain_answer_by_) return;
  drain_answer_by_ = base::kNever;
  if (!session_.goaway_announced()) return;
  if (PausedNode::linked() || delayed_until_ != base::kNever) {  // it is we who do not listen
    drain_answer_by_ = now + kDrainAnswer;
    return;
  }
  session_.GoawayNow(ErrorCode::kNoError, "");  // the flush that follows closes where no stream is left
}

void Connection::SweepStreams(TimePoint now) {
  const LifeOptions& life = options_.life;
  if (now >= unread_sweep_at_) {
    unread_sweep_at_ = base::kNever;
    // Who is not read cannot say that it has room, nor send what it owes.
    if (const size_t reset = PausedNode::linked() ? 0 : session_.SweepUnread())
      events_.OnTimeout(*this, Timeout::kStall, reset);
    if (session_.has_queued_data())
      unread_sweep_at_ = After(now, base::Nanos(life.stall_timeout) / Session::kStallRounds);
  }
  if (now >= silent_sweep_at_) {
    silent_sweep_at_ = base::kNever;
    if (const size_t reset = PausedNode::linked() ? 0 : session_.SweepSilent())
      events_.OnTimeout(*this, Timeout::kBody, reset);
    if (session_.open_streams() > 0)
      silent_sweep_at_ = After(now, base::Nanos(life.body_timeout) / Session::kStallRounds);
  }
}

}  // namespace sluice::http2
