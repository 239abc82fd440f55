// The process's log: where it goes, its level, and reopening its file after rotation.
#pragma once

#include <string_view>

#include "base/error.h"
#include "config/config.h"

namespace sluice::server {

// Installs spdlog's default logger, asynchronous so that a slow disk delays no worker; gRPC's lines go there too. Once,
// before other threads. kIo if the file cannot be opened.
base::Status SetUpLog(const config::LogOptions& options);
void SetLogLevel(config::LogLevel level);
// "trace".."off"; kInvalidArgument names what is allowed.
base::Result<config::LogLevel> ParseLogLevel(std::string_view text);
config::LogLevel CurrentLogLevel();
// Opens the log's file anew (SIGUSR1).
base::Status ReopenLog();
// Writes what is queued and stops the background thread. At the end of the process.
void ShutDownLog();

}  // namespace sluice::server
