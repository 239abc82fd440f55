// MakeChannel: the connection to the daemon's admin RPC, with TLS if the command line says so.
#pragma once

#include <memory>
#include <string>

#include "sluicectl/args.h"

namespace grpc {
class Channel;
}

namespace sluice::ctl {

// kIo, kInvalidArgument: a file of --tls-*; names the flag. The first call finds out whether a daemon answers.
base::Result<std::shared_ptr<grpc::Channel>> MakeChannel(const Args& args);

// All of a file that is not larger than `bytes_max`. `flag` is for the message. kIo, kTooLarge.
base::Result<std::string> ReadFile(std::string_view flag, const std::string& path, size_t bytes_max);

}  // namespace sluice::ctl
