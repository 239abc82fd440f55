// Init: writes a first configuration, which works and says what to change in it.
#pragma once

#include <string>
#include <string_view>

namespace sluice::daemon {

// config/first.yaml.
std::string_view FirstConfig();

// To `path`, which must not exist; empty: to the standard output. The exit code: 0, or 1 after an error was printed.
int WriteFirstConfig(const std::string& path);

}  // namespace sluice::daemon
