// HandoffController: which of a worker's new calls run elsewhere. One a worker, which owns it.
//
// A call that moves costs about a quarter more than one that stays, and waking another core 40 to 400 us. So calls move
// only while the worker is busy, several at a time, and only as many as even out the CPU time of the threads:
//
//   idle --load at least kBusy.idle--> active --load below kBusy.active--> idle
//
//   load: the part of a period that the worker would be busy if all calls stayed. Where calls come kBurst a turn or
//   more the marks are lower (kBusyInBursts): a worker that others keep off its core is behind though it waits for much
//   of the time.
//
//   active: each period, for each target, share += kGain * (own CPU - target's CPU) / (own CPU + target's CPU)
//
// An integral controller: it comes to rest where the threads use the same, whatever a call costs, and at zero where all
// workers have connections of their own that keep them busy. Shares become whole turns: all calls of a turn go to one
// target or stay, and what is owed is carried on, because half a batch costs each side as many system calls as a whole
// one.
//
// CPU time, not time between two waits: where there are more runnable threads than cores the latter says nothing.
// Costs: one system call a target and period, no clock but the turn's; nothing a call while idle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.h"

namespace sluice::proxy {

class HandoffController {
 public:
  static constexpr base::Nanos kPeriod = std::chrono::milliseconds(10);
  struct Marks {
    double idle, active;
  };
  static constexpr Marks kBusy{0.6, 0.4}, kBusyInBursts{0.2, 0.1};
  static constexpr double kBurst = 16;
  static constexpr double kGain = 0.35;
  // How much of a call's work its connection's worker is rid of when it moves: to tell what the load would be.
  static constexpr double kMovedPart = 0.5;
  // Other workers looked at: those that follow in order, so that many workers share what many have to give.
  static constexpr size_t kTargetsMax = 8;
  // Fewer calls than this are not worth a message.
  static constexpr uint32_t kCallsMin = 4;

  struct Sample {
    double busy;                  // part of the time that this worker did not wait
    double own_cpu;               // CPU time over wall time, this worker's thread
    std::span<const double> cpu;  // each target's
    double moved;                 // part of the new calls that moved
    double burst;                 // new calls in a turn that had some
  };

  // `targets`: the number of other workers looked at.
  explicit HandoffController(size_t targets) : shares_(targets), rest_(targets) {}

  bool active() const { return active_; }
  // Once a period.
  void Update(const Sample& sample);
  // Of `calls` new ones, how many go to each target: `out` has one place each. All to one target, or none. Active only.
  void Plan(uint32_t calls, std::span<uint32_t> out);
  // Of all new calls, the part that is to go to `target`.
  double share(size_t target) const { return shares_[target]; }

 private:
  bool active_ = false;
  std::vector<double> shares_;  // of all calls; their sum is at most 1
  std::vector<double> rest_;    // calls owed to the target, or below zero
};

}  // namespace sluice::proxy
