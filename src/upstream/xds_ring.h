// The ring that Envoy (ring_hash, XX_HASH) and gRPC (gRFC A42) build of a list: how many points each endpoint has, and
// where. HashRing::BuildXds makes a ring of it; docs/hash-ring.md
//
// Pure functions of their arguments; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace sluice::upstream {

// How many points a whole ring has: at least and at most, each in [1, kXdsRingSizeMax] (options.h).
struct XdsRingSize {
  uint32_t min = 1024;
  uint32_t max = 8 * 1024 * 1024;
  bool operator==(const XdsRingSize&) const = default;
};

// The points of each endpoint of the list, by its weight and by its place: the whole ring has about so many points that
// the smallest weight gets a whole number of them, and fractions are carried on along the list. Where `size.max` is too
// small for the list, endpoints have none. At least one endpoint has one, unless the list is empty. Weights are above
// 0; the result is exact for weights that a double holds exactly, as whole numbers are.
std::vector<uint32_t> XdsPointCounts(std::span<const double> weights, XdsRingSize size);

// Fills in the first points of the endpoint: XXH64, seed 0, of "name_0", "name_1" and so on.
void XdsPoints(std::string_view name, std::span<uint64_t> points);

}  // namespace sluice::upstream
