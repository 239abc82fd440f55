// MakeCsdsService: the Client Status Discovery Service (gRFC A40) on the admin port: what the control plane has sent
// and what became of it, for tools that know xDS. The role read may ask.
#pragma once

#include <memory>

#include "admin/access.h"
#include "admin/backend.h"

namespace grpc {
class Service;
}

namespace sluice::admin {

// A synchronous service. Both must outlive it.
std::unique_ptr<grpc::Service> MakeCsdsService(Backend& backend, const Access& access);

}  // namespace sluice::admin
