// DumpDiff: what differs between two dumps, by the paths of the keys.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sluice::config {

// Lines of what `before` has and `after` has not ("- clusters[users].connect_timeout: 2s"), or has otherwise ("+ ...").
// Items of a list are known by their names: one that is there on one side only is one line, and so is the order of
// those that are there on both. Empty: they say the same. kInvalidArgument: one of them is no YAML map.
base::Result<std::vector<std::string>> DiffDumps(std::string_view before, std::string_view after);

}  // namespace sluice::config
