// ListSource: where a cluster's endpoint list comes from.
#pragma once

#include <cstdint>

namespace sluice::upstream {

// A list that is not the configuration's stays over a reload, until the configuration's list of its cluster changes.
enum class ListSource : uint8_t {
  kConfig,
  kRpc,  // changed by hand since the configuration was read; kept in the state file
  kDiscovery,
};

}  // namespace sluice::upstream
