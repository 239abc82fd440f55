// ListSource: where a cluster's endpoint list comes from.
#pragma once

#include <cstdint>

namespace sluice::upstream {

// A list by RPC stays over a reload, until the configuration's list of its cluster changes. In a cluster with a source
// the list in force stays, whatever the configuration lists, until the source gives another.
enum class ListSource : uint8_t {
  kConfig,
  kRpc,  // changed by hand since the configuration was read; kept in the state file
  kDiscovery,
};

}  // namespace sluice::upstream
