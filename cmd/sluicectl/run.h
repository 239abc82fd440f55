// Run: sends a command to the daemon and prints its answer.
#pragma once

#include "sluicectl/args.h"

namespace sluice::ctl {

enum ExitCode : int { kDone = 0, kRefused = 1, kUsage = 2, kUnreachable = 3 };

// Prints to stdout and stderr; asks the daemon, but for kPrint.
int Run(const Args& args);

}  // namespace sluice::ctl
