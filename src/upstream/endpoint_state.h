// An endpoint's states, as views show them and as calls go by them.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice::upstream {

// Of an endpoint in or behind a list.
enum class EndpointState : uint8_t {
  kActive,
  kDraining,  // in the list, takes no new calls
  kRemoved,   // in no list any more; calls in flight finish
};
std::string_view ToString(EndpointState state);

// Whether calls may go to it, of all that is known on any worker.
enum class EndpointHealth : uint8_t { kHealthy, kBackoff, kRemoved };

// Of its connections.
enum class EndpointLink : uint8_t { kIdle, kConnecting, kConnected, kBackoff };
std::string_view ToString(EndpointLink link);

}  // namespace sluice::upstream
