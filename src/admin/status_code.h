// StatusCode: the one place where an error of ours becomes the gRPC status code that a client of the admin
// API sees.
#pragma once

#include "base/error.h"
#include "proxy/grpc_status.h"

namespace sluice::admin {

// Never UNAVAILABLE: a client may take that to mean that no daemon answered.
proxy::GrpcCode StatusCode(base::ErrorKind kind);

}  // namespace sluice::admin
