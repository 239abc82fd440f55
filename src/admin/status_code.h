// StatusCode: the one place where an error of ours becomes the gRPC status code that a client of the admin
// API sees.
#pragma once

#include "base/error.h"

namespace sluice::admin {

// The number of a grpc::StatusCode. Never UNAVAILABLE: a client may take that to mean that no daemon
// answered.
int StatusCode(base::ErrorKind kind);

}  // namespace sluice::admin
