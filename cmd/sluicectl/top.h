// `sluicectl top`: looks at the daemon again and again, and shows what has happened between two looks.
#pragma once

#include <functional>
#include <string>

#include "sluice/admin/v1/admin.grpc.pb.h"
#include "sluicectl/args.h"

namespace sluice::ctl {

// On a terminal a screen until q or Ctrl-C; else, and with --once, one table. Returns the exit code; where the daemon
// does not answer, that of `explain`, which tells why, with the daemon's reason or an empty one.
int RunTop(const Args& args, admin::v1::Admin::Stub& stub,
           const std::function<int(const grpc::Status&, const std::string& reason)>& explain);

}  // namespace sluice::ctl
