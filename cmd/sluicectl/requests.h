// The admin API's requests, as a command line asks for them.
#pragma once

#include "sluice/admin/v1/admin.pb.h"
#include "sluicectl/args.h"

namespace sluice::ctl {

admin::v1::ChangeLimitRequest MakeLimitChange(const Args& args);
admin::v1::ChangeEndpointsRequest MakeChange(const Args& args);
admin::v1::SetEndpointHealthRequest MakeHealthOrder(const Args& args);
admin::v1::AddFaultRequest MakeFault(const Args& args);
admin::v1::GetExplanationRequest MakeQuestion(const Args& args);

}  // namespace sluice::ctl
