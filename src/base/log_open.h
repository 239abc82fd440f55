// OpenLog: opens a log file for appending so that no other user of the host decides where the lines go, or reads them.
#pragma once

#include <string>

#include "base/error.h"

namespace sluice::base {

// Permissions of a log file that is created: its owner and its group. A setgid directory chooses the group; a file that
// is there already (logrotate's `create`) keeps what it has.
inline constexpr unsigned kLogMode = 0640;

// A descriptor (O_APPEND, O_CLOEXEC, not inherited) of the file at `path`, which is created where it is missing. A
// symbolic link at `path` is followed where root or this process's user owns it, so that /dev/stdout works, and refused
// where it is another user's. `flags`: further ones of open(2), as O_NONBLOCK. kIo with the reason. Any thread.
Result<int> OpenLog(const std::string& path, int flags);

}  // namespace sluice::base
