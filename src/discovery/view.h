// DiscoveryView: what people are shown of a cluster's source, and the states that it can be in (list_keeper.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace sluice::discovery {

enum class KeeperState : uint8_t {
  kWaiting,      // for a first answer
  kDue,          // a list is to be put in force
  kCurrent,      // what the source said last is in force
  kHeld,         // it has said that there are no endpoints, not long enough
  kUnconfirmed,  // it has given a list that moves more than moved_max, and is asked again
  kRefused,      // its list cannot be put in force
  kOverridden,   // a list by RPC is
};
std::string_view ToString(KeeperState state);

struct DiscoveryView {
  std::string source;
  KeeperState state = KeeperState::kWaiting;
  bool had_list = false;
  std::optional<base::Nanos> answered_ago, changed_ago;  // unset: not by this process
  std::string error;
};

}  // namespace sluice::discovery
