// Intake: how many requests one worker takes off its clients' connections in a turn. Without a bound, thousands of
// connections with requests ready at once become calls before the first of these has run: memory grows beyond any
// limit, and a client with a single call waits behind all of them.
//
// A turn takes kTurnCalls requests as they come. When these are spent the worker is *pressed*: the other connections of
// the turn are deferred, what they have sent stays in their sockets, and they are read in turns of their own, a bite at
// a time, kDeferredCalls requests in each. Light connections go first: those that have few streams open (kLightStreams)
// and whose last read began few calls. While the process has as many calls as its memory limit suggests
// (CallWatch::TooManyCalls), only these are read, and of the others one bite every kTick, so that resets and window
// updates come through.
//
// A worker that is not pressed pays a few instructions for each read. Thread safety: its worker's.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "base/intrusive_list.h"
#include "runtime/timer_wheel.h"
#include "runtime/worker.h"

namespace sluice::http2 {

// A connection whose turn to be read may have yet to come.
struct DeferredTag {};
class DeferredNode : public base::ListNode<DeferredTag> {
 public:
  // Reads a little; what is left in the socket comes with the reactor's next turn. It may defer itself again.
  virtual void ReadDeferred() = 0;
  // It has few streams open, and begins few calls with a read.
  virtual bool IsLight() const = 0;

 protected:
  ~DeferredNode() = default;
};

class CallWatch {
 public:
  // The process has so many calls that more of them would make memory scarce.
  virtual bool TooManyCalls() const { return false; }

 protected:
  ~CallWatch() = default;
};

class Intake final : private runtime::IoHook, private runtime::Timer {
 public:
  static constexpr uint32_t kTurnCalls = 512;
  static constexpr uint32_t kDeferredCalls = 128;
  // A light connection has fewer open streams, and its last read began one call at least and kManyCalls at most.
  static constexpr size_t kLightStreams = 4;
  // Of a pressed worker's reads: of a connection whose last read began more than kManyCalls, or that has begun none
  // yet; and of others.
  static constexpr size_t kBiteBytes = 2048, kMouthfulBytes = 16 * 1024;
  static constexpr uint32_t kManyCalls = 8;
  // Connections that a tick reads at most where there are too many calls.
  static constexpr uint32_t kTickReads = 256;
  static constexpr std::chrono::milliseconds kTick{5};

  explicit Intake(runtime::Worker& worker) : worker_(worker) {}
  ~Intake();

  // A client's connection has begun `calls` with one read.
  void Took(uint32_t calls) {
    if (const base::TimePoint now = worker_.now(); turn_ != now) {
      turn_ = now;
      taken_ = 0;
    }
    taken_ += calls;
    if (taken_ >= kTurnCalls) [[unlikely]]
      Press();
  }
  bool pressed() const { return pressed_; }
  // Only while pressed: whether the connection is to wait for its turn. True: the intake reads it then.
  // `watch`: null: there are never too many calls.
  bool Defer(DeferredNode& connection, const CallWatch* watch);

 private:
  using Deferred = base::IntrusiveList<DeferredNode, DeferredTag>;
  void Press();
  bool TooMany() const;
  static bool ReadOne(Deferred& from);
  void OnIoEnd() override;
  void OnTimer(base::TimePoint now) override;

  runtime::Worker& worker_;
  const CallWatch* watch_ = nullptr;
  base::TimePoint turn_{};
  uint32_t taken_ = 0;    // in the turn
  bool pressed_ = false;  // the timer is armed
  bool spent_ = false;    // a turn's calls were, since the last tick
  Deferred light_, heavy_;
};

}  // namespace sluice::http2
