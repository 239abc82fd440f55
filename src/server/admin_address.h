// AdminAddress: where the admin RPC listens when the configuration does not say it.
#pragma once

#include <string>

namespace sluice::server {

// "unix:PATH" in a folder that is this user's own: the service's (systemd's RuntimeDirectory=), else the login's, else
// /tmp, where another user may have made the socket first. Null and empty arguments count as not set: the values of
// RUNTIME_DIRECTORY (several are separated by colons: the first is taken) and XDG_RUNTIME_DIR.
std::string DefaultAdminAddress(const char* runtime_directory, const char* xdg_runtime_dir);

}  // namespace sluice::server
