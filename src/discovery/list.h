// List: a cluster's endpoints as a source gives them. Sources give the same list in any order; here it has one, unless
// the order matters.
#pragma once

#include <algorithm>
#include <vector>

#include "upstream/options.h"

namespace sluice::discovery {

using List = std::vector<upstream::EndpointOptions>;

// By name, so that lists can be compared. Not so for clusters whose ring goes by the order of the list
// (DiscoveryOptions::ordered): there another order is another list.
inline void Sort(List& list) {
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
}

}  // namespace sluice::discovery
