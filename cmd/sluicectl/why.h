// Why a call failed, in plain words: the admin API's record of it, phase by phase.
#pragma once

#include <string>

#include "sluice/admin/v1/admin.pb.h"

namespace sluice::ctl {

// The failed calls of the answer as a table, the newest first; below it what is not there.
std::string PrintFailedCalls(const admin::v1::ListFailedCallsResponse& calls);

// What happened to one call.
std::string PrintWhy(const admin::v1::FailedCall& call);

// Why there is no call of that id in the answer, and where to look instead.
std::string NoSuchCall(const admin::v1::ListFailedCallsResponse& calls, const std::string& id);

}  // namespace sluice::ctl
