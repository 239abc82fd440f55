// DefaultAddress: the daemon's socket where neither --address nor SLUICE_ADMIN names it.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace sluice::ctl {

// Where a daemon without `admin.grpc` may listen, in the order in which it is looked for. Null: not set.
std::vector<std::string> AdminSockets(const char* runtime_directory, const char* xdg_runtime_dir);

// The address of the first path at which there is a socket; of the last one where there is none. kConflict: the socket
// is in a folder that all may write to, and neither this user's nor root's, so another user may have put it there.
base::Result<std::string> FindAddress(const std::vector<std::string>& paths);

}  // namespace sluice::ctl
