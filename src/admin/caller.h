// Identify: the caller of an RPC, by what gRPC knows of its connection.
#pragma once

#include "admin/access.h"

namespace grpc {
class ServerContext;
}

namespace sluice::admin {

class LocalPeers;

// The names are read from the certificate itself, by the same rules as on the data path (net::NamesOf): gRPC's own
// properties cut a name at a NUL.
Caller Identify(const grpc::ServerContext& context, const LocalPeers& locals);

}  // namespace sluice::admin
