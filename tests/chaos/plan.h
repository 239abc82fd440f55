// Plan: what a seed's run is made of: which peers misbehave, the proxy's configuration, how much of everything.
#pragma once

#include <cstdint>
#include <string>

#include "chaos/dice.h"
#include "config/config.h"

namespace sluice::chaos {

struct Plan {
  // Peers that do anything. Without: delays, cuts, small windows, and whatever else is within the protocol.
  bool bad_clients = false, bad_backends = false;
  // Limits that refuse, deadlines that pass. Without: limits that make calls wait, and no deadlines.
  bool tight = false;
  // Both only with `tight`. Bounds on time; and on what is held beyond what is at the start, 0: none.
  bool impatient = false;
  int64_t buffered_bytes_max = 0;
  bool hasty = false;  // no peer has delays, so that much happens at once
  enum class Stop : uint8_t { kAtEnd, kDrain, kStop } stop = Stop::kAtEnd;  // the latter two in the middle
  uint32_t clients = 1, backends = 1, calls = 1, changes = 0;
  size_t body_max = 50;
  Micros span{0};  // calls begin within it
  size_t proxy_read_max = 0, proxy_write_max = 0, wire_bytes = 65536;
  config::Config config;

  static constexpr size_t kSmall = 500;  // bodies
  bool small() const { return body_max <= kSmall; }
  // Connections may be ended for what they cost, and calls go with them.
  bool MayLoseCalls() const { return impatient || buffered_bytes_max > 0; }
  // A call between peers that keep the protocol must succeed.
  bool CallsMustSucceed() const { return !bad_backends && !tight; }
};

Plan DrawPlan(Dice& dice);
// Another configuration with the same clusters and routes by name, for a reload.
config::Config Mutated(const config::Config& config, const Plan& plan, Dice& dice);
// "10.0.0.1:1" for 0.
std::string BackendAddress(uint32_t index);
inline constexpr uint32_t kBackendsEver = 8;  // that any list of endpoints has

}  // namespace sluice::chaos
