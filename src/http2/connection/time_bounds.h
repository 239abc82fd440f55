// TimeBounds: how long a peer may keep a connection waiting, and how long the connection lasts (LifeOptions,
// keepalive), as a value: told what happens and when, it says what is due. It has no timer and no socket.
//
//   Next(now): no later than when Due has something; traffic never moves it, so a busy connection pays nothing for it
//   Due(now):  the next thing that is due, once each; asked again until it says kNothing, or the connection has ended
//
// Times come from one clock and never go back. Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "http2/options.h"

namespace sluice::http2 {

class TimeBounds {
 public:
  // A client has this long to answer the PING between the two GOAWAYs of a drain (RFC 9113 6.8 asks for one round
  // trip). What it sends later is above the last id it was told, and so safe to try again. gRPC's Go server and Envoy
  // wait as long.
  static constexpr std::chrono::seconds kDrainAnswer{5};

  enum class Act : uint8_t {
    kNothing,
    kRead,         // the delay of its start is over
    kEndHeaders,   // the peer does not end what it has begun
    kEndSend,      // the socket takes nothing
    kRetire,       // age_max: tell Retire
    kEndAge,       // and age_grace is over
    kEndIdle,      // no streams for idle_timeout
    kPing,         // silence: a PING is to be sent
    kEndDeaf,      // it was not answered
    kBindDrain,    // the answer to the drain's PING has not come
    kSweepUnread,  // time to look at streams whose DATA waits; then tell Queued again if there is any
    kSweepSilent,  // time to look at streams that say nothing; then tell HasStreams again if there are any
  };
  // How the connection stands.
  struct Situation {
    size_t open_streams = 0;
    size_t background_streams = 0;  // of them, those that do not keep it from being idle
    bool server = false;
    bool listening = true;  // it waits for bytes of the peer
    bool paused = false;    // it does not read, for want of memory
  };

  // `life` and `keepalive` outlive this. `sweeps`: looks at streams in the time that they have (Session::kStallRounds).
  TimeBounds(const LifeOptions& life, const KeepaliveOptions& keepalive, int sweeps)
      : life_(life), keepalive_(keepalive), sweeps_(sweeps), silence_unwatched_(life.body_timeout.count() != 0) {}

  // The connection begins, and is not read for `delay`. It lives for `age_share` (0.9..1.1) of age_max.
  void Start(base::TimePoint now, base::Nanos delay, double age_share);
  // Its age and its idle time begin now: until here it could not be used.
  void StartAnew(base::TimePoint now);
  bool delayed() const { return delayed_until_ != base::kNever; }
  void EndDelay() { delayed_until_ = base::kNever; }

  // Each of these returns when something may be due for it; kNever: it has no bound.
  // Session::pending_input() is `pending` now, and was not before.
  base::TimePoint Pending(uint64_t pending, base::TimePoint now);
  uint64_t pending() const { return pending_; }
  // Some output could not be written.
  base::TimePoint Blocked(base::TimePoint now);
  // DATA waits in streams.
  base::TimePoint Queued(base::TimePoint now);
  // There are streams, or will be, and no look at those that say nothing is planned yet: tell HasStreams.
  bool wants_streams() const { return silence_unwatched_; }
  base::TimePoint HasStreams(base::TimePoint now);
  // A drain was announced with a PING.
  base::TimePoint Announced(base::TimePoint now) { return drain_answer_by_ = now + kDrainAnswer; }

  void Heard(base::TimePoint now) {
    last_heard_ = now;
    only_answer_ = false;
  }
  // What was heard last is the answer to our PING.
  void PingAnswered() {
    ping_sent_ = false;
    only_answer_ = true;
  }
  void Wrote() { blocked_since_ = base::kNever; }
  // The last stream has ended.
  void Idle(base::TimePoint now) { idle_since_ = now; }
  // No new streams from here on; those open have age_grace.
  void Retire(base::TimePoint now);

  // `busy_streams`: those open, but for background streams.
  base::TimePoint Next(base::TimePoint now, size_t busy_streams) const;
  Act Due(base::TimePoint now, const Situation& situation);

 private:
  base::TimePoint KeepaliveDue() const;
  Act DueForSilence(base::TimePoint now, const Situation& situation);
  Act DueForStreams(base::TimePoint now);

  const LifeOptions& life_;
  const KeepaliveOptions& keepalive_;
  const int sweeps_;
  bool silence_unwatched_;  // body_timeout is a bound, and silent_sweep_at_ is not set
  bool ping_sent_ = false;
  bool only_answer_ = false;  // nothing has come since the answer to a PING
  bool retired_ = false;      // by age or idleness: closed at age_at_ at the latest
  uint64_t pending_ = 0;      // Session::pending_input(), begun at
  base::TimePoint pending_since_{};
  base::TimePoint last_heard_{};
  base::TimePoint ping_at_{};  // of the last PING of ours
  base::TimePoint idle_since_{};
  base::TimePoint blocked_since_ = base::kNever;  // the socket has taken nothing since
  base::TimePoint unread_sweep_at_ = base::kNever, silent_sweep_at_ = base::kNever;
  base::Nanos age_{};  // age_share of age_max; 0: no bound
  base::TimePoint age_at_ = base::kNever;
  base::TimePoint drain_answer_by_ = base::kNever;
  base::TimePoint delayed_until_ = base::kNever;  // nothing is read until then
};

}  // namespace sluice::http2
