// FloodCharges: what a session's peer does that brings no call forward, in units of its budgets (flood/budget.h), and
// the useful work that pays for it (docs/http2.md, "Floods").
//
// Spending is one comparison; only where a budget is used up are time and work looked at. Not thread-safe: a session's.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/clock.h"
#include "http2/flood/budget.h"
#include "http2/flood/kind.h"
#include "http2/options.h"

namespace sluice::http2 {

// What things cost; one unit each where nothing else is said.
// A SETTINGS frame costs one more for each of these that it has in it, or moves the window of.
inline constexpr uint32_t kSettingsPerUnit = 16;
inline constexpr size_t kStreamsPerUnit = 16;
// DATA of less: a gRPC message has five bytes before its first.
inline constexpr uint32_t kTinyDataBytes = 5;
inline constexpr uint32_t kPaddingCost = 2;  // of tiny DATA that is mostly padding
// RFC 9113 6.10 asks for no size of CONTINUATION; an honest sender fills all but the last.
inline constexpr uint32_t kSmallContinuationBytes = 1024;
// DATA on a stream that was reset, beyond what could be on its way: one for the frame, and one for each of
inline constexpr uint32_t kLateBytesPerUnit = 1024;
// A message of TLS after the handshake may cost two key schedules (RFC 8446 4.6.3): some hundred times a frame.
inline constexpr uint32_t kTlsMessageCost = 25;
// Decoding a field for nothing, beside handling a frame.
inline constexpr uint32_t kDroppedFieldsPerUnit = 16;
// Reading a block for nothing, by its bytes: one literal may fill it.
inline constexpr uint32_t kBlockBytesPerUnit = 16 * 1024;
// A window opened by less than this, for a stream that has more to send, is suspicious (CVE-2019-9511).
inline constexpr uint32_t kDribbleBytes = 1024;
inline constexpr uint32_t kDribbleCost = 8;

// Useful work of a session since its start; what it pays for grows with it, modulo 2^32.
struct FloodWork {
  uint64_t frames_sent = 0;
  uint64_t data_bytes_sent = 0;
  uint64_t data_frames_received = 0;
  uint64_t data_bytes_received = 0;
  uint64_t streams_opened = 0;
  uint32_t streams_completed = 0;  // ended by both sides
  uint32_t pieces_joined = 0;      // what producers gave at a time, in DATA frames of what had to wait
};

class FloodCharges {
 public:
  explicit FloodCharges(const SessionOptions& options) : budgets_(options) {}

  // The peer's first frame has come: from here on time fills the budgets.
  void Begin() { budgets_.Begin(now_); }
  // A read at `now`. `last_id`: the highest stream that the peer has opened so far.
  void Tick(base::TimePoint now, uint32_t last_id) {
    if (now >= mark_due_) [[unlikely]]
      AgeStreams(now, last_id);
    now_ = now;
  }

  // Takes `cost` units. False: they are not there yet; Earn, before the peer is called a flood.
  bool Spend(Budget budget, uint32_t cost) { return budgets_.Spend(budget, cost); }
  // Adds what time and `work` have paid for, and spends. A whole budget is the most that one thing can cost. False: the
  // budget is used up.
  bool Earn(Budget budget, uint32_t cost, const FloodWork& work);
  uint32_t limit(Budget budget) const { return budgets_.limit(budget); }

  // The stream may be younger than twice kYoungStream, and was not opened before the last silence of that length.
  bool IsYoung(uint32_t id) const { return id > old_id_; }
  // An answer to a PING will be sent: a frame that is no useful work.
  void NotePingAnswer() { ++pings_answered_; }
  // A DATA frame of less than kTinyDataBytes has come, or a late one that is not allowed: neither is it.
  void NoteTinyData() { ++tiny_data_; }

  // We have reset a stream whose peer could have sent `window` bytes: what is on its way is no fault. `most`: the
  // connection's window, which all streams share; the peer hears of the reset before it hears of more.
  void AllowLate(uint32_t window, uint32_t most) {
    late_allowed_ = static_cast<uint32_t>(std::min<uint64_t>(most, uint64_t{late_allowed_} + window));
  }
  // A DATA frame of that size has come for a stream that we have reset. False: its peer goes on though it was told.
  bool TakeLate(uint32_t bytes) {
    if (bytes > late_allowed_) return false;
    late_allowed_ -= bytes;
    return true;
  }

  // What the connection was ended for; kNone: it was not.
  FloodKind kind() const { return kind_; }
  void End(FloodKind kind) { kind_ = kind; }

 private:
  static constexpr std::chrono::milliseconds kYoungStream{25};

  void AgeStreams(base::TimePoint now, uint32_t last_id);
  uint32_t Units(Budget budget, const FloodWork& work) const;

  FloodBudgets budgets_;
  base::TimePoint now_;       // of the last read
  base::TimePoint mark_due_;  // kYoungStream after young_id_ was the highest
  // Streams with ids up to old_id_ are older than kYoungStream; the others may be, up to twice that.
  uint32_t young_id_ = 0;
  uint32_t old_id_ = 0;
  uint32_t pings_answered_ = 0;
  uint32_t tiny_data_ = 0;
  uint32_t late_allowed_ = 0;
  FloodKind kind_ = FloodKind::kNone;
};

}  // namespace sluice::http2
