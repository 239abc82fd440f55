// TimerWheel: hierarchical timing wheel of one worker (Varghese and Lauck 1987): O(1) arm and cancel, no
// allocation.
//
// Resolution is 1 ms; a timer never fires early. Not thread-safe: only the owning worker touches it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "base/intrusive_list.h"

namespace sluice::runtime {

// Derive, override OnTimer, Arm. The destructor disarms. Lives and dies on its wheel's worker.
class Timer : public base::ListNode<Timer> {
 public:
  virtual void OnTimer(base::TimePoint now) = 0;
  bool armed() const { return linked(); }

 protected:
  ~Timer() = default;

 private:
  friend class TimerWheel;
  uint64_t tick_ = 0;  // when to fire, in ticks since the wheel's start
};

class TimerWheel {
 public:
  explicit TimerWheel(base::TimePoint start);

  // Arms or re-arms. A time in the past fires at the next Advance; kNever disarms.
  void Arm(Timer& timer, base::TimePoint when);
  void Disarm(Timer& timer) { timer.Unlink(); }

  // Runs every timer that is due; a timer may arm or destroy itself and others from OnTimer. Returns how many
  // ran.
  size_t Advance(base::TimePoint now);
  // Disarms all.
  void Clear();
  // A lower bound of when the next timer is due: waking then and calling Advance loses nothing. kNever when
  // empty.
  base::TimePoint NextExpiry() const;

 private:
  static constexpr int kLevels = 5;
  static constexpr int kSlotBits = 6;
  static constexpr size_t kSlots = size_t{1} << kSlotBits;
  using Slot = base::IntrusiveList<Timer, Timer>;

  void Insert(Timer& timer);
  uint64_t NextTickOfInterest(uint64_t target) const;
  uint64_t NextOpening(int level) const;
  void Cascade(int level);

  base::TimePoint start_;
  uint64_t tick_ = 0;  // ticks handled so far
  std::array<std::array<Slot, kSlots>, kLevels> slots_;
  // One bit a slot: set if the slot may hold timers (a disarmed timer leaves the bit; Advance clears it).
  mutable std::array<uint64_t, kLevels> occupied_{};
};

}  // namespace sluice::runtime
