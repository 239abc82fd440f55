// `sluicectl upgrade` and `sluicectl processes`: a new process takes the running one's place; and which there are.
#pragma once

#include <functional>
#include <string>

#include "sluice/admin/v1/admin.grpc.pb.h"
#include "sluicectl/args.h"

namespace sluice::ctl {

using ExplainStatus = std::function<int(const grpc::Status&, const std::string& reason)>;

// Waits for as long as a new process may take, whatever --timeout says, unless that is longer. Sets `*same` where
// nothing was done because the program's file is the one that runs. Returns the exit code; as RunTop.
int RunUpgrade(const Args& args, admin::v1::Admin::Stub& stub, const ExplainStatus& explain, bool* same);

// A line each: the one that serves, then those that it has replaced.
std::string PrintProcesses(const admin::v1::ListProcessesResponse& processes);

}  // namespace sluice::ctl
