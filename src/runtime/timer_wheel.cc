#include "runtime/timer_wheel.h"

#include <bit>

namespace sluice::runtime {
namespace {

constexpr base::Nanos kTick = std::chrono::milliseconds(1);

}  // namespace

TimerWheel::TimerWheel(base::TimePoint start) : start_(start) {}

void TimerWheel::Arm(Timer& timer, base::TimePoint when) {
  timer.Unlink();
  if (when == base::kNever) return;
  // Rounded up: never early. The present tick's slot has been emptied already, so the earliest is the next one.
  uint64_t tick = when <= start_ ? 0 : static_cast<uint64_t>((when - start_ - base::Nanos(1)) / kTick) + 1;
  if (tick <= tick_) tick = tick_ + 1;
  timer.tick_ = tick;
  Insert(timer);
}

// Level L holds what is 64^L .. 64^(L+1) - 1 ticks away, one slot for 64^L ticks. What is further away than
// the top level reaches waits in its farthest slot and is inserted again from there.
void TimerWheel::Insert(Timer& timer) {
  constexpr uint64_t kReach = (uint64_t{1} << (kSlotBits * kLevels)) - 1;
  uint64_t tick = timer.tick_;
  if (tick - tick_ > kReach) tick = tick_ + kReach;
  const uint64_t distance = tick - tick_;
  const int level = distance < kSlots ? 0 : (63 - std::countl_zero(distance)) / kSlotBits;
  const size_t slot = (tick >> (level * kSlotBits)) & (kSlots - 1);
  slots_[level][slot].PushBack(timer);
  occupied_[level] |= uint64_t{1} << slot;
}

size_t TimerWheel::Advance(base::TimePoint now) {
  const uint64_t target = now <= start_ ? 0 : static_cast<uint64_t>((now - start_) / kTick);
  // All that is due is collected first and fired after tick_ is final: what a callback arms is due at a later
  // Advance even if its time has passed, so one that re-arms itself cannot keep us here. A callback that
  // destroys or disarms another due timer unlinks it from this list.
  Slot due;
  while (tick_ < target) {
    tick_ = NextTickOfInterest(target);
    for (int level = 1; level < kLevels && (tick_ & ((uint64_t{1} << (level * kSlotBits)) - 1)) == 0; ++level) {
      Cascade(level);
    }
    const size_t slot = tick_ & (kSlots - 1);
    due.Splice(slots_[0][slot]);
    occupied_[0] &= ~(uint64_t{1} << slot);
  }
  size_t fired = 0;
  while (Timer* timer = due.PopFront()) {
    ++fired;
    timer->OnTimer(now);
  }
  return fired;
}

// The next tick at which a slot has to be opened, at most `target`. Empty levels are leapt over.
uint64_t TimerWheel::NextTickOfInterest(uint64_t target) const {
  uint64_t next = target;
  for (int level = 0; level < kLevels; ++level) {
    if (occupied_[level] == 0) continue;
    const uint64_t opens = NextOpening(level);
    if (opens < next) next = opens;
  }
  return next;
}

// The tick at which the first slot of `level` that may hold timers comes up.
uint64_t TimerWheel::NextOpening(int level) const {
  const uint64_t position = tick_ >> (level * kSlotBits);
  const int shift = static_cast<int>((position + 1) & (kSlots - 1));
  const int ahead = std::countr_zero(std::rotr(occupied_[level], shift)) + 1;
  return (position + ahead) << (level * kSlotBits);
}

void TimerWheel::Cascade(int level) {
  const size_t slot = (tick_ >> (level * kSlotBits)) & (kSlots - 1);
  if ((occupied_[level] & (uint64_t{1} << slot)) == 0) return;
  occupied_[level] &= ~(uint64_t{1} << slot);
  Slot moving;
  moving.Splice(slots_[level][slot]);
  while (Timer* timer = moving.PopFront()) Insert(*timer);
}

void TimerWheel::Clear() {
  for (auto& level : slots_) {
    for (Slot& slot : level) {
      while (slot.PopFront() != nullptr) {
      }
    }
  }
  occupied_.fill(0);
}

base::TimePoint TimerWheel::NextExpiry() const {
  uint64_t first = UINT64_MAX;
  for (int level = 0; level < kLevels; ++level) {
    while (occupied_[level] != 0) {
      const uint64_t opens = NextOpening(level);
      const size_t slot = (opens >> (level * kSlotBits)) & (kSlots - 1);
      if (!slots_[level][slot].empty()) {
        if (opens < first) first = opens;
        break;
      }
      occupied_[level] &= ~(uint64_t{1} << slot);  // its timers were disarmed
    }
  }
  if (first == UINT64_MAX) return base::kNever;
  if (first > static_cast<uint64_t>((base::kNever - start_) / kTick)) return base::kNever;
  return start_ + static_cast<int64_t>(first) * kTick;
}

}  // namespace sluice::runtime
