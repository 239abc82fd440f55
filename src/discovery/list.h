// List: a cluster's endpoints as a source gives them. Sources give the same list in any order; here it has one.
#pragma once

#include <algorithm>
#include <vector>

#include "upstream/options.h"

namespace sluice::discovery {

using List = std::vector<upstream::EndpointOptions>;

// By name, so that lists can be compared.
inline void Sort(List& list) {
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
}

}  // namespace sluice::discovery
