// MakeAdminService: the RPCs of sluice.admin.v1.Admin, each one a call of the Backend, if its caller may make it.
#pragma once

#include <memory>

#include "admin/access.h"
#include "admin/backend.h"

namespace grpc {
class Service;
}

namespace sluice::admin {

// A synchronous service: a handler may block for as long as the Backend does. Both must outlive it.
std::unique_ptr<grpc::Service> MakeAdminService(Backend& backend, const Access& access);

}  // namespace sluice::admin
