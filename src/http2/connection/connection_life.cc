// What time does to a connection: it does what its bounds say is due (time_bounds.h).

#include "http2/connection/connection.h"

namespace sluice::http2 {

using base::TimePoint;

void Connection::StartLife() {
  const TimePoint now = context_.worker.now();
  bounds_.Pending(session_.pending_input(), now);  // the preface, or SETTINGS
  const bool waits = session_.role() == Role::kServer && options_.life.abuse_delay.count() > 0;
  const base::Nanos delay =
      waits ? context_.abuse.Delay(context_.worker, peer_name_, options_.life.abuse_delay) : base::Nanos(0);
  const double share = options_.life.age_max.count() > 0 ? 0.9 + 0.2 * context_.worker.random().Unit() : 1;
  bounds_.Start(now, delay, share);
  ArmAt(bounds_.Next(now, 0));
}

void Connection::ArmAt(TimePoint when) {
  timer_at_ = when;
  context_.worker.timers().Arm(*this, when);
}

// The end is near: nothing else is waited for.
void Connection::Linger() { ArmAt(context_.worker.now() + kLinger); }

void Connection::OnTimer(TimePoint now) {
  timer_at_ = base::kNever;
  // Lingering; or the peer did not take our last bytes.
  if (state_ == State::kLingering || last_word_ || write_failed_) return Finish(why_);
  for (;;) {
    const TimeBounds::Act act = bounds_.Due(now, {.open_streams = session_.open_streams(),
                                                  .background_streams = background_streams_,
                                                  .server = session_.role() == Role::kServer,
                                                  .listening = read_waiting_,
                                                  .paused = held_back()});
    if (act == TimeBounds::Act::kNothing) break;
    Do(act, now);
    // What was done, or a handler of a stream, may have ended the connection.
    if (state_ != State::kOpen || last_word_ || write_failed_) return;
  }
  ArmAt(bounds_.Next(now, session_.open_streams() > background_streams_ ? session_.open_streams() : 0));
}

void Connection::Do(TimeBounds::Act act, TimePoint now) {
  using Act = TimeBounds::Act;
  switch (act) {
    case Act::kNothing:
      return;
    case Act::kRead:
      return WaitToRead();
    case Act::kEndHeaders:
      return EndUnfinished();
    case Act::kEndSend:
      events_.OnTimeout(*this, Timeout::kSend, 0);
      return Finish("the peer does not read", Session::Ending::kDead);  // so it would not read a last word either
    case Act::kRetire:
      if (Connecting()) return bounds_.StartAnew(now);
      return Retire(Timeout::kAge, now);
    case Act::kEndAge:
      events_.OnTimeout(*this, Timeout::kAgeGrace, 0);
      return Close(ErrorCode::kNoError, "age_grace has passed");
    case Act::kEndIdle:
      if (Connecting()) return bounds_.StartAnew(now);
      if (session_.role() == Role::kServer) {
        if (!draining_) return Retire(Timeout::kIdle, now);  // a request may be on its way
        // A drain: the client's answer is waited for (kBindDrain). After that Flush closes it when all is written, for
        // which age_grace is long enough.
        return session_.goaway_announced() ? bounds_.Idle(now) : bounds_.Retire(now);
      }
      if (background_streams_ > 0 && !events_.OnIdle(*this)) return bounds_.Idle(now);
      events_.OnTimeout(*this, Timeout::kIdle, 0);
      return Close(ErrorCode::kNoError, "idle");
    case Act::kPing:
      return session_.Ping(0);
    case Act::kEndDeaf:
      events_.OnTimeout(*this, Timeout::kKeepalive, 0);
      // A last word would not be read. Calls that were never sent go elsewhere.
      return Finish("keepalive timeout", Session::Ending::kDead);
    case Act::kBindDrain:
      // The flush that follows closes where no stream is left.
      if (session_.goaway_announced()) session_.GoawayNow(ErrorCode::kNoError, "");
      return;
    case Act::kSweepUnread:
      // A peer that is not read cannot say that it has room, nor send what it owes.
      if (const size_t reset = held_back() ? 0 : session_.SweepUnread())
        events_.OnTimeout(*this, Timeout::kStall, reset);
      if (session_.has_queued_data()) bounds_.Queued(now);
      return;
    case Act::kSweepSilent:
      if (const size_t reset = held_back() ? 0 : session_.SweepSilent())
        events_.OnTimeout(*this, Timeout::kBody, reset);
      if (session_.open_streams() > 0) bounds_.HasStreams(now);
      return;
  }
}

// The peer began to say something and does not end it.
void Connection::EndUnfinished() {
  events_.OnTimeout(*this, Timeout::kHeaders, 0);
  // RFC 9113 7: a peer that owes its SETTINGS, or keeps us busy with a block that it does not end.
  const bool settings = bounds_.pending() == 1;
  Close(settings ? ErrorCode::kSettingsTimeout : ErrorCode::kEnhanceYourCalm,
        settings ? "no preface and SETTINGS in time" : "a header block or frame took too long");
  if (settings && session_.role() == Role::kClient) {
    // A server that hangs does not read it either. The owner learns now that it is no good, before it connects again.
    Flush();
    Finish(why_);
  }
}

// No new streams; those open have age_grace to end.
void Connection::Retire(Timeout why, TimePoint now) {
  bounds_.Retire(now);
  events_.OnTimeout(*this, why, 0);
  Drain();
  events_.OnGoaway(*this);  // calls that wait look for another connection
}

}  // namespace sluice::http2
