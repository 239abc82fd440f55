// SpreadDrain: tells the connections of a worker to go one after the other, evenly over a time, so that not all clients
// connect anew in the same moment, where another process accepts them already. HAProxy's close-spread-time does so,
// too.
//
// Thread safety: its worker's.
#pragma once

#include <cstddef>

#include "base/clock.h"
#include "proxy/downstream/connection.h"
#include "runtime/timer_wheel.h"
#include "runtime/worker.h"

namespace sluice::proxy {

class SpreadDrain final : public runtime::Timer {
 public:
  // The shortest time between two; more are told at once where there are many.
  static constexpr std::chrono::milliseconds kPauseMin{1};

  SpreadDrain(runtime::Worker& worker, ClientConnections& connections) : worker_(worker), connections_(connections) {}

  // The first is told now, the last before `over` has passed; 0: all now. Those that come later are not its concern.
  void Begin(base::Nanos over);
  void OnTimer(base::TimePoint now) override;

 private:
  runtime::Worker& worker_;
  ClientConnections& connections_;
  base::TimePoint begun_{};
  base::Nanos over_{};
  size_t all_ = 0, told_ = 0;
};

}  // namespace sluice::proxy
