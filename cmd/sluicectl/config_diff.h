// ConfigDiff: prints how the configuration of a daemon differs from a file, with the exit codes of diff(1).
#pragma once

#include <string>
#include <vector>

namespace sluice::ctl {

enum DiffCode : int { kDiffSame = 0, kDiffDiffers = 1, kDiffTrouble = 2 };

// `running`: the dump of what is in force. `file`: read here, with this process's environment; empty: `wanted` is the
// dump to compare with, and `warnings` are what needs a restart.
int PrintConfigDiff(const std::string& running, const std::string& file, std::string wanted,
                    std::vector<std::string> warnings);

}  // namespace sluice::ctl
