// Changes: what a configuration has otherwise than the one before it, thing by thing, for people.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace sluice::config {

// "cluster users: changed", "route 3 (login): added", "listener in: removed", "cache: changed"; empty: nothing. Lists
// of endpoints are part of their clusters.
std::vector<std::string> Changes(const Config& before, const Config& after);

}  // namespace sluice::config
