// WaitReady: what the `wait-ready` command does: asks the daemon until it is ready, or the time is over.
#pragma once

#include <memory>

#include "sluicectl/args.h"

namespace grpc {
class Channel;
}

namespace sluice::ctl {

// An exit code. What is missing, or what went wrong, is on stderr; stdout stays empty. Blocks for Args::wait at most.
int WaitReady(const Args& args, const std::shared_ptr<grpc::Channel>& channel);

}  // namespace sluice::ctl
