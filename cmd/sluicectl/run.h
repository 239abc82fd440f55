// Run: sends a command to the daemon and prints its answer.
#pragma once

#include "args.h"

namespace sluice::ctl {

enum ExitCode : int { kDone = 0, kRefused = 1, kUsage = 2, kUnreachable = 3 };

// For every command but help, version and completion. Prints to stdout and stderr.
int Run(const Args& args);

}  // namespace sluice::ctl
