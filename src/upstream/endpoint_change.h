// EndpointChange: one change of a cluster's endpoint list, and what it makes of the list, as values: no locks, no
// publication.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

namespace sluice::upstream {

struct ClusterState;
struct EndpointOptions;
struct ListChange;
struct WantedEndpoint;

struct EndpointSpec {
  std::string name;     // empty: the address
  std::string address;  // needed for kAdd and kReplace
  double weight = 1;
  uint32_t priority = 0;  // these two of kAdd and kReplace
  std::string locality;
};

// Applied whole or not at all.
struct EndpointChange {
  // kReset: back to the list of the configuration, or of the cluster's source; names no endpoints.
  enum class Kind : uint8_t { kReplace, kAdd, kRemove, kReweight, kDrain, kUndrain, kReset } kind = Kind::kAdd;
  std::string cluster;
  std::vector<EndpointSpec> endpoints;       // kRemove, kDrain, kUndrain look at the name only
  std::optional<uint64_t> expected_version;  // kConflict if it is not the one in force
  bool preview = false;                      // compute, change nothing
  // kDrain: the keys go away over this time, a growing part of them; 0: at once. At most DrainRamp::kOverMax.
  std::chrono::milliseconds over{0};
};

std::vector<WantedEndpoint> WantedOf(const std::vector<EndpointOptions>& endpoints);
std::vector<WantedEndpoint> WantedOf(const ClusterState& state);
// What `change` makes of the list of `before`.
std::vector<WantedEndpoint> WantedOf(const ClusterState& before, const ListChange& change);

// What the change makes of the list. Names that are missing, or there already, are errors (kNotFound,
// kInvalidArgument), so nothing happens by mistake. `now`: when a drain that takes time begins.
base::Result<ListChange> ApplyChange(const ClusterState& before, const EndpointChange& change, base::TimePoint now);

// Share of the keys that go elsewhere than before, 0..1: also those of endpoints that begin or end to drain, and not
// those of an endpoint that is removed after it was drained, which went with the drain.
double MovedShare(const ClusterState& before, const ClusterState& after);

}  // namespace sluice::upstream
